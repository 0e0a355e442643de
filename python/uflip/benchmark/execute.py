"""Execution of a plan on a device: pause, run, commit, until the plan or the user ends it.

For each run, or several that must follow each other at once::

    reset            if the plan requires it: the state is enforced again
    or refresh       a part of the previous run's writes is overwritten
    zones            a zoned device prepares the zones of the run
    pause            the device idles
    run              one call of the engine, adapted to the device (`calibration`)
    counters         those of a real drive are read before and after the run
    check            is the target unchanged; did other processes disturb it
    store            on disk before the next one starts; or compared, if it is stored already

A plan goes from stage to stage (`plan`). After each stage, experiments that have not converged are
repeated (`rounds`), and rates near the knee are added, before the next stage begins; the
plan grows. On a device with earlier runs, no run is inserted before them. Runs with a fixed order
come after all stages.

    plan      | stage 0 ......... | stage 1 .... | stage 2 ........... |
    made      | stage 0 .... more | stage 1 more | stage 2 .... more   |
    groups      [1] [2] [3 4 5] [6] ...       3 4 5: the batches of the interference experiment

However the work ends, the finished runs are stored, the manifest contains the outcome (complete,
interrupted or failed), and the error explains how to see them.
"""

import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs

from uflip import signals
from uflip._native import Trace
from uflip.benchmark import interference
from uflip.benchmark.calibration import Calibration, measure_harness
from uflip.benchmark.cost import wear_of
from uflip.benchmark.estimate import estimate
from uflip.benchmark.events import (
    LiveRows,
    OnEvent,
    PlanGrew,
    ResetProgress,
    RunEvent,
    RunFinished,
    RunProgress,
    RunsBegin,
    RunStarted,
    ignore,
)
from uflip.benchmark.interference import Numbered, group_unpaused
from uflip.benchmark.plan import SEQUENTIAL, STAGES, Plan, ends_of_stages, refresh_spec
from uflip.benchmark.prepare import AS_IS
from uflip.benchmark.rounds import next_rate, next_round
from uflip.benchmark.state import History, OnState
from uflip.data.counters import change_of
from uflip.data.device import DeviceInfo, DeviceWear, with_details
from uflip.data.manifest import After, DeviceState
from uflip.data.run import About
from uflip.data.summary import WarningSummary
from uflip.device.disk import disk_below, temperature_of, virtual_disk_of
from uflip.device.handle import Device, counter_samples
from uflip.device.identity import (
    WRITTEN,
    TargetStatus,
    check_not_shrunk,
    check_target,
    count_disturbances,
    undisturbed_since_open,
)
from uflip.errors import InterruptedRun, ResultsError, UflipError, UsageError
from uflip.microbench import has_rounds, own_durability
from uflip.microbench.experiment import PlannedRun, run_seed
from uflip.native_wait import OnLive
from uflip.results import ResultsWriter, host_provenance
from uflip.results.initial_manifest import manifest_of, processor_time
from uflip.results.state_record import StateRecord


@dataclass(frozen=True)
class BenchmarkRun:
    """A benchmark whose runs are about to be made."""

    device: Device  #: Open for writing.
    plan: Plan  #: Its plan.
    writer: ResultsWriter  #: The result folder, with the finished runs.
    history: History  #: The state of the device, which runs change.
    calibration: Calibration  #: Phases and pause, measured on the way or stored before.
    #: Checks that a rebuilt simulated device repeats its earlier runs.
    replay: Callable[[PlannedRun, Trace], None] | None = None

    def carry_out(self, max_time_ns: int | None = None, on_event: OnEvent = ignore) -> None:
        """Make the missing runs, and store them one by one."""
        done = self.writer.done
        if self.device.info.real:
            self.writer.at_end = partial(final_state, self.device.info, processor_time())
        on_event(RunsBegin(self.plan, estimate(self.plan), len(done)))
        execute(
            self.plan,
            self.device,
            self.writer,
            on_event,
            history=self.history,
            calibration=self.calibration,
            max_time_ns=max_time_ns,
            done=done,
            replay=self.replay,
        )


