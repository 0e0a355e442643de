"""Execution of a plan on a device: pause, run, commit, until the plan or the user ends it.

For each run, or several that must follow each other at once (`run_groups`)::

    reset            if the plan requires it: the state is enforced again
    or refresh       a part of the previous run's writes is overwritten
    zones            a zoned device prepares the zones of the run
    pause            the device idles
    run              one call of the engine, adapted to the device (`calibration`)
    check            is the target unchanged; did other processes disturb it
    store            on disk before the next one starts; or compared, if it is stored already

`history` tracks the state of the device, `events` report progress, and `outcome` handles the end.
"""

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from uflip import signals
from uflip._native import Trace
from uflip.benchmark import interference
from uflip.benchmark.calibration import Calibration
from uflip.benchmark.events import (
    Event,
    ResetProgress,
    RunFinished,
    RunProgress,
    RunStarted,
    ignore,
)
from uflip.benchmark.order import refresh_bytes, refresh_spec
from uflip.benchmark.outcome import Finisher, Tally, store_outcome
from uflip.benchmark.plan import Plan
from uflip.benchmark.run_groups import PlanStore, disturbing_runs, groups, runs_to_make
from uflip.benchmark.state import History, OnState
from uflip.data.run import About
from uflip.data.summary import WarningSummary
from uflip.device.handle import Device, counter_samples
from uflip.device.identity import (
    WRITTEN,
    TargetStatus,
    check_not_shrunk,
    check_target,
    count_disturbances,
    undisturbed_since_open,
)
from uflip.errors import UsageError
from uflip.experiment import PlannedRun, run_seed
from uflip.microbench import has_rounds


class Writer(PlanStore, Finisher, Protocol):
    """Storage of finished runs; `uflip.results.ResultsWriter` is one."""

    @property
    def spool(self) -> Path:
        """A folder for the I/Os of a long run during the run."""

    def commit(self, run: PlannedRun, trace: Trace, extra: About) -> Any:
        """Store a finished run durably."""

    def trace_of(self, run_id: str) -> Trace | None:
        """Read a finished run; return None if it is missing."""


def execute(
    plan: Plan,
    device: Device,
    writer: Writer,
    on_event: Callable[[Event], None] = ignore,
    *,
    history: History,
    calibration: Calibration,
    max_time_ns: int | None = None,
    done: Collection[str] = (),
    replay: Callable[[PlannedRun, Trace], None] | None = None,
) -> None:
    """Make all runs of a plan and store them one by one.

    Parameters
    ----------
    plan : Plan
        The plan.
    device : Device
        The device, open for writing.
    writer : Writer
        Stores runs; `finish` is called on it in every case.
    on_event : callable
        Receives the start, the progress and the end of each run.
    history : History
        The state of the device, which runs change.
    calibration : Calibration
        Phases and pause, measured on the way or stored before.
    max_time_ns : int, optional
        After this wall-clock time no run begins [ns]: the plan ends as interrupted, with a
        warning.
    done : collection of str
        Ids of runs that are stored already.
    replay : callable, optional
        For a rebuilt device: stored runs are repeated on it in their order and passed to this
        function, which checks that they are the same. Without it stored runs are skipped.

    Raises
    ------
    InterruptedRun
        After Ctrl-C. Finished runs are stored.
    UflipError
        From the device or the writer. Finished runs are stored.
    """
    tally, started_ns = Tally(len(done), lambda: calibration.planned), time.monotonic_ns()
    refresh_due: int | None = None
    remaining = runs_to_make(plan, done, all_of_them=replay is not None)
    with store_outcome(writer, tally):
        # On a device with earlier runs, no new run may come before them.
        closed = replay is None and any(run.id in done for run in disturbing_runs(plan))
        status_before = undisturbed_since_open(device.target_status())
        check_not_shrunk(status_before, device.info)
        for group in groups(plan, remaining, writer, calibration, on_event, closed=closed):
            signals.check()
            index, run = group[0]
            began = time.monotonic_ns()
            if max_time_ns is not None and began - started_ns > max_time_ns:
                tally.status = "interrupted"
                tally.warnings = [_out_of_time(max_time_ns, tally.finished, calibration.planned)]
                return
            if run.reset_before:
                _reset(plan, device, history, partial(_report_reset, on_event, index, run))
                refresh_due = 0
            elif refresh_due is None:
                refresh_due = _refresh_after_stored(plan, index, writer)
            refreshed = _refresh(plan, device, history, run, refresh_due)
            on_event(RunStarted(index, run))
            report_progress = partial(_report, on_event, index, run)
            runs = [run for _, run in group]
            made, status_before = _make(
                runs,
                device,
                calibration,
                history,
                report_progress,
                previous_status=status_before,
                spool=writer.spool,
            )
            refresh_due = sum(
                refresh_bytes(plan, each.run, each.trace.bytes_written) for each in made
            )
            made[0].about["refreshed_bytes"] = refreshed
            for each in made:
                tally.finished += _store(each, writer, done, replay)
            taken_ns, ios = time.monotonic_ns() - began, sum(len(each.trace) for each in made)
            for (number, _), each in zip(group, made, strict=True):
                share = len(each.trace) / ios
                on_event(RunFinished(number, each.run, round(taken_ns * share)))
        calibration.phases()


