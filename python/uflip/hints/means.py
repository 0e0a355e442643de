"""Means of a benchmark by experiment, and the measures of the hints.

The best block size is, for reads, that of the five-minute rule, and for writes, that of the lowest
cost per byte. A page of an index resolves log₂ of its entries of the way to a record, and costs one
random read and its space in memory. Larger pages resolve more for a longer read, and fill memory
with entries that were not requested.

**Source** uFLIP (CIDR 2009) §5.2 "Other Results" and §5.3. Gray & Graefe, "The five-minute
rule ten years later" (1997): utility of an index page log₂(entries), entries of 20 bytes, pages
filled to 70 %; its size is best where utility over the time of a read is largest.
G. Graefe, "The five-minute rule twenty years later, and how flash memory changes the rules" (DaMoN
2007), which uFLIP §5.3 applies.
**Faithful** The comparisons that the paper's sentences make. An interval is that of all repetitions
of an experiment (`results.statistics`). The utility, and the break-even interval: pages that are
read again sooner than it belong in memory.
**Simplified** Two means are assumed to be independent. The cost of an I/O over its size is assumed
to be a line, t = a + s/r, as Figure 6 shows for reads. Only sizes that were measured are compared.
**Ambiguous** Whether a ratio exceeds a limit that its interval includes: it is undecided
(`exceeds`). So is a ratio without an interval: the mean of too few I/Os has no interval, and
Fieller gives none if the denominator may be zero. An exact value, like the single response time of
a simulated read, has an interval of zero width. A process among several waits for the others:
throughput of n over that of one is n · t₁ / tₙ. The cost of a mix is compared with the separate
costs of its I/Os in their shares. The best size for writes, for which the paper says "large": the
smallest size whose cost per byte is within `LIKE_FACTOR` of the lowest measured. "A good
trade-off": a size between the two, so that no larger page is more useful (`larger_reads`) and no
smaller write nearly as cheap (`smaller_writes`), each beyond the intervals of the compared values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log2

import numpy as np

from uflip.data.summary import ExperimentSummary, Summary
from uflip.results.key_characteristics import LIKE_FACTOR
from uflip.results.startup_check import mark_of
from uflip.results.statistics import Factor, Mean, mean_ratio, sum_of_means
from uflip.results.summary_document import BASELINE, experiments_of

ENTRY_BYTES = 20

FILL_SHARE = 0.7

KIB = 1 << 10

SMALL_BYTES, LARGE_BYTES = 4 * KIB, 32 * KIB
"""Sizes of hint 1: the smallest page that databases use, and the paper's I/O size."""

MAX_PROCESSES = 16


Curve = Mapping[int, Mean]
"""Value of the varying parameter -> mean, ascending."""

Lines = Mapping[str, Curve]
"""Micro-benchmark and pattern, as in "granularity RW" -> curve; baselines have one value, 0."""


def lines_of(document: Summary) -> Lines:
    """Extract the means from a summary of results."""
    curves: dict[str, dict[int, Mean]] = {}
    for name, run in experiments_of(document):
        mean = _mean(run)
        value = 0 if name == BASELINE else run["value"]
        if mean is None or value is None:
            continue
        curves.setdefault(f"{name} {run['pattern']}", {})[int(value)] = mean
    return {name: dict(sorted(curve.items())) for name, curve in curves.items()}


def _mean(run: ExperimentSummary) -> Mean | None:
    combined = run["together"]
    if combined["mean_ns"]:
        return Mean(combined["mean_ns"], combined["half_width_ns"], mark_of(run))
    statistics = run["statistics"]
    if not statistics or not statistics["mean_ns"]:
        return None
    return Mean(float(statistics["mean_ns"]), None, mark_of(run))


def baseline(lines: Lines, pattern: str) -> Mean | None:
    """Return the mean of a baseline, None if it was not measured."""
    return lines.get(f"{BASELINE} {pattern}", {}).get(0)


def baselines(lines: Lines, patterns: Sequence[str]) -> list[Mean] | None:
    """Return the means of baselines, None if one of them was not measured."""
    means = [baseline(lines, pattern) for pattern in patterns]
    measured = [mean for mean in means if mean is not None]
    return measured if len(measured) == len(means) else None


@dataclass(frozen=True)
class CostLine:
    """The cost of an I/O over its size: a fixed part `fixed_ns`, and a rate."""

    fixed_ns: float
    bytes_per_s: float

    def size_for(self, share: float) -> float:
        """Return the size at which single I/Os reach this share of the rate [bytes].

        >>> round(CostLine(100_000.0, 100e6).size_for(0.5))
        10000
        """
        return share / (1 - share) * self.fixed_ns * self.bytes_per_s / 1e9


