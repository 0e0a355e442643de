"""An open run: its I/Os in their file, and its caches in memory.

A run of ten million I/Os takes half a second to read. A thread reads it, and until then the run is
drawn from its pyramid.
"""

from collections import OrderedDict
from functools import cached_property
from threading import Lock, Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uflip import _native
from uflip.data.run_summary import RunSummary
from uflip.data.spec import MODES, Basic
from uflip.errors import UflipError, UsageError
from uflip.results import Results, StoredRun
from uflip.results.columns import column_slice
from uflip.results.pyramid import Pyramid
from uflip.web.grid import Grid, Log, grid_of

MAX_SYNC_IOS = 1 << 20
"""Maximum number of I/Os of a grid that is made at once, not on a thread."""
PART, PARTS = 1 << 16, 96
"""I/Os of a column that a file stores together, and number of cached parts: 50 MB."""


class OpenRun:
    """A run whose file is read on demand.

    Parameters
    ----------
    results : Results
        The folder.
    run : StoredRun
        One of its runs.
    """

    def __init__(self, results: Results, run: StoredRun) -> None:
        self.results = results
        self.run = run
        self._lock = Lock()
        self._parts: OrderedDict[tuple[str, int], NDArray[Any]] = OrderedDict()
        self._grid: Grid | None = None
        self._making: Thread | None = None
        self._failed: UflipError | None = None

    @cached_property
    def summary(self) -> RunSummary:
        """The stored summary of the run."""
        return self.results.summary_of([self.run])

    @cached_property
    def pyramid(self) -> Pyramid | None:
        """The stored pyramid of the run."""
        return self.results.pyramid_of(self.run)

    @cached_property
    def log(self) -> Log:
        """Its I/Os; those of a long run stay in their file."""
        return self.run.log() if self.run.is_job else self.run.trace()

    @cached_property
    def causes(self) -> list[str]:
        """The causes of response times; empty for a real device."""
        return list(self.log.causes)

    def column(self, name: str, start: int, stop: int) -> NDArray[Any]:
        """Return I/Os `start` to `stop` of a column (n,).

        A file is decompressed a part at a time, however few I/Os are requested. The parts are
        cached for a while, because the next request is usually for neighbours.
        """
        constant = (
            self._constant_column(name, start, stop) if start < stop <= len(self.log) else None
        )
        if constant is not None:
            return constant
        if stop - start > PART or len(self.log) <= PART or start >= stop:
            with self._lock:  # only one thread reads a file at a time
                return column_slice(self.log, name, start, stop)
        pieces = []
        for part in range(start // PART, (stop - 1) // PART + 1):
            begin = part * PART
            pieces.append(self._part(name, part)[max(start - begin, 0) : stop - begin])
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def _constant_column(self, name: str, start: int, stop: int) -> NDArray[Any] | None:
        """Return a column in which all I/Os are equal, without decoding the pattern."""
        spec = self.run.spec
        if not isinstance(spec, Basic):
            return None
        constants = {
            "io_size_bytes": np.uint32(spec.io_bytes),
            "mode": np.uint8(MODES.index(spec.mode)),
            "component": np.uint8(0),
        }
        return np.full(stop - start, constants[name]) if name in constants else None

    def _part(self, name: str, part: int) -> NDArray[Any]:
        key = name, part
        with self._lock:
            values = self._parts.get(key)
            if values is None:
                begin = part * PART
                end = min(begin + PART, len(self.log))
                values = self._parts[key] = column_slice(self.log, name, begin, end)
            self._parts.move_to_end(key)
            while len(self._parts) > PARTS:
                self._parts.popitem(last=False)
        return values

    def has(self, name: str) -> bool:
        """Return whether the run has a column."""
        return name in self.log.columns

    @property
    def io_count(self) -> int:
        """Number of I/Os."""
        return int(self.summary.io_count)

    @property
    def io_ignore(self) -> int:
        """Number of I/Os of the start-up."""
        return int(self.summary.io_ignore)

    def grid(self) -> Grid | None:
        """Return the grid; None while a thread makes it, which the first call starts.

        Raises
        ------
        UflipError
            If the run cannot be read.
        """
        if self.run.is_job and not self.has("submit_ns"):
            raise UsageError(
                "The explorer has no picture of this job",
                where=self.run.id,
                got="a row per cycle of program and erase",
                allowed="runs with a row per I/O",
                action="`uflip report` shows the wear of the block",
            )
        if self._grid is None and self.io_count <= MAX_SYNC_IOS:
            self._make()
        elif self._making is None:
            self._making = Thread(target=self._make, daemon=True)
            self._making.start()
        if self._failed is not None:
            raise self._failed
        return self._grid

    def wait(self) -> None:
        """Wait for the grid."""
        self.grid()
        if self._making is not None:
            self._making.join()

    def _make(self) -> None:
        with self._lock:
            if self._grid is not None:
                return
            try:
                self._grid = grid_of(self.log)
            except UflipError as error:
                self._failed = error
            except _native.NativeError as error:
                from uflip.errors import from_native

                self._failed = from_native(error)

    @cached_property
    def prefix_ns(self) -> NDArray[np.int64]:
        """Return the sum of the response times before each block, and of all (b + 1,) [ns]."""
        assert self._grid is not None, "the caller has made the grid"
        return np.concatenate([[0], np.cumsum(self._grid.sum_ns)])

    def sum_before(self, number: int) -> int:
        """Return the sum of the response times of all I/Os before this one [ns]."""
        grid = self._grid
        assert grid is not None, "the caller has made the grid"
        block = int(np.searchsorted(grid.starts, number, "right")) - 1
        if block >= len(grid.starts) - 1:
            return int(self.prefix_ns[-1])
        part = self.column("response_time_ns", int(grid.starts[block]), number)
        return int(self.prefix_ns[block]) + int(part.astype(np.int64).sum())

    @cached_property
    def ignored_ns(self) -> int:
        """Sum of the response times of the start-up, for a run of one stream [ns]."""
        return self.sum_before(min(self.io_ignore, self.io_count))
