"""Output files that users name: reports, figures, plans, tables, traces, saved devices.

A name may be a typing error, and the file of that name may be a thesis. So an existing file is
replaced only where nothing can be lost, or with `--force`:

- A report, a figure and a plan end in a seal: their kind and a checksum of all the rest, in a
  comment (PNG: a text chunk). A file with a valid seal can be written again; an edited one belongs
  to the user.
- Tables, traces, logs and saved devices have no room for a seal, and may hold a unique measurement:
  they are never replaced without `--force`.
- Devices, FIFOs, sockets, symbolic links and folders are never replaced, and nothing is ever
  written into a result folder, even with `--force`.

An output is written to a temporary file in the same folder, synced, and renamed in one step. A name
that was free is used only if it is still free, and a file is replaced only if it is still the one
that was checked.
"""

import csv
import errno
import os
import re
import stat
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from uflip import safe_files
from uflip.data.document import file_type
from uflip.data.manifest import refuse_results
from uflip.errors import RefusedError, ResultsError, UflipError, UsageError

SEAL_BYTES = 16
# An empty chunk of type IEND: the end of every PNG.
PNG_END = b"\0\0\0\0IEND\xae\x42\x60\x82"
# The longest seal, including the bytes after it.
TAIL_BYTES = 256


@dataclass(frozen=True)
class OutputKind:
    """A kind of output and the form of its seal; without a seal, only --force replaces it."""

    name: str
    seal: Callable[[bytes], bytes] | None = None
    end: bytes = b""
    """Bytes after the seal."""


def _comment(before: bytes, after: bytes = b"") -> Callable[[bytes], bytes]:
    return lambda text: before + b" " + text + after + b"\n"


def _text_chunk(text: bytes) -> bytes:
    body = b"tEXtComment\0" + text
    return struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))


_XML = _comment(b"<!--", b" -->")
REPORT = OutputKind("report", _XML)
COMPARISON = OutputKind("comparison", _XML)
PLAN = OutputKind("plan", _comment(b"#"))
FIGURES = {
    ".png": OutputKind("figure", _text_chunk, PNG_END),
    ".svg": OutputKind("figure", _XML),
    ".pdf": OutputKind("figure", _comment(b"%")),
}
TABLE, TRACE, LOG, SNAPSHOT, PROFILE = map(
    OutputKind, ("table", "trace", "log", "saved device", "profile")
)


def add_seal(content: bytes, kind: OutputKind) -> bytes:
    r"""Add the seal of a kind that has one.

    >>> add_seal(b"seed = 1\n", PLAN)
    b'seed = 1\n# uflip plan 719be09024afab4471f1c58ec17aebbb\n'
    """
    assert kind.seal is not None
    assert content.endswith(kind.end)
    body = content[: len(content) - len(kind.end)]
    digest = blake2b(body, digest_size=SEAL_BYTES).hexdigest()
    return body + kind.seal(_text(kind, digest)) + kind.end


def has_valid_seal(path: Path, kind: OutputKind) -> bool:
    """Return whether a file is an output of this kind, unchanged since uflip wrote it."""
    if kind.seal is None:
        return False
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with open(os.open(path, flags), "rb") as file:  # noqa: PTH123 -- of a descriptor
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return False
        return _seal_fits(file, kind)


def _text(kind: OutputKind, digest: str) -> bytes:
    return f"uflip {kind.name} {digest}".encode()


def _seal_fits(file: BinaryIO, kind: OutputKind) -> bool:
    assert kind.seal is not None
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - TAIL_BYTES, 0))
    tail = file.read()
    match = re.search(_text(kind, f"([0-9a-f]{{{2 * SEAL_BYTES}}})"), tail)
    if match is None:
        return False
    digest = match[1].decode()
    end = kind.seal(_text(kind, digest)) + kind.end
    if not tail.endswith(end):
        return False
    file.seek(0)
    remaining, hasher = size - len(end), blake2b(digest_size=SEAL_BYTES)
    while remaining > 0 and (part := file.read(min(remaining, 1 << 20))):
        hasher.update(part)
        remaining -= len(part)
    return remaining == 0 and hasher.hexdigest() == digest


