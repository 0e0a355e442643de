"""Benchmarks of several devices at once: a result folder for each, in one folder.

::

    FOLDER/
      devices.json      the devices, and the common options (`uflip.data.multi_device`)
      sim-demo/         results, as of any benchmark
      file-scratch.bin/

All checks precede the first benchmark. After that no failure stops the others: each device has its
own outcome and error. Real devices of this machine are measured one after the other with nothing
beside them, since devices that share a bus, a disk or processors disturb each other. Simulated ones
have virtual time, and run wherever the executor has room. The folder is locked during the work.

Results of a device on another machine are fetched from there::

    worker, on the host of the drive              client
    results/sent/ID/NAME/  ── piece by piece ──▶  FOLDER/.NAME-being-made ──▶ FOLDER/NAME

The remote folder is complete before anything of it is fetched. It is removed when all of it has
arrived with the right digests. So at any failure in between, one of the two is complete. Pieces are
served during the other work of the worker: its next drive does not delay them.
"""

import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self, cast
from uuid import uuid4

import msgspec
from msgspec import structs

from uflip import _native
from uflip.benchmark.estimate import check_worth_running
from uflip.benchmark.events import (
    BenchmarkEvent,
    DeviceProgress,
    FileProgress,
    JobsBegin,
    PlanGrew,
    ResetProgress,
    RunFinished,
    RunProgress,
    RunsBegin,
    StateProgress,
)
from uflip.benchmark.request import BenchmarkRequest
from uflip.benchmark.session import begin, check_out, file_name_of, folder_name, resume
from uflip.data import multi_device as document
from uflip.data.multi_device import (
    MAX_DEVICES,
    DeviceEntry,
    MultiDeviceManifest,
    MultiDeviceOptions,
)
from uflip.device.url import parse_url
from uflip.errors import (
    InterruptedRun,
    RefusedError,
    ResultsError,
    UflipError,
    UnavailableError,
    UsageError,
)
from uflip.executors import CallingThread, Executor, current, iterate_outcomes, using
from uflip.executors.executor import MAX_WORKER_DEATHS
from uflip.executors.progress_messages import Remote, publish, subscribe
from uflip.results import Results, outputs, result_dir
from uflip.results.result_dir import create_atomically
from uflip.safe_files import write_file

REMOTE_RESULTS = Path("results") / "sent"
"""Folder of results on the host of a drive, below the working directory of its worker."""
# Message size that a scheduler forwards without problems [bytes].
PIECE_BYTES = 4 << 20
# Interval of progress messages; through a scheduler each costs a millisecond [s].
REPORT_INTERVAL_S = 0.5
OnDeviceProgress = Callable[[int, float, str], None]
"""Called with (index of the device, finished share, current activity)."""


@dataclass(frozen=True)
class RemoteFolder:
    """A folder on another machine."""

    worker: str  #: The address of a worker that can read it.
    folder: str  #: Its path there.
    files: tuple[tuple[str, int, str], ...]  #: All its files; names are relative, with slashes.


@dataclass(frozen=True)
class DeviceTask:
    """A device and its request; picklable."""

    index: int  #: Index among the devices.
    device: str  #: Its name, with that of its host if it is on another machine.
    needs: str  #: The label of the workers on its host; empty: any worker.
    request: BenchmarkRequest  #: The request, without permission to destroy.
    tokens: tuple[str, ...]  #: Permissions to destroy, for any of the devices.
    out: Path  #: Its result folder, new or to be resumed.
    command: tuple[str, ...]  #: The command line to store.
    id: str  #: The id of the whole multi-device benchmark.
    topic: str = ""  #: The receiver of progress messages.
    #: Whether the worker has other files than the client: the results are made in a folder of the
    #: worker, and fetched from there.
    remote: bool = False

    @property
    def simulated(self) -> bool:
        """Whether it has virtual time, independent of the load of the machine."""
        return parse_url(self.request.device).kind == "sim"

    @property
    def folder(self) -> Path:
        """Its result folder, as the worker sees it."""
        return REMOTE_RESULTS / self.id / self.out.name if self.remote else self.out

    def __str__(self) -> str:
        return self.device


