"""Parts of several files in one request body: a result has a thousand files, most of them short.

::

    digest (32 bytes)  offset (8)  length (8)  content        repeated, numbers big-endian
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from uflip.errors import UsageError

MAX_PART_BYTES = 8 << 20
"""Limit for the content of a body, and of a part [bytes]."""
MAX_PARTS = 4096
"""Limit of parts in a body, which would else be mostly headers of short files."""
_PART_HEAD = struct.Struct(">32sQQ")
MAX_BODY_BYTES = MAX_PART_BYTES + MAX_PARTS * _PART_HEAD.size


@dataclass(frozen=True)
class FilePart:
    """Bytes of a file, from an offset on."""

    digest: str
    offset: int
    content: bytes


@dataclass(frozen=True)
class Missing:
    """A file that is not sent completely yet, and the offset at which to resume."""

    path: Path
    digest: str
    bytes: int
    at: int


def pack_parts(parts: Iterable[FilePart]) -> bytes:
    """Return a body with the parts."""
    return b"".join(
        _PART_HEAD.pack(bytes.fromhex(each.digest), each.offset, len(each.content)) + each.content
        for each in parts
    )


def unpack_parts(body: bytes) -> list[FilePart]:
    """Return the parts of a body.

    Raises
    ------
    UsageError
        If the body is malformed.
    """
    parts: list[FilePart] = []
    at = 0
    while at < len(body) and len(parts) < MAX_PARTS:
        if len(body) - at < _PART_HEAD.size:
            break
        digest, offset, length = _PART_HEAD.unpack_from(body, at)
        end = at + _PART_HEAD.size + length
        if end > len(body):
            break
        parts.append(FilePart(digest.hex(), offset, body[at + _PART_HEAD.size : end]))
        at = end
    if at != len(body) or sum(len(each.content) for each in parts) > MAX_PART_BYTES:
        raise UsageError(
            "Not parts of files",
            where="the body",
            got=f"{len(body)} bytes, of which {at} are valid parts",
            allowed=f"at most {MAX_PARTS} parts of {MAX_PART_BYTES} bytes together, each after its "
            "digest, offset and length",
            action="`uflip submit` sends valid parts",
        )
    return parts


def bodies(files: Sequence[Missing]) -> Iterator[list[FilePart]]:
    """Yield the missing parts of files, in lists that fit into a body."""
    parts: list[FilePart] = []
    free_bytes = MAX_PART_BYTES
    for each in files:
        with each.path.open("rb") as file:
            file.seek(each.at)
            at = each.at
            while at < each.bytes or (each.bytes == 0 and at == 0):
                content = file.read(min(free_bytes, each.bytes - at))
                parts.append(FilePart(each.digest, at, content))
                at += len(content)
                free_bytes -= len(content)
                if free_bytes == 0 or len(parts) == MAX_PARTS:
                    yield parts
                    parts, free_bytes = [], MAX_PART_BYTES
                if not content:
                    break  # an empty file, or one truncated meanwhile, which fails the digest check
    if parts:
        yield parts
