"""One device of several: begun or resumed wherever an executor carries it out, and how it ended.

What is wrong with one device is an outcome, not an error: the others go on.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from uflip.device.url import parse_url
from uflip.errors import InterruptedRun, RefusedError, UflipError, UsageError
from uflip.executors import Executor
from uflip.executors.progress_messages import Remote, tell
from uflip.methodology import PlanGrew, ResetProgress, RunFinished, RunProgress
from uflip.results import Results
from uflip.session.benchmark import begin, resume
from uflip.session.events import (
    DeviceProgress,
    FileProgress,
    JobsBegin,
    RunsBegin,
    SessionEvent,
    StateProgress,
)
from uflip.session.remote_results import AWAY, RemoteFolder, WorkerGoneError, fetch, left_in
from uflip.session.request import BenchmarkRequest

# Nobody reads faster; through a scheduler each costs a millisecond [s].
TELL_S = 0.5


@dataclass(frozen=True)
class DeviceTask:
    """A device and what is wanted of it; picklable.

    Attributes
    ----------
    place : int
        Among the devices.
    device : str
        Its name, with that of its host where it is on another one.
    needs : str
        The label of the workers on its host; empty: anybody may carry it out.
    request : Request
        What is wanted, without what may be destroyed.
    tokens : tuple of str
        What may be destroyed on any of the devices.
    out : Path
        Its result folder, new or to be resumed.
    command : tuple of str
        What is written down as the command.
    id : str
        Of the benchmarks that were asked for together.
    told_to : str
        To whom it is told how far the benchmark is.
    away : bool
        Whether it is carried out where the files of whoever asks are not: the results are made in a
        folder of the worker's, and are to be fetched.
    """

    place: int
    device: str
    needs: str
    request: BenchmarkRequest
    tokens: tuple[str, ...]
    out: Path
    command: tuple[str, ...]
    id: str
    told_to: str = ""
    away: bool = False

    @property
    def simulated(self) -> bool:
        """Whether its time is its own, whatever the machine does beside."""
        return parse_url(self.request.device).kind == "sim"

    @property
    def folder(self) -> Path:
        """Where its results are made, as whoever carries it out sees it."""
        return AWAY / self.id / self.out.name if self.away else self.out

    def __str__(self) -> str:
        return self.device


@dataclass(frozen=True)
class DeviceOutcome:
    """How the benchmark of one device ended.

    Attributes
    ----------
    place : int
        Among the devices.
    device, results : str
        Its name, and its result folder.
    status : str
        complete; interrupted: runs are left, by a limit of time; failed: see `error`.
    error : UflipError or None
        Why it failed.
    left : Left or None
        What is to be fetched from another machine.
    """

    place: int
    device: str
    results: str
    status: str
    error: UflipError | None = None
    left: RemoteFolder | None = None

    @classmethod
    def of_error(cls, point: DeviceTask, error: UflipError) -> Self:
        """Say that it failed."""
        results = f"{point.folder} at {point.needs or 'a worker'}" if point.away else str(point.out)
        return cls(point.place, point.device, results, "failed", error)


def made(point: DeviceTask) -> DeviceOutcome:
    """Carry out the benchmark of a device, or what is left of it.

    Raises
    ------
    InterruptedRun
        After Ctrl-C, or if nobody waits for it any more.
    """
    try:
        request = replace(point.request, destroy=destroy_for(point))
        watch = Watched(lambda share, text: tell(point.told_to, [point.place, share, text]))
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
        return _ended(point, status_of(folder))
    except InterruptedRun:
        raise
    except UflipError as error:
        return DeviceOutcome.of_error(point, error)
    except Exception as error:  # whatever it is, the other devices go on
        return DeviceOutcome.of_error(point, _unexpected(point, error))


def brought(executor: Executor, outcome: DeviceOutcome, point: DeviceTask) -> DeviceOutcome:
    """Fetch the results of a device that was measured elsewhere.

    Raises
    ------
    WorkerGoneError
        If its worker does not answer; then it is to be carried out again, which finds the folder.
    """
    if outcome.left is None or not isinstance(executor, Remote):
        return outcome
    try:
        fetch(executor, outcome.left, point.out)
    except WorkerGoneError:
        if not point.out.exists():
            raise
    except UflipError as error:
        return DeviceOutcome.of_error(point, error)
    return replace(outcome, left=None)


def _ended(point: DeviceTask, status: str) -> DeviceOutcome:
    if not point.away:
        return DeviceOutcome(point.place, point.device, str(point.out), status)
    if status != "complete":
        results = f"{point.folder} at {point.needs or 'a worker'}"
        return DeviceOutcome(point.place, point.device, results, status)
    return DeviceOutcome(
        point.place, point.device, str(point.out), status, left=left_in(point.folder)
    )


def status_of(folder: Path) -> str:
    """Say how far the results in a folder are; damaged runs are to be made again."""
    results = Results.load(folder)
    return "interrupted" if results.status == "complete" and results.missing else results.status


def destroy_for(point: DeviceTask) -> str | None:
    """Find which of what may be destroyed is for this device; None where nothing has to be.

    Raises
    ------
    RefusedError
        If the device needs one, and none of them is it.
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


class Watched:
    """Turns the events of a session into a share, and tells it now and then.

    Parameters
    ----------
    told : callable
        Called with (share that is done, what is at work).
    """

    def __init__(
        self, told: Callable[[float, str], None], clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._told, self._clock_s = told, clock_s
        self._total, self._last_s = 0, float("-inf")

    def __call__(self, event: SessionEvent) -> None:
        """Take an event."""
        if isinstance(event, RunsBegin | PlanGrew):
            self._total = len(event.plan.runs)
        elif isinstance(event, JobsBegin):
            self._total = event.jobs
        elif isinstance(event, FileProgress):
            self._tell(0.0, f"writing the file {event.done / event.total:.0%}")
        elif isinstance(event, DeviceProgress):
            self._tell(0.0, f"making it {event.done / event.total:.0%}")
        elif isinstance(event, StateProgress):
            self._tell(0.0, f"state {event.done / event.total:.0%}")
        elif isinstance(event, ResetProgress):
            self._tell(event.index / self._total, f"state {event.done / event.total:.0%}")
        elif isinstance(event, RunProgress):
            self._at(event.index + event.done / event.total)
        elif isinstance(event, RunFinished):
            self._at(event.index + 1)

    def _at(self, runs: float) -> None:
        share = runs / self._total
        self._tell(share, f"{share:.0%}")

    def _tell(self, share: float, text: str) -> None:
        now = self._clock_s()
        if now - self._last_s >= TELL_S:
            self._last_s = now
            self._told(share, text)


def _unexpected(point: DeviceTask, error: Exception) -> UflipError:
    return UflipError(
        "Something unexpected happened with this device",
        where=point.device,
        got=f"{type(error).__name__}: {error}",
        action=f"see what `uflip run {point.device}` alone says",
    )
