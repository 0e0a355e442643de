"""The files of a result folder during writing; each has its digest in the ledger before its name.

A file is written under a temporary name, synced, entered into the ledger with its digest, and
renamed. `uflip.data.ledger` explains this order.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from uflip import _native
from uflip.data import ledger, manifest, run_summary
from uflip.data.ledger import digest_of
from uflip.data.manifest import Manifest, PlanEntry
from uflip.data.run import InsideFile
from uflip.errors import ResultsError, UflipError, native_errors
from uflip.results import atomic, result_dir
from uflip.results.device_log import FOLDER, write_device_log
from uflip.results.integrity import FolderVerification
from uflip.results.ledger import LedgerWriter
from uflip.results.result_dir import RUN_SUFFIX, check_not_moved, run_file
from uflip.results.summary_cache import ENDINGS, Log


class Files:
    """Ledger, manifest and run files of a folder.

    Parameters
    ----------
    path : Path
        The folder, which exists and is locked by the writer.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.digests: dict[str, tuple[int, str]] = {}
        """Length [bytes] and digest of the runs stored by this object."""
        with _storing("run", path):
            self._folder_descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        self._ledger: LedgerWriter | None = None

    def set_folder(self, folder: Path) -> None:
        """Record the new name of the folder."""
        self.path = folder
        if self._ledger is not None:
            self._ledger.set_folder(folder)

    def check_not_moved(self) -> None:
        """Raise unless the folder is the one that was opened."""
        check_not_moved(self.path, self._folder_descriptor)

    def close(self) -> None:
        """Release the folder and its lock."""
        result_dir.release_lock(self._folder_descriptor)
        self._folder_descriptor = result_dir.NO_LOCK

    def begin(self, content: Manifest) -> None:
        """Begin the ledger of a folder.

        Raises
        ------
        ResultsError
            If it cannot be written.
        """
        folder_id = content.folder_id
        assert folder_id is not None, "a folder of this version has one"
        with _storing("ledger", self.path / ledger.FILE_NAME):
            self._ledger = LedgerWriter.create(self.path, folder_id, digest_of(content.plan))

    def resume(self, content: Manifest, verification: FolderVerification | None) -> None:
        """Resume an existing folder: remove half-written files and move damaged ones aside.

        Raises
        ------
        ResultsError
            If the ledger cannot be written.
        """
        self.check_not_moved()
        self._remove_temporary_files(content)
        for verdict in verification.lost_runs if verification else []:
            path = self.path / verdict.file
            _check_lost(
                path, verification.expected(verdict.run) if verification and verdict.run else None
            )
            with _storing("run", path):
                _move_aside(path)
        if verification is not None and verification.ledger is not None:
            with _storing("ledger", self.path / ledger.FILE_NAME):
                self._ledger = LedgerWriter.resume(
                    self.path, verification.ledger, dangling=verification.dangling
                )
        elif self._ledger is None:
            self.begin(content)

    def _remove_temporary_files(self, content: Manifest) -> None:
        """Remove temporary files of this benchmark after a kill, and no others."""
        names = {entry.id for entry in content.plan} | {run_summary.ALL}
        for folder in (manifest.RUNS, run_summary.FOLDER, FOLDER):
            for path in (self.path / folder).glob(".*.tmp"):
                name = path.name[1:].removesuffix(".tmp")
                if any(name.removesuffix(ending) in names for ending in (RUN_SUFFIX, *ENDINGS)):
                    with contextlib.suppress(OSError):
                        path.unlink(missing_ok=True)

    def write_manifest(self, content: Manifest) -> Manifest:
        """Write the manifest; its digest goes into the ledger first.

        Returns
        -------
        Manifest
            The manifest as written, with the number of ledger lines.

        Raises
        ------
        ResultsError
            If it cannot be written.
        """
        self.check_not_moved()
        path = self.path / manifest.FILE_NAME
        with _storing("manifest", path):
            assert self._ledger is not None, "a folder that is written has a ledger"
            content = msgspec.structs.replace(content, ledger_lines=self._ledger.lines)
            written = manifest.encode(content)
            self._ledger.append(
                ledger.ManifestEntry(len(written), _native.digest(written), digest_of(content.plan))
            )
            try:
                atomic.write_file(path, written)
            except BaseException:
                if not path.exists() or path.read_bytes() != written:
                    self._ledger.remove_last_line()
                raise
        return content

    def store_inside(self, entry: PlanEntry, trace: Log) -> InsideFile | None:
        """Write the device log of a run that is stored next.

        Raises
        ------
        ResultsError
            If it cannot be written.
        """
        if not trace.has_inside:
            return None
        self.check_not_moved()
        try:
            return write_device_log(self.path, entry.id, trace)
        except (OSError, UflipError) as error:
            raise _store_error("look inside the device", self.path / FOLDER, error) from error

    def store(self, entry: PlanEntry, trace: Log, metadata_json: str) -> Path:
        """Write, fsync (native), enter into the ledger, rename; on failure leave nothing.

        Raises
        ------
        ResultsError
            If the run is stored already, or cannot be written.
        """
        path = run_file(self.path, entry.id)
        self.check_not_moved()
        if path.exists():
            raise ResultsError(
                what="The run is committed already",
                where=str(path),
                got="the same run again",
                action="report this, with the command: a run was made twice",
            )
        temporary, in_ledger = atomic.temporary_name(path), False
        assert self._ledger is not None, "a folder that is written has a ledger"
        try:
            with native_errors():
                trace.write_parquet(str(temporary), metadata_json)
            ((size, digest, problem),) = _native.digest_files([str(temporary)])
            if problem:
                raise OSError(0, problem)
            self._ledger.append(ledger.RunEntry(entry.id, size, digest, digest_of(entry)))
            in_ledger = True
            self.digests[entry.id] = (size, digest)
            atomic.publish(temporary, path)
        except BaseException as error:
            with contextlib.suppress(OSError):  # the cause of a failed write often prevents removal
                temporary.unlink(missing_ok=True)
            if in_ledger and not path.exists():
                self.digests.pop(entry.id, None)
                self._ledger.remove_last_line()
            if isinstance(error, ResultsError) or not isinstance(error, (OSError, UflipError)):
                raise
            if isinstance(error, UflipError) and error.kind == UflipError.kind:
                raise  # the run itself is invalid, and the folder is fine
            raise _store_error("run", path, error) from error
        return path


