"""Documents: bytes of untrusted files into typed values, or the error of their kind.

A pipe could block a reader for ever, a device could fill the memory, and opening some devices has
side effects. So the type of a file is checked before it is opened, and again when it is open (it
may have been exchanged in between), and nothing above the limit is read.

The types of the fields (`msgspec`) define kinds, ranges, lengths and patterns. This module checks
what types cannot express, for all documents: format and version, the depth of nesting, and UTF-8
without lone surrogates. Not-a-number is not JSON, and numbers beyond 64 bits fit no field.

A small file of another program is text in UTF-8 or, from Windows, UTF-16; also in gzip.
"""

import errno
import json
import os
import re
import stat
import zlib
from array import array
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from uflip import _native
from uflip.errors import ResultsError, UflipError, native_errors
from uflip.units import format_size

MAX_SHOWN = 200


@dataclass(frozen=True, slots=True)
class DocumentKind:
    """A kind of document, as needed for errors about its file."""

    name: str  #: Completes "The … cannot be read".
    limit_bytes: int  #: Upper bound of the size of valid documents of this kind.
    action: str  #: Advice for a file that cannot be read.
    #: `ResultsError` for files of uflip, `UsageError` for files of users.
    error: type[UflipError] = ResultsError
    format: str = ""  #: Name of its format, in the document; empty if it has none.
    version: int = 1  #: The version that this uflip writes, and the only one that it reads.

    def check_format(self, path: Path, name: object, version: object, writer: str = "?") -> None:
        """Refuse a document of another format or version; `writer` is the uflip that wrote it."""
        if name != self.format:
            raise self.unreadable(path, f"format {_shortened(name)}", f"format {self.format!r}")
        if version != self.version:
            raise self.error(
                f"The {self.name} is of another version",
                where=str(path),
                got=f"format_version {_shortened(version)}, written by uflip {writer}",
                allowed=f"format_version {self.version}, which this uflip reads",
                action="read it with the uflip that wrote it, or make it again with this one",
            )

    def unreadable(self, path: Path, got: str, allowed: str = "") -> UflipError:
        """Return the error for a file of this kind."""
        return self.error(
            f"The {self.name} cannot be read",
            where=str(path),
            got=got,
            allowed=allowed,
            action=self.action,
        )


def _shortened(value: object) -> str:
    """Return a value of a document, which may be long."""
    text = repr(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]} ..."


def read_document(path: Path, kind: DocumentKind) -> bytes:
    """Read a whole file."""
    content = read_if_exists(path, kind)
    if content is None:
        raise _missing_file_error(path, kind)
    return content


def read_if_exists(path: Path, kind: DocumentKind) -> bytes | None:
    """Read a whole file like `read_document`; return None if it is missing."""
    # The file may grow meanwhile: the size of the content decides.
    content = _read_at_most(path, kind, kind.limit_bytes + 1)
    if content is not None:
        _check_size(path, kind, len(content))
    return content


def read_text(path: Path, kind: DocumentKind) -> str:
    """Read a whole file of UTF-8."""
    return decode_text(path, kind, read_document(path, kind))


def read_start(path: Path, kind: DocumentKind, max_bytes: int) -> bytes:
    """Read the beginning of a file that another reader reads as a whole."""
    content = _read_at_most(path, kind, max_bytes)
    if content is None:
        raise _missing_file_error(path, kind)
    return content


def _read_at_most(path: Path, kind: DocumentKind, max_bytes: int) -> bytes | None:
    """Read at most `max_bytes` of a file; return None if it is missing."""
    try:
        descriptor = _open_regular(path, kind)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise kind.unreadable(path, _system_reason(error)) from error
    with os.fdopen(descriptor, "rb") as file:
        try:
            return file.read(max_bytes) if _size(path, kind, descriptor) else b""
        except OSError as error:
            raise kind.unreadable(path, _system_reason(error)) from error


def _missing_file_error(path: Path, kind: DocumentKind) -> UflipError:
    return kind.unreadable(path, "no such file", "an existing file")


