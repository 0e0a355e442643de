"""Live progress on a terminal: runs done, time left, the run at hand, its last response time.

It is drawn on standard error, and only where that is a terminal: pipes and logs stay clean. With
rich installed it is a bar, without it one line that is written over.
"""

import shutil
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import TracebackType
from typing import Any, Protocol, Self

from uflip.cli.terminal import in_line
from uflip.experiment import PlannedRun
from uflip.methodology import (
    Estimate,
    Event,
    Plan,
    PlanGrew,
    ResetProgress,
    RunFinished,
    RunProgress,
    RunStarted,
    TimeLeft,
)
from uflip.units import format_count, format_duration_ns, format_size
from uflip.waiting import OnProgress


class Sink(Protocol):
    """What a status is drawn on."""

    def draw(self, done: float, text: str) -> None:
        """Show that `done` runs (with a fraction) are over, and a text."""

    def expect(self, total: int) -> None:
        """Take note that there are so many runs now."""


class PlanProgress:
    """Turns the events of a plan into a status.

    Parameters
    ----------
    plan : Plan
        What is executed.
    estimated : Estimate
        Its estimate, for the time left.
    sink : Sink
        Where it is shown.
    """

    def __init__(self, plan: Plan, estimated: Estimate, sink: Sink) -> None:
        self._time_left = TimeLeft(plan, estimated)
        self._sink = sink

    def __call__(self, event: Event) -> None:
        """Show an event."""
        if isinstance(event, PlanGrew):
            self._time_left.grown(event.plan)
            self._sink.expect(len(event.plan.runs))
        elif isinstance(event, ResetProgress):
            share = event.done / event.total
            self._draw(event.index, 0.0, f"resetting the state  {share:.0%}")
        elif isinstance(event, RunStarted):
            self._draw(event.index, 0.0, describe_run(event.run))
        elif isinstance(event, RunProgress):
            share = event.done / event.total
            response = format_duration_ns(event.last_response_ns)
            self._draw(event.index, share, f"{describe_run(event.run)}  {share:.0%}  {response}")
        elif isinstance(event, RunFinished):
            self._time_left.finished(event.index, event.taken_ns)
            self._draw(event.index + 1, 0.0, describe_run(event.run))

    def _draw(self, index: int, share: float, text: str) -> None:
        left_ns = self._time_left.after(index, share)
        self._sink.draw(index + share, f"{format_duration_ns(left_ns)} left  {text}")


def describe_run(run: PlannedRun) -> str:
    """Name a run as a person would.

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
    if unit == "bytes":
        return format_size(value)
    return format_duration_ns(value) if unit == "ns" else str(value)


def display(total: int, *, quiet: bool) -> AbstractContextManager[Sink]:
    """Choose how to show progress: a bar, a line, or nothing.

    Parameters
    ----------
    total : int
        How many runs there are.
    quiet : bool
        Show nothing.
    """
    if quiet or not sys.stderr.isatty():
        return nullcontext(_Nothing())
    try:
        return _Bar(total)
    except ImportError:
        return _Line(total)


@contextmanager
def run_display(*, quiet: bool) -> Iterator[OnProgress]:
    """Show the progress of a single run, where there is a terminal to show it on.

    Parameters
    ----------
    quiet : bool
        Show nothing.
    """
    with display(1, quiet=quiet) as sink:

        def show(done: int, total: int, last_response_ns: int) -> None:
            response = format_duration_ns(last_response_ns)
            sink.draw(done / total, f"{format_count(done)} of {format_count(total)}  {response}")

        yield show


class _Nothing:
    def draw(self, done: float, text: str) -> None:
        """Show nothing."""

    def expect(self, total: int) -> None:
        """Show nothing."""


class _Line:
    """One line of the terminal, written over and over."""

    def __init__(self, total: int) -> None:
        self._total = total

    def expect(self, total: int) -> None:
        """Count to another number from now on."""
        self._total = total

    def draw(self, done: float, text: str) -> None:
        text = in_line(text)
        line = f"[{int(done):>{len(str(self._total))}}/{self._total}]  {text}"
        columns = shutil.get_terminal_size().columns - 1
        sys.stderr.write(f"\r{line[:columns]:<{columns}}")
        sys.stderr.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        sys.stderr.write("\r\033[K")  # take the line away
        sys.stderr.flush()


class _Bar:
    """A bar by rich."""

    def __init__(self, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self._progress: Any = Progress(
            TextColumn("{task.fields[count]}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[status]}", markup=False),
            console=Console(stderr=True),
            transient=True,
        )
        self._total = total
        self._task: Any = self._progress.add_task("", total=total, count="", status="")

    def draw(self, done: float, text: str) -> None:
        text = in_line(text)
        self._progress.update(
            self._task, completed=done, count=f"{int(done)}/{self._total}", status=text
        )

    def expect(self, total: int) -> None:
        """Count to another number from now on."""
        self._total = total
        self._progress.update(self._task, total=total)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._progress.stop()
