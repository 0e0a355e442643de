"""The measures behind the seven hints: from the means of a benchmark, without interpolation.

**Source** uFLIP (CIDR 2009) §5.2 "Other Results" and §5.3.
**Faithful** The comparisons that the paper's sentences make.
**Simplified** The cost of an I/O over its size is assumed to be a line, t = a + s/r, as Figure 6
shows for reads.
**Ambiguous** A process among several waits for the others: throughput of n over that of one is
n · t₁ / tₙ. The cost of a mix is compared with the separate costs of its I/Os in their shares.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from uflip.hints.means import Curve, Factor, Lines, baseline, baselines, mean_ratio, sum_of_means

KIB = 1 << 10
SMALL_BYTES, LARGE_BYTES = 4 * KIB, 32 * KIB
"""Sizes of hint 1: the smallest page that databases use, and the paper's I/O size."""
MAX_PROCESSES = 16


@dataclass(frozen=True)
class CostLine:
    """The cost of an I/O over its size: a fixed part `fixed_ns`, and a rate."""

    fixed_ns: float
    bytes_per_s: float

    def size_for(self, share: float) -> float:
        """Return the size at which single I/Os reach this share of the rate [bytes].

        Examples
        --------
        >>> round(CostLine(100_000.0, 100e6).size_for(0.5))
        10000
        """
        return share / (1 - share) * self.fixed_ns * self.bytes_per_s / 1e9


def cost_of_small(lines: Lines, pattern: str = "SR") -> Factor | None:
    """Return the cost per byte in I/Os of 4 KiB over that in I/Os of 32 KiB; None if missing."""
    curve = lines.get(f"granularity {pattern}", {})
    if SMALL_BYTES not in curve or LARGE_BYTES not in curve:
        return None
    small = curve[SMALL_BYTES].times(LARGE_BYTES / SMALL_BYTES)
    return mean_ratio(small, curve[LARGE_BYTES])


def cost_line(curve: Curve) -> CostLine | None:
    """Fit a line to means over sizes [bytes], by least squares of relative errors.

    None with fewer than three sizes, or if larger I/Os are not more expensive.

    Examples
    --------
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

    Examples
    --------
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

    Examples
    --------
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

    Examples
    --------
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
