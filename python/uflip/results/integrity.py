"""Integrity of a result folder: verify each file against the ledger.

Every file is verified before anything of it is used. A damaged file loses only its own content: a
run file loses its run, the manifest loses the folder. A run file with a ledger line is checked
against its digest; one without is read. Either may belong to another run or folder, which its own
metadata show.
"""

import difflib
import errno
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from uflip import _native
from uflip.data import ledger, manifest
from uflip.data.document import decode, read_if_exists
from uflip.data.ledger import Ledger
from uflip.data.manifest import Manifest
from uflip.data.run import KIND, metadata_of
from uflip.data.spec import Spec, spec_hook
from uflip.errors import ResultsError, UflipError, native_errors
from uflip.results import device_log
from uflip.results.result_dir import RUN_SUFFIX, run_file

# Manifest and ledger are two files: a concurrent reader may see one older than the other.
READ_ATTEMPTS = 5
State = Literal["proven", "unproven", "impossible", "damaged", "foreign", "missing"]
PROVEN: State = "proven"
UNPROVEN: State = "unproven"
STATES: dict[str, str] = {
    "proven": "unchanged since it was written: its digest is in the ledger",
    "unproven": "readable and plausible, but without a digest that proves it unchanged",
    "impossible": "unchanged since it was written, but no device can have these response times",
    "damaged": "changed since it was written",
    "foreign": "from another run or folder, or of no run of the plan",
    "missing": "written, but missing now",
}
"""State of a file -> its explanation."""


@dataclass(frozen=True)
class FileStatus:
    """The verification result of a file."""

    file: str  #: Its name in the folder.
    state: State  #: One of `STATES`.
    bytes: int = 0  #: Its length; 0 if it is missing.
    reason: str = ""  #: The fault, if there is one.
    costs: str = ""  #: The data that the fault loses.
    run: str | None = None  #: The run that it contains.

    @property
    def usable(self) -> bool:
        """Return whether its content may be shown."""
        return self.state in (PROVEN, UNPROVEN)


@dataclass(frozen=True)
class FolderVerification:
    """A folder with the verification result of each of its files."""

    manifest: Manifest | None  #: None where it is not usable; `error` has the reason.
    error: UflipError | None
    ledger: Ledger | None  #: None where it is missing.
    verdicts: list[FileStatus]  #: The manifest, the ledger, the runs in the order of the plan.
    dangling: bool = False  #: Whether a kill left a last ledger line without its file.

    @property
    def runs(self) -> dict[str, FileStatus]:
        """The verdicts of runs."""
        return {verdict.run: verdict for verdict in self.verdicts if verdict.run is not None}

    @property
    def lost(self) -> list[FileStatus]:
        """Files that are damaged or missing."""
        return [verdict for verdict in self.verdicts if not verdict.usable]

    @property
    def lost_runs(self) -> list[FileStatus]:
        """Run files that are damaged or missing."""
        return [verdict for verdict in self.lost if verdict.run is not None]

    def usable_manifest(self) -> Manifest:
        """Return the manifest."""
        if self.manifest is None:
            assert self.error is not None, "there is a reason"
            raise self.error
        return self.manifest

    def expected(self, run: str) -> tuple[int, str] | None:
        """Return length and digest of the file of a run; None without a ledger line."""
        line = self.ledger.runs.get(run) if self.ledger else None
        return None if line is None else (line.bytes, line.digest)


def examine(folder: Path) -> FolderVerification:
    """Verify every file of a result folder of `uflip run` against its ledger."""
    path = folder / manifest.FILE_NAME
    for attempt in range(READ_ATTEMPTS):
        content = _manifest_bytes(folder)
        present = runs_in(folder / manifest.RUNS)
        folder_ledger = read_ledger(folder)
        verdict = _document_verdict(path, content, folder_ledger, "the folder: its plan and device")
        if verdict.state == PROVEN or folder_ledger is None or attempt == READ_ATTEMPTS - 1:
            break
    if verdict.state == "damaged" and folder_ledger and _is_ahead(path, content, folder_ledger):
        reason = "the ledger ends before it: lines of the ledger are lost"
        verdict = FileStatus(path.name, UNPROVEN, len(content), reason)
    verdicts = [verdict, *_ledger_verdicts(folder_ledger)]
    if not verdict.usable:
        error = manifest.KIND.unreadable(path, verdict.reason, "the bytes that were written")
        runs = _ledger_run_verdicts(folder, folder_ledger, present)
        return FolderVerification(None, error, folder_ledger, [*verdicts, *runs])
    parsed = manifest.parse(path, content)
    plan = {entry.id: ledger.digest_of(entry) for entry in parsed.plan}
    runs = _run_verdicts(
        folder, plan, present, folder_ledger, parsed.folder_id, checks=run_checks(parsed)
    )
    return FolderVerification(
        parsed,
        None,
        folder_ledger,
        [*verdicts, *runs],
        _is_dangling(folder_ledger, content, present),
    )


