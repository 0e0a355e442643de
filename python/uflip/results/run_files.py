"""The run files of a result folder: their paths and their verification.

A file with a ledger line is checked against its digest; one without is read. Either may belong to
another run or folder, which its own metadata show.
"""

import errno
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from uflip import _native
from uflip.data import ledger, manifest
from uflip.data.ledger import Ledger
from uflip.errors import ResultsError
from uflip.results.file_status import PROVEN, UNPROVEN, FileStatus, State
from uflip.results.result_dir import RUN_SUFFIX, run_file

Checks = Callable[[list[str]], list[str | None]]


def run_verdicts(
    folder: Path,
    plan: Mapping[str, str],
    present_runs: Iterable[str],
    folder_ledger: Ledger | None,
    folder_id: str | None,
    *,
    checks: Checks = _native.check_traces,
) -> list[FileStatus]:
    """Verify the run files of a folder against its ledger.

    Parameters
    ----------
    folder : Path
        The result folder.
    plan : mapping
        Run -> digest of its plan entry.
    present_runs : iterable of str
        Runs with a file.
    folder_ledger : Ledger or None
        Read after `present_runs`, so that every file that a writer has renamed has its line.
    folder_id : str or None
        The id of this folder.
    checks : callable
        Returns for each file why it is not a valid run file; None for a valid one.
    """
    lines = folder_ledger.runs if folder_ledger else {}
    present = set(present_runs)
    of_plan = [run for run in plan if run in present]
    listed = [run for run in of_plan if run in lines and lines[run].spec == plan[run]]
    others = [run for run in of_plan if run in lines and lines[run].spec != plan[run]]
    unlisted = [run for run in of_plan if run not in lines]
    missing = set(plan) & set(lines) - present - {folder_ledger.last_run if folder_ledger else None}
    verdicts = _verify_by_digest(folder, listed, lines, folder_id)
    verdicts |= _verify_by_reading(folder, unlisted, folder_id, checks)
    reason = "it was measured for another plan"
    verdicts |= {run: _lost(run, "foreign", size_of(folder, run), reason) for run in others}
    verdicts |= {run: _lost(run, "missing", 0, "its file is missing") for run in missing}
    return [verdicts[run] for run in plan if run in verdicts]


def _verify_by_digest(
    folder: Path, runs: list[str], lines: Mapping[str, ledger.RunEntry], folder_id: str | None
) -> dict[str, FileStatus]:
    digests = _native.digest_files([str(run_file(folder, run)) for run in runs])
    verdicts: dict[str, FileStatus] = {}
    for run, (size, digest, problem) in zip(runs, digests, strict=True):
        if (size, digest) == (lines[run].bytes, lines[run].digest):
            verdicts[run] = FileStatus(file_name(run), PROVEN, size, run=run)
            continue
        _check_readable(run_file(folder, run))
        changed = "its bytes have changed since they were written"
        if size != lines[run].bytes:
            changed = f"{size} bytes, of which {lines[run].bytes} were written"
        owner = _foreign_owner(folder, run, folder_id)
        state: State = "foreign" if owner else "damaged"
        verdicts[run] = _lost(run, state, size, owner or problem or changed)
    return verdicts


def _verify_by_reading(
    folder: Path, runs: list[str], folder_id: str | None, checks: Checks
) -> dict[str, FileStatus]:
    problems = checks([str(run_file(folder, run)) for run in runs])
    verdicts: dict[str, FileStatus] = {}
    for run, problem in zip(runs, problems, strict=True):
        size, owner = size_of(folder, run), _foreign_owner(folder, run, folder_id)
        if owner or problem is not None:
            _check_readable(run_file(folder, run))
            state: State = "foreign" if owner else "damaged"
            verdicts[run] = _lost(run, state, size, owner or problem or "")
        else:
            reason = "the ledger has no line for it" if folder_id else "there is no ledger"
            verdicts[run] = FileStatus(file_name(run), UNPROVEN, size, reason, run=run)
    return verdicts


def without_impossible(
    folder: Path, verdicts: list[FileStatus], checks: Checks
) -> list[FileStatus]:
    """Read the run files with valid digests, and mark those that no device can have made."""
    proven = [each.run for each in verdicts if each.run is not None and each.state == PROVEN]
    problems = checks([str(run_file(folder, run)) for run in proven])
    wrong = {run: problem for run, problem in zip(proven, problems, strict=True) if problem}
    return [
        _lost(each.run, "impossible", each.bytes, wrong[each.run]) if each.run in wrong else each
        for each in verdicts
    ]


def _check_readable(path: Path) -> None:
    """Refuse to judge a file without read permission: its content may be intact."""
    if path.is_file() and not os.access(path, os.R_OK):
        raise ResultsError(
            "No permission to read the file of a run",
            where=str(path),
            got=os.strerror(errno.EACCES),
            allowed="files that may be read",
            action="check its permissions and your user",
        )


class _Metadata(Struct):
    id: str | None = None
    folder_id: str | None = None


def _foreign_owner(folder: Path, run: str, folder_id: str | None) -> str:
    """Return the owner of a file whose metadata name another run or folder; else ""."""
    text = _native.read_metadata(str(run_file(folder, run)))
    try:
        metadata = msgspec.json.decode(text or "{}", type=_Metadata)
    except (msgspec.MsgspecError, RecursionError):
        return ""
    if folder_id and metadata.folder_id and metadata.folder_id != folder_id:
        return f"it is run {metadata.id} of another folder"
    return f"it is run {metadata.id}" if metadata.id is not None and metadata.id != run else ""


def _lost(run: str, state: State, size: int, reason: str) -> FileStatus:
    return FileStatus(file_name(run), state, size, reason, "this run", run)


def file_name(run: str) -> str:
    """Return the name of the file of a run in its folder."""
    return f"{manifest.RUNS}/{run}{RUN_SUFFIX}"


def size_of(folder: Path, run: str) -> int:
    """Return the size of the file of a run [bytes]; 0 where it cannot be read."""
    try:
        return run_file(folder, run).stat().st_size
    except OSError:
        return 0


def runs_in(folder: Path) -> list[str]:
    """Return the runs that have a file."""
    try:
        return [path.stem for path in folder.iterdir() if path.suffix == RUN_SUFFIX]
    except (FileNotFoundError, NotADirectoryError):
        return []
