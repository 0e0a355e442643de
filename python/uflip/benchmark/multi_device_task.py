"""The benchmark of one of several devices, begun or resumed by an executor, and its outcome.

An error of one device is an outcome, not an exception: the others continue.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from uflip.benchmark.events import (
    DeviceProgress,
    FileProgress,
    JobsBegin,
    PlanGrew,
    ResetProgress,
    RunFinished,
    RunProgress,
    RunsBegin,
    SessionEvent,
    StateProgress,
)
from uflip.benchmark.remote_results import (
    REMOTE_RESULTS,
    RemoteFolder,
    WorkerGoneError,
    fetch,
    list_remote_folder,
)
from uflip.benchmark.request import BenchmarkRequest
from uflip.benchmark.session import begin, resume
from uflip.device.url import parse_url
from uflip.errors import InterruptedRun, RefusedError, UflipError, UsageError
from uflip.executors import Executor
from uflip.executors.progress_messages import Remote, publish
from uflip.results import Results

# Interval of progress messages; through a scheduler each costs a millisecond [s].
REPORT_INTERVAL_S = 0.5


@dataclass(frozen=True)
class DeviceTask:
    """A device and its request; picklable.

    Attributes
    ----------
    index : int
        Index among the devices.
    device : str
        Its name, with that of its host if it is on another machine.
    needs : str
        The label of the workers on its host; empty: any worker.
    request : BenchmarkRequest
        The request, without permission to destroy.
    tokens : tuple of str
        Permissions to destroy, for any of the devices.
    out : Path
        Its result folder, new or to be resumed.
    command : tuple of str
        The command line to store.
    id : str
        The id of the whole multi-device benchmark.
    topic : str
        The receiver of progress messages.
    remote : bool
        Whether the worker has other files than the client: the results are made in a folder of the
        worker, and fetched from there.
    """

    index: int
    device: str
    needs: str
    request: BenchmarkRequest
    tokens: tuple[str, ...]
    out: Path
    command: tuple[str, ...]
    id: str
    topic: str = ""
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
    """The outcome of the benchmark of one device.

    Attributes
    ----------
    index : int
        Index among the devices.
    device, results : str
        Its name, and its result folder.
    status : str
        complete; interrupted: a time limit prevented some runs; failed: see `error`.
    error : UflipError or None
        The reason for a failure.
    remote_folder : RemoteFolder or None
        The folder to fetch from another machine.
    """

    index: int
    device: str
    results: str
    status: str
    error: UflipError | None = None
    remote_folder: RemoteFolder | None = None

    @classmethod
    def from_error(cls, point: DeviceTask, error: UflipError) -> Self:
        """Return the outcome of a failed benchmark."""
        results = (
            f"{point.folder} at {point.needs or 'a worker'}" if point.remote else str(point.out)
        )
        return cls(point.index, point.device, results, "failed", error)


def run_task(point: DeviceTask) -> DeviceOutcome:
    """Begin or resume the benchmark of a device.

    Raises
    ------
    InterruptedRun
        After Ctrl-C, or if no client waits for it any more.
    """
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


def fetch_results(executor: Executor, outcome: DeviceOutcome, point: DeviceTask) -> DeviceOutcome:
    """Fetch the results of a device that was measured on another machine.

    Raises
    ------
    WorkerGoneError
        If its worker does not answer; the task is then repeated, and finds the folder.
    """
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
    """Find the permission to destroy for this device; None if it needs none.

    Raises
    ------
    RefusedError
        If the device needs one, and none of them fits.
    """
    if parse_url(point.request.device).kind not in {"file", "block"}:
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


class ProgressReporter:
    """Converts the events of a session into a finished share, and reports it now and then.

    Parameters
    ----------
    on_progress : callable
        Called with (finished share, current activity).
    """

    def __init__(
        self,
        on_progress: Callable[[float, str], None],
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._on_progress, self._clock_s = on_progress, clock_s
        self._total, self._last_s = 0, float("-inf")

    def __call__(self, event: SessionEvent) -> None:
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


def _unexpected(point: DeviceTask, error: Exception) -> UflipError:
    return UflipError(
        "Unexpected error on this device",
        where=point.device,
        got=f"{type(error).__name__}: {error}",
        action=f"run it alone to see the details: `uflip run {point.device}`",
    )