@contextlib.contextmanager
def _storing(kind: str, path: Path) -> Iterator[None]:
    """Convert an operating system error during storing into a ResultsError."""
    try:
        yield
    except OSError as error:
        raise _store_error(kind, path, error) from error


def _store_error(kind: str, path: Path, error: OSError | UflipError) -> ResultsError:
    reason = error.strerror or str(error) if isinstance(error, OSError) else error.got or error.what
    return ResultsError(
        what=f"The {kind} could not be stored",
        where=str(path),
        got=reason,
        allowed="a writable folder with free space",
        action="free some space and continue with `uflip run --resume`; finished runs are kept",
    )


def _check_lost(path: Path, expected: tuple[int, str] | None) -> None:
    """Refuse to give up a file that could not be read: its content may be intact.

    Raises
    ------
    ResultsError
        If it still cannot be read, or matches its digest.
    """
    if not path.exists():
        return
    ((size, digest, problem),) = _native.digest_files([str(path)])
    if problem or (size, digest) == expected:
        raise ResultsError(
            what="A run file cannot be read",
            where=str(path),
            got=problem or "an error at first, and a valid file now",
            allowed="a file that can be read, whole or damaged",
            action="try again; if it fails again, move the file away to repeat the run",
        )


def _move_aside(path: Path) -> None:
    """Rename a damaged file, so that nothing of it is lost."""
    if not path.exists():
        return
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    path.rename(aside)
