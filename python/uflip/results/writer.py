"""Creates a result folder and commits one run at a time.

A benchmark may be killed, the disk may fill up, the power may fail: the finished runs stay complete
in any case. A run is written under a temporary name, fsynced, entered into the folder's ledger with
its digest, and renamed before the next one starts. The manifest, which names every planned run, is
written before the first. `uflip.data.ledger` explains this order.

While it lives, the writer holds a lock on the folder: see `result_dir`.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Protocol

import msgspec

from uflip import _native, safe_files
from uflip.data import ledger, manifest, run_summary
from uflip.data.ledger import BeginEntry, Entry, digest_of
from uflip.data.manifest import (
    Interference,
    Manifest,
    Phases,
    PlanEntry,
    StoredWarning,
    entry_of,
)
from uflip.data.run import About, InsideFile
from uflip.data.summary import Certainty, WarningSummary
from uflip.errors import ResultsError, UflipError, UsageError, native_errors
from uflip.results import device_log, result_dir
from uflip.results.benchmark_warnings import benchmark_warnings, plan_warnings
from uflip.results.initial_manifest import utc_now
from uflip.results.integrity import FolderVerification, examine, read_log
from uflip.results.reader import examiner_of
from uflip.results.result_dir import (
    RUN_SUFFIX,
    check_not_moved,
    create_atomically,
    refuse_existing,
    run_file,
)
from uflip.results.run_summary import ENDINGS, Log, SummaryWriter
from uflip.results.statistics import Experiments, RepetitionStatistics


class PlannedRunLike(Protocol):
    """A planned run, as far as the writer needs it: the plan has an entry of its id."""

    @property
    def id(self) -> str:
        """The name of the run in this folder."""


def _check_readable(content: Manifest) -> None:
    """Refuse a manifest that no reader would accept, before anything is measured."""
    try:
        manifest.parse(Path(manifest.FILE_NAME), manifest.encode(content))
    except ResultsError as error:
        raise UsageError(
            "A result cannot store these options",
            where=manifest.FILE_NAME,
            got=error.got,
            allowed="values that `uflip` can read back",
            action="shorten the name of the device, or the values of the options",
        ) from error


class ResultsWriter:
    """A result folder that is being filled; make one with `create`."""

    def __init__(self, path: Path, content: Manifest, lock_descriptor: int) -> None:
        self.path = path
        self.at_end: Callable[[], manifest.After] | None = None
        """Returns, at the end, the state of the host and the device."""
        self._files = FolderFiles(path)
        self._manifest = content
        self._lock = lock_descriptor
        self._began, self._earlier_s = time.monotonic(), 0.0
        self._verification: FolderVerification | None = None
        self.done: list[str] = []
        """Ids of the runs that existed when the benchmark was resumed."""
        self._examiner = examiner_of(content)
        self._is_open_channel = content.is_of_jobs
        self._repetitions = RepetitionStatistics(self.trace_of)

    @classmethod
    def create(cls, path: str | os.PathLike[str], content: Manifest) -> ResultsWriter:
        """Make a result folder with its manifest.

        `path`: an unused name; missing parents are made. `content`: from
        `uflip.results.initial_manifest.manifest_of`.
        """
        folder = Path(path)
        refuse_existing(folder)
        _check_readable(content)
        lock_descriptor = result_dir.NO_LOCK
        try:
            with create_atomically(folder) as hidden:
                (hidden / manifest.RUNS).mkdir()
                lock_descriptor = result_dir.acquire_lock(hidden)
                writer = cls(hidden, content, lock_descriptor)
                writer._files.begin(content)
                writer._write_manifest()
        except BaseException:
            result_dir.release_lock(lock_descriptor)
            raise
        writer.path = folder
        writer._files.set_folder(folder)
        return writer

    @classmethod
    def resume(cls, path: str | os.PathLike[str]) -> ResultsWriter:
        """Resume an interrupted benchmark in its folder; `done` lists the finished runs."""
        folder = Path(path)
        verification = examine(folder)
        content = verification.usable_manifest()
        if content.status == "complete" and not verification.lost_runs:
            raise ResultsError(
                what="These results are complete",
                where=str(folder),
                got=f"{len(content.plan)} finished runs",
                allowed="a folder with an interrupted benchmark or a damaged run",
                action="start another benchmark with a new --out",
            )
        lock_descriptor = result_dir.acquire_exclusive_lock(folder)
        try:
            writer = cls(folder, content, lock_descriptor)
            writer._examine_finished_runs(verification)
        except BaseException:
            result_dir.release_lock(lock_descriptor)
            raise
        return writer

    def _examine_finished_runs(self, verification: FolderVerification) -> None:
        """Examine the finished runs again; nothing is changed before `replan`."""
        self._verification = verification
        for entry in self._manifest.plan:
            trace = self.log_of(entry.id)
            if trace is not None:
                self._examiner.examine(entry, trace)
                self.done.append(entry.id)
        self._earlier_s = self._manifest.elapsed_s or 0.0
        self._manifest = msgspec.structs.replace(
            self._manifest, warnings=tuple(plan_warnings(self._manifest.warnings))
        )

    def note(self, key: str, value: Phases | Interference) -> None:
        """Store a measured property of the device: `phases` or `interference`."""
        self._manifest = msgspec.structs.replace(self._manifest, **{key: dict(value)})
        self._write_manifest()

    def trace_of(self, run_id: str) -> _native.Trace | None:
        """Read a finished run; return None if it is missing or damaged."""
        path = self._usable(run_id)
        if path is None:
            return None
        with native_errors():
            return _native.read_trace(str(path), self._expected(run_id))

    def log_of(self, run_id: str) -> Log | None:
        """Read a finished run, or the log of a job over physical addresses; like `trace_of`."""
        if not self._is_open_channel:
            return self.trace_of(run_id)
        path = self._usable(run_id)
        return None if path is None else read_log(path, self._expected(run_id))

    def _usable(self, run_id: str) -> Path | None:
        path = run_file(self.path, run_id)
        if not path.exists():
            return None
        status = self._verification.runs.get(run_id) if self._verification else None
        if status is not None and not status.usable:
            return None
        return path

    def grow(self, plan: Sequence[object]) -> None:
        """Store a plan with more runs, before the first of them is made."""
        self._manifest = msgspec.structs.replace(
            self._manifest, plan=tuple(entry_of(run) for run in plan)
        )
        self._write_manifest()

    def experiment_statistics(
        self, experiments: Experiments, slowest_ns: float | None
    ) -> Sequence[Certainty]:
        """Return the statistics of the finished repetitions of each experiment."""
        return self._repetitions.experiment_statistics(experiments, slowest_ns)

    def ios_of(self, run_id: str) -> int:
        """Return the number of I/Os of a finished run."""
        return self._repetitions.ios_of(run_id)

    def _expected(self, run_id: str) -> tuple[int, str] | None:
        if run_id in self._files.digests:
            return self._files.digests[run_id]
        return self._verification.expected(run_id) if self._verification else None

    def replan(self, plan: Sequence[object]) -> None:
        """Record that the benchmark is resumed, and its plan; runs keep their ids.

        Removes half-written files of a kill, and moves damaged run files aside.
        """
        self._manifest = msgspec.structs.replace(
            self._manifest,
            status="running",
            finished_utc=None,
            elapsed_s=None,
            resumed_utc=(*self._manifest.resumed_utc, utc_now()),
            plan=tuple(entry_of(run) for run in plan),
        )
        self._files.resume(self._manifest, self._verification)
        self._write_manifest()

    def _write_manifest(self) -> None:
        """Write the current manifest."""
        self._manifest = self._files.write_manifest(self._manifest)

    @property
    def spool(self) -> Path:
        """Folder for the I/Os of a long run during the run: beside the stored runs."""
        return self.path / manifest.RUNS

    @property
    def manifest(self) -> Manifest:
        """The current manifest."""
        return self._manifest

    def commit(self, run: PlannedRunLike, trace: Log, extra: About | None = None) -> Path:
        """Store a finished run durably, before the next one starts."""
        entry = self._entry(run.id)
        counters = trace.counters_json() if isinstance(trace, _native.Trace) else None
        about = extra or {}
        inside = None if about.get("samples_only") else self._files.store_inside(entry, trace)
        metadata = {
            "format": "uflip-run",
            "format_version": manifest.KIND.version,
            "uflip_version": _native.__version__,
            "folder_id": self._manifest.folder_id,
            "device_kind": self._manifest.device.kind,
            **msgspec.to_builtins(entry),
            "finished_utc": utc_now(),
            "elapsed_ns": trace.elapsed_ns(),
            "counters": json.loads(counters) if counters is not None else None,
            **{
                name: msgspec.to_builtins(value)
                for name, value in about.items()
                if name != "samples_only"
            },
            **({} if inside is None else {"inside": msgspec.to_builtins(inside)}),
        }
        path = self._files.store(entry, trace, json.dumps(metadata, allow_nan=False))
        digest = self._files.digests[entry.id]
        self._summary_writer.cache_run(entry, path, digest, trace, about)
        self._repetitions.store(entry.id, self._summary_writer.repetition(entry.id))
        self._examiner.examine(entry, trace, about)
        return path

    def finish(self, status: str, warnings: Sequence[WarningSummary] = ()) -> None:
        """Write the last manifest, with the final status and all warnings."""
        content = self._manifest
        if self.at_end is not None:
            host = {**content.host, "after": msgspec.to_builtins(self.at_end())}
            content = msgspec.structs.replace(content, host=host)
        stored: list[StoredWarning] = [
            *benchmark_warnings(content),
            *self._examiner.warnings(content.phases, content.plan),
        ]
        try:
            self._manifest = msgspec.structs.replace(
                content,
                status=msgspec.convert(status, manifest.Status),
                finished_utc=utc_now(),
                elapsed_s=round(self._earlier_s + time.monotonic() - self._began, 3),
                warnings=(
                    *content.warnings,
                    *(msgspec.convert(each, StoredWarning) for each in warnings),
                    *stored,
                ),
            )
            self._write_manifest()
            if status == "complete":
                self._cache_experiments()
        finally:
            self.close()

    @cached_property
    def _summary_writer(self) -> SummaryWriter:
        return SummaryWriter(self.path, self._manifest.device.page_bytes)

    def _cache_experiments(self) -> None:
        present = (each for each in self._manifest.plan if run_file(self.path, each.id).exists())
        self._summary_writer.cache_experiments(
            [(each, run_file(self.path, each.id), self._expected(each.id)) for each in present],
            self.log_of,
        )

    def close(self) -> None:
        """Release the folder; without `finish` its benchmark counts as interrupted."""
        result_dir.release_lock(self._lock)
        self._lock = result_dir.NO_LOCK
        self._files.close()

    def _entry(self, run_id: str) -> PlanEntry:
        entry = self._manifest.entry(run_id)
        if entry is None:
            raise ResultsError(
                what="This run is not in the plan of these results",
                where=str(self.path),
                got=run_id,
                allowed=f"one of the {len(self._manifest.plan)} planned runs",
                action="plan it, and write into a new folder",
            )
        return entry


class FolderFiles:
    """Ledger, manifest and run files of a folder."""

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
        """Begin the ledger of a folder."""
        plan = digest_of(content.plan)
        with _storing("ledger", self.path / ledger.FILE_NAME):
            self._ledger = LedgerWriter.create(self.path, content.folder_id, plan)

    def resume(self, content: Manifest, verification: FolderVerification | None) -> None:
        """Resume an existing folder: remove half-written files and move damaged ones aside."""
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
        for folder in (manifest.RUNS, run_summary.FOLDER, device_log.FOLDER):
            for path in (self.path / folder).glob(".*.tmp"):
                name = path.name[1:].removesuffix(".tmp")
                if any(name.removesuffix(ending) in names for ending in (RUN_SUFFIX, *ENDINGS)):
                    with contextlib.suppress(OSError):
                        path.unlink(missing_ok=True)

    def write_manifest(self, content: Manifest) -> Manifest:
        """Write the manifest; its digest goes into the ledger first."""
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
                safe_files.write_file(path, written)
            except BaseException:
                if not path.exists() or path.read_bytes() != written:
                    self._ledger.remove_last_line()
                raise
        return content

    def store_inside(self, entry: PlanEntry, trace: Log) -> InsideFile | None:
        """Write the device log of a run that is stored next."""
        if not trace.has_inside:
            return None
        self.check_not_moved()
        try:
            return device_log.write_device_log(self.path, entry.id, trace)
        except (OSError, UflipError) as error:
            raise _store_error(
                "look inside the device", self.path / device_log.FOLDER, error
            ) from error

    def store(self, entry: PlanEntry, trace: Log, metadata_json: str) -> Path:
        """Write, fsync (native), enter into the ledger, rename; on failure leave nothing."""
        path = run_file(self.path, entry.id)
        self.check_not_moved()
        if path.exists():
            raise ResultsError(
                what="The run is committed already",
                where=str(path),
                got="the same run again",
                action="report this, with the command: a run was made twice",
            )
        in_ledger = False
        assert self._ledger is not None, "a folder that is written has a ledger"
        try:
            with safe_files.replaced_file(path) as temporary:
                with native_errors():
                    trace.write_parquet(str(temporary), metadata_json)
                ((size, digest, problem),) = _native.digest_files([str(temporary)])
                if problem:
                    raise OSError(0, problem)
                self._ledger.append(ledger.RunEntry(entry.id, size, digest, digest_of(entry)))
                in_ledger = True
                self.digests[entry.id] = (size, digest)
        except BaseException as error:
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
    """Refuse to give up a file that could not be read: its content may be intact."""
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


class LedgerWriter:
    """A ledger that is being written; `create` begins one, `resume` continues one."""

    def __init__(self, path: Path, lines: int, end: int, link: str) -> None:
        self._path = path
        self._end = end
        self._link = link
        self._before = (lines, end, link)
        self.lines = lines
        """Number of lines."""

    @classmethod
    def create(cls, folder: Path, folder_id: str, plan: str) -> LedgerWriter:
        """Begin the ledger of a folder with this plan (its digest)."""
        path = folder / ledger.FILE_NAME
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        os.close(descriptor)
        writer = cls(path, 0, 0, "")
        writer.append(BeginEntry(folder_id, plan))
        safe_files.sync_path(folder)
        return writer

    def set_folder(self, folder: Path) -> None:
        """Record the new name of the folder."""
        self._path = folder / ledger.FILE_NAME

    @classmethod
    def resume(cls, folder: Path, previous: ledger.Ledger, *, dangling: bool) -> LedgerWriter:
        """Continue the parsed ledger of a folder; cut off a partial line left by a kill.

        `dangling`: cut off the last line too, because a kill came between it and its file.
        """
        path = folder / ledger.FILE_NAME
        lines, end, link = (
            previous.without_last if dangling else (previous.lines, previous.end, previous.link)
        )
        os.truncate(path, end)
        return cls(path, lines, end, link)

    def append(self, entry: Entry) -> None:
        """Write a line, and sync it; a failure leaves the ledger as it was."""
        text, link = ledger.line(entry, self._link)
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            try:
                if os.write(descriptor, text) < len(text):
                    raise OSError("only a part of a line was written")
                os.fsync(descriptor)
            except BaseException:
                os.ftruncate(descriptor, self._end)
                raise
        finally:
            os.close(descriptor)
        self._before = (self.lines, self._end, self._link)
        self._end += len(text)
        self._link = link
        self.lines += 1

    def remove_last_line(self) -> None:
        """Cut off the last appended line: its file did not get its name.

        If that fails too (the file system is gone), the file is reported as missing, correctly.
        """
        self.lines, self._end, self._link = self._before
        with contextlib.suppress(OSError):
            os.truncate(self._path, self._end)