def new_benchmark_run(
    device: Device,
    plan: Plan,
    out: Path,
    initial_state: DeviceState,
    *,
    record: StateRecord | None = None,
    wear: DeviceWear | None = None,
    command: Sequence[str] | None = None,
) -> BenchmarkRun:
    """Make the result folder of a plan, ready for its runs.

    `device`: open for writing. `plan`: for this device. `out`: an unused name. `initial_state`: the
    state of the device (`uflip.benchmark.prepare`). `record`: the state record of the device.
    `wear`: wear of the device, if it is known already. `command`: the command line to store;
    without it, that of this process.
    """
    wear_before = wear_of(plan.device) if wear is None else wear
    host = host_provenance(sys.argv if command is None else command) | {
        "virtual_disk": virtual_disk_of(plan.device),
        "disk": msgspec.to_builtins(disk_below(plan.device)),
    }
    if plan.device.real:
        host["counters"] = msgspec.to_builtins(device.drive_counters())
    writer = ResultsWriter.create(
        out,
        manifest_of(
            device=with_details(plan.device, wear=wear_before),
            host=host,
            harness=measure_harness(),
            scale=plan.scale,
            seed=plan.seed,
            pause_ns=plan.pause_ns,
            target_size_bytes=plan.target_size,
            repetitions=plan.repetitions,
            method=plan.method,
            durability=plan.durability,
            state=initial_state
            if record is None
            else structs.replace(initial_state, record=str(record.path)),
            plan=plan.runs,
            skipped=plan.skipped,
            warnings=plan.warnings,
        ),
    )
    return BenchmarkRun(
        device, plan, writer, History(initial_state.state_id, record), Calibration(plan, writer)
    )


def store_run(device: Device, plan: Plan, trace: Trace, folder: Path) -> None:
    """Make a result folder for a finished run."""
    writer = new_benchmark_run(device, plan, folder, AS_IS).writer
    writer.commit(plan.runs[0], trace)
    writer.finish("complete")


def final_state(info: DeviceInfo, before: tuple[int, int]) -> After:
    """Read temperature, wear and stolen time of a real device after its benchmark.

    `before` is the result of `processor_time` before the first run.
    """
    stolen, demanded = (now - then for now, then in zip(processor_time(), before, strict=True))
    share = round(stolen / demanded, 4) if demanded > 0 else None
    return After(temperature_of(info), wear_of(info), share)


def execute(
    plan: Plan,
    device: Device,
    writer: ResultsWriter,
    on_event: Callable[[RunEvent], None] = ignore,
    *,
    history: History,
    calibration: Calibration,
    max_time_ns: int | None = None,
    done: Collection[str] = (),
    replay: Callable[[PlannedRun, Trace], None] | None = None,
) -> None:
    """Make all runs of a plan and store them one by one.

    `device`: the device, open for writing. `writer`: stores runs; `finish` is
    called on it in every case. `on_event`: receives the start, the progress and the end of each
    run. `history`: the state of the device, which runs change. `calibration`: phases and pause,
    measured on the way or stored before. `max_time_ns`: after this wall-clock time no run begins
    [ns]: the plan ends as interrupted, with a warning. `done`: ids of runs that are stored already.
    `replay`: for a rebuilt device: stored runs are repeated on it in their order and passed to this
    function, which checks that they are the same. Without it stored runs are skipped.
    """
    tally, started_ns = Tally(len(done), lambda: calibration.planned), time.monotonic_ns()
    refresh_due: int | None = None
    remaining = _runs_to_make(plan, done, all_of_them=replay is not None)
    with store_outcome(writer, tally):
        # On a device with earlier runs, no new run may come before them.
        disturbing = (n for n, run in enumerate(plan.runs) if run.spec.writes_sequentially)
        first_disturbing = next(disturbing, len(plan.runs))
        closed = replay is None and any(run.id in done for run in plan.runs[first_disturbing:])
        status_before = undisturbed_since_open(device.target_status())
        check_not_shrunk(status_before, device.info)
        for group in _groups(plan, remaining, writer, calibration, on_event, closed=closed):
            signals.check()
            index, run = group[0]
            began = time.monotonic_ns()
            if max_time_ns is not None and began - started_ns > max_time_ns:
                tally.status = "interrupted"
                tally.warnings = [_out_of_time(max_time_ns, tally.finished, calibration.planned)]
                return
            if run.reset_before:
                _reset(plan, device, history, partial(_report, ResetProgress, on_event, index, run))
                refresh_due = 0
            elif refresh_due is None:
                refresh_due = _refresh_after_stored(plan, index, writer)
            refreshed = _refresh(plan, device, history, run, refresh_due)
            on_event(RunStarted(index, run))
            report_progress = partial(_report, RunProgress, on_event, index, run)
            runs = [run for _, run in group]
            made, status_before = _make(
                runs,
                device,
                calibration,
                history,
                report_progress,
                on_live=None
                if device.live_ns is None
                else partial(_report, LiveRows, on_event, index, run, device.info),
                previous_status=status_before,
                spool=writer.spool,
            )
            refresh_due = sum(
                plan.refresh_bytes(each.run, each.trace.bytes_written) for each in made
            )
            made[0].about["refreshed_bytes"] = refreshed
            for each in made:
                tally.finished += _store(each, writer, done, replay)
            taken_ns, ios = time.monotonic_ns() - began, sum(len(each.trace) for each in made)
            for (number, _), each in zip(group, made, strict=True):
                share = len(each.trace) / ios
                on_event(RunFinished(number, each.run, round(taken_ns * share)))
        calibration.phases()


