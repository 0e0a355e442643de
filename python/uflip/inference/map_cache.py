"""Map cache: the part of the map that is in memory, from random reads by the size of their range.

A read whose entry of the map is not in memory reads the map first. With entries of C bytes of data
in memory, that is a share 1 - C / T of the reads of a range of T bytes, once the cache is full; and
more before.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from uflip.inference.estimate import NORMAL, Estimate
from uflip.inference.observations import Floats, Observations

PROBE = "read_range"
# The mean rises by at least this share if a part of the map is on flash.
LEAST_RISE = 0.1
# Sizes of the cache that are compared, in steps of a factor; the model's own error of a mean.
STEP, MODEL_ERROR = 1.02, 0.03
# The largest part of the device that the reads fill; and how much larger a cache is that also holds
# entries of earlier runs, at most.
LARGEST_SHARE, HIDDEN_FACTOR = 1 / 3, 1.15
# Data of an entry that is cached as one [bytes], a page or a segment; points of the reads at which
# the cached share is computed.
ENTRY_RANGES, POINTS = (4 << 10, 16 << 10, 64 << 10, 256 << 10), 9
# Bytes of an entry in memory.
ENTRY_BYTES = 8


@dataclass(frozen=True)
class MapCache:
    """Bytes of data whose map is in memory, with the interval; and what a miss costs [ns]."""

    covered: float
    low: float
    high: float
    miss_ns: float


def map_cache_of(observations: Observations) -> MapCache | None:
    """Return the cached part of the map; None if all ranges take the same time."""
    runs = observations.by_value(PROBE, "RR")
    if len(runs) < 3:
        return None
    sizes = np.array(sorted(runs), dtype=np.float64)
    # The first half of a run fills the cache.
    late = [runs[int(size)].response_ns[len(runs[int(size)].response_ns) // 2 :] for size in sizes]
    means = np.array([np.mean(each) for each in late])
    rise = means - means[0]
    if rise.max() < LEAST_RISE * means[0]:
        return None
    errors = np.array([np.std(each) / np.sqrt(len(each)) for each in late])
    errors = np.hypot(errors, MODEL_ERROR * rise.max())
    grid = np.exp(np.arange(np.log(sizes[0] / 4), np.log(sizes[-1]), np.log(STEP)))
    fits = [
        _fit(_miss_shares(sizes, covered, entry, len(late[0])), rise, errors)
        for entry in ENTRY_RANGES
        for covered in grid
    ]
    misfits = np.array([misfit for misfit, _ in fits])
    best = int(np.argmin(misfits))
    near = np.tile(grid, len(ENTRY_RANGES))[misfits <= misfits[best] + NORMAL**2]
    # A cache that the reads do not fill has no upper limit.
    if misfits[best] > 2 * len(sizes) or near.max() > LARGEST_SHARE * sizes[-1]:
        return None
    covered = float(grid[best % len(grid)])
    high = float(near.max()) * HIDDEN_FACTOR
    return MapCache(covered, float(near.min()), high, fits[best][1])


def _miss_shares(sizes: Floats, covered: float, entry: int, reads: int) -> Floats:
    """Return the share of reads without their part of the map, by range.

    A range of N entries, of which i random reads touch N (1 - exp(-i / N)), has at most these in
    memory, and at most the cache.
    """
    entries = sizes / entry
    made = np.linspace(reads, 2 * reads, POINTS)[:, np.newaxis]
    touched = entries * -np.expm1(-made / entries)
    shares = np.mean(1 - np.minimum(touched, covered / entry) / entries, axis=0)
    return np.asarray(shares)


def _fit(shares: Floats, rise: Floats, errors: Floats) -> tuple[float, float]:
    """Return the misfit of a cache, and the time of a miss with which it is least."""
    more = shares - shares[0]
    weight = more / errors
    miss = float(np.sum(weight * rise / errors) / max(np.sum(weight**2), 1e-30))
    return float(np.sum(((rise - miss * more) / errors) ** 2)), miss


def map_cache_estimates(observations: Observations, found: MapCache | None) -> Iterator[Estimate]:
    """Yield the range whose map is in memory, or why it is not identified."""
    key = "map_cache_range_bytes"
    if found is not None:
        yield Estimate(key, round(found.covered), round(found.low), round(found.high), PROBE)
    elif len(observations.by_value(PROBE, "RR")) < 3:
        yield Estimate.absent(key, PROBE, "the reads by range were not made")
    else:
        why = "reads of all ranges take the same time, or no cache of the map explains them"
        yield Estimate.absent(key, PROBE, why)