@dataclass(frozen=True)
class DeviceOutcome:
    """The outcome of the benchmark of one device."""

    index: int  #: Index among the devices.
    #: Its name, and its result folder.
    device: str
    results: str
    status: str  #: complete; interrupted: a time limit prevented some runs; failed: see `error`.
    error: UflipError | None = None  #: The reason for a failure.
    remote_folder: RemoteFolder | None = None  #: The folder to fetch from another machine.

    @classmethod
    def from_error(cls, point: DeviceTask, error: UflipError) -> Self:
        """Return the outcome of a failed benchmark."""
        results = (
            f"{point.folder} at {point.needs or 'a worker'}" if point.remote else str(point.out)
        )
        return cls(point.index, point.device, results, "failed", error)


def begin_all(
    request: BenchmarkRequest,
    devices: Sequence[str],
    out: Path | None = None,
    *,
    tokens: Sequence[str] = (),
    together: bool = False,
    on_progress: OnDeviceProgress = lambda _index, _share, _text: None,
) -> tuple[Path, list[DeviceOutcome]]:
    """Run the same benchmark on several devices.

    `request`: the common request; its own `device`, `destroy`, `plan_file` and `record` are not
    used. `devices`: their names. `out`: new folder for all; without it one under `results/`, named
    by the time. `tokens`: permissions to destroy, as `destroy` of a request; each device takes its
    own. `together`: measure real devices of this machine at the same time, too. `on_progress`:
    receives the progress of each device.
    """
    folder = Path("results") / folder_name("devices") if out is None else out
    names = [*devices]
    check_names(names)
    check_out(folder)
    common = {name: getattr(request, name) for name in MultiDeviceOptions.__struct_fields__}
    options = msgspec.convert(common, MultiDeviceOptions)
    entries = [DeviceEntry(*pair) for pair in zip(names, folder_names(names), strict=True)]
    manifest = MultiDeviceManifest(
        uflip_version=_native.__version__,
        created_utc=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        id=uuid4().hex,
        options=options,
        devices=entries,
    )
    points = _points(manifest, folder, tokens)
    _check_tokens(tokens, _check(points))
    with outputs.new_folder(folder, "folder of results") as temporary:
        write_file(temporary / document.FILE_NAME, document.encode(manifest))
    return folder, _carry_out(folder, points, [], together, on_progress)


def resume_all(
    folder: Path,
    *,
    tokens: Sequence[str] = (),
    together: bool = False,
    max_time_ns: int | None = None,
    on_progress: OnDeviceProgress = lambda _index, _share, _text: None,
) -> list[DeviceOutcome]:
    """Resume the benchmarks of several devices; complete ones are skipped.

    `folder`: from `begin_all`. `tokens`, `together`, `on_progress`: as for `begin_all`.
    `max_time_ns`: after this time no run begins [ns].
    """
    manifest = document.read(folder)
    points = _points(manifest, folder, tokens, max_time_ns)
    complete = [
        DeviceOutcome(point.index, point.device, str(point.out), "complete")
        for point in points
        if point.out.exists() and status_of(point.out) == "complete"
    ]
    done = {outcome.index for outcome in complete}
    remaining = [point for point in points if point.index not in done]
    _check([point for point in remaining if not point.out.exists()])
    return _carry_out(folder, remaining, complete, together, on_progress)


def is_multi_device(folder: Path) -> bool:
    """Return whether a folder is one of `begin_all`."""
    return (folder / document.FILE_NAME).is_file()


def _carry_out(
    folder: Path,
    points: list[DeviceTask],
    complete: list[DeviceOutcome],
    together: bool,
    on_progress: OnDeviceProgress,
) -> list[DeviceOutcome]:
    outcomes = {outcome.index: outcome for outcome in complete}
    folder_lock = result_dir.acquire_exclusive_lock(folder)
    try:
        with subscribe(lambda message: on_progress(*message)) as name:
            for executor, batch in _batches([replace(p, topic=name) for p in points], together):
                for outcome in _outcomes(executor, batch):
                    outcomes[outcome.index] = outcome
                    on_progress(outcome.index, 1.0, "")
    except (KeyboardInterrupt, InterruptedRun):
        raise InterruptedRun(
            f"Interrupted after {len(outcomes)} of {len(points) + len(complete)} devices",
            where=str(folder),
            action=f"finished runs are stored; `uflip run --resume {folder}` makes the others",
        ) from None
    finally:
        result_dir.release_lock(folder_lock)
    return [outcomes[index] for index in sorted(outcomes)]


