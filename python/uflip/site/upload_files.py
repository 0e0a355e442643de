"""The files of an upload: names, digests and lengths; and parts of them, many in a request body.

A result has a thousand files, most of them short. A body consists of parts::

    digest (32 bytes)  offset (8)  length (8)  content        repeated, numbers big-endian
"""

import hashlib
import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from uflip.data import ledger, manifest
from uflip.data.document import DigestText, file_name_problem, locate_fault
from uflip.errors import ResultsError, UsageError

MAX_FILES = 20_000
MAX_RESULT_BYTES = 16 << 30
MAX_DOCUMENT_BYTES = 8 << 20
"""Limit for a manifest, and for a ledger: both have some 500 bytes for a run. A document needs many
times its length in the memory of the examiner and of every reader of the result."""
_RUN = re.compile(rf"{manifest.RUNS}/(?P<run>[^/]+)\.parquet")
COMPLETE = "complete"
FIXED = (manifest.FILE_NAME, ledger.FILE_NAME)


@dataclass(frozen=True)
class UploadFile:
    """A file of an upload: its name in the folder, its digest, its length [bytes]."""

    path: Annotated[str, Meta(max_length=260)]
    digest: DigestText
    bytes: Annotated[int, Meta(ge=0, le=1 << 40)]


@dataclass(frozen=True)
class Offer:
    """All files of a result folder."""

    files: Annotated[list[UploadFile], Meta(max_length=MAX_FILES)]


def parse_offer(content: bytes) -> list[UploadFile]:
    """Return the files that the body of a request lists.

    Raises UsageError if it is not a list of files.
    """
    try:
        return msgspec.json.decode(content, type=Offer).files
    except msgspec.ValidationError as error:
        where, got = locate_fault(error)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        where, got = "the body of the request", str(error)
    raise UsageError(
        "The list of files is invalid",
        where=where or "the body of the request",
        got=got[:200],
        allowed='{"files": [{"path": NAME, "digest": SHA-256, "bytes": LENGTH}, ...]}',
        action="`uflip submit FOLDER` sends such a list",
    )


def check_names(files: Sequence[UploadFile]) -> None:
    """Refuse a list of files that is not that of a result folder."""
    names = [each.path for each in files]
    problem = None
    if missing := set(FIXED) - set(names):
        problem = f"no {min(missing)}"
    elif len(set(names)) < len(names):
        problem = "a name that comes twice"
    elif len(files) > MAX_FILES or sum(each.bytes for each in files) > MAX_RESULT_BYTES:
        problem = f"{len(files)} files of {sum(each.bytes for each in files)} bytes"
    elif long := [e for e in files if e.path in FIXED and e.bytes > MAX_DOCUMENT_BYTES]:
        problem = f"a {long[0].path} of {long[0].bytes} bytes"
    else:
        problem = next((f"{name[:200]!r}" for name in names if not _is_of_a_folder(name)), None)
    if problem is not None:
        raise UsageError(
            "These are not the files of a result folder",
            where="files",
            got=problem,
            allowed=f"{', '.join(FIXED)} of at most {MAX_DOCUMENT_BYTES >> 20} MiB each, and "
            f"{manifest.RUNS}/*.parquet; at most {MAX_FILES} files of {MAX_RESULT_BYTES >> 30} GiB",
            action="`uflip submit FOLDER` sends the right ones",
        )


def unfinished_error(status: str) -> ResultsError:
    """Return the error for unfinished results, which cannot represent a device."""
    return ResultsError(
        "The results are incomplete",
        where=manifest.FILE_NAME,
        got=status,
        allowed=COMPLETE,
        action="`uflip run --resume FOLDER` continues them",
    )


def _is_of_a_folder(name: str) -> bool:
    match = _RUN.fullmatch(name)
    return name in FIXED or (match is not None and file_name_problem(match["run"]) is None)


def result_id(files: Sequence[UploadFile]) -> str:
    """Return the id of a result, which follows from its content.

    Permanent addresses and citations contain it, so two results of one id must be infeasible: with
    128 bits a collision takes 2^64 attempts.
    """
    lines = "".join(f"{each.path} {each.digest}\n" for each in sorted(files, key=lambda e: e.path))
    return hashlib.sha256(lines.encode()).hexdigest()[:32]


RESULT_ID = re.compile("[0-9a-f]{32}")


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
    """Return the parts of a body."""
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
