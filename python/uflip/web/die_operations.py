"""Operations of a recorded run by die, plane and channel, in order."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from uflip.results.operations import HOST_WRITE, PROGRAM, REST, WHATS, WORDS, Operations

Whole = NDArray[np.int64]
PLACE_OF_PROGRAM = WHATS.index(WORDS[HOST_WRITE, PROGRAM])
PLACE_OF_REST = WHATS.index(WORDS[HOST_WRITE, REST])


class Lanes:
    """The operations, and for each die and channel its operations in order.

    Parameters
    ----------
    of : Operations
        The recorded operations.
    numbers : numpy.ndarray or None
        Number of each I/O in the run, by the order of submission; None if they are equal.
    begin_ns : int
        Time of the first submission, the zero of pictures [ns since the run began].
    holds : bool
        Whether a program holds its channel until the die is free, as on an open-channel device.
    """

    def __init__(
        self, of: Operations, numbers: Whole | None, begin_ns: int, *, holds: bool = False
    ) -> None:
        self.of = of
        self.holds = holds
        self.begin_ns = begin_ns
        self.io = _numbered(of.io, numbers)
        self.waiting = _numbered(of.waits.io, numbers)
        by_die = np.lexsort((of.begin, of.die))
        self.dies = _split(by_die, of.die, len(of.channels))
        sent = np.flatnonzero(of.sent_until > of.sent)
        by_channel = sent[np.lexsort((of.sent[sent], of.channel[sent]))]
        self.channels = _split(by_channel, of.channel, int(of.channels.max(initial=-1)) + 1)
        # Planes that work together occupy their die together.
        clock = of.clocks[of.die]
        by_clock = np.lexsort((of.end, of.begin, clock))
        self.clocks = _split(by_clock, clock, len(of.channels))
        # A die does one thing at a time: the next operation in the register begins when the cells
        # are free. Operations of several planes count once, for the first plane.
        self.busy = _one_by_one(self.dies, of)
        self.held = _one_by_one(self.clocks, of)

    def had_die(self, row: int) -> Whole:
        """Return the operations that occupied the die while an operation waited for it."""
        of, rows = self.of, self.clocks[self.of.clocks[self.of.die[row]]]
        return _overlapping(rows, self.held, of.end, self.came_to_die(row), of.begin[row])

    def on_die(self, die: int, low: int, high: int) -> Whole:
        """Return the operations on a die in a stretch of time, in order."""
        return _overlapping(self.clocks[self.of.clocks[die]], self.held, self.of.end, low, high)

    def flush_of(self, wait: int) -> int | None:
        """Return the program that ended a wait for the write cache; None if it was not recorded."""
        waits, of = self.of.waits, self.of
        rows = self.on_die(int(waits.die[wait]), int(waits.end[wait]) - 1, int(waits.end[wait]))
        programs = (PLACE_OF_PROGRAM, PLACE_OF_REST)
        ended = [row for row in rows.tolist() if of.end[row] == waits.end[wait]]
        return next((row for row in ended if of.what[row] in programs), None)

    def name(self, die: int) -> str:
        """Return the name of a die, or of a plane if its planes work together."""
        clock = int(self.of.clocks[die])
        planes = np.flatnonzero(self.of.clocks == clock)
        used = [plane for plane in planes.tolist() if len(self.dies[plane])]
        plane = int(np.searchsorted(planes, die))
        return f"die {clock}" if used == [clock] else f"die {clock}, plane {plane}"

    def had_channel(self, row: int) -> Whole:
        """Return the operations that occupied the channel while an operation waited for it."""
        of = self.of
        if of.sent_until[row] <= of.sent[row]:
            return np.zeros(0, np.int64)
        rows = self.channels[of.channel[row]]
        return _overlapping(rows, of.sent, of.sent_until, self.came_to_channel(row), of.sent[row])

    def came_to_channel(self, row: int) -> int:
        """Return when an operation requested its channel."""
        of = self.of
        if self._holds(row):
            return int(of.asked[row])
        return int(of.begin[row] + (of.cells[row] if of.is_read[row] else 0))

    def came_to_die(self, row: int) -> int:
        """Return when an operation requested its die."""
        return int(self.of.sent[row] if self._holds(row) else self.of.asked[row])

    def _holds(self, row: int) -> bool:
        """Return whether it gets its channel before its die."""
        return self.holds and not self.of.is_read[row] and self.of.sent_until[row] > 0


def _numbered(io: Whole, numbers: Whole | None) -> Whole:
    """Return the numbers of I/Os in the run."""
    if numbers is None or not len(numbers):
        return io
    return np.where(io >= 0, numbers[np.clip(io, 0, len(numbers) - 1)], -1)


def _one_by_one(lanes: list[Whole], of: Operations) -> Whole:
    """Return the start of each operation, not before the end of the previous one on its lane."""
    found = of.begin.copy()
    for rows in lanes:
        found[rows[1:]] = np.maximum(of.begin[rows[1:]], of.end[rows[:-1]])
    return found


def _split(rows: Whole, lane: Whole, lanes: int) -> list[Whole]:
    at = np.searchsorted(lane[rows], np.arange(lanes + 1))
    return [rows[begin:end] for begin, end in pairwise(at.tolist())]


def _overlapping(rows: Whole, begin: Whole, end: Whole, low: int, high: int) -> Whole:
    """Return the rows of a lane, in order, that overlap a stretch of time."""
    first = int(np.searchsorted(np.maximum.accumulate(end[rows]), low, "right"))
    last = int(np.searchsorted(begin[rows], high))
    return rows[first:last]
