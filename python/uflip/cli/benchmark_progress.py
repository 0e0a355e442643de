"""Progress of a benchmark: a line at the start of each step, then a display with the time left."""

import time
from contextlib import ExitStack
from typing import Self

from uflip.benchmark import (
    Enforcement,
    Plan,
    PlanEstimate,
    PlanGrew,
    ResetProgress,
    RunEvent,
    RunFinished,
    RunProgress,
    RunStarted,
    TimeLeft,
    describe_wear,
)
from uflip.benchmark.events import (
    BenchmarkEvent,
    DeviceBegins,
    DeviceProgress,
    FileBegins,
    FileProgress,
    JobsBegin,
    LiveRows,
    RunsBegin,
    StateBegins,
    StateProgress,
    TraceRead,
    WearReport,
)
from uflip.cli.progress import IoRate, Sink, check_interval, display
from uflip.cli.terminal import echo
from uflip.cli.time_rows import live_printer
from uflip.microbench.experiment import PlannedRun
from uflip.microbench.labels import format_value
from uflip.native_wait import OnLive
from uflip.units import format_count, format_duration_ns, format_size


class BenchmarkProgress:
    """Shows the events of a session; `with BenchmarkProgress(quiet=quiet) as progress: ...`.

    Raises UsageError as `uflip.cli.progress.check_interval` does.
    """

    def __init__(self, *, quiet: bool, as_json: bool = False) -> None:
        if not quiet:
            check_interval()
        self._quiet, self._as_json = quiet, as_json
        self._live: tuple[str, OnLive] | None = None
        self._display = ExitStack()
        self._sink: Sink | None = None
        self._plan: PlanProgress | None = None
        self._state: StateProgressLine | None = None

    def __call__(self, event: BenchmarkEvent) -> None:
        """Show an event."""
        if isinstance(event, LiveRows):
            self._show_rows(event)
        elif not self._quiet:
            self._show(event)

    def _show(self, event: BenchmarkEvent) -> None:
        if isinstance(event, FileBegins | FileProgress | DeviceBegins | DeviceProgress):
            self._show_opening(event)
        elif isinstance(event, TraceRead):
            self._begin(f"trace read as {event.description}", 0)
        elif isinstance(event, StateBegins):
            self._begin(announce_state(event.enforcement, event.done_ios), 1)
            self._state = StateProgressLine(event.enforcement, event.done_ios)
        elif isinstance(event, StateProgress):
            assert self._state is not None, "it has begun"
            self._draw(event.done / event.total, self._state.text(event.done, event.total))
        elif isinstance(event, WearReport):
            self._begin(f"wear: {describe_wear(event.wear, event.bytes_written)}", 0)
        elif isinstance(event, RunsBegin):
            self._begin(
                _announce_runs(event.plan, event.estimate, event.done), len(event.plan.runs)
            )
            assert self._sink is not None, "it has begun"
            self._plan = PlanProgress(event.plan, event.estimate, self._sink)
        elif self._plan is not None and not isinstance(event, JobsBegin):
            self._plan(event)
        else:
            self._show_job(event)

    def _show_rows(self, event: LiveRows) -> None:
        """Print rows of a run, below its name and the head."""
        name = event.run.id
        if self._live is None or self._live[0] != name:
            self._live = name, live_printer(event.device, as_json=self._as_json, run=name)
        self._live[1](event.rows)

    def _show_opening(
        self, event: FileBegins | FileProgress | DeviceBegins | DeviceProgress
    ) -> None:
        """Show an event of opening a device."""
        if isinstance(event, FileBegins):
            verb = "creating" if event.new else "enlarging"
            self._begin(f"{verb} {event.url}: {format_size(event.missing_bytes)} to write ...", 1)
        elif isinstance(event, FileProgress):
            share = event.done / event.total
            self._draw(share, f"writing {event.url}  {share:.0%}")
        elif isinstance(event, DeviceBegins):
            time_left = format_duration_ns(event.left_ns)
            self._begin(
                f"creating {event.url}: about {time_left} to write its state; Ctrl-C ends it", 1
            )
        else:
            time_left, share = format_duration_ns(event.left_ns), event.done / event.total
            self._draw(share, f"{time_left} left  creating {event.url}  {share:.0%}")

    def _show_job(self, event: BenchmarkEvent) -> None:
        """Show an event of a benchmark of an open-channel device."""
        if isinstance(event, JobsBegin):
            finished = f" ({event.done} of them finished before)" if event.done else ""
            self._begin(f"{event.url}: {event.jobs} jobs{finished}", event.jobs)
        elif isinstance(event, RunProgress):
            share = event.done / event.total
            self._draw(event.index + share, f"{event.run.id}  {share:.0%}")

    def _begin(self, line: str, total: int) -> None:
        """End the previous display, print a line, and start a display if the step takes time."""
        self._display.close()
        echo(line, err=True)
        self._sink = self._display.enter_context(display(total, quiet=False)) if total else None

    def _draw(self, share: float, text: str) -> None:
        if self._sink is not None:
            self._sink.draw(share, text)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._display.close()


