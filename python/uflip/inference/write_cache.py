"""Write cache: its size and when it drains, from bursts of writes that need not be durable.

::

    fast writes │ slow writes      a cache that drains when full takes its size in fast writes,
    ────────────│───────────       one that drains at once takes more
              cliff

A twin repeats the bursts with caches of other sizes. Those whose cliffs lie at the same writes are
the interval. Without a twin the cliff itself bounds the size.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from uflip.inference.collection import WriteSimulator
from uflip.inference.estimate import Estimate, median_of
from uflip.inference.observations import Floats, Observation, Observations
from uflip.inference.structure import Structure, clean_ns
from uflip.inference.twin import CANNOT_SIMULATE, Twin
from uflip.microbench.inside.cache_burst import LARGE

PROBE = "cache_burst"
EAGER, WHEN_NEEDED = "eager", "when_needed"
# Writes at the beginning of a burst that every cache takes, and the ones that show a full cache.
FIRST, LAST_PART = 8, 4
# A burst has a cliff if its last writes take this much longer than its first ones; the cliff is
# where this share of the difference is reached, by this number of writes together.
CLIFF_FACTOR, CLIFF_SHARE, TOGETHER = 1.5, 0.25, 4
# Error of a size if the erases of the device are not known, and the widest interval [times].
MARGIN, WIDEST = 0.15, 2
# Error of a cache that drains meanwhile, because the blocks that were erased before are not known.
DRAIN_ERROR = 0.05
# Cached writes are faster than durable ones by this factor.
CACHED_FACTOR = 0.8
# Bursts are compared by the writes around the cliff, one by one, and as a whole in parts. A setting
# fits if its error is below the first value, roughly below the second, and is a rival if its error
# is not larger than that of the best by the factor and the difference.
AROUND, PARTS = 16, 64
FITTING, ROUGHLY_FITTING, RIVAL_FACTOR, RIVAL_DIFFERENCE = 0.3, 0.6, 1.5, 0.01


@dataclass(frozen=True)
class WriteCache:
    """A write cache, with the interval of its size [bytes]; `flush` is empty if both fit."""

    size: int
    low: int
    high: int
    flush: str
    error: float = math.inf


def bursts(run: Observation) -> list[Floats]:
    """Return the response times of the bursts of a run."""
    length = getattr(run.spec, "burst", None) or len(run.response_ns)
    return [run.response_ns[n : n + length] for n in range(0, len(run.response_ns), length)]


def cliff_of(times: Floats) -> int | None:
    """Return the first write of a burst that waits for space in the cache; None without one."""
    if len(times) < 2 * FIRST:
        return None
    fast, slow = float(np.median(times[:FIRST])), float(np.mean(times[-len(times) // LAST_PART :]))
    if slow < CLIFF_FACTOR * fast:
        return None
    level = fast + CLIFF_SHARE * (slow - fast)
    sums = np.convolve(times, np.ones(TOGETHER), mode="valid") / TOGETHER
    together = np.flatnonzero(sums > level)
    if not len(together):
        return None
    beyond = np.flatnonzero(times[together[0] :] > level)
    return int(together[0] + beyond[0])


def is_cached(observations: Observations, run: Observation) -> bool:
    """Return whether the first writes of a burst are faster than durable ones of that size."""
    durable = observations.by_value("write_size", "RW") | observations.by_value("clear", "SW")
    first = float(np.median(run.response_ns[:FIRST]))
    known = durable.get(run.io_size)
    return known is not None and first < CACHED_FACTOR * clean_ns(known)


def bounds(run: Observation, unit: int) -> tuple[int, int] | None:
    """Return the least and the largest cache of whole units with the cliff of a run [bytes]."""
    found = [
        (cliff, float(np.median(times[: max(cliff, 1)])), float(np.mean(times[cliff + 1 :])))
        for times in bursts(run)
        if (cliff := cliff_of(times)) is not None and cliff + 1 < len(times)
    ]
    if not found:
        return None
    lows = [(cliff - 1) * (1 - fast / slow) for cliff, fast, slow in found]
    highs = [cliff + 1 for cliff, _, _ in found]
    size = max(run.io_size, unit)
    return max(round(min(lows) * size), 0), round(max(highs) * size)


class _CacheSearch:
    """Repeats the bursts on twins with other caches."""

    def __init__(self, simulator: WriteSimulator, twin: Twin) -> None:
        self.unit, self.page = twin.unit_bytes, int(twin.number("page_bytes"))
        # Units that a page gathers before it is programmed; none if a page is a unit.
        self.buffered = self.page // self.unit if self.page > self.unit else 0
        self._simulator, self._twin = simulator, twin
        runs = simulator.observations.runs
        self.measured = [run for key, run in runs.items() if key.probe == PROBE]
        self.cliffs = [[cliff_of(times) for times in bursts(run)] for run in self.measured]
        self._made: dict[tuple[int, str], list[Observation]] = {}

    def simulate(self, units: int, flush: str) -> list[Observation]:
        """Return the bursts of a twin; none if it cannot be simulated."""
        key = units, flush
        if key not in self._made:
            twin = self._twin.but(write_cache_bytes=units * self.unit, flush=flush)
            try:
                made = self._simulator.run(twin, [PROBE] * len(self.measured))
            except CANNOT_SIMULATE:
                made = []
            self._made[key] = made
        return self._made[key]

    def error(self, units: int, flush: str) -> float:
        """Return the mean difference of the logarithms of response times."""
        made = self.simulate(units, flush)
        errors = [
            float(np.mean(np.abs(a - b)))
            for one, other, cliffs in zip(made, self.measured, self.cliffs, strict=False)
            for a, b in zip(_course(one, cliffs), _course(other, cliffs), strict=True)
        ]
        return float(np.mean(errors)) if errors else math.inf

    def late(self, flush: str, at: int, burst: int) -> Callable[[int], int]:
        """Return by how many writes the cliff of a burst is later than the measured one, by size.

        A burst without a cliff counts as one with a cliff behind its end.
        """

        def distance(units: int) -> int:
            made = self.simulate(units, flush)
            if not made:
                return -1
            times = bursts(made[at])[burst]
            end = len(bursts(self.measured[at])[burst])
            simulated, known = cliff_of(times), self.cliffs[at][burst]
            return (end if simulated is None else simulated) - (end if known is None else known)

        return distance


def _course(run: Observation, cliffs: list[int | None]) -> tuple[Floats, Floats]:
    """Return the logarithms of the writes around the cliffs, and of the means of parts."""
    near = []
    for times, cliff in zip(bursts(run), cliffs, strict=True):
        at = FIRST if cliff is None else cliff
        near.append(times[max(at - AROUND, 0) : at + AROUND])
    means = [np.mean(part) for times in bursts(run) for part in np.array_split(times, PARTS // 2)]
    each = np.concatenate(near), np.array(means, dtype=np.float64)
    return np.log(np.maximum(each[0], 1.0)), np.log(np.maximum(each[1], 1.0))


def write_cache_of(simulator: WriteSimulator, twin: Twin) -> WriteCache | None:
    """Return the cache whose bursts are the most similar to the measured ones."""
    search = _CacheSearch(simulator, twin)
    if not search.measured:
        return None
    without = search.error(0, WHEN_NEEDED)
    cliffs = [cliff for each in search.cliffs for cliff in each if cliff is not None]
    if max(cliffs, default=0) <= search.buffered:
        # Nothing but the buffer of a page, which gathers mapping units.
        return WriteCache(0, 0, 0, "", without)
    found = [WriteCache(0, 0, 0, "", without)]
    if without > RIVAL_DIFFERENCE:
        found += [each for flush in (EAGER, WHEN_NEEDED) for each in _sizes(search, flush)]
    best = min(found, key=lambda each: each.error)
    if best.error > ROUGHLY_FITTING:
        return None
    limit = RIVAL_FACTOR * best.error + RIVAL_DIFFERENCE
    # A rough fit does not decide when the cache drains.
    limit = math.inf if best.error > FITTING else limit
    rivals = [each for each in found if each.size and each.error <= limit]
    if not best.size or len(rivals) < 2:
        return best
    low, high = min(each.low for each in rivals), max(each.high for each in rivals)
    if best.error > FITTING and high > WIDEST * low:
        return None
    return WriteCache(best.size, low, high, "", best.error)


def _sizes(search: _CacheSearch, flush: str) -> Iterator[WriteCache]:
    """Yield the cache whose cliff in the most exact run is that of the device."""
    exact = sorted(range(len(search.measured)), key=lambda n: search.measured[n].io_size)
    for at in exact:
        if all(cliff is None for cliff in search.cliffs[at]):
            continue
        bracket = bounds(search.measured[at], search.unit)
        if bracket is None:
            continue
        least = search.page // search.unit
        most = max(2 * bracket[1] // search.unit, least + 1)
        ranges = []
        for burst in range(len(search.cliffs[at])):
            later = search.late(flush, at, burst)
            first = _first(later, 0, least, most)
            ranges.append((first, max(_first(later, 1, first, most) - 1, first)))
        # Bursts that disagree have an error that the twin does not contain.
        low, high = max(first for first, _ in ranges), min(last for _, last in ranges)
        if low > high:
            low, high = high, low
        # Units that a page gathered before the burst have places, too.
        low, high = max(low - search.buffered, least), max(high, low) + search.buffered
        if flush == EAGER:
            low, high = math.floor((1 - DRAIN_ERROR) * low), math.ceil((1 + DRAIN_ERROR) * high)
        size = _usual(low * search.unit, high * search.unit, search.unit)
        # A policy fits as well as its best size does, which need not be the usual one.
        sizes = {low, size // search.unit, high}
        error = min(search.error(units, flush) for units in sizes)
        yield WriteCache(size, low * search.unit, high * search.unit, flush, error)
        return


def _usual(low: int, high: int, unit: int) -> int:
    """Return the power of two in a range of sizes, or its middle in whole units [bytes]."""
    usual = 1 << high.bit_length() - 1
    return usual if usual >= low else (low + high) // 2 // unit * unit


def _first(later: Callable[[int], int], least: int, low: int, high: int) -> int:
    """Return the first size of a range whose cliff is later by at least this, or its end."""
    while low < high:
        middle = (low + high) // 2
        if later(middle) >= least:
            high = middle
        else:
            low = middle + 1
    return low


def cache_estimates(
    observations: Observations,
    structure: Structure,
    found: WriteCache | None,
    *,
    exact: bool = False,
    behind_slc: bool = False,
) -> Iterator[Estimate]:
    """Yield size, policy and rate of the write cache, or why they are not identified.

    `exact` states that the erases of the twin are those of the device; others drain another way.
    Behind an SLC cache (`behind_slc`) a cliff without a twin may be that of the SLC cache.
    """
    runs = [run for key, run in observations.runs.items() if key.probe == PROBE]
    if not runs:
        for key in ("write_cache_bytes", "flush", "write_cache_drain_bytes_per_s"):
            yield Estimate.absent(key, PROBE, "the bursts were not made")
        return
    if found is None:
        yield _bounded(observations, structure, runs, behind_slc=behind_slc)
    else:
        is_exact = exact and found.error <= FITTING
        margin = 0.0 if is_exact or not found.size else MARGIN
        low, high = (1 - margin) * found.low, (1 + margin) * found.high
        unit = structure.mapping_unit or 1
        size = found.size and _usual(round(low), round(high), unit)
        yield Estimate("write_cache_bytes", size, low, high, PROBE)
    if found is not None and found.size and found.flush:
        yield Estimate("flush", found.flush, probe=PROBE)
    elif found is not None and found.size:
        yield Estimate.absent("flush", PROBE, "a cache that drains at once fits as well")
    else:
        yield Estimate.absent("flush", PROBE, "no simulated cache repeats the bursts")
    yield _drain(runs)


def _bounded(
    observations: Observations,
    structure: Structure,
    runs: list[Observation],
    *,
    behind_slc: bool,
) -> Estimate:
    """Return the size that follows from the cliff alone: it may drain meanwhile, or not."""
    key = "write_cache_bytes"
    cached = [run for run in runs if is_cached(observations, run)]
    if not cached and structure.mapping_unit is None:
        return Estimate.absent(key, PROBE, "durable writes show no flash: they may be cached, too")
    if not cached:
        return Estimate(key, 0, 0, 0, PROBE, "writes are as slow as durable ones")
    if behind_slc:
        return Estimate.absent(key, PROBE, "the cliff may be that of the SLC cache")
    unit = structure.mapping_unit or 0
    # Small writes may take a unit each, whose size is then needed.
    whole = [run for run in cached if unit or run.io_size >= LARGE]
    found = [each for run in whole if (each := bounds(run, unit)) is not None]
    if not found:
        why = "a burst has no cliff: the cache drains as fast as the host writes, or is larger"
        return Estimate.absent(key, PROBE, why)
    low, high = min(found, key=lambda each: each[1] - each[0])
    low, high = round((1 - MARGIN) * low), round((1 + MARGIN) * high)
    if high > WIDEST * max(low, 1):
        why = f"between {low} and {high} B: the cache may drain while it is written, or not"
        return Estimate.absent(key, PROBE, why)
    why = "from the cliff alone: the cache may drain while it is written, or not; a power of two"
    usual = 1 << high.bit_length() - 1
    value = usual if usual >= low else round(math.sqrt(low * high))
    return Estimate(key, value, low, high, PROBE, why)


def _drain(runs: list[Observation]) -> Estimate:
    key = "write_cache_drain_bytes_per_s"
    large = max(runs, key=lambda run: run.io_size)
    beyond = [times[cliff + 1 :] for times in bursts(large) if (cliff := cliff_of(times))]
    beyond = [times for times in beyond if len(times) >= 2 * FIRST]
    if not beyond:
        return Estimate.absent(key, PROBE, "large writes have no cliff")
    means = [np.mean(part) for part in np.array_split(np.concatenate(beyond), 2 * FIRST)]
    return median_of(np.array(means)).inverse(large.io_size * 1e9).estimate(key, PROBE)