def cost_of_small(lines: Lines) -> Factor | None:
    """Return the cost per byte of reads of 4 KiB over that of 32 KiB; None if missing."""
    curve = lines.get("granularity SR", {})
    if SMALL_BYTES not in curve or LARGE_BYTES not in curve:
        return None
    small = curve[SMALL_BYTES].times(LARGE_BYTES / SMALL_BYTES)
    return mean_ratio(small, curve[LARGE_BYTES])


def cost_line(curve: Curve) -> CostLine | None:
    """Fit a line to means over sizes [bytes], by least squares of relative errors.

    None with fewer than three sizes, or if larger I/Os are not more expensive.

    >>> from uflip.hints.means import Mean
    >>> line = cost_line({size: Mean(50_000 + size * 10) for size in (512, 4096, 32768)})
    >>> round(line.fixed_ns), round(line.bytes_per_s / 1e6)
    (50000, 100)
    """
    if len(curve) < 3:
        return None
    sizes = np.array(list(curve), dtype=np.float64)
    means = np.array([mean.ns for mean in curve.values()])
    terms = np.column_stack([np.ones_like(sizes), sizes]) / means[:, None]
    (latency, slope), *_ = np.linalg.lstsq(terms, np.ones_like(means), rcond=None)
    if slope <= 0:
        return None
    return CostLine(max(float(latency), 0.0), 1e9 / float(slope))


def unaligned(lines: Lines, pattern: str) -> dict[int, Factor]:
    """Return the cost of an I/O at each shift [bytes] relative to the aligned one."""
    curve = lines.get(f"alignment {pattern}", {})
    if 0 not in curve:
        return {}
    return {shift: mean_ratio(mean, curve[0]) for shift, mean in curve.items() if shift}


def alignment_unit(factors: Mapping[int, Factor], limit: float) -> int:
    """Return the smallest shift from which on no I/O exceeds the limit.

    >>> alignment_unit({512: Factor(1.8), 4096: Factor(1.7), 16384: Factor(1.0)}, 1.22)
    16384
    """
    unit = max(factors)
    for shift in sorted(factors, reverse=True):
        if factors[shift].value > limit:
            break
        unit = shift
    return unit


def mixes(lines: Lines) -> dict[tuple[str, int], Factor]:
    """Return the cost of each mix relative to its separate I/Os: (patterns, ratio) -> factor.

    >>> from uflip.hints.means import Mean
    >>> lines = {"mix SR/RW": {3: Mean(3.0)}, "baseline SR": {0: Mean(1.0)},
    ...     "baseline RW": {0: Mean(9.0)}}
    >>> mixes(lines)[("SR/RW", 3)].value
    1.0
    """
    factors = {}
    for name, curve in lines.items():
        micro_benchmark, _, pattern = name.partition(" ")
        separate = baselines(lines, pattern.split("/")) if micro_benchmark == "mix" else None
        if separate is None:
            continue
        frequent, rare = separate
        for ratio, mean in curve.items():
            shares = (ratio / (ratio + 1), 1 / (ratio + 1))
            parts = sum_of_means(
                part.times(share) for part, share in zip((frequent, rare), shares, strict=True)
            )
            factors[pattern, ratio] = mean_ratio(mean, parts)
    return factors


def gains(lines: Lines, pattern: str) -> dict[int, Factor]:
    """Return the throughput of several processes relative to one.

    >>> from uflip.hints.means import Mean
    >>> lines = {"parallelism SR": {1: Mean(2.0), 16: Mean(24.0)}, "baseline SR": {0: Mean(2.0)}}
    >>> round(gains(lines, "SR")[16].value, 2)
    1.33
    """
    single = baseline(lines, pattern)
    if single is None:
        return {}
    parallel = lines.get(f"parallelism {pattern}", {})
    return {degree: mean_ratio(single.times(degree), mean) for degree, mean in parallel.items()}


def degenerated(lines: Lines) -> Factor | None:
    """Return the cost of 16 sequential writers relative to one writer to 16 partitions."""
    writers = lines.get("parallelism SW", {}).get(MAX_PROCESSES)
    partitions = lines.get("partitioning SW", {}).get(MAX_PROCESSES)
    if writers is None or partitions is None:
        return None
    return mean_ratio(writers.times(1 / MAX_PROCESSES), partitions)