def _outcomes(executor: Executor, batch: list[DeviceTask]) -> Iterator[DeviceOutcome]:
    """Yield the outcomes of a batch, with the results of each on this machine."""
    remaining = {point.index: point for point in batch}
    deaths = 0
    while remaining:
        try:
            with (
                using(executor),
                closing(cast("Any", iterate_outcomes(run_task, [*remaining.values()]))) as outcomes,
            ):
                for _, outcome in outcomes:
                    try:
                        yield fetch_results(executor, outcome, remaining[outcome.index])
                    except WorkerGoneError:  # its folder still exists; a retry finds it complete
                        deaths += 1
                        if deaths > MAX_WORKER_DEATHS * len(batch):
                            raise
                    else:
                        del remaining[outcome.index]
        except InterruptedRun:
            raise
        except UflipError as error:
            # From the executor: a task whose workers crash, or no worker left for the rest.
            affected = [point for point in remaining.values() if point.device == error.where]
            for point in affected or [*remaining.values()]:
                del remaining[point.index]
                yield DeviceOutcome.from_error(point, error)


def _batches(
    points: list[DeviceTask], together: bool
) -> Iterator[tuple[Executor, list[DeviceTask]]]:
    """Yield the batches of tasks with their executors, in order."""
    executor = current()
    elsewhere = isinstance(executor, Remote) and executor.elsewhere
    sequential = [point for point in points if not (point.needs or point.simulated)]
    if together and not elsewhere:
        sequential = []
    for point in sequential:
        yield CallingThread(), [point]
    if concurrent := [replace(p, remote=elsewhere) for p in points if p not in sequential]:
        yield executor, concurrent


def _points(
    manifest: MultiDeviceManifest,
    folder: Path,
    tokens: Sequence[str],
    max_time_ns: int | None = None,
) -> list[DeviceTask]:
    options = structs.asdict(manifest.options)
    if max_time_ns is not None:
        options["max_time_ns"] = max_time_ns
    return [
        DeviceTask(
            index=index,
            device=entry.device,
            needs=split_host(entry.device)[0],
            id=manifest.id,
            request=BenchmarkRequest(device=split_host(entry.device)[1], **options),
            tokens=tuple(tokens),
            out=folder / entry.folder,
            command=tuple(sys.argv),
        )
        for index, entry in enumerate(manifest.devices)
    ]


def _check(points: Sequence[DeviceTask]) -> set[str | None]:
    """Check all devices before anything is created or written."""
    used: set[str | None] = set()
    for point in points:
        if point.needs:
            _check_host(point)
            used.update(point.tokens)  # one of them may be for it; only its host knows
            continue
        request = replace(point.request, destroy=destroy_for(point))
        used.add(request.destroy)
        if request.is_open_channel:
            request.check_jobs()
            continue
        request.check()
        check_worth_running(request.plan(request.inspect()))
    return used


def _check_host(point: DeviceTask) -> None:
    """Refuse a host without a worker; its device is checked there."""
    executor = current()
    labels = executor.labels() if isinstance(executor, Remote) else set()
    if point.needs in labels:
        return
    if not isinstance(executor, Remote) or not executor.elsewhere:
        raise UsageError(
            "A device of another machine needs --scheduler",
            where="DEVICE",
            got=point.device,
            allowed="a device of this machine, or HOST@DEVICE with --scheduler",
            action="name the scheduler that the workers of that machine belong to",
        )
    raise UnavailableError(
        "No worker has this label",
        where=point.device,
        got=point.needs,
        allowed=", ".join(sorted(labels)) or "no worker has a label",
        action=f"start `dask worker` with --resources {point.needs}=1 on the machine of the drive",
    )


def _check_tokens(tokens: Sequence[str], used: set[str | None]) -> None:
    """Refuse permissions to destroy that no device needs."""
    if unused := {*tokens} - used:
        raise UsageError(
            "No device matches this --destroy",
            where="--destroy",
            got=min(unused),
            allowed="the token from `uflip devices`, of a device that needs one",
            action="omit it, or name its device",
        )