def _runs_to_make(plan: Plan, done: Collection[str], *, all_of_them: bool) -> list[Numbered]:
    """Return the runs that are not stored, or all of them, with their indices.

    A batch of the interference experiment is repeated if another one is missing.
    """
    batches = {run.id for run in plan.runs if run.micro_benchmark == interference.NAME}
    again = set() if batches <= {*done} else batches
    return [
        (index, run)
        for index, run in enumerate(plan.runs)
        if all_of_them or run.id not in done or run.id in again
    ]


def _groups(
    plan: Plan,
    remaining: list[Numbered],
    writer: ResultsWriter,
    calibration: Calibration,
    on_event: Callable[[RunEvent], None],
    *,
    closed: bool,
) -> Iterator[list[Numbered]]:
    """Yield the groups of the plan, and of the rounds that are added after each stage.

    The stages: runs that hardly disturb the state, random writes within a part of the device,
    sequential writes.
    """
    made = 0
    for stage in STAGES:
        while True:
            end = ends_of_stages(plan.runs, plan.target_size)[stage]
            yield from group_unpaused([each for each in remaining if made <= each[0] < end])
            made = end
            grown = next_round(plan, made, writer, calibration.repetition_spec)
            grown = next_rate(plan, made, writer) if grown is None else grown
            if grown is None or (closed and stage != SEQUENTIAL):
                break
            added = len(grown.runs) - len(plan.runs)
            later_runs = [(index + added, run) for index, run in remaining if index >= made]
            remaining = [*list(enumerate(grown.runs))[made : made + added], *later_runs]
            plan = grown
            calibration.update_plan(plan)
            writer.grow(plan.runs)
            on_event(PlanGrew(plan))
    yield from group_unpaused([each for each in remaining if each[0] >= made])


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
    on_live: OnLive | None,
    previous_status: TargetStatus | None,
    spool: Path,
) -> tuple[list[_FinishedRun], TargetStatus | None]:
    """Let the device idle, then make a run, or several without a pause between them.

    `previous_status` is that of the target after the previous run; the new status is returned.
    """
    pause_ns = calibration.pause_before(runs[0], device)
    if device.info.zoned:
        device.prepare_zones(calibration.adapted_spec(runs[0]))
    device.idle(pause_ns)
    status_before = device.target_status()
    check_target(previous_status, status_before, device.url)
    counters_before = device.drive_counters()
    if runs[0].micro_benchmark == interference.NAME:
        busy_ns = interference.busy_after_writes(device, runs)
        parts = device.run_series([run.spec for run in runs], on_progress)
        calibration.evaluate_batches(runs, parts, busy_ns)
        traces = [trace for _, trace in parts]
    else:
        (run,) = runs
        spec = calibration.adapted_spec(run)
        traces = [
            device.run(
                spec,
                on_progress,
                spool=spool,
                samples=has_rounds(run),
                durability=own_durability(run),
                on_live=on_live,
            )
        ]
        while (longer := calibration.longer_baseline(run, traces)) is not None:
            history.record_run(traces[-1], device.durability)
            device.idle(pause_ns)
            counters_before = device.drive_counters()
            traces.append(device.run(longer, on_progress, spool=spool))
    counters_after = device.drive_counters()
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
        if not made and (counters_before.counters or counters_after.counters):
            written = sum(each.bytes_written for each in traces[-len(runs) :])
            about["drive"] = change_of(counters_before, counters_after, written, len(runs))
        if len(runs) == 1:  # the samples of a series cover all of its runs
            about |= _sampled(device)
        made.append(_FinishedRun(run, trace, about))
        history.record_run(trace, own_durability(run) or device.durability)
    return made, status_after


