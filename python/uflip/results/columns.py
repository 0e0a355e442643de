"""Columns of a native trace as numpy arrays: views of the native memory, no copies.

A trace may be larger than memory: its whole columns are in mapped files, but not an array that is
computed from them. `pieces` reads the trace one part at a time.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uflip import _native


def as_array(trace: _native.Trace, name: str) -> NDArray[Any]:
    """Return one column (n,) of a trace; see `Trace.columns` for names and types."""
    array: NDArray[Any] = np.asarray(trace.column(name))
    return array


PIECE_IOS = 1 << 19
"""Number of I/Os in memory at once."""


def pieces(trace: _native.Trace, names: Sequence[str]) -> Iterator[list[NDArray[Any]]]:
    """Yield some columns of a trace part by part: for each part its arrays (n,), in order."""
    for start in range(0, len(trace), PIECE_IOS):
        stop = min(start + PIECE_IOS, len(trace))
        yield [np.asarray(trace.column(name, start, stop)) for name in names]


def column_slice(
    log: _native.Trace | _native.FlashTrace, name: str, start: int, stop: int
) -> NDArray[Any]:
    """Return rows `start` to `stop` of a column of a run or of a job's log (stop - start,)."""
    if isinstance(log, _native.FlashTrace):
        return np.asarray(log.column(name))[start:stop]
    return np.asarray(log.column(name, start, stop))


def measured_column(trace: _native.Trace, name: str = "response_time_ns") -> NDArray[Any]:
    """Return one column without the I/Os inside `io_ignore` (the start-up).

    Those of one process come first, so that the others are not copied.
    """
    values, ignored = as_array(trace, name), as_array(trace, "ignored")
    first = int(np.count_nonzero(ignored))
    return values[first:] if ignored[:first].all() else values[ignored == 0]


def split(values: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield the parts of a long array (n,), for arithmetic in bounded memory."""
    for start in range(0, len(values), PIECE_IOS):
        yield values[start : start + PIECE_IOS]