def pauses(lines: Lines, pattern: str = "RW") -> dict[int, Factor]:
    """Return the time of a pause and the next I/O, relative to an I/O without pauses."""
    without_pause = baseline(lines, pattern)
    if without_pause is None:
        return {}
    curve = lines.get(f"pause {pattern}", {})
    return {pause: mean_ratio(mean.plus(pause), without_pause) for pause, mean in curve.items()}


@dataclass(frozen=True)
class BlockSizes:
    """The best sizes for reads and for writes, and a size in between."""

    #: Best size for each [bytes].
    reads: int
    writes: int
    between: int  #: The power of two nearest to their geometric mean [bytes].


def block_sizes(reads: Curve, writes: Curve, entry_bytes: int = ENTRY_BYTES) -> BlockSizes | None:
    """Return the best sizes from random reads and writes over size; None with too few sizes.

    >>> flat = {2**power: Mean(100_000 + 2**power * 10) for power in range(9, 20)}
    >>> merged = {2**power: Mean(5e6) for power in range(9, 20)}
    >>> block_sizes(flat, merged)
    BlockSizes(reads=2048, writes=524288, between=32768)
    """
    if len(reads) < 2 or len(writes) < 2:
        return None
    best_read = max(reads, key=lambda size: usefulness(size, reads[size], entry_bytes))
    cost_per_byte = {size: mean.ns / size for size, mean in writes.items()}
    lowest = min(cost_per_byte.values())
    best_write = min(size for size, cost in cost_per_byte.items() if cost <= LIKE_FACTOR * lowest)
    between = 2 ** round((log2(best_read) + log2(best_write)) / 2)
    return BlockSizes(best_read, best_write, between)


def larger_reads(
    reads: Curve, limit: int, entry_bytes: int = ENTRY_BYTES
) -> dict[int, Factor] | None:
    """Return the usefulness of each page above a size, relative to the best up to that size.

    None if no page up to that size was measured.

    >>> larger_reads({4096: Mean(100.0), 65536: Mean(300.0)}, 32768)[65536].value < 1
    True
    """
    small = [size for size in reads if size <= limit]
    if not small:
        return None
    best = max(small, key=lambda size: usefulness(size, reads[size], entry_bytes))
    utility = _utility(best, entry_bytes)
    if not utility:
        return None
    return {
        size: mean_ratio(reads[best].times(_utility(size, entry_bytes) / utility), mean)
        for size, mean in reads.items()
        if size > limit
    }


def smaller_writes(writes: Curve, limit: int) -> dict[int, Factor]:
    """Return the lowest cost per byte of all writes, relative to that of each write below a size.

    >>> smaller_writes({16384: Mean(100.0), 32768: Mean(100.0)}, 32768)
    {16384: Factor(value=0.5, low=None, high=None, mark=None)}
    """
    cost_per_byte = {size: mean.times(1 / size) for size, mean in writes.items()}
    cheapest = min(cost_per_byte, key=lambda size: cost_per_byte[size].ns)
    lowest = cost_per_byte[cheapest]
    return {
        # Its ratio to itself is exact.
        size: mean_ratio(lowest, mean) if size != cheapest else Factor(1.0, 1.0, 1.0)
        for size, mean in cost_per_byte.items()
        if size < limit
    }


def usefulness(size: int, read: Mean, entry_bytes: int = ENTRY_BYTES) -> float:
    """Return the utility of an index page divided by the time to read it [1/ns].

    >>> usefulness(4096, Mean(100.0)) > usefulness(4096, Mean(200.0)) > 0
    True
    """
    return _utility(size, entry_bytes) / read.ns


def _utility(size: int, entry_bytes: int) -> float:
    """Return how much of a lookup a page resolves: log₂ of its entries."""
    entries = FILL_SHARE * size / entry_bytes
    return log2(entries) if entries > 1 else 0.0


def break_even_s(size: int, read: Mean, device_price: float, price_of_memory: float) -> float:
    """Return the interval below which a page that is read again belongs in memory [s].

    `size`: size of the page [bytes]. `read`: mean of a random read of this size. `device_price`,
    `price_of_memory`: price of the device, and of a GiB of memory, in the same currency.

    Gray & Putzolu (1987): 15 accesses a second for $15,000 of disk and as much of processor and
    channel, and a KB of memory for $5.

    >>> round(break_even_s(1024, Mean(1e9 / 15), 30_000, 5 * 2**20))
    400
    """
    pages_per_gib = (1 << 30) / size
    reads_per_s = 1e9 / read.ns
    return pages_per_gib / reads_per_s * device_price / price_of_memory
