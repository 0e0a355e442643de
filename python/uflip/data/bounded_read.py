"""Bounded reads of untrusted files: a regular file, no larger than the limit of its kind.

A pipe could block a reader for ever, a device could fill the memory, and opening some devices has
side effects. So the type of the file is checked before it is opened, and again when it is open (it
may have been exchanged in between), and nothing above the limit is read.

Every failure is the four-part error of its `DocumentKind`; other modules interpret the bytes.
"""

import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from uflip.errors import ResultsError, UflipError
from uflip.units import format_size

MAX_SHOWN = 200


@dataclass(frozen=True, slots=True)
class DocumentKind:
    """A kind of document, as needed for errors about its file.

    Attributes
    ----------
    name : str
        Completes "The … cannot be read".
    limit_bytes : int
        Upper bound of the size of valid documents of this kind.
    action : str
        Advice for a file that cannot be read.
    error : type of UflipError
        `ResultsError` for files of uflip, `UsageError` for files of users.
    format : str
        Name of its format, in the document; empty if it has none.
    version : int
        The version that this uflip writes, and the only one that it reads.
    """

    name: str
    limit_bytes: int
    action: str
    error: type[UflipError] = ResultsError
    format: str = ""
    version: int = 1

    def check_format(self, path: Path, name: object, version: object, writer: str = "?") -> None:
        """Refuse a document of another format or version; `writer` is the uflip that wrote it.

        Raises
        ------
        UflipError
            Of the class `error`.
        """
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
    """Read a whole file.

    Parameters
    ----------
    path : Path
        A regular file, or a link to one.
    kind : DocumentKind
        The expected kind.

    Returns
    -------
    bytes
        At most `kind.limit_bytes`.

    Raises
    ------
    UflipError
        Of the class in `kind`: no such file, not a regular one, too large, unreadable.
    """
    content = read_if_exists(path, kind)
    if content is None:
        raise _missing_file_error(path, kind)
    return content


def read_if_exists(path: Path, kind: DocumentKind) -> bytes | None:
    """Read a whole file like `read_document`; return None if it is missing.

    Raises
    ------
    UflipError
        From `read_document`.
    """
    # The file may grow meanwhile: the size of the content decides.
    content = _read_at_most(path, kind, kind.limit_bytes + 1)
    if content is not None:
        _check_size(path, kind, len(content))
    return content


def read_text(path: Path, kind: DocumentKind) -> str:
    """Read a whole file of UTF-8.

    Raises
    ------
    UflipError
        From `read_document`; or if it is not UTF-8.
    """
    return decode(path, kind, read_document(path, kind))


def read_start(path: Path, kind: DocumentKind, max_bytes: int) -> bytes:
    """Read the beginning of a file that another reader reads as a whole.

    Raises
    ------
    UflipError
        From `read_document`.
    """
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
        raise kind.unreadable(path, _reason(error)) from error
    with os.fdopen(descriptor, "rb") as file:
        try:
            return file.read(max_bytes) if _size(path, kind, descriptor) else b""
        except OSError as error:
            raise kind.unreadable(path, _reason(error)) from error


def _missing_file_error(path: Path, kind: DocumentKind) -> UflipError:
    return kind.unreadable(path, "no such file", "an existing file")


def decode(path: Path, kind: DocumentKind, content: bytes) -> str:
    """Convert the bytes of a document to text.

    Raises
    ------
    UflipError
        Of the class in `kind`, if they are not UTF-8.
    """
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


def _reason(error: OSError | ValueError) -> str:
    """Return the reason of an error; a name with a null byte fails before the system call."""
    if not isinstance(error, OSError):
        return str(error)
    if error.errno == errno.ELOOP:
        return "a link that leads to itself"
    return error.strerror or str(error)