class PlanProgress:
    """Draw the events of a plan as a status line."""

    def __init__(self, plan: Plan, estimated: PlanEstimate, sink: Sink) -> None:
        self._time_left = TimeLeft(plan, estimated)
        self._sink = sink
        self._rate = IoRate(simulated=plan.device.simulated)
        self._began_ns = 0

    def __call__(self, event: RunEvent) -> None:
        """Show an event."""
        if isinstance(event, PlanGrew):
            self._time_left.update_plan(event.plan)
            self._sink.expect(len(event.plan.runs))
        elif isinstance(event, ResetProgress):
            share = event.done / event.total
            self._draw(event.index, 0.0, f"resetting the state  {share:.0%}")
        elif isinstance(event, RunStarted):
            self._rate.begin()
            self._began_ns = 0
            self._draw(event.index, 0.0, describe_run(event.run))
        elif isinstance(event, RunProgress):
            now_ns = time.monotonic_ns()
            # The pause before the run ends with its first I/Os.
            self._began_ns = self._began_ns or now_ns
            share = event.done / event.total
            response = format_duration_ns(event.last_response_ns)
            rate = self._rate.text(event.done)
            text = f"{describe_run(event.run)}  {share:.0%}  {rate}{response}"
            self._draw(event.index, share, text, now_ns - self._began_ns)
        elif isinstance(event, RunFinished):
            self._time_left.record_run(event.index, event.taken_ns)
            self._draw(event.index + 1, 0.0, describe_run(event.run))

    def _draw(self, index: int, share: float, text: str, taken_ns: int = 0) -> None:
        left_ns = self._time_left.remaining_ns(index, share, taken_ns)
        self._sink.draw(index + share, f"{format_duration_ns(left_ns)} left  {text}")


class StateProgressLine:
    """Progress of enforcing a state, with the time left."""

    def __init__(self, enforcement: Enforcement, done_ios: int) -> None:
        self._enforcement, self._done_ios = enforcement, done_ios
        self._began = time.monotonic_ns()

    def text(self, done_now: int, total: int) -> str:
        """Return the progress as text."""
        done = done_now - self._done_ios
        left_ns = (
            (time.monotonic_ns() - self._began) * (total - done_now) / done
            if done
            else self._enforcement.time_ns * (1 - done_now / total)
        )
        name = f"{self._enforcement.request['state']} state"
        return f"{format_duration_ns(left_ns)} left  {name}  {done_now / total:.0%}"


def announce_state(enforcement: Enforcement, done_ios: int = 0) -> str:
    """Return what enforcing a state takes, as a line to print before it begins."""
    remaining = 1 - done_ios / enforcement.total_ios
    request = enforcement.request
    head = f"{request['state']} state over {format_size(request['target_size'])}"
    resumed = f"resuming after {done_ios / enforcement.total_ios:.0%}, " if done_ios else ""
    noun = "discards" if request["state"] == "empty" else "writes"
    return (
        f"{head}: {resumed}{format_count(enforcement.total_ios - done_ios)} {noun}, "
        f"{format_size(round(enforcement.bytes_written * remaining))}, "
        f"about {format_duration_ns(enforcement.time_ns * remaining)}"
    )


def _announce_runs(plan: Plan, estimated: PlanEstimate, done: int) -> str:
    skipped = f", {len(plan.skipped)} skipped" if plan.skipped else ""
    open_ended = estimated.fewest.ios != estimated.ios
    minimum = f" at most, {format_duration_ns(estimated.fewest.time_ns)} at least"
    finished = f" ({done} of them finished before)" if done else ""
    return (
        f"{plan.device.url}: {estimated.runs} runs{finished}{skipped}, "
        f"{format_count(estimated.ios)} I/Os, "
        f"{format_size(estimated.bytes_read)} to read, "
        f"{format_size(estimated.bytes_written)} to write, "
        f"about {format_duration_ns(estimated.time_ns)}{minimum if open_ended else ''}"
    )


def describe_run(run: PlannedRun) -> str:
    """Return the name of a run for people.

    >>> describe_run(PlannedRun("", "granularity", "RW", "io_size", 4096, "bytes", {}))
    'granularity RW io_size 4 KiB'
    """
    return (
        f"{run.micro_benchmark} {run.pattern} {run.parameter} {format_value(run.value, run.unit)}"
    )