def verify(folder: Path) -> list[FileStatus]:
    """Return the status of each file of a result folder."""
    try:
        verification = examine(folder)
        usable = [run for run, verdict in verification.runs.items() if verdict.usable]
        checks = run_checks(verification.manifest)
        verdicts = _without_impossible(folder, verification.verdicts, checks)
        return verdicts + _strays(folder, verification) + _device_log_verdicts(folder, usable)
    except OSError as error:
        raise ResultsError(
            "The folder cannot be read",
            where=error.filename or str(folder),
            got=error.strerror or str(error),
            allowed="a folder that may be read",
            action="check its permissions and your user",
        ) from error


Checks = Callable[[list[str]], list[str | None]]
"""Returns for each file why it is not a valid run file; None for a valid one."""


def run_checks(content: Manifest | None) -> Checks:
    """Return the check of the run files of a benchmark, or of its logs of jobs."""
    return _check_logs if content is not None and content.is_of_jobs else _native.check_traces


def read_log(path: Path, expected: tuple[int, str] | None = None) -> _native.FlashTrace:
    """Read the log of a job."""
    with native_errors():
        log = _native.read_flash_trace(str(path), expected)
    decode(path, KIND, log.job_json.encode(), Spec, dec_hook=spec_hook)
    return log


def read_ledger(folder: Path) -> Ledger | None:
    """Read the ledger of a folder; return None if it is missing."""
    path = folder / ledger.FILE_NAME
    content = read_if_exists(path, ledger.KIND)
    return None if content is None else ledger.parse(path, content)


def _manifest_bytes(folder: Path) -> bytes:
    is_folder = folder.is_dir()
    content = read_if_exists(folder / manifest.FILE_NAME, manifest.KIND) if is_folder else None
    if content is not None:
        return content
    near = _results_near(folder)
    raise ResultsError(
        what="This folder holds no results" if is_folder else "There are no results here",
        where=str(folder),
        got=f"a folder without {manifest.FILE_NAME}"
        if is_folder
        else ("a file" if folder.exists() else "nothing of this name"),
        allowed=f"a folder made by `uflip run`, with a {manifest.FILE_NAME} in it",
        action=f"did you mean {' or '.join(near)}?"
        if near
        else "give the folder that was passed to `uflip run --out`",
    )


def _results_near(folder: Path) -> list[str]:
    """Return the results in a folder, or the one whose path is nearest to a missing folder."""
    try:
        if folder.is_dir():
            return sorted(str(file.parent) for file in folder.glob(f"*/{manifest.FILE_NAME}"))[:3]
        near = Path()
        for part in folder.parts:
            names = [each.name for each in near.iterdir() if each.is_dir()]
            (name,) = (
                [part] if (near / part).is_dir() else difflib.get_close_matches(part, names, 1)
            )
            near /= name
    except (OSError, ValueError):  # not readable; nothing resembles it
        return []
    return [str(near)] if (near / manifest.FILE_NAME).is_file() else []


def _document_verdict(
    path: Path, content: bytes, folder_ledger: Ledger | None, costs: str
) -> FileStatus:
    """Verify the manifest of a folder against its ledger."""
    if folder_ledger is None:
        reason = "there is no ledger: it was lost"
        return FileStatus(path.name, UNPROVEN, len(content), reason)
    digests = [each.digest for each in folder_ledger.manifests]
    digest = _native.digest(content)
    if digests[-1:] == [digest]:
        return FileStatus(path.name, PROVEN, len(content))
    if digest in digests:
        reason = "the last line of the ledger is of a newer one, which was lost or never completed"
        return FileStatus(path.name, UNPROVEN, len(content), reason)
    if folder_ledger.damaged or not folder_ledger.manifests:
        return FileStatus(path.name, UNPROVEN, len(content), "its line in the ledger is damaged")
    reason = "its bytes have changed since it was written"
    return FileStatus(path.name, "damaged", len(content), reason, costs)


def _is_ahead(path: Path, content: bytes, folder_ledger: Ledger) -> bool:
    """Return whether a manifest is newer than the last line of the ledger."""
    try:
        return manifest.parse(path, content).ledger_lines >= folder_ledger.lines
    except UflipError:
        return False


def _is_dangling(folder_ledger: Ledger | None, content: bytes, present: Iterable[str]) -> bool:
    last = folder_ledger.last if folder_ledger else None
    if isinstance(last, ledger.ManifestEntry):
        return last.digest != _native.digest(content)
    return isinstance(last, ledger.RunEntry) and last.run not in present