def check_names(devices: list[str]) -> None:
    """Refuse an empty list, too many devices, repeated and invalid names."""
    twice = next((name for name in devices if devices.count(name) > 1), None)
    if twice is not None or not 0 < len(devices) <= MAX_DEVICES:
        raise UsageError(
            "Each device is measured once" if twice else "There are too many devices",
            where="DEVICE",
            got=f"{twice} twice" if twice else str(len(devices)),
            allowed=f"1 to {MAX_DEVICES} devices, each named once",
            action="name it once; --repetitions makes each run more often",
        )
    for name in devices:
        parse_url(split_host(name)[1])


def split_host(device: str) -> tuple[str, str]:
    """Split a name into the label of the device's host (empty without one) and its URL.

    >>> split_host("rack3@/dev/nvme1n1"), split_host("file:a@b")
    (('rack3', '/dev/nvme1n1'), ('', 'file:a@b'))
    """
    host, at, url = device.partition("@")
    return (host, url) if at and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", host) else ("", device)


def folder_names(devices: Sequence[str]) -> list[str]:
    """Return a folder name for each device, derived from the device.

    >>> folder_names(["sim:demo", "file:a/b", "file:a-b", "null"])
    ['sim-demo', 'file-a-b', 'file-a-b-2', 'null']
    """
    names: list[str] = []
    for device in devices:
        slug = file_name_of(device)
        name = next(
            name
            for name in (slug, *(f"{slug}-{number}" for number in range(2, len(devices) + 2)))
            if name not in names
        )
        names.append(name)
    return names


def run_task(point: DeviceTask) -> DeviceOutcome:
    """Begin or resume the benchmark of a device."""
    try:
        request = replace(point.request, destroy=destroy_for(point))
        watch = ProgressReporter(
            lambda share, text: publish(point.topic, [point.index, share, text])
        )
        folder = point.folder
        if not folder.exists():
            begin(request, folder, watch, command=point.command)
        elif status_of(folder) != "complete":
            resume(
                folder,
                destroy=request.destroy,
                io_timeout_ns=request.io_timeout_ns,
                max_time_ns=request.max_time_ns,
                on_event=watch,
            )
        return _outcome(point, status_of(folder))
    except InterruptedRun:
        raise
    except UflipError as error:
        return DeviceOutcome.from_error(point, error)
    except Exception as error:  # the other devices continue in any case
        return DeviceOutcome.from_error(point, _unexpected(point, error))


def _outcome(point: DeviceTask, status: str) -> DeviceOutcome:
    if not point.remote:
        return DeviceOutcome(point.index, point.device, str(point.out), status)
    if status != "complete":
        results = f"{point.folder} at {point.needs or 'a worker'}"
        return DeviceOutcome(point.index, point.device, results, status)
    return DeviceOutcome(
        point.index,
        point.device,
        str(point.out),
        status,
        remote_folder=list_remote_folder(point.folder),
    )


def status_of(folder: Path) -> str:
    """Return the status of the results in a folder; damaged runs must be made again."""
    results = Results.load(folder)
    return "interrupted" if results.status == "complete" and results.missing else results.status


def destroy_for(point: DeviceTask) -> str | None:
    """Find the permission to destroy for this device; None if it needs none."""
    if parse_url(point.request.device).kind not in {"file", "block", "nvme"}:
        return None
    refused: UflipError | None = None
    for token in (None, *point.tokens):
        try:
            replace(point.request, destroy=token).check()
        except (RefusedError, UsageError) as error:
            refused = refused or error
        else:
            return token
    assert refused is not None, "it was tried without any"
    raise refused


def _unexpected(point: DeviceTask, error: Exception) -> UflipError:
    return UflipError(
        "Unexpected error on this device",
        where=point.device,
        got=f"{type(error).__name__}: {error}",
        action=f"run it alone to see the details: `uflip run {point.device}`",
    )


