"""Progress displays: a bar, a line that is overwritten, or a line every few seconds.

They are drawn on standard error. A terminal has a bar if rich is installed, and otherwise one line
that is overwritten. Pipes, logs and services get a new line with the same text every few seconds;
`UFLIP_PROGRESS` changes the number of seconds, and 0 disables it.
"""

import os
import shutil
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol, Self

from uflip.escape import escape_line
from uflip.native_wait import OnProgress
from uflip.units import format_count, format_duration_ns, parse_number

INTERVAL = "UFLIP_PROGRESS"
"""The seconds between two lines without a terminal."""
INTERVAL_S = 5.0
# Longer intervals would never show a line.
MAX_INTERVAL_S = 1e6


class Sink(Protocol):
    """A progress display."""

    def draw(self, done: float, text: str) -> None:
        """Show that `done` runs (with a fraction) are finished, and a text."""

    def expect(self, total: int) -> None:
        """Change the total number of runs."""


def display(total: int, *, quiet: bool) -> AbstractContextManager[Sink]:
    """Select a progress display: a bar, a line, lines, or none."""
    if quiet:
        return nullcontext(_Nothing())
    if not sys.stderr.isatty():
        seconds = interval_s()
        return nullcontext(_Lines(total, seconds) if seconds else _Nothing())
    try:
        return _Bar(total)
    except ImportError:
        return _Line(total)


def check_interval() -> None:
    """Check the interval before any work is done."""
    if not sys.stderr.isatty():
        interval_s()


def interval_s() -> float:
    """Return the seconds between two lines from the environment."""
    return parse_number(os.environ.get(INTERVAL, str(INTERVAL_S)), INTERVAL, 0, MAX_INTERVAL_S)


def with_time_left(
    sink: Sink, total: int, clock_s: Callable[[], float] = time.monotonic
) -> Callable[[float, str], None]:
    """Return a function that draws the number of finished points and the time left.

    >>> class Paper(list):
    ...     def draw(self, done, text):
    ...         self.append(f"{done} {text}")
    >>> seconds, paper = iter([0.0, 2.0, 4.0]), Paper()
    >>> draw = with_time_left(paper, 10, lambda: next(seconds))
    >>> draw(4, "stored rows")
    >>> draw(5, "gc=greedy")
    >>> paper
    ['4 stored rows', '5 20 s left  gc=greedy']
    """
    began: list[Any] = [clock_s()]

    def draw(done: float, text: str) -> None:
        if len(began) == 1:
            # Stored points took no time now.
            began.append(done if done > 1 else 0)
        elapsed_s, finished = clock_s() - began[0], done - began[1]
        if finished > 0:
            left_ns = round(elapsed_s / finished * (total - done) * 1e9)
            text = f"{format_duration_ns(left_ns)} left  {text}"
        sink.draw(done, text)

    return draw


@contextmanager
def run_display(*, quiet: bool, simulated: bool, timed: bool = False) -> Iterator[OnProgress]:
    """Show the progress of a single run; `timed`: its number of I/Os is open."""
    rate = IoRate(simulated=simulated)
    with display(1, quiet=quiet) as sink:
        draw = with_time_left(sink, 1)

        def show(done: int, total: int, last_response_ns: int) -> None:
            response = format_duration_ns(last_response_ns)
            of_total = "" if timed else f" of {format_count(total)}"
            text = f"{format_count(done)}{of_total}  {rate.text(done)}{response}"
            if timed:
                sink.draw(0, text)
            else:
                draw(done / total, text)

        yield show


class IoRate:
    """I/Os per second over the last seconds.

    `simulated`: whether the device is simulated: the rate is then the simulator's, not the
    device's. `clock_s`: returns the time [s].
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


class _Nothing:
    def draw(self, done: float, text: str) -> None:
        """Show nothing."""

    def expect(self, total: int) -> None:
        """Show nothing."""


class _Lines:
    """A new line every few seconds, for logs; long work has longer intervals."""

    # Of the time since the beginning, up to a number of intervals.
    SHARE = 0.1
    MAX_INTERVALS = 12

    def __init__(self, total: int, interval_s: float) -> None:
        self._total, self._interval_s = total, interval_s
        self._began_s = self._printed_s = time.monotonic()

    def expect(self, total: int) -> None:
        """Change the total number of runs."""
        self._total = total

    def draw(self, done: float, text: str) -> None:
        """Print the text, unless the last line is too recent."""
        now = time.monotonic()
        longer_s = min(self.SHARE * (now - self._began_s), self.MAX_INTERVALS * self._interval_s)
        if text and now - self._printed_s >= max(self._interval_s, longer_s):
            self._printed_s = now
            sys.stderr.write(f"[{int(done)}/{self._total}]  {escape_line(text)}\n")
            sys.stderr.flush()


class _Line:
    """One terminal line that is overwritten."""

    def __init__(self, total: int) -> None:
        self._total = total

    def expect(self, total: int) -> None:
        """Change the total number of runs."""
        self._total = total

    def draw(self, done: float, text: str) -> None:
        text = escape_line(text)
        line = f"[{int(done):>{len(str(self._total))}}/{self._total}]  {text}"
        columns = shutil.get_terminal_size().columns - 1
        sys.stderr.write(f"\r{line[:columns]:<{columns}}")
        sys.stderr.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        sys.stderr.write("\r\033[K")  # erase the line
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
        text = escape_line(text)
        self._progress.update(
            self._task, completed=done, count=f"{int(done)}/{self._total}", status=text
        )

    def expect(self, total: int) -> None:
        """Change the total number of runs."""
        self._total = total
        self._progress.update(self._task, total=total)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()