def _ledger_verdicts(folder_ledger: Ledger | None) -> list[FileStatus]:
    if folder_ledger is None:
        return []
    if folder_ledger.torn and not folder_ledger.damaged:
        reason = "its last line is incomplete: the process was killed, or bytes were lost"
        return [
            FileStatus(ledger.FILE_NAME, UNPROVEN, folder_ledger.end + folder_ledger.torn, reason)
        ]
    if not folder_ledger.damaged:
        return [FileStatus(ledger.FILE_NAME, PROVEN, folder_ledger.end)]
    lines = ", ".join(map(str, folder_ledger.damaged[:5])) + (
        " …" if len(folder_ledger.damaged) > 5 else ""
    )
    reason, costs = f"line {lines} was changed", "the digests that it contains"
    return [FileStatus(ledger.FILE_NAME, "damaged", folder_ledger.end, reason, costs)]


def _ledger_run_verdicts(
    folder: Path, folder_ledger: Ledger | None, present: Iterable[str]
) -> list[FileStatus]:
    """Return the status of run files where there is no plan beside the ledger."""
    lines = folder_ledger.runs if folder_ledger else {}
    plan = {run: line.spec for run, line in lines.items()}
    return _run_verdicts(
        folder, plan, present, folder_ledger, folder_ledger.folder_id if folder_ledger else None
    )


def _strays(folder: Path, verification: FolderVerification) -> list[FileStatus]:
    """Return run files that the plan (or, without a plan, the ledger) does not list."""
    planned = (
        verification.runs
        if verification.manifest is None
        else {run.id for run in verification.manifest.plan}
    )
    names = sorted(set(runs_in(folder / manifest.RUNS)) - set(planned))
    sized = [(_file_name(name), _size_of(folder, name)) for name in names]
    if verification.manifest is None:
        reason = "the ledger has no line for it" if verification.ledger else "there is no ledger"
        return [FileStatus(name, UNPROVEN, size, reason) for name, size in sized]
    return [FileStatus(name, "foreign", size, "the plan has no such run") for name, size in sized]


def _device_log_verdicts(folder: Path, runs: Iterable[str]) -> list[FileStatus]:
    """Verify the device logs of usable runs against the digests in the run files."""
    verdicts = []
    for run in runs:
        measured = run_file(folder, run)
        about = metadata_of(measured, _native.read_metadata(str(measured)) or "").inside
        if about is None:
            continue
        path = device_log.log_file(folder, run)
        name = f"{device_log.FOLDER}/{path.name}"
        costs = "the look inside the device during this run"
        if not path.exists():
            verdicts.append(FileStatus(name, "missing", 0, "its file is missing", costs))
            continue
        ((size, digest, problem),) = _native.digest_files([str(path)])
        if (size, digest) == (about.bytes, about.digest):
            verdicts.append(FileStatus(name, PROVEN, size))
        else:
            reason = problem or "its bytes have changed since they were written"
            verdicts.append(FileStatus(name, "damaged", size, reason, costs))
    return verdicts


def _run_verdicts(
    folder: Path,
    plan: Mapping[str, str],
    present_runs: Iterable[str],
    folder_ledger: Ledger | None,
    folder_id: str | None,
    *,
    checks: Checks = _native.check_traces,
) -> list[FileStatus]:
    """Verify the run files of a folder against its ledger."""
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
    verdicts |= {run: _lost(run, "foreign", _size_of(folder, run), reason) for run in others}
    verdicts |= {run: _lost(run, "missing", 0, "its file is missing") for run in missing}
    return [verdicts[run] for run in plan if run in verdicts]


def _verify_by_digest(
    folder: Path, runs: list[str], lines: Mapping[str, ledger.RunEntry], folder_id: str | None
) -> dict[str, FileStatus]:
    digests = _native.digest_files([str(run_file(folder, run)) for run in runs])
    verdicts: dict[str, FileStatus] = {}
    for run, (size, digest, problem) in zip(runs, digests, strict=True):
        if (size, digest) == (lines[run].bytes, lines[run].digest):
            verdicts[run] = FileStatus(_file_name(run), PROVEN, size, run=run)
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
        size, owner = _size_of(folder, run), _foreign_owner(folder, run, folder_id)
        if owner or problem is not None:
            _check_readable(run_file(folder, run))
            state: State = "foreign" if owner else "damaged"
            verdicts[run] = _lost(run, state, size, owner or problem or "")
        else:
            reason = "the ledger has no line for it" if folder_id else "there is no ledger"
            verdicts[run] = FileStatus(_file_name(run), UNPROVEN, size, reason, run=run)
    return verdicts


def _without_impossible(
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
    return FileStatus(_file_name(run), state, size, reason, "this run", run)


def _file_name(run: str) -> str:
    return f"{manifest.RUNS}/{run}{RUN_SUFFIX}"


def _size_of(folder: Path, run: str) -> int:
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


def _check_logs(paths: Sequence[str]) -> list[str | None]:
    return [_problem(Path(path)) for path in paths]


def _problem(path: Path) -> str | None:
    try:
        read_log(path)
    except UflipError as error:
        return error.got or error.what
    return None