class ProgressReporter:
    """Converts the events of a session into a finished share, and reports it now and then."""

    def __init__(
        self,
        on_progress: Callable[[float, str], None],
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._on_progress, self._clock_s = on_progress, clock_s
        self._total, self._last_s = 0, float("-inf")

    def __call__(self, event: BenchmarkEvent) -> None:
        """Handle an event."""
        if isinstance(event, RunsBegin | PlanGrew):
            self._total = len(event.plan.runs)
        elif isinstance(event, JobsBegin):
            self._total = event.jobs
        elif isinstance(event, FileProgress):
            self._report(0.0, f"writing the file {event.done / event.total:.0%}")
        elif isinstance(event, DeviceProgress):
            self._report(0.0, f"creating the device {event.done / event.total:.0%}")
        elif isinstance(event, StateProgress):
            self._report(0.0, f"state {event.done / event.total:.0%}")
        elif isinstance(event, ResetProgress):
            self._report(event.index / self._total, f"state {event.done / event.total:.0%}")
        elif isinstance(event, RunProgress):
            self._report_runs(event.index + event.done / event.total)
        elif isinstance(event, RunFinished):
            self._report_runs(event.index + 1)

    def _report_runs(self, runs: float) -> None:
        share = runs / self._total
        self._report(share, f"{share:.0%}")

    def _report(self, share: float, text: str) -> None:
        now = self._clock_s()
        if now - self._last_s >= REPORT_INTERVAL_S:
            self._last_s = now
            self._on_progress(share, text)


def fetch_results(executor: Executor, outcome: DeviceOutcome, point: DeviceTask) -> DeviceOutcome:
    """Fetch the results of a device that was measured on another machine."""
    if outcome.remote_folder is None or not isinstance(executor, Remote):
        return outcome
    try:
        fetch(executor, outcome.remote_folder, point.out)
    except WorkerGoneError:
        if not point.out.exists():
            raise
    except UflipError as error:
        return DeviceOutcome.from_error(point, error)
    return replace(outcome, remote_folder=None)


class WorkerGoneError(UnavailableError):
    """The worker that has the results does not answer; they are on its disk."""


def list_remote_folder(folder: Path) -> RemoteFolder:
    """List a folder; called in a Dask worker."""
    from distributed import get_worker

    files = tuple(
        (str(path.relative_to(folder)), path.stat().st_size, _digest(path))
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    )
    return RemoteFolder(get_worker().address, str(folder), files)


def fetch(executor: Remote, remote: RemoteFolder, out: Path) -> None:
    """Fetch a folder, whole or not at all, and remove it on the worker."""
    with create_atomically(out) as hidden:
        for name, size, digest in remote.files:
            _fetch_file(executor, remote, hidden, (name, size, digest))
    # They have arrived: the remote copy only costs space.
    _ask(executor, remote.worker, _remove_folder, remote.folder)


def _fetch_file(
    executor: Remote, remote: RemoteFolder, hidden: Path, file: tuple[str, int, str]
) -> None:
    name, size, digest = file
    path = hidden / name
    if not path.resolve().is_relative_to(hidden.resolve()):
        raise _damaged_in_transit(remote, name, "a name that leads elsewhere")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as content:
        for begin in range(0, size, PIECE_BYTES):
            content.write(
                _ask(executor, remote.worker, _read_piece, f"{remote.folder}/{name}", begin)
            )
    if _digest(path) != digest:
        raise _damaged_in_transit(remote, name, "other bytes")


def _ask(executor: Remote, worker: str, function: object, *arguments: object) -> bytes:
    try:
        answer: bytes = executor.ask(worker, function, *arguments)  # type: ignore[arg-type]
    except Exception as error:
        raise WorkerGoneError(
            "A worker has stopped answering",
            where=worker,
            got=f"{type(error).__name__}: {error}",
            action="start it again; `uflip run --resume` fetches what it has",
        ) from error
    return answer


def _read_piece(path: str, begin: int) -> bytes:
    with Path(path).open("rb") as file:
        file.seek(begin)
        return file.read(PIECE_BYTES)


def _remove_folder(folder: str) -> bytes:
    """Remove a fetched folder, and parents that are empty then."""
    shutil.rmtree(folder, ignore_errors=True)
    for above in (Path(folder).parent, REMOTE_RESULTS):
        try:
            above.rmdir()
        except OSError:
            break
    return b""


def _digest(path: Path) -> str:
    digest = blake2b(digest_size=32)
    with path.open("rb") as file:
        while part := file.read(PIECE_BYTES):
            digest.update(part)
    return digest.hexdigest()


def _damaged_in_transit(remote: RemoteFolder, name: str, got: str) -> ResultsError:
    return ResultsError(
        "Results were damaged in transit",
        where=f"{remote.folder}/{name} at {remote.worker}",
        got=got,
        allowed="the files on the disk of the worker",
        action="give the command again with --resume, which fetches them again",
    )