@dataclass(frozen=True)
class OutputPath:
    """An output name that may be written, as checked by `check`."""

    path: Path
    kind: OutputKind
    option: str
    """The option that named it, for errors."""
    force: bool
    existing: os.stat_result | None
    """The existing file to be replaced."""


def check_ending(path: Path, kind: str, option: str, endings: Iterable[str]) -> None:
    """Refuse a name whose ending does not select one of several formats."""
    suffixes = list(endings)
    if path.suffix not in suffixes:
        raise UsageError(
            f"The name of the {kind} has no ending that selects a format",
            where=option,
            got=str(path),
            allowed=", ".join(f"FILE{ending}" for ending in suffixes),
            action="add one of these endings" if len(suffixes) > 1 else "add this ending",
        )


def check(path: Path, kind: OutputKind, option: str = "", *, force: bool = False) -> OutputPath:
    """Refuse a name that must not be written, before any work is done for it."""
    where = f"{option} {path}".strip()
    parent = path.absolute().parent
    if str(path) == "-":
        raise _location_error(kind, where, "a name that stands for standard output", "name a file")
    try:
        if not parent.is_dir():
            got = f"the folder {parent} does not exist"
            raise _location_error(
                kind, where, got, "create the folder first, or choose another name"
            )
        refuse_results(path, kind.name, where)
        if not os.access(parent, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, f"the folder {parent} cannot be written")
        existing = _lstat(path)
        if existing is not None:
            _refuse_special(path, existing, kind, where)
            if not force and not has_valid_seal(path, kind):
                raise _exists_error(kind, where)
    except (OSError, ValueError, RuntimeError) as error:
        raise _write_error(kind, where, error) from error
    return OutputPath(path, kind, option, force, existing)


def write(output: OutputPath, content: bytes) -> int:
    """Write a whole output, sealed where its kind has a seal; return its size [bytes]."""
    if output.kind.seal is not None:
        content = add_seal(content, output.kind)
    with output_file(output) as temporary:
        temporary.write_bytes(content)
    return len(content)


@contextmanager
def output_file(output: OutputPath) -> Iterator[Path]:
    """Yield the path of a new empty file beside an output, and publish it at the end.

    On failure the old file stays, and the temporary one is removed.
    """
    where = f"{output.option} {output.path}".strip()
    mode = None if output.existing is None else stat.S_IMODE(output.existing.st_mode)
    try:
        with safe_files.temporary_file(output.path, mode) as temporary:
            try:
                yield temporary
                safe_files.sync_path(temporary)
                _publish(temporary, output, where)
            except UflipError as error:
                if error.where == str(temporary):
                    error.where = where
                raise
    except OSError as error:
        raise _write_error(output.kind, where, error) from error


def check_new_folder(path: Path, kind: str, option: str = "--out") -> None:
    """Refuse a name that `new_folder` cannot use; raise the same errors."""
    refuse_results(path, kind, str(path))
    if _lstat(path) is not None:
        raise ResultsError(
            f"A new {kind} never overwrites existing files",
            where=str(path),
            got="a name that exists",
            allowed="an unused name",
            action=f"choose another {option}, or move the old {kind} away",
        )


@contextmanager
def new_folder(path: Path, kind: str, option: str = "--out") -> Iterator[Path]:
    """Make a temporary folder beside `path`, and rename it at the end.

    `option` is the option that named it, for errors.

    Raises the errors of `check_new_folder`, and a ResultsError where the folder cannot be written.
    """
    check_new_folder(path, kind, option)
    try:
        with safe_files.new_folder(path) as temporary:
            yield temporary
    except OSError as error:
        raise ResultsError(
            f"The {kind} could not be written",
            where=str(path),
            got=error.strerror or str(error),
            allowed="a writable folder with free space",
            action=f"choose another {option}, or free some space",
        ) from error


