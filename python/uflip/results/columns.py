"""Columns of a native trace as numpy arrays: views of the native memory, no copies."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uflip import _native


def as_array(trace: _native.Trace, name: str) -> NDArray[Any]:
    """View one column (n,) of a trace; see `Trace.columns` for names and types."""
    array: NDArray[Any] = np.asarray(trace.column(name))
    return array


def window(
    log: _native.Trace | _native.FlashTrace, name: str, start: int, stop: int
) -> NDArray[Any]:
    """Rows `start` to `stop` of a column of a run, or of the log of a job (stop - start,)."""
    if isinstance(log, _native.FlashTrace):
        return np.asarray(log.column(name))[start:stop]
    return np.asarray(log.column(name, start, stop))


def measured(trace: _native.Trace, name: str = "response_time_ns") -> NDArray[Any]:
    """One column without the I/Os inside `io_ignore` (the start-up)."""
    kept: NDArray[Any] = as_array(trace, name)[as_array(trace, "ignored") == 0]
    return kept


@dataclass(frozen=True)
class Amount:
    """What was measured of a run, which is what lies behind the start-up.

    Attributes
    ----------
    ios, size_bytes : int
        So many I/Os, of so many bytes together.
    elapsed_ns : int
        From the submission of the first of them to the completion of the last, pauses included.
    """

    ios: int
    size_bytes: int
    elapsed_ns: int


def measured_amount(trace: _native.Trace) -> Amount:
    """Say how much was measured of a run, and how long that took."""
    sizes, submitted = measured(trace, "io_size_bytes"), measured(trace, "submit_ns")
    if len(sizes) == 0:
        return Amount(0, 0, 0)
    first, last = submitted.min(), (submitted + measured(trace)).max()
    return Amount(len(sizes), int(sizes.sum(dtype=np.uint64)), int(last - first))


def rates(amounts: Iterable[Amount]) -> tuple[float | None, float | None]:
    """I/Os and bytes a second of runs one after the other; None where no time passed.

    Examples
    --------
    >>> rates([Amount(100, 409_600, 10**9), Amount(200, 819_200, 2 * 10**9)])
    (100.0, 409600.0)
    """
    every = list(amounts)
    seconds = sum(each.elapsed_ns for each in every) / 1e9
    if not seconds:
        return None, None
    ios, size = sum(each.ios for each in every), sum(each.size_bytes for each in every)
    return ios / seconds, size / seconds
