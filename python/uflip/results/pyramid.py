"""Aggregated response times of a run: minimum, maximum, sum and count, at every scale.

::

    over the number of the I/O          over the time of submission
    [ 0 … 15][16 … 31][32 … 47]…        [0 … 2^k ns)[2^k … 2·2^k)…
       min max sum count                   min max sum count

A plot of 10⁸ I/Os on a thousand pixels is determined by a few of them, the slowest and the quickest
of each pixel; a plot of means hides them. A pyramid has both, for at most `ROWS` groups of
consecutive I/Os. `Pyramid.coarser` derives all larger groups. Finer detail is read from the run
itself, a window at a time.

**Source** The min–max aggregation of M4 (Jugel, Jerzak, Hackenbroich, Markl, PVLDB 2014) and of the
overviews of sound editors.
**Faithful** Minimum and maximum of each group.
**Simplified** The positions of the two, and the first and last value, are not stored.
**Ambiguous** Nothing.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uflip import _native
from uflip.results.columns import column_slice

ROWS = 4096
WINDOW = 1 << 20
"""Number of I/Os in memory at once, a power of two."""
MIN_IOS_PER_ROW = 16
ROW = np.dtype([("min_ns", "<u8"), ("max_ns", "<u8"), ("sum_ns", "<u8"), ("count", "<u8")])
"""A group; minimum and maximum of an empty one are 0."""
Rows = NDArray[Any]


@dataclass(frozen=True)
class Pyramid:
    """Aggregated response times."""

    #: Rows (n,) of `ROW`, each of `ios_per_row` I/Os, the last of the remainder; streams follow
    #: each other, as in the trace.
    over_number: Rows
    ios_per_row: int  #: A power of two.
    #: Rows (m,) of `ROW`, each of the I/Os submitted within `ns_per_row` [ns], from `begin_ns` on.
    over_time: Rows
    ns_per_row: int  #: A power of two [ns].
    begin_ns: int  #: Submission of the first I/O [ns].

    def coarser(self, factor: int) -> "Pyramid":
        """Merge `factor` neighbouring rows."""
        if factor < 1 or factor & (factor - 1):
            raise ValueError(f"a power of two, not {factor}")
        return Pyramid(
            _merge_rows(self.over_number, factor),
            self.ios_per_row * factor,
            _merge_rows(self.over_time, factor),
            self.ns_per_row * factor,
            self.begin_ns,
        )


def pyramid_of(trace: _native.Trace | _native.FlashTrace) -> Pyramid | None:
    """Compute the pyramid of a run, start-up included, a window at a time.

    Return None for a log with a row per cycle: its rows are not I/Os.
    """
    if "submit_ns" not in trace.columns:
        return None
    n = len(trace)
    ios_per_row = _power_of_two(max(-(-n // ROWS), MIN_IOS_PER_ROW))
    step = max(WINDOW, ios_per_row)
    windows = [slice(start, min(start + step, n)) for start in range(0, n, step)]
    spans = [_span(column_slice(trace, "submit_ns", each.start, each.stop)) for each in windows]
    begin = min((low for low, _ in spans), default=0)
    last = max((high for _, high in spans), default=0)
    rows = -(-n // ios_per_row)
    ns_per_row = _power_of_two(-(-(last - begin + 1) // max(rows, 1)))
    by_number, by_time = np.zeros(rows, ROW), np.zeros((last - begin) // ns_per_row + 1, ROW)
    for each in windows:
        times = column_slice(trace, "response_time_ns", each.start, each.stop)
        _put(by_number, np.arange(each.start, each.stop) // ios_per_row, times)
        since = column_slice(trace, "submit_ns", each.start, each.stop) - np.uint64(begin)
        _put(by_time, (since // np.uint64(ns_per_row)).astype(np.int64), times)
    return Pyramid(by_number, ios_per_row, by_time if n else by_time[:0], ns_per_row, begin)


def _span(values: NDArray[np.uint64]) -> tuple[int, int]:
    return int(values.min()), int(values.max())


def _put(rows: Rows, row_index: NDArray[np.int64], times: NDArray[np.uint64]) -> None:
    """Add I/Os (n,) [ns] to the rows with these indices (n,)."""
    # Processes follow each other in a trace, but overlap in time.
    if np.any(row_index[1:] < row_index[:-1]):
        order = np.argsort(row_index, kind="stable")
        row_index, times = row_index[order], times[order]
    starts = np.flatnonzero(np.diff(row_index, prepend=-1))
    at = row_index[starts]
    before = rows[at]
    least = np.minimum.reduceat(times, starts)
    before["min_ns"] = np.where(before["count"] > 0, np.minimum(before["min_ns"], least), least)
    before["max_ns"] = np.maximum(before["max_ns"], np.maximum.reduceat(times, starts))
    before["sum_ns"] += np.add.reduceat(times, starts)
    before["count"] += np.diff(starts, append=len(times)).astype(np.uint64)
    rows[at] = before


def _merge_rows(rows: Rows, factor: int) -> Rows:
    if factor == 1 or not len(rows):
        return rows
    starts = np.arange(0, len(rows), factor)
    merged = np.zeros(len(starts), ROW)
    least = np.where(rows["count"] > 0, rows["min_ns"], np.iinfo(np.uint64).max)
    merged["count"] = np.add.reduceat(rows["count"], starts)
    merged["min_ns"] = np.where(merged["count"] > 0, np.minimum.reduceat(least, starts), 0)
    merged["max_ns"] = np.maximum.reduceat(rows["max_ns"], starts)
    merged["sum_ns"] = np.add.reduceat(rows["sum_ns"], starts)
    return merged


def _power_of_two(at_least: int) -> int:
    return 1 << max(at_least - 1, 0).bit_length()
