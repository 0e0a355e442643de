"""An open run: its I/Os in their file, and a grid of blocks in memory so that zooming reads little.

::

    stream 0                         stream 1
    [ block ][ block ][ block ][blo] [ block ][ block ]…
      min max sum, first and last submission, histogram of response times

A run of ten million I/Os takes half a second to read. A thread reads it into the grid, and until
then the run is drawn from its pyramid (`uflip.results.pyramid`), which is on disk. The grid adds
what that lacks: blocks within one stream, their submission times, and histograms.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from threading import Lock, Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uflip import _native
from uflip.data.host_load import HostRecord
from uflip.data.run import metadata_of
from uflip.data.run_summary import RunSummary
from uflip.data.spec import MODES, Basic
from uflip.errors import UflipError, UsageError, from_native
from uflip.results import Results, StoredRun
from uflip.results.columns import column_slice
from uflip.results.pyramid import Pyramid

BLOCKS = 16384
"""Maximum number of blocks; a long run has at least half as many."""
CLASSES = 256
PER_OCTAVE = 8
PIECE_IOS = 1 << 19
"""Number of I/Os in memory at once."""
MAX_SYNC_IOS = 1 << 20
"""Maximum number of I/Os of a grid that is made at once, not on a thread."""
PART, PARTS = 1 << 16, 96
"""I/Os of a column that a file stores together, and number of cached parts: 50 MB."""
Log = _native.Trace | _native.FlashTrace
Whole = NDArray[np.int64]


@dataclass(frozen=True)
class Grid:
    """A run in blocks of neighbouring I/Os of one stream."""

    starts: Whole  #: First I/O of each block, followed by the number of I/Os (b + 1,).
    size: int  #: I/Os in a block, a power of two; fewer in the last one of a stream.
    streams: Whole  #: First I/O of each stream, followed by the number of I/Os.
    #: Statistics of the response times in each block (b,) [ns].
    min_ns: Whole
    max_ns: Whole
    sum_ns: Whole
    #: Submission of its first and of its last I/O (b,) [ns].
    first_ns: Whole
    last_ns: Whole
    ended_ns: Whole  #: Latest completion of its I/Os (b,) [ns].
    #: Number of I/Os of each block in each class of response time (b, CLASSES).
    spread: NDArray[np.uint32]

    def __len__(self) -> int:
        return int(self.starts[-1])

    @property
    def begin_ns(self) -> int:
        """Time of the first submission, the zero of pictures [ns since the run began]."""
        return int(self.first_ns.min()) if len(self) else 0


def classes_of(times_ns: NDArray[Any]) -> NDArray[np.uint32]:
    """Return the class of each response time (n,) [ns]: eight per octave, equally wide.

    The exponent and the first bits of a floating-point number are exactly that.

    Examples
    --------
    >>> classes_of(np.array([0, 1, 2, 3, 1024, 1535]))
    array([ 0,  0,  8, 12, 80, 83], dtype=uint32)
    """
    bits = np.maximum(times_ns, 1).astype(np.float32).view(np.uint32)
    code = (bits >> np.uint32(23 - 3)) - np.uint32(127 * PER_OCTAVE)
    classes: NDArray[np.uint32] = np.minimum(code, np.uint32(CLASSES - 1))
    return classes


def edges_ns() -> NDArray[np.float64]:
    """Return the lower edges of the classes, and the upper edge of the last (CLASSES + 1,) [ns]."""
    octave, eighth = np.divmod(np.arange(CLASSES + 1), PER_OCTAVE)
    return np.ldexp(1 + eighth / PER_OCTAVE, octave)


def grid_of(log: Log) -> Grid:
    """Return the grid of a run; reads all of it once, a piece at a time."""
    n = len(log)
    streams = _streams(log, n)
    size = 1 << max((max(n - 1, 0) // BLOCKS).bit_length(), 4)
    pairs = pairwise(streams)
    starts = np.concatenate([*(np.arange(low, high, size) for low, high in pairs), [n]])
    rows: dict[str, list[NDArray[Any]]] = {}
    step = max(PIECE_IOS // size, 1)
    for low in range(0, len(starts) - 1, step):
        _add(rows, log, starts[low : low + step + 1])
    if not n:
        _add(rows, log, np.array([0, 0]))
    columns = {name: np.concatenate(parts) for name, parts in rows.items()}
    return Grid(starts, size, streams, **columns)


def _streams(log: Log, n: int) -> Whole:
    """Return the first I/O of each stream, or of each thread of an open-channel job, and n."""
    if n == 0:
        return np.array([0, n])
    name = "thread" if isinstance(log, _native.FlashTrace) else "stream"
    starts = [0]
    for low in range(0, n, PIECE_IOS):
        begin = max(low - 1, 0)
        part = column_slice(log, name, begin, min(low + PIECE_IOS, n)).astype(np.int64)
        starts += (np.flatnonzero(np.diff(part)) + begin + 1).tolist()
    return np.array([*starts, n])


def _add(rows: dict[str, list[NDArray[Any]]], log: Log, starts: Whole) -> None:
    """Add the rows of consecutive blocks, given their boundaries."""
    low, high = int(starts[0]), int(starts[-1])
    times = column_slice(log, "response_time_ns", low, high).astype(np.int64)
    submitted = column_slice(log, "submit_ns", low, high).astype(np.int64)
    at = starts[:-1][np.diff(starts) > 0] - low
    blocks = len(at)
    block = np.repeat(np.arange(blocks, dtype=np.int64), np.diff(at, append=len(times)))
    spread = np.bincount(block * CLASSES + classes_of(times), minlength=blocks * CLASSES)
    columns: dict[str, NDArray[Any]] = {
        "min_ns": merged(times, at, np.minimum),
        "max_ns": merged(times, at, np.maximum),
        "sum_ns": merged(times, at, np.add),
        "first_ns": merged(submitted, at, np.minimum),
        "last_ns": merged(submitted, at, np.maximum),
        "ended_ns": merged(submitted + times, at, np.maximum),
        "spread": spread.reshape(blocks, CLASSES).astype(np.uint32),
    }
    for name, values in columns.items():
        rows.setdefault(name, []).append(values)


def merged(
    values: NDArray[Any], starts: Sequence[int] | Whole, aggregate: np.ufunc
) -> NDArray[Any]:
    """Aggregate neighbouring rows, given the start of each group."""
    if not len(values):
        return values
    aggregated: NDArray[Any] = aggregate.reduceat(values, starts)
    return aggregated


class OpenRun:
    """A run whose file is read on demand."""

    def __init__(self, results: Results, run: StoredRun) -> None:
        self.results = results
        self.run = run
        self._lock = Lock()
        self._parts: OrderedDict[tuple[str, int], NDArray[Any]] = OrderedDict()
        self._grid: Grid | None = None
        self._is_making = False
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
    def host(self) -> HostRecord | None:
        """The load of the host beside the run; None if none was stored."""
        return metadata_of(self.run.path, self.log.metadata_json).host

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
        """Return the grid; None while a thread makes it, which the first call starts."""
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
        elif self._grid is None and not self._is_making:
            self._is_making = True
            Thread(target=self._make, daemon=True).start()
        if self._failed is not None:
            raise self._failed
        return self._grid

    def wait(self) -> Grid:
        """Wait for the grid, or make it."""
        if self.grid() is None:
            self._make()
        grid = self.grid()
        assert grid is not None, "it was made or has failed"
        return grid

    def _make(self) -> None:
        with self._lock:
            if self._grid is not None:
                return
            try:
                self._grid = grid_of(self.log)
            except UflipError as error:
                self._failed = error
            except _native.NativeError as error:
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
