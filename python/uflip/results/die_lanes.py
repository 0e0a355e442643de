"""The dies and channels of a simulated device during a run: their occupants and waits.

A die does one operation at a time, and a channel one transfer. The operations of a device log
become lanes: for each die and each channel its operations in order.
"""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from uflip.results.device_log import (
    HOST_WRITE,
    NAMES_BY_PURPOSE,
    OPERATION_NAMES,
    PROGRAM,
    RESUMED,
    Operations,
)

PROGRAM_CODE = OPERATION_NAMES.index(NAMES_BY_PURPOSE[HOST_WRITE, PROGRAM])
REST_CODE = OPERATION_NAMES.index(NAMES_BY_PURPOSE[HOST_WRITE, RESUMED])
Whole = NDArray[np.int64]


class _Occupancy:
    """The operations of a lane in order, with their begins and latest ends so far."""

    def __init__(self, rows: Whole, begin: Whole, end: Whole) -> None:
        self.rows = rows
        self.begins = begin[rows]
        self.ends = np.maximum.accumulate(end[rows])

    def overlapping(self, low: int, high: int) -> Whole:
        """Return the operations, in order, that overlap a range of time."""
        first = int(np.searchsorted(self.ends, low, "right"))
        last = int(np.searchsorted(self.begins, high))
        overlapping: Whole = self.rows[first:last]
        return overlapping


class Lanes:
    """The operations of a recorded run, and for each die and channel its operations in order.

    `operations`: the recorded operations. `numbers`: number of each I/O in the run, by the order of
    submission; None if they are equal. `begin_ns`: time of the first submission, the zero of
    pictures [ns since the run began]. `holds`: whether a program holds its channel until the die is
    free, as on an open-channel device.
    """

    def __init__(
        self, operations: Operations, numbers: Whole | None, begin_ns: int, *, holds: bool = False
    ) -> None:
        self.operations = operations
        self.holds = holds
        self.begin_ns = begin_ns
        self.io = _numbered(operations.io, numbers)
        self.waiting = _numbered(operations.waits.io, numbers)
        by_die = np.lexsort((operations.begin, operations.die))
        self.dies = _split(by_die, operations.die, len(operations.channels))
        sent = np.flatnonzero(operations.sent_until > operations.sent)
        by_channel = sent[np.lexsort((operations.sent[sent], operations.channel[sent]))]
        self.channels = _split(
            by_channel, operations.channel, int(operations.channels.max(initial=-1)) + 1
        )
        # Planes that work together occupy their die together.
        clock = operations.clocks[operations.die]
        by_clock = np.lexsort((operations.end, operations.begin, clock))
        self.clocks = _split(by_clock, clock, len(operations.channels))
        # A die does one thing at a time: the next operation in the register begins when the cells
        # are free. Operations of several planes count once, for the first plane.
        self.busy_from = _sequential_starts(self.dies, operations)
        self.occupied_from = _sequential_starts(self.clocks, operations)
        self._on_clock = [
            _Occupancy(rows, self.occupied_from, operations.end) for rows in self.clocks
        ]
        self._on_channel = [
            _Occupancy(rows, operations.sent, operations.sent_until) for rows in self.channels
        ]

    def die_occupants(self, row: int) -> Whole:
        """Return the operations that occupied the die while an operation waited for it."""
        ops = self.operations
        return self.on_die(int(ops.die[row]), self.die_requested_ns(row), int(ops.begin[row]))

    def on_die(self, die: int, low: int, high: int) -> Whole:
        """Return the operations on a die in a range of time, in order."""
        clock = int(self.operations.clocks[die])
        return self._on_clock[clock].overlapping(low, high)

    def flush_of(self, wait: int) -> int | None:
        """Return the program that ended a wait for the write cache; None if it was not recorded."""
        waits, ops = self.operations.waits, self.operations
        rows = self.on_die(int(waits.die[wait]), int(waits.end[wait]) - 1, int(waits.end[wait]))
        programs = (PROGRAM_CODE, REST_CODE)
        ending = [row for row in rows.tolist() if ops.end[row] == waits.end[wait]]
        return next((row for row in ending if ops.code[row] in programs), None)

    def name(self, die: int) -> str:
        """Return the name of a die, or of a plane if its planes work together."""
        clock = int(self.operations.clocks[die])
        planes = np.flatnonzero(self.operations.clocks == clock)
        used = [plane for plane in planes.tolist() if len(self.dies[plane])]
        plane = int(np.searchsorted(planes, die))
        return f"die {clock}" if used == [clock] else f"die {clock}, plane {plane}"

    def channel_occupants(self, row: int) -> Whole:
        """Return the operations that occupied the channel while an operation waited for it."""
        ops = self.operations
        if ops.sent_until[row] <= ops.sent[row]:
            return np.zeros(0, np.int64)
        channel = int(ops.channel[row])
        return self._on_channel[channel].overlapping(
            self.channel_requested_ns(row), int(ops.sent[row])
        )

    def channel_requested_ns(self, row: int) -> int:
        """Return the time at which an operation requested its channel [ns]."""
        ops = self.operations
        if self._holds(row):
            return int(ops.requested[row])
        return int(ops.begin[row] + (ops.cells[row] if ops.is_read[row] else 0))

    def die_requested_ns(self, row: int) -> int:
        """Return the time at which an operation requested its die [ns]."""
        return int(
            self.operations.sent[row] if self._holds(row) else self.operations.requested[row]
        )

    def _holds(self, row: int) -> bool:
        """Return whether an operation gets its channel before its die."""
        return (
            self.holds and not self.operations.is_read[row] and self.operations.sent_until[row] > 0
        )


def _numbered(io: Whole, numbers: Whole | None) -> Whole:
    """Return the numbers of I/Os in the run."""
    if numbers is None or not len(numbers):
        return io
    return np.where(io >= 0, numbers[np.clip(io, 0, len(numbers) - 1)], -1)


def _sequential_starts(rows_by_lane: list[Whole], operations: Operations) -> Whole:
    """Return the start of each operation, not before the end of the previous one on its lane."""
    starts = operations.begin.copy()
    for rows in rows_by_lane:
        starts[rows[1:]] = np.maximum(operations.begin[rows[1:]], operations.end[rows[:-1]])
    return starts


def _split(rows: Whole, lane: Whole, lanes: int) -> list[Whole]:
    at = np.searchsorted(lane[rows], np.arange(lanes + 1))
    return [rows[begin:end] for begin, end in pairwise(at.tolist())]
