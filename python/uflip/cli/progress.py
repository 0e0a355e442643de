"""Progress of runs: time left, current run, I/O rate, last response time."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from uflip.benchmark import (
    Event,
    Plan,
    PlanEstimate,
    PlanGrew,
    ResetProgress,
    RunFinished,
    RunProgress,
    RunStarted,
    TimeLeft,
)
from uflip.cli.progress_bars import Sink, display
from uflip.experiment import PlannedRun
from uflip.native_wait import OnProgress
from uflip.units import format_count, format_duration_ns, format_size


class PlanProgress:
    """Draw the events of a plan as a status line.

    Parameters
    ----------
    plan : Plan
        The plan being executed.
    estimated : Estimate
        Its estimate, for the time left.
    sink : Sink
        The progress display.
    """

    def __init__(self, plan: Plan, estimated: PlanEstimate, sink: Sink) -> None:
        self._time_left = TimeLeft(plan, estimated)
        self._sink = sink
        self._rate = IoRate(simulated=plan.device.simulated)
        self._began_ns = 0

    def __call__(self, event: Event) -> None:
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


class IoRate:
    """I/Os per second over the last seconds.

    Parameters
    ----------
    simulated : bool
        Whether the device is simulated: the rate is then the simulator's, not the device's.
    clock_s : callable
        Returns the time [s].
    """

    WINDOW_S = 2.0

    def __init__(self, *, simulated: bool, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._unit = "simulated a second" if simulated else "IOPS"
        self._clock_s = clock_s
        self._samples: deque[tuple[float, int]] = deque()

    def begin(self) -> None:
        """Start measuring another run."""
        self._samples.clear()

    def text(self, done: int) -> str:
        """Return the rate with trailing blanks, or nothing before it is known."""
        now = self._clock_s()
        self._samples.append((now, done))
        while len(self._samples) > 2 and now - self._samples[1][0] >= self.WINDOW_S:
            self._samples.popleft()
        (since, before), elapsed_s = self._samples[0], now - self._samples[0][0]
        if elapsed_s <= 0 or done < before:
            return ""
        return f"{format_count(round((done - before) / (now - since)))} {self._unit}  "


def describe_run(run: PlannedRun) -> str:
    """Return the name of a run for people.

    Examples
    --------
    >>> describe_run(PlannedRun("", "granularity", "RW", "io_size", 4096, "bytes", {}))
    'granularity RW io_size 4 KiB'
    """
    return (
        f"{run.micro_benchmark} {run.pattern} {run.parameter} {format_value(run.value, run.unit)}"
    )


def format_value(value: int, unit: str) -> str:
    """Print the value of a varying parameter with its unit."""
    if unit in ("bytes", "bytes/s"):
        return format_size(value) + unit.removeprefix("bytes")
    return format_duration_ns(value) if unit == "ns" else str(value)


@contextmanager
def run_display(*, quiet: bool, simulated: bool) -> Iterator[OnProgress]:
    """Show the progress of a single run.

    Parameters
    ----------
    quiet : bool
        Show nothing.
    simulated : bool
        As for `IoRate`.
    """
    rate = IoRate(simulated=simulated)
    with display(1, quiet=quiet) as sink:

        def show(done: int, total: int, last_response_ns: int) -> None:
            response = format_duration_ns(last_response_ns)
            counts = f"{format_count(done)} of {format_count(total)}"
            sink.draw(done / total, f"{counts}  {rate.text(done)}{response}")

        yield show
