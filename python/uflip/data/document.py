"""JSON into typed values: a document is valid as a whole, or an error names the fault.

The types of the fields (`msgspec`) define kinds, ranges, lengths and patterns. This module checks
what types cannot express, for all documents: the depth of nesting, and UTF-8 without lone
surrogates. Not-a-number is not JSON, and numbers beyond 64 bits fit no field.
"""

import re
from array import array
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from uflip.data.bounded_read import DocumentKind

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

    Raises
    ------
    UflipError
        Of the class in `kind`, with the fault and its position in the document.
    """
    if kind.format and shape is not _Head:
        head = decode(path, kind, content, _Head)
        kind.check_format(path, head.format, head.format_version, head.uflip_version)
    if nesting_depth(content) > MAX_DEPTH:
        raise kind.unreadable(path, f"more than {MAX_DEPTH} levels", f"at most {MAX_DEPTH} levels")
    try:
        return msgspec.json.decode(content, type=shape, dec_hook=dec_hook)
    except msgspec.ValidationError as error:
        raise kind.unreadable(path, _reason(error), f"the {kind.name} that uflip wrote") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise kind.unreadable(path, f"not JSON: {error}", "JSON in UTF-8") from error


def check(path: Path, kind: DocumentKind, name: str, content: object, shape: type[T]) -> T:
    """Check plain data inside a document; ignore keys that the type lacks.

    Raises
    ------
    UflipError
        From `decode`.
    """
    try:
        return msgspec.convert(content, shape)
    except msgspec.ValidationError as error:
        got = f"'{name}': {_reason(error)}"
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


def _reason(error: msgspec.ValidationError) -> str:
    """Return the fault of a document in our own terms."""
    return str(error).replace("Object ", "").replace(" - at ", ", at ").replace("`", "'")
