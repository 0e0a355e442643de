"""Map cache: the part of the map that is in memory, from random reads by the size of their range.

A read whose entry of the map is not in memory reads the map first. With entries of C bytes of data
in memory, that is a share 1 - C / T of the reads of a range of T bytes, once the cache is full.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from uflip.inference.estimate import NORMAL, Estimate
from uflip.inference.observations import Observations

PROBE = "read_range"
# The mean rises by at least this share if a part of the map is on flash.
LEAST_RISE = 0.1
# Sizes of the cache that are compared, in steps of a factor; the model's own error of a mean.
STEP, MODEL_ERROR = 1.02, 0.03
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
    misfits, misses = [], []
    for covered in grid:
        share = np.clip(1 - covered / sizes, 0.0, None)
        share = share - share[0]
        weight = share / errors
        miss = float(np.sum(weight * rise / errors) / max(np.sum(weight**2), 1e-30))
        misses.append(miss)
        misfits.append(float(np.sum(((rise - miss * share) / errors) ** 2)))
    best = int(np.argmin(misfits))
    if misfits[best] > 2 * len(sizes):
        return None
    near = grid[np.array(misfits) <= misfits[best] + NORMAL**2]
    return MapCache(float(grid[best]), float(near[0]), float(near[-1]), misses[best])


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
