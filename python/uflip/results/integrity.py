"""Integrity of a result folder: verify each file against the ledger.

Every file is verified before anything of it is used. A damaged file loses only its own content: a
run file loses its run, the manifest loses the folder.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from uflip import _native
from uflip.data import ledger, manifest
from uflip.data.bounded_read import DocumentKind, read_document, read_if_exists
from uflip.data.ledger import Ledger
from uflip.data.manifest import Manifest
from uflip.data.run import metadata_of
from uflip.errors import ResultsError, UflipError
from uflip.results import device_log
from uflip.results.file_status import PROVEN, UNPROVEN, FileStatus
from uflip.results.flash_file import check_logs
from uflip.results.result_dir import run_file
from uflip.results.run_files import (
    file_name,
    run_verdicts,
    runs_in,
    size_of,
    without_impossible,
)

OPEN_CHANNEL = "oc.json"  # the manifest of a folder of `uflip oc` before manifests of version 4
OPEN_CHANNEL_KIND = DocumentKind("manifest", 64 << 20, "restore the file from a copy")
# Manifest and ledger are two files: a concurrent reader may see one older than the other.
READ_ATTEMPTS = 5


@dataclass(frozen=True)
class FolderVerification:
    """A folder with the verification result of each of its files.

    Attributes
    ----------
    manifest : Manifest or None
        None where it is not usable; `error` has the reason.
    ledger : Ledger or None
        None where it is missing.
    verdicts : list of FileStatus
        The manifest, the ledger, the runs in the order of the plan.
    dangling : bool
        Whether a kill left a last ledger line without its file.
    """

    manifest: Manifest | None
    error: UflipError | None
    ledger: Ledger | None
    verdicts: list[FileStatus]
    dangling: bool = False

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
        """Return the manifest.

        Raises
        ------
        ResultsError
            If it is damaged.
        """
        if self.manifest is None:
            assert self.error is not None, "there is a reason"
            raise self.error
        return self.manifest

    def expected(self, run: str) -> tuple[int, str] | None:
        """Return length and digest of the file of a run; None without a ledger line."""
        line = self.ledger.runs.get(run) if self.ledger else None
        return None if line is None else (line.bytes, line.digest)


def examine(folder: Path) -> FolderVerification:
    """Verify every file of a result folder of `uflip run` against its ledger.

    Raises
    ------
    ResultsError
        If it is not a result folder, or of a newer version. Damage is not an error here.
    """
    path = folder / manifest.FILE_NAME
    for attempt in range(READ_ATTEMPTS):
        content = _manifest_bytes(folder)
        present = runs_in(folder / manifest.RUNS)
        folder_ledger = read_ledger(folder)
        verdict = document_verdict(path, content, folder_ledger, "the folder: its plan and device")
        if verdict.state == PROVEN or folder_ledger is None or attempt == READ_ATTEMPTS - 1:
            break
    if verdict.state == "damaged" and folder_ledger and _is_ahead(path, content, folder_ledger):
        reason = "the ledger ends before it: lines of the ledger are lost"
        verdict = FileStatus(path.name, UNPROVEN, len(content), reason)
    verdicts = [verdict, *ledger_verdicts(folder_ledger)]
    if not verdict.usable:
        error = manifest.KIND.unreadable(path, verdict.reason, "the bytes that were written")
        runs = _ledger_run_verdicts(folder, folder_ledger, present)
        return FolderVerification(None, error, folder_ledger, [*verdicts, *runs])
    parsed = manifest.parse(path, content)
    plan = {entry.id: ledger.digest_of(entry) for entry in parsed.plan}
    checks = check_logs if parsed.is_of_jobs else _native.check_traces
    runs = run_verdicts(folder, plan, present, folder_ledger, parsed.folder_id, checks=checks)
    return FolderVerification(
        parsed,
        None,
        folder_ledger,
        [*verdicts, *runs],
        _is_dangling(folder_ledger, content, present),
    )


def verify(folder: Path) -> list[FileStatus]:
    """Return the status of each file of a result folder, of `uflip run` or of `uflip oc`.

    Raises
    ------
    ResultsError
        If it is not a result folder, of a newer version, or unreadable. Damage is not an error.
    """
    try:
        if (folder / OPEN_CHANNEL).exists():
            return examine_open_channel(folder)
        verification = examine(folder)
        usable = [run for run, verdict in verification.runs.items() if verdict.usable]
        is_of_jobs = verification.manifest is not None and verification.manifest.is_of_jobs
        checks = check_logs if is_of_jobs else _native.check_traces
        verdicts = without_impossible(folder, verification.verdicts, checks)
        return verdicts + _strays(folder, verification) + _device_log_verdicts(folder, usable)
    except OSError as error:
        raise ResultsError(
            "The folder cannot be read",
            where=error.filename or str(folder),
            got=error.strerror or str(error),
            allowed="a folder that may be read",
            action="check its permissions and your user",
        ) from error


def _strays(folder: Path, verification: FolderVerification) -> list[FileStatus]:
    """Return run files that the plan (or, without a plan, the ledger) does not list."""
    planned = (
        verification.runs
        if verification.manifest is None
        else {run.id for run in verification.manifest.plan}
    )
    names = sorted(set(runs_in(folder / manifest.RUNS)) - set(planned))
    sized = [(file_name(name), size_of(folder, name)) for name in names]
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


def examine_open_channel(folder: Path) -> list[FileStatus]:
    """Verify every file of a result folder of `uflip oc` against its ledger.

    Its jobs are not planned beforehand: every ledger line should have a file, and every file a
    ledger line.

    Raises
    ------
    ResultsError
        If a file cannot be inspected, or the ledger is of a newer version.
    """
    path = folder / OPEN_CHANNEL
    content = read_document(path, OPEN_CHANNEL_KIND)
    present = runs_in(folder / manifest.RUNS)
    folder_ledger = read_ledger(folder)
    verdicts = [
        document_verdict(path, content, folder_ledger, "what was found"),
        *ledger_verdicts(folder_ledger),
    ]
    lines = folder_ledger.runs if folder_ledger else {}
    plan = {run: line.spec for run, line in lines.items()}
    for run in sorted(set(present) - set(plan)):
        reason = "the ledger has no line for it" if folder_ledger else "there is no ledger"
        verdicts.append(FileStatus(file_name(run), UNPROVEN, size_of(folder, run), reason, run=run))
    folder_id = folder_ledger.folder_id if folder_ledger else None
    return verdicts + run_verdicts(folder, plan, present, folder_ledger, folder_id)


def read_ledger(folder: Path) -> Ledger | None:
    """Read the ledger of a folder; return None if it is missing.

    Raises
    ------
    ResultsError
        If it cannot be read, or is of a newer version.
    """
    path = folder / ledger.FILE_NAME
    content = read_if_exists(path, ledger.KIND)
    return None if content is None else ledger.parse(path, content)


def document_verdict(
    path: Path, content: bytes, folder_ledger: Ledger | None, costs: str
) -> FileStatus:
    """Verify the manifest of a folder against its ledger."""
    if folder_ledger is None:
        reason = "there is no ledger: the folder is of an older version, or the ledger was lost"
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


def ledger_verdicts(folder_ledger: Ledger | None) -> list[FileStatus]:
    """Return the status of the ledger itself."""
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
    """Return the status of run files where the plan is lost."""
    lines = folder_ledger.runs if folder_ledger else {}
    plan = {run: line.spec for run, line in lines.items()}
    return run_verdicts(
        folder, plan, present, folder_ledger, folder_ledger.folder_id if folder_ledger else None
    )


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


def _manifest_bytes(folder: Path) -> bytes:
    is_folder = folder.is_dir()
    content = read_if_exists(folder / manifest.FILE_NAME, manifest.KIND) if is_folder else None
    if content is not None:
        return content
    raise ResultsError(
        what="This folder holds no results" if is_folder else "There are no results here",
        where=str(folder),
        got=f"a folder without {manifest.FILE_NAME}"
        if is_folder
        else ("a file" if folder.exists() else "nothing of this name"),
        allowed=f"a folder made by `uflip run`, with a {manifest.FILE_NAME} in it",
        action="give the folder that was passed to `uflip run --out`",
    )
