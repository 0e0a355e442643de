"""What progress is shown on: a bar, a line that is written over, or a line every few seconds.

It is drawn on standard error. A terminal has a bar where rich is installed, and else one line that
is written over. Pipes, logs and services have a line of their own every few seconds, which says the
same; `UFLIP_PROGRESS` is another number of seconds, and 0 is none.
"""

import os
import shutil
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Any, Protocol, Self

from uflip.escape import in_line
from uflip.units import parse_number

INTERVAL = "UFLIP_PROGRESS"
"""Names the seconds between two lines where there is no terminal."""
INTERVAL_S = 5.0
# Who wants fewer lines wants none.
MOST_S = 1e6


class Sink(Protocol):
    """What a status is drawn on."""

    def draw(self, done: float, text: str) -> None:
        """Show that `done` runs (with a fraction) are over, and a text."""

    def expect(self, total: int) -> None:
        """Take note that there are so many runs now."""


def display(total: int, *, quiet: bool) -> AbstractContextManager[Sink]:
    """Choose how to show progress: a bar, a line, lines, or nothing.

    Parameters
    ----------
    total : int
        How many runs there are.
    quiet : bool
        Show nothing.
    """
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
    """Refuse what would not do once something is shown, before anything is made.

    Raises
    ------
    UsageError
        As `interval_s`, where lines are shown.
    """
    if not sys.stderr.isatty():
        interval_s()


def interval_s() -> float:
    """Read the seconds between two lines from the environment.

    Raises
    ------
    UsageError
        If they are none.
    """
    return parse_number(os.environ.get(INTERVAL, str(INTERVAL_S)), INTERVAL, 0, MOST_S)


class _Nothing:
    def draw(self, done: float, text: str) -> None:
        """Show nothing."""

    def expect(self, total: int) -> None:
        """Show nothing."""


class _Lines:
    """A line of its own every few seconds, for who reads a log."""

    def __init__(self, total: int, interval_s: float) -> None:
        self._total, self._interval_s = total, interval_s
        self._said = time.monotonic()

    def expect(self, total: int) -> None:
        """Count to another number from now on."""
        self._total = total

    def draw(self, done: float, text: str) -> None:
        """Say it, if it was not said just now."""
        now = time.monotonic()
        if text and now - self._said >= self._interval_s:
            self._said = now
            sys.stderr.write(f"[{int(done)}/{self._total}]  {in_line(text)}\n")
            sys.stderr.flush()


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
