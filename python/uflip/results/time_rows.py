"""A run over time: a row for each second, or another interval, from its stored I/Os.

submissions and completions ─▶ I/Os that end in an interval: rate, bytes, percentiles
I/Os in flight, on average over the interval

The rows of a run under way are those of `crates/engine/src/live.rs`.
"""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from uflip import _native
from uflip.errors import UsageError
from uflip.results.run_statistics import write_amplification

MAX_ROWS = 1_000_000
_NS_PER_S = 1_000_000_000
_SHARES = (50.0, 99.0, 99.9)


class TimeRow(Struct, frozen=True, kw_only=True):
    """The I/Os that ended in one interval."""

    #: The interval, from the first submission [ns]; the last one ends with the run.
    start_ns: int
    length_ns: int
    #: Numbers.
    ios: int
    bytes: int
    #: Rates.
    ios_per_s: float
    bytes_per_s: float
    in_flight: float  #: I/Os between arrival and completion, on average.
    #: Percentiles of the response times [ns]; None without I/Os.
    p50_ns: float | None
    p99_ns: float | None
    p999_ns: float | None


class LiveRow(TimeRow, frozen=True, kw_only=True):
    """A row of a run under way.

    Its percentiles are too large by at most 1 %, and `in_flight` is the sum of the response times
    divided by the length of the row (Little's law).
    """

    #: None if the device does not count pages, or nothing was written.
    write_amplification: float | None


def live_rows(
    rows: Sequence[tuple[list[int], int | None]], page_bytes: int | None
) -> list[LiveRow]:
    """Return the rows of a run under way; `page_bytes` is the page that the device counts."""
    return [_live_row(numbers, pages, page_bytes) for numbers, pages in rows]


def _live_row(numbers: list[int], pages: int | None, page_bytes: int | None) -> LiveRow:
    start, length, ios, moved, written, response, *percentiles = numbers
    counters = None if pages is None else {"pages_programmed": pages}
    p50_ns, p99_ns, p999_ns = (float(each) if ios else None for each in percentiles)
    return LiveRow(
        start_ns=start,
        length_ns=length,
        ios=ios,
        bytes=moved,
        ios_per_s=ios * _NS_PER_S / length,
        bytes_per_s=moved * _NS_PER_S / length,
        in_flight=response / length,
        p50_ns=p50_ns,
        p99_ns=p99_ns,
        p999_ns=p999_ns,
        write_amplification=write_amplification(counters, page_bytes, written),
    )


COLUMNS = TimeRow.__struct_fields__


def time_rows(trace: _native.Trace, interval_ns: int) -> list[TimeRow]:
    """Return a row for each interval of a run."""
    begins, took, sizes = (
        np.asarray(trace.column(name)).astype(np.int64)
        for name in ("submit_ns", "response_time_ns", "io_size_bytes")
    )
    begins -= begins.min()
    ends = begins + took
    total = int(ends.max())
    count = max(1, -(-total // interval_ns))
    if count > MAX_ROWS:
        raise UsageError(
            "The interval is too short for this run",
            where="--every",
            got=f"{count} rows",
            allowed=f"up to {MAX_ROWS} rows",
            action="choose a longer interval",
        )
    edges = np.minimum(np.arange(count + 1) * interval_ns, total)
    order = np.argsort(ends, kind="stable")
    # An I/O that ends at an edge belongs to the interval before it.
    cuts = np.searchsorted(ends[order], edges, side="right")
    cuts[0] = 0
    in_flight = np.diff(_busy_time(begins, ends, edges))
    rows = []
    for index in range(count):
        part = order[cuts[index] : cuts[index + 1]]
        length = max(1, int(edges[index + 1] - edges[index]))
        size = int(sizes[part].sum())
        p50, p99, p999 = np.percentile(took[part], _SHARES).tolist() if len(part) else [None] * 3
        rows.append(
            TimeRow(
                start_ns=int(edges[index]),
                length_ns=length,
                ios=len(part),
                bytes=size,
                ios_per_s=len(part) * _NS_PER_S / length,
                bytes_per_s=size * _NS_PER_S / length,
                in_flight=float(in_flight[index]) / length,
                p50_ns=p50,
                p99_ns=p99,
                p999_ns=p999,
            )
        )
    return rows


def _busy_time(
    begins: NDArray[np.int64], ends: NDArray[np.int64], instants: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the time that all I/Os together were in flight before each instant [ns]."""

    def since(times: NDArray[np.int64]) -> NDArray[np.float64]:
        ordered = np.sort(times)
        sums = np.concatenate([[0.0], np.cumsum(ordered, dtype=np.float64)])
        passed = np.searchsorted(ordered, instants)
        spent: NDArray[np.float64] = instants * passed.astype(np.float64) - sums[passed]
        return spent

    return since(begins) - since(ends)
