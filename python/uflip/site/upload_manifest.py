"""The files of an upload: names, digests and lengths of the files of a result folder."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from uflip.data import ledger, manifest
from uflip.data.document import file_name_problem
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

    path: str
    digest: str
    bytes: int


def check_names(files: Sequence[UploadFile]) -> None:
    """Refuse a list of files that is not that of a result folder.

    Raises
    ------
    UsageError
        For invalid, repeated or unknown names; for too many or too large files.
    """
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


FORMER_ID = 12
"""Digits of ids of older versions, which stay valid: they are the first digits of today's ids."""
RESULT_ID = re.compile(rf"[0-9a-f]{{{FORMER_ID}}}|[0-9a-f]{{32}}")
