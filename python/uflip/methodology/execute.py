"""A plan on a device: pause, run, commit, and again, until the plan or the user ends it.

Each run is on disk before the next one starts. However the work ends, the runs that were finished
are kept, the manifest says how it ended, and the error says how to see what is there.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from uflip._native import Trace
from uflip.errors import InterruptedRun, ResultsError, UflipError, UsageError
from uflip.experiment import PlannedRun
from uflip.methodology.history import History
from uflip.methodology.plan import Plan
from uflip.methodology.state import OnState
from uflip.run import Device


class Writer(Protocol):
    """Where finished runs go; `uflip.results.ResultsWriter` is one."""

    path: Path

    def commit(self, run: PlannedRun, trace: Trace, extra: dict[str, Any]) -> Any:
        """Store a finished run durably."""

    def finish(self, status: str, warnings: Sequence[Mapping[str, Any]] = ()) -> None:
        """Note how the plan ended: complete, interrupted or failed."""


@dataclass(frozen=True)
class ResetProgress:
    """The state is being enforced again before a run."""

    index: int
    run: PlannedRun
    done: int
    total: int


@dataclass(frozen=True)
class RunStarted:
    """A run is about to start: the device is left alone first. `index` counts from 0."""

    index: int
    run: PlannedRun


@dataclass(frozen=True)
class RunProgress:
    """A run is under way."""

    index: int
    run: PlannedRun
    done: int
    total: int
    last_response_ns: int


@dataclass(frozen=True)
class RunFinished:
    """A run is over and stored. `taken_ns` is on the wall clock, with the pause before it."""

    index: int
    run: PlannedRun
    taken_ns: int


Event = ResetProgress | RunStarted | RunProgress | RunFinished


def _ignore(_event: Event) -> None:
    return None


def execute(
    plan: Plan,
    device: Device,
    writer: Writer,
    history: History,
    on_event: Callable[[Event], None] = _ignore,
    *,
    max_time_ns: int | None = None,
    done: Collection[str] = (),
    replay: Callable[[PlannedRun, Trace], None] | None = None,
) -> None:
    """Make all runs of a plan and store them one by one.

    Parameters
    ----------
    plan : Plan
        What to do.
    device : Device
        The device, open for writing.
    writer : Writer
        Stores runs; `finish` is called on it in every case.
    history : History
        The state of the device, which runs change.
    on_event : callable
        Told about the start, the progress and the end of each run.
    max_time_ns : int, optional
        No run begins after so much time on the wall clock [ns]: the plan ends as interrupted, with
        a warning.
    done : collection of str
        Ids of runs that are stored already.
    replay : callable, optional
        For a device that was made anew: runs that are stored are made again, on it and in their
        place, and handed to this function, which checks that they are the same. Without it they are
        passed over.

    Raises
    ------
    InterruptedRun
        After Ctrl-C. Finished runs are stored.
    UflipError
        What the device or the writer says. Finished runs are stored.
    """
    finished, started_ns = len(done), time.monotonic_ns()
    try:
        for index, run in enumerate(plan.runs):
            began = time.monotonic_ns()
            if max_time_ns is not None and began - started_ns > max_time_ns:
                writer.finish("interrupted", [_out_of_time(max_time_ns, finished, plan)])
                return
            if run.id in done and replay is None:
                continue
            if run.reset_before:
                _reset(plan, device, history, partial(_report_reset, on_event, index, run))
            on_event(RunStarted(index, run))
            device.idle(plan.pause_ns)
            trace = device.run(run.spec, partial(_report, on_event, index, run))
            if run.id in done and replay is not None:
                replay(run, trace)
            else:
                writer.commit(run, trace, {"state_id": history.state_id})
                finished += 1
            history.after(trace)
            on_event(RunFinished(index, run, time.monotonic_ns() - began))
    except (KeyboardInterrupt, InterruptedRun):
        writer.finish("interrupted")
        raise InterruptedRun(
            f"Interrupted after {finished} of {len(plan.runs)} runs",
            where=str(writer.path),
            action=_how_to_see(finished, writer.path),
        ) from None
    except BaseException as error:
        # The disk may be full: then there is no second error to tell, the first one says it.
        with suppress(ResultsError):
            writer.finish("failed")
        if isinstance(error, UflipError):
            parts = (error.action, _how_to_see(finished, writer.path))
            error.action = "\n".join(part for part in parts if part)
        raise
    writer.finish("complete")


def _reset(plan: Plan, device: Device, history: History, on_state: OnState) -> None:
    if plan.state is None:
        raise UsageError(
            "The plan resets a state that it does not have",
            where="[state]",
            got="as-is",
            allowed="random, sequential",
            action="give the plan a state, or take reset_before out of its runs",
        )
    history.enforce(device, plan.state, on_state)


def _report_reset(
    on_event: Callable[[Event], None], index: int, run: PlannedRun, done: int, total: int
) -> None:
    on_event(ResetProgress(index, run, done, total))


def _out_of_time(max_time_ns: int, finished: int, plan: Plan) -> dict[str, Any]:
    return {
        "code": "out_of_time",
        "message": (
            f"The time that the plan was given was over after {finished} of {len(plan.runs)} runs"
        ),
        "numbers": {
            "max_time_ns": max_time_ns,
            "runs_finished": finished,
            "runs_planned": len(plan.runs),
        },
        "advice": "go on with `uflip run --resume`, or give it more time (--max-time)",
    }


def _report(
    on_event: Callable[[Event], None],
    index: int,
    run: PlannedRun,
    *progress: int,
) -> None:
    on_event(RunProgress(index, run, *progress))


def _how_to_see(finished: int, path: Path) -> str:
    if not finished:
        return "no run was finished"
    runs = "the finished run is" if finished == 1 else f"the {finished} finished runs are"
    return f"{runs} kept, see `uflip show {path}`; `uflip run --resume {path}` makes the others"