@dataclass(frozen=True)
class _FinishedRun:
    """A finished run, and its metadata."""

    run: PlannedRun
    trace: Trace
    about: About


def _make(
    runs: Sequence[PlannedRun],
    device: Device,
    calibration: Calibration,
    history: History,
    on_progress: Callable[[int, int, int], None],
    *,
    previous_status: TargetStatus | None,
    spool: Path,
) -> tuple[list[_FinishedRun], TargetStatus | None]:
    """Let the device idle, then make a run, or several without a pause between them.

    `previous_status` is that of the target after the previous run; the new status is returned.
    """
    pause_ns = calibration.pause_before(runs[0])
    if device.info.zoned:
        device.prepare_zones(calibration.adapted_spec(runs[0]))
    device.idle(pause_ns)
    status_before = device.target_status()
    check_target(previous_status, status_before, device.url)
    if runs[0].micro_benchmark == interference.NAME:
        busy_ns = interference.busy_after_writes(device, runs)
        parts = device.run_series([run.spec for run in runs], on_progress)
        calibration.evaluate_batches(runs, parts, busy_ns)
        traces = [trace for _, trace in parts]
    else:
        (run,) = runs
        spec = calibration.adapted_spec(run)
        traces = [device.run(spec, on_progress, spool=spool, samples=has_rounds(run))]
        while (longer := calibration.longer_baseline(run, traces)) is not None:
            history.record_run(traces[-1], device.durability)
            device.idle(pause_ns)
            traces.append(device.run(longer, on_progress, spool=spool))
    status_after = device.target_status()
    check_target(status_before, status_after, device.url)
    buffered = device.info.buffered
    disturbances = count_disturbances(
        status_before, status_after, traces, buffered=buffered, since=previous_status
    )
    if WRITTEN & disturbances.keys():
        history.record_foreign_writes()
    made: list[_FinishedRun] = []
    for run, trace in zip(runs, traces[-len(runs) :], strict=True):
        about: About = {"state_id": history.state_id, "pause_ns": 0 if made else pause_ns}
        if disturbances:
            about["disturbed"] = disturbances
        if has_rounds(run):
            about["samples"] = counter_samples(trace)
            about["samples_only"] = not device.looks_inside
        made.append(_FinishedRun(run, trace, about))
        history.record_run(trace, device.durability)
    return made, status_after


def _store(
    made: _FinishedRun,
    writer: Writer,
    done: Collection[str],
    replay: Callable[[PlannedRun, Trace], None] | None,
) -> int:
    """Store a new run, or check a stored one; return the number of stored runs."""
    if made.run.id not in done:
        writer.commit(made.run, made.trace, made.about)
        return 1
    if replay is not None:
        replay(made.run, made.trace)
    return 0


def _reset(plan: Plan, device: Device, history: History, on_state: OnState) -> None:
    if plan.state is None:
        raise UsageError(
            "The plan resets a state but does not define one",
            where="[state]",
            got="as-is",
            allowed="random, sequential",
            action="give the plan a state, or take reset_before out of its runs",
        )
    history.enforce(device, plan.state, on_state)


def _refresh(plan: Plan, device: Device, history: History, run: PlannedRun, size_bytes: int) -> int:
    """Overwrite a part of the previous run's writes; return the number of bytes written."""
    if not size_bytes:
        return 0
    seed = run_seed(plan.seed, "refresh", run.id, 0)
    trace = device.run(refresh_spec(plan.target_size, size_bytes, seed))
    history.record_run(trace, device.durability)
    return size_bytes


def _refresh_after_stored(plan: Plan, index: int, writer: Writer) -> int:
    """Return the refresh that is due after the previous run, if that is stored already [bytes]."""
    previous = plan.runs[index - 1] if index else None
    trace = None if previous is None else writer.trace_of(previous.id)
    if previous is None or trace is None:
        return 0
    return refresh_bytes(plan, previous, trace.bytes_written)


def _report_reset(
    on_event: Callable[[Event], None], index: int, run: PlannedRun, done: int, total: int
) -> None:
    on_event(ResetProgress(index, run, done, total))


def _out_of_time(max_time_ns: int, finished: int, planned: int) -> WarningSummary:
    return {
        "code": "out_of_time",
        "message": (f"The time limit of the plan was reached after {finished} of {planned} runs"),
        "numbers": {
            "max_time_ns": max_time_ns,
            "runs_finished": finished,
            "runs_planned": planned,
        },
        "advice": "continue with `uflip run --resume`, or give it more time (--max-time)",
    }


def _report(
    on_event: Callable[[Event], None],
    index: int,
    run: PlannedRun,
    *progress: int,
) -> None:
    on_event(RunProgress(index, run, *progress))