def decode_text(path: Path, kind: DocumentKind, content: bytes) -> str:
    """Convert the bytes of a document to text."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        got = f"byte 0x{content[error.start]:02x} at {error.start}, which is not UTF-8"
        raise kind.unreadable(path, got, "text in UTF-8") from error


def _open_regular(path: Path, kind: DocumentKind) -> int:
    """Open a regular file without blocking."""
    _check_regular(path, kind, path.stat().st_mode)  # opening some devices has side effects
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        _check_regular(path, kind, os.fstat(descriptor).st_mode)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _check_regular(path: Path, kind: DocumentKind, mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise kind.unreadable(path, file_type(mode), "a regular file")


def file_type(mode: int) -> str:
    """Return the type of file of a mode, as the beginning of a phrase."""
    names = {
        stat.S_IFREG: "a regular file",
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a character device",
        stat.S_IFBLK: "a block device",
    }
    return names.get(stat.S_IFMT(mode), "not a file")


def _size(path: Path, kind: DocumentKind, descriptor: int) -> int:
    """Return the size of an open file; empty ones are not read.

    Virtual files in /proc have size 0, and reading some of them blocks without end.
    """
    size = os.fstat(descriptor).st_size
    _check_size(path, kind, size)
    return size


def _check_size(path: Path, kind: DocumentKind, size: int) -> None:
    if size > kind.limit_bytes:
        limit = format_size(kind.limit_bytes)
        raise kind.unreadable(path, f"more than {limit}", f"at most {limit}")


def _system_reason(error: OSError | ValueError) -> str:
    """Return the reason of an error; a name with a null byte fails before the system call."""
    if not isinstance(error, OSError):
        return str(error)
    if error.errno == errno.ELOOP:
        return "a link that leads to itself"
    return error.strerror or str(error)


T = TypeVar("T")

# Deeper than any profile, plan or host; far below the limit of a recursive reader.
MAX_DEPTH = 64
# Nanoseconds, bytes and counts fit a signed 64-bit number, as in every other reader.
MAX_INTEGER = (1 << 63) - 1
MAX_RUNS = 100_000
"""Limit for a plan: a hundred times the longest benchmark."""
MAX_WARNINGS = 1_000
"""Limit for a document: it has one warning per code, and there are some sixty codes."""
# A file name holds 255 bytes on every file system; ours need space for endings.
MAX_NAME_BYTES = 200

Text = Annotated[str, Meta(max_length=10_000)]
Name = Annotated[str, Meta(min_length=1, max_length=500)]
# A simulated device has a parameter for each key of its profile: some 300, without the defaults.
DeviceUrl = Annotated[str, Meta(min_length=1, max_length=10_000)]
Count = Annotated[int, Meta(ge=0, le=MAX_INTEGER)]
# Used by the native part, which has 64 bits for it.
Seed = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1, le=MAX_INTEGER)]
Seconds = Annotated[float, Meta(ge=0, lt=1e10)]
Instant = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]
DigestText = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
FolderId = Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]
DecHook = Callable[[type, Any], Any]
Table = dict[str, Any]
"""Plain data whose keys other modules define."""

# Chunk size: text fragments exist only for this much of a document at a time [bytes].
_CHUNK = 1 << 16
_ESCAPE = re.compile(rb"\\*.", re.S)
_NO_STRUCTURE = bytes(set(range(256)) - set(b'"[]{}'))
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")


class _Head(Struct, frozen=True):
    format: Text | None = None
    format_version: int | None = None
    uflip_version: Text = "?"


def decode(
    path: Path, kind: DocumentKind, content: bytes, shape: type[T], dec_hook: DecHook | None = None
) -> T:
    """Convert the bytes of a document to a value of its type.

    `dec_hook` converts fields of types that msgspec does not support, see `uflip.data.spec`. The
    format and version of `kind` are checked before any other key.
    """
    if kind.format and shape is not _Head:
        head = decode(path, kind, content, _Head)
        kind.check_format(path, head.format, head.format_version, head.uflip_version)
    if nesting_depth(content) > MAX_DEPTH:
        raise kind.unreadable(path, f"more than {MAX_DEPTH} levels", f"at most {MAX_DEPTH} levels")
    try:
        return msgspec.json.decode(content, type=shape, dec_hook=dec_hook)
    except msgspec.ValidationError as error:
        raise kind.unreadable(path, _fault(error), f"the {kind.name} that uflip wrote") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise kind.unreadable(path, f"not JSON: {error}", "JSON in UTF-8") from error


def check(path: Path, kind: DocumentKind, name: str, content: object, shape: type[T]) -> T:
    """Check plain data inside a document; ignore keys that the type lacks."""
    try:
        return msgspec.convert(content, shape)
    except msgspec.ValidationError as error:
        got = f"'{name}': {_fault(error)}"
        raise kind.unreadable(path, got, f"the {kind.name} that uflip wrote") from error


def plain(document: Struct | Mapping[str, object]) -> Table:
    """Return a document, or a table of documents, as plain JSON data."""
    content: Table = msgspec.json.decode(msgspec.json.encode(document))
    return content


def nesting_depth(content: bytes) -> int:
    """Count the levels of lists and objects in a JSON text, at most.

    Runs on untrusted bytes before any parser: the time is linear in their number for every input,
    and the extra memory is that of a chunk.
    """
    depth = most = 0
    in_text = False
    for chunk in _chunks(content):
        # Pairs of backslashes first: then only a quote after a single backslash is escaped.
        unescaped = chunk.replace(b"\\\\", b"").replace(b'\\"', b"")
        parts = unescaped.translate(None, _NO_STRUCTURE).split(b'"')
        steps = array("b", b"".join(parts[in_text::2]).translate(_STEPS))
        in_text ^= len(parts) % 2 == 0
        depths = [*accumulate(steps, initial=depth)]
        depth = depths[-1]
        most = max(most, *depths)
    return most


def _chunks(content: bytes) -> Iterator[bytes]:
    """Divide a text without splitting an escape."""
    start = 0
    while start < len(content):
        end = start + _CHUNK
        if content[end - 1 : end] == b"\\" and (escape := _ESCAPE.match(content, end)):
            end = escape.end()
        yield content[start:end]
        start = end


def file_name_problem(name: str) -> str | None:
    """Return why a text cannot be the name of one of our files; None if it can.

    Examples
    --------
    >>> file_name_problem("0001-baseline-SR")
    >>> file_name_problem("../manifest")
    'a name that leads elsewhere'
    """
    if not name or len(name.encode("utf-8", "replace")) > MAX_NAME_BYTES:
        return f"a name of 1 to {MAX_NAME_BYTES} bytes"
    if "/" in name or name.startswith("."):
        return "a name that leads elsewhere"
    if not name.isprintable():
        return "a name that cannot be printed"
    return None


def _fault(error: msgspec.ValidationError) -> str:
    """Return the fault of a document in our own terms."""
    return str(error).replace("Object ", "").replace(" - at ", ", at ").replace("`", "'")


def locate_fault(error: msgspec.ValidationError) -> tuple[str, str]:
    """Return the place of a fault in a document, as `files[0].digest`, and the fault."""
    fault, _, place = str(error).partition(" - at ")
    return place.strip("`").removeprefix("$").removeprefix("."), fault.replace("`", "'")


def read_toml(path: Path, kind: DocumentKind) -> Table:
    """Read a file of TOML with the native parser.

    Python's own parser follows every dot of a key from its beginning, and takes seconds for a
    megabyte; the native one takes milliseconds.
    """
    text = read_text(path, kind).removeprefix("\ufeff")  # as some editors begin a file
    try:
        with native_errors():
            plain = _native.toml_to_json(text)
    except UflipError as error:
        raise kind.unreadable(path, error.got, error.allowed) from error
    if nesting_depth(plain.encode()) > MAX_DEPTH:
        raise kind.unreadable(path, f"more than {MAX_DEPTH} levels", f"at most {MAX_DEPTH} levels")
    content: Table = json.loads(plain)
    return content


START_BYTES = 1 << 16
_GZIP = b"\x1f\x8b"
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def read_foreign_text(path: Path, kind: DocumentKind) -> str:
    """Read the text of a whole file of another program."""
    content = unpacked(path, kind, read_document(path, kind))
    if content.startswith(_UTF16):
        try:
            return content.decode("utf-16")
        except UnicodeDecodeError as error:
            raise kind.unreadable(path, "bytes that are not UTF-16", "UTF-8 or UTF-16") from error
    return decode_text(path, kind, content.removeprefix(b"\xef\xbb\xbf"))


def start_of_text(path: Path, kind: DocumentKind) -> str:
    """Return the beginning of a file as text; empty if it cannot be read."""
    try:
        content = read_start(path, kind, START_BYTES)
    except UflipError:
        return ""
    if content.startswith(_GZIP):
        with suppress(zlib.error):
            content = zlib.decompressobj(_GZIP_WINDOW).decompress(content, START_BYTES)
    if content.startswith(_UTF16):
        return content.decode("utf-16", errors="ignore")
    return content.removeprefix(b"\xef\xbb\xbf").decode(errors="replace")


def unpacked(path: Path, kind: DocumentKind, content: bytes) -> bytes:
    """Return the content of a file of gzip, or that of any other one as it is."""
    if not content.startswith(_GZIP):
        return content
    decompressor = zlib.decompressobj(_GZIP_WINDOW)
    try:
        text = decompressor.decompress(content, kind.limit_bytes + 1)
    except zlib.error as error:
        raise kind.unreadable(path, str(error), "a whole file of gzip") from error
    if len(text) > kind.limit_bytes:
        allowed = f"up to {kind.limit_bytes} bytes"
        raise kind.unreadable(path, "more text than a file of this kind has", allowed)
    if not decompressor.eof:
        raise kind.unreadable(path, "a part of a file of gzip", "a whole one")
    return text
