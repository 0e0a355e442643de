"""Response times of a run, summarised in blocks in memory, so that zooming reads little.

::

    stream 0                         stream 1
    [ block ][ block ][ block ][blo] [ block ][ block ]…
      min max sum, first and last submission, histogram of response times

`uflip.results.pyramid` is on disk, so that a run can be drawn at once. The grid is built from the
I/Os while the user looks at the pyramid, and adds what that lacks: blocks within one stream, their
submission times, and histograms of their response times.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uflip import _native
from uflip.results.columns import column_slice

BLOCKS = 16384
"""Maximum number of blocks; a long run has at least half as many."""
CLASSES = 256
PER_OCTAVE = 8
PIECE_IOS = 1 << 19
"""Number of I/Os in memory at once."""
Log = _native.Trace | _native.FlashTrace
Whole = NDArray[np.int64]


@dataclass(frozen=True)
class Grid:
    """A run in blocks of neighbouring I/Os of one stream.

    Attributes
    ----------
    starts : numpy.ndarray
        First I/O of each block, followed by the number of I/Os (b + 1,).
    size : int
        I/Os in a block, a power of two; fewer in the last one of a stream.
    streams : numpy.ndarray
        First I/O of each stream, followed by the number of I/Os.
    min_ns, max_ns, sum_ns : numpy.ndarray
        Statistics of the response times in each block (b,) [ns].
    first_ns, last_ns : numpy.ndarray
        Submission of its first and of its last I/O (b,) [ns].
    ended_ns : numpy.ndarray
        Latest completion of its I/Os (b,) [ns].
    spread : numpy.ndarray
        Number of I/Os of each block in each class of response time (b, CLASSES).
    """

    starts: Whole
    size: int
    streams: Whole
    min_ns: Whole
    max_ns: Whole
    sum_ns: Whole
    first_ns: Whole
    last_ns: Whole
    ended_ns: Whole
    spread: NDArray[np.uint32]

    def __len__(self) -> int:
        return int(self.starts[-1])


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
    for low, high in _pieces(starts, size):
        _add(rows, log, starts[low : high + 1])
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


def _pieces(starts: Whole, size: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of blocks that are read together, of at most `PIECE_IOS` I/Os."""
    step = max(PIECE_IOS // size, 1)
    blocks = len(starts) - 1
    for low in range(0, blocks, step):
        yield low, min(low + step, blocks)


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