def _lstat(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except FileNotFoundError:
        return None


def _refuse_special(path: Path, existing: os.stat_result, kind: OutputKind, where: str) -> None:
    """Refuse a link, a device or another special file."""
    if stat.S_ISREG(existing.st_mode):
        return
    if stat.S_ISDIR(existing.st_mode):
        raise _location_error(kind, where, "the name of a folder", "add a file name")
    is_link = stat.S_ISLNK(existing.st_mode)
    raise RefusedError(
        "Only a regular file can be replaced",
        where=where,
        got=f"a symbolic link to {_link_target(path)}" if is_link else file_type(existing.st_mode),
        allowed="a new name, or the name of a regular file",
        action="choose another name",
    )


def _location_error(kind: OutputKind, where: str, got: str, action: str) -> UsageError:
    return UsageError(
        f"The {kind.name} cannot be written there",
        where=where,
        got=got,
        allowed="a file name in a folder that exists",
        action=action,
    )


def _link_target(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:
        return "somewhere else"


def _exists_error(kind: OutputKind, where: str) -> RefusedError:
    return RefusedError(
        "The file exists",
        where=where,
        got=f"a file that is no {kind.name} of uflip, or was changed since"
        if kind.seal
        else f"a file that exists; a {kind.name} is only replaced with --force",
        allowed=f"a new name{f', or a {kind.name} as uflip wrote it' if kind.seal else ''}",
        action="choose another name, or replace the file with --force",
    )


def _write_error(kind: OutputKind, where: str, error: Exception) -> ResultsError:
    return ResultsError(
        f"The {kind.name} cannot be written",
        where=where,
        got=getattr(error, "strerror", None) or str(error),
        allowed="a file name in a folder that can be written, on a file system with free space",
        action="choose another location; existing files are unchanged",
    )


def _publish(temporary: Path, output: OutputPath, where: str) -> None:
    if output.existing is None:
        try:
            safe_files.publish_new(temporary, output.path)
        except FileExistsError:
            raise _conflict_error(output, where) from None
        return
    current = _lstat(output.path)
    if current is None or _identity(current) != _identity(output.existing):
        raise _conflict_error(output, where)
    safe_files.publish(temporary, output.path)


def _identity(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _conflict_error(output: OutputPath, where: str) -> RefusedError:
    return RefusedError(
        f"Another process wrote to the path of the {output.kind.name}",
        where=where,
        got="a file that appeared or changed since the check",
        allowed="a name that no other process uses",
        action="choose another name",
    )


# A cell that begins with `=`, `+`, `-` or `@` is a formula to a spreadsheet, and a formula can call
# programs and send data away. Names of runs, parameters and profiles are untrusted. So a text that
# begins like a formula gets an apostrophe in front, the way to type such a text into a spreadsheet.
# Spreadsheets skip leading space; some take the wide forms of the four signs as well.
_FORMULA = re.compile("[\\s\ufeff]*[=+\\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n\0]")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def cell(value: Any) -> Any:
    r"""Return a cell that a spreadsheet does not take for a formula.

    >>> [cell(each) for each in ("=1+2", "order", -5, "-5", "-5+A1", " @SUM(A1)")]
    ["'=1+2", 'order', -5, '-5', "'-5+A1", "' @SUM(A1)"]
    """
    if isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def write_table(output: OutputPath, head: Sequence[Any], rows: Iterable[Iterable[Any]]) -> None:
    """Write a table to the output file of the user."""
    with (
        output_file(output) as temporary,
        temporary.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file,
    ):
        write_rows(file, head, rows)


def write_rows(file: TextIO, head: Sequence[Any], rows: Iterable[Iterable[Any]]) -> None:
    """Write a table to an open file."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(map(cell, head))
    writer.writerows(map(cell, row) for row in rows)
