"""Columns of a native trace as numpy arrays: views of the native memory, no copies.

A trace may be larger than memory: `pieces` reads it one part at a time, and within `mapped_arrays`
whole columns and all arrays made from them are in mapped files.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uflip import _native

PIECE_IOS = 1 << 19
"""Number of I/Os in memory at once."""


@contextmanager
def mapped_arrays() -> Iterator[None]:
    """Put arrays above 64 MiB into mapped temporary files, so that a long run fits into memory."""
    before = _native.set_array_memory()
    try:
        yield
    finally:
        _native.set_array_memory(before)


def as_array(trace: _native.Trace, name: str) -> NDArray[Any]:
    """Return one column (n,) of a trace; see `Trace.columns` for names and types."""
    if len(trace) <= PIECE_IOS:
        return np.asarray(trace.column(name))
    whole = np.empty(len(trace), np.asarray(trace.column(name, 0, 0)).dtype)
    start = 0
    for (piece,) in pieces(trace, [name]):
        whole[start : start + len(piece)] = piece
        start += len(piece)
    return whole


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
    """Return one column without the I/Os inside `io_ignore` (the start-up)."""
    measured: NDArray[Any] = as_array(trace, name)[as_array(trace, "ignored") == 0]
    return measured
