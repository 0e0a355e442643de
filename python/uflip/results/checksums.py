"""Seals: a checksum at the end of an output, which proves that uflip wrote it unchanged.

A report, a figure and a plan end in a seal: their kind and a checksum of all the rest, in a comment
(PNG: a text chunk). The formats of tables, traces, logs and saved devices have no room for one.
"""

import os
import re
import stat
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

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

    Examples
    --------
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