def _sampled(device: Device) -> About:
    about: About = {}
    if device.power_record is not None:
        about["power"] = device.power_record
    if device.host_record is not None:
        about["host"] = device.host_record
    return about


def _store(
    made: _FinishedRun,
    writer: ResultsWriter,
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


def _refresh_after_stored(plan: Plan, index: int, writer: ResultsWriter) -> int:
    """Return the refresh that is due after the previous run, if that is stored already [bytes]."""
    previous = plan.runs[index - 1] if index else None
    trace = None if previous is None else writer.trace_of(previous.id)
    if previous is None or trace is None:
        return 0
    return plan.refresh_bytes(previous, trace.bytes_written)


def _refresh(plan: Plan, device: Device, history: History, run: PlannedRun, size_bytes: int) -> int:
    """Overwrite a part of the previous run's writes; return the number of bytes written."""
    if not size_bytes:
        return 0
    seed = run_seed(plan.seed, "refresh", run.id, 0)
    trace = device.run(refresh_spec(plan.target_size, size_bytes, seed))
    history.record_run(trace, device.durability)
    return size_bytes


def _report(
    kind: type[ResetProgress | RunProgress | LiveRows],
    on_event: Callable[[RunEvent], None],
    index: int,
    run: PlannedRun,
    *progress: Any,
) -> None:
    on_event(kind(index, run, *progress))


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


@dataclass
class Tally:
    """The progress of a benchmark, updated by its execution."""

    finished: int  #: Number of stored runs.
    planned: Callable[[], int]  #: Returns the number of planned runs; a plan may grow.
    #: The outcome without an exception: "interrupted" if its time was over.
    status: str = "complete"
    warnings: Sequence[WarningSummary] = ()  #: Warnings about the outcome.


@contextmanager
def store_outcome(writer: ResultsWriter, tally: Tally, runs: str = "runs") -> Iterator[None]:
    """Store the outcome of the enclosed work, and add the finished runs to an error message."""
    try:
        yield
    except (KeyboardInterrupt, InterruptedRun):
        writer.finish("interrupted")
        raise InterruptedRun(
            f"Interrupted after {tally.finished} of {tally.planned()} {runs}",
            where=str(writer.path),
            action=_next_step(tally.finished, runs, writer.path),
        ) from None
    except BaseException as error:
        # The disk may be full: the first error then names the cause, and a second one adds nothing.
        with suppress(ResultsError):
            writer.finish("failed")
        if isinstance(error, UflipError):
            parts = (error.action, _next_step(tally.finished, runs, writer.path))
            error.action = "\n".join(part for part in parts if part)
        raise
    writer.finish(tally.status, tally.warnings)


def _next_step(finished: int, runs: str, path: Path) -> str:
    one = runs.removesuffix("s")
    if not finished:
        return f"no {one} was finished"
    subject = f"the finished {one} is" if finished == 1 else f"the {finished} finished {runs} are"
    return f"{subject} kept, see `uflip show {path}`; `uflip run --resume {path}` makes the others"
