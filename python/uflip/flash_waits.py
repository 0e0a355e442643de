"""Writes of a run that waited for flash, and writes that a buffer answered.

    write, no cache     controller | link | transfer | cell program           waited
    write, cached       controller | link                                     did not
    write, cache full   controller | link | cache wait ...                    waited

**Source** ours. A write that waits for flash takes at least a program operation, or the rest of one
if a full cache has space again.
**Faithful** On a simulated device, by the causes of each I/O.
**Simplified** On a real device, by response times: a write is late if it takes longer than the
quickest writes of the run plus a program operation of the fastest flash on sale.
**Ambiguous** Whether a real device has a buffer. Here: it does if its quickest writes take much
less time (`BUFFER_SPEEDUP`) than the quickest random reads of this size, since a program takes
longer than a read.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uflip._native import Trace
from uflip.data.spec import Basic, Mix, MixPart, Spec
from uflip.startup import label_of

# The fastest NAND on sale (XL-Flash, Z-NAND: 75 to 100 µs); all others take longer.
PROGRAM_NS = 75_000
# A write that is faster than a random read by this factor has not waited for flash.
BUFFER_SPEEDUP = 1.5
# On a real device one I/O in a hundred may be late for other reasons.
OUTLIER_SHARE = 0.01
# Causes other than flash: the host, the interface, the controller.
NON_FLASH_CAUSES = ("submission_wait_ns", "controller_ns", "link_ns", "bus_ns")
BINS_PER_OCTAVE = 4
# In a cache that is not full a write sometimes waits for another, but most of a long row do not.
WINDOW_IOS = 32


@dataclass(frozen=True)
class DurationHistogram:
    """Histogram of response times, in bins of a quarter of an octave."""

    counts: NDArray[Any]
    sums_ns: NDArray[Any]

    @classmethod
    def from_times(cls, times_ns: NDArray[Any]) -> "DurationHistogram":
        """Count response times (n,) [ns]."""
        times = np.maximum(times_ns.astype(np.float64), 1.0)
        bins = (BINS_PER_OCTAVE * np.log2(times)).astype(np.int64)
        return cls(np.bincount(bins), np.bincount(bins, weights=times))

    @property
    def total(self) -> int:
        """Number of response times."""
        return int(self.counts.sum())

    def slow_from(self) -> int:
        """Return the first bin of the slowest response times that make up half of the time."""
        share = np.cumsum(self.sums_ns[::-1]) / max(float(self.sums_ns.sum()), 1.0)
        return len(self.sums_ns) - 1 - int(np.searchsorted(share, 0.5))

    def since(self, first: int) -> int:
        """Return the number of response times in a bin and above it."""
        return int(self.counts[max(first, 0) :].sum())


@dataclass(frozen=True)
class Writes:
    """The writes of a run, or of a component of a mix."""

    label: str
    io_size: int
    times: DurationHistogram
    """Of the measured writes."""
    quickest_ns: float
    """First percentile of all response times."""
    waited: int | None
    """Number of measured writes that waited for flash; None if only their times are available."""
    slower: int
    """Number of measured writes that took a program operation longer than the quickest."""
    bytes_written: int
    bytes_before_wait: int | None
    """Bytes written when most writes began to wait for flash; None if they did not."""
    buffered: bool | None
    """Whether some of the writes were answered without flash; None if that is unknown."""

    @property
    def never_waited(self) -> bool:
        """Whether no measured write waited for flash."""
        if self.waited is not None:
            return self.waited == 0
        return self.slower <= OUTLIER_SHARE * self.times.total


def writes_of(trace: Trace, spec: Spec) -> tuple[Writes, ...]:
    """Return the writes of a run, for each component that writes."""
    parts = spec.parts
    if not isinstance(spec, Basic | Mix) or not any(part.is_write for part in parts):
        return ()
    response = column(trace, "response_time_ns").astype(np.int64)
    measured = column(trace, "ignored") == 0
    quick = np.zeros(len(response), dtype=np.int64)
    for cause in NON_FLASH_CAUSES:
        if cause in trace.causes:
            quick += column(trace, cause).astype(np.int64)
    waits = response > quick if trace.causes else None
    of_part = column(trace, "component") if isinstance(spec, Mix) else None
    writes = []
    for number, part in enumerate(parts):
        if not part.is_write:
            continue
        selected = np.ones(len(response), dtype=bool) if of_part is None else of_part == number
        if (selected & measured).any():
            writes.append(
                _writes(
                    part,
                    response[selected],
                    measured[selected],
                    None if waits is None else waits[selected],
                )
            )
    return tuple(writes)


def _writes(
    part: MixPart, times: NDArray[Any], measured: NDArray[Any], waits: NDArray[Any] | None
) -> Writes:
    quickest = float(np.quantile(times, OUTLIER_SHARE))
    waiting = np.empty(0) if waits is None else np.flatnonzero(_mostly(waits))
    return Writes(
        label=label_of(part),
        io_size=part.io_bytes,
        times=DurationHistogram.from_times(times[measured]),
        quickest_ns=quickest,
        waited=None if waits is None else int(np.count_nonzero(waits & measured)),
        slower=int(np.count_nonzero(times[measured] > quickest + PROGRAM_NS)),
        bytes_written=len(times) * part.io_bytes,
        bytes_before_wait=int(waiting[0]) * part.io_bytes if len(waiting) else None,
        buffered=None
        if waits is None
        else bool(np.count_nonzero(~waits) > OUTLIER_SHARE * len(waits)),
    )


def _mostly(waits: NDArray[Any]) -> NDArray[Any]:
    """Return for each write but the last ones (n - `WINDOW_IOS`,) whether most of the next wait."""
    waits_before = np.concatenate([[0], np.cumsum(waits)])
    most: NDArray[Any] = 2 * (waits_before[WINDOW_IOS:] - waits_before[:-WINDOW_IOS]) > WINDOW_IOS
    return most


def quickest_ns(times_ns: NDArray[Any]) -> float:
    """Return the 5th percentile of response times (n,) [ns]."""
    return float(np.quantile(times_ns, 0.05))


def is_buffered(writes: Writes, read_ns: float | None) -> bool:
    """Return whether the device answers some writes without waiting for flash.

    `writes`: of a run. `read_ns`: the quickest random reads of this size, if they were measured
    [ns].
    """
    if writes.buffered is not None:
        return writes.buffered
    return read_ns is not None and BUFFER_SPEEDUP * writes.quickest_ns < read_ns


def column(trace: Trace, name: str) -> NDArray[Any]:
    """View one column of a trace (n,)."""
    values: NDArray[Any] = np.asarray(trace.column(name))
    return values
