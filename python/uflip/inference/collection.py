"""Collection: pages of a block, erase time, spare space and victim policy.

::

    fill        slow writes at a period   all dies open a block: pages of a block, erase time
    overwrite   fast until the spare space is used up, then slower: spare space, victim policy

The first two follow from the trace of `fill`, the others from a search: the twin repeats the writes
of the device, and its course is compared with the measured one, part by part.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import NDArray

from uflip.device.handle import Device
from uflip.inference.estimate import Interval
from uflip.inference.observations import Floats, Observation, Observations
from uflip.inference.probes import repeat
from uflip.inference.twin import CANNOT_SIMULATE, Twin

POLICIES = ("greedy", "cyclic", "random", "d_choices", "cost_benefit")
# Writes this much slower than usual open a block [of their usual time].
SLOW_SHARE = 0.04
# Fewer slow writes have no period.
LEAST_EVENTS = 4
# No block has fewer pages.
LEAST_BLOCK_PAGES = 16
# Gaps that are equal, in writes, and the share of them that makes a period.
GAP_TOLERANCE, PERIODIC_SHARE = 1.5, 0.7
# Share of slow writes that a slow one follows at the period of groups of dies; and the largest
# share of writes that are slow: with more, any distance is a period.
COMMON_SHARE, MOST_EVENTS = 0.9, 0.25
# Periods cover this share of a fill, or of its beginning: slow writes in groups are relocations.
COVERED = 0.5
# The pages of a block are at least this share of an irregular period.
SHORTEST_SHARE = 0.8
# The erase time of the first simulation [ns]: longer than anything that could hide it.
LONG_ERASE_NS = 20_000_000
# Spare space of a twin whose spare space does not matter yet [times the least blocks].
ROOMY = 2
# Parts into which a run of random writes is divided.
PARTS = 20
# Quantiles that are compared as well: the tail shows victims, and how many pages they hold.
QUANTILES = (0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.998, 0.999, 0.9995)
COMPARED = (("fill", "SW"), ("overwrite", "RW"), ("overwrite_part", "RW"))
COUNTERS = ("host_pages_written", "pages_programmed", "blocks_erased")
# Policies whose spare space is searched with time: this many at least, and all whose error is
# within the factor of the best; first steps of searches, as parts of the blocks of a die.
FINALISTS, FINALIST_FACTOR = 2, 3.0
COARSE, FINE = 16, 50
# Policies that collect blocks with many valid pages.
UNSTEADY = ("random", "d_choices")
# A policy is as good as the best if its mean error of several seeds is below that of the best by
# this; a number of blocks, if its error is below the largest one. With an error of the best one
# above the limit only policies are excluded that are worse by the last factor.
POLICY_FACTOR, POLICY_DIFFERENCE = 1.1, 0.003
BLOCKS_FACTOR, BLOCKS_DIFFERENCE = 1.2, 0.005
SEEDS = (1, 2, 3)
# Pages of a block of data sheets, how much worse others must fit, and the fewest blocks of a die;
# and the errors, over that of the best, with which the spare space is searched again.
BLOCK_PAGES = (32, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
PAGES_FACTOR, LEAST_BLOCKS_SEARCHED, PAGES_SEARCHED = 1.3, 8, 2.5
# Steps of the numbers of blocks that fit as well, as parts of the blocks of a die; and most steps.
RANGE_STEP, RANGE_STEPS = 100, 6
LARGEST_ERROR, CLEARLY_WORSE = 0.12, 2.5
# Pages that all twins of a search program: one to two minutes of a processor.
MOST_PROGRAMMED = 300_000_000
# Blocks of a die and pages of twins at a fraction of a larger capacity, or more.
FRACTION_BLOCKS, FRACTION_PAGES = 256, 1 << 17
# Blocks of such a twin by which the spare blocks may be fewer or more: a block fits as well as the
# next one, and what a die keeps open or reserved does not grow with the capacity.
FEWER, MORE = 1.5, 1.0


@dataclass
class Budget:
    """The pages that the twins of a search may still program; a search ends without any."""

    pages: int = field(default_factory=lambda: MOST_PROGRAMMED)

    @property
    def is_spent(self) -> bool:
        """Whether no further twin is simulated."""
        return self.pages <= 0


@dataclass(frozen=True)
class Period:
    """Slow writes of a fill: their distance [writes], and by how much they are slower [ns]."""

    gap: float
    excess: Interval
    exact: bool


def period_of(run: Observation, dies: int, page: int) -> Period | None:
    """Return the period at which all dies open a block; None without one."""
    usual = float(np.percentile(run.response_ns, 20))
    excess = run.response_ns - usual
    slow = np.flatnonzero(excess > SLOW_SHARE * usual)
    least_gap = max(dies * LEAST_BLOCK_PAGES * page / run.io_size, 1)
    if len(slow) < LEAST_EVENTS:
        return None
    starts = slow[np.concatenate([[True], np.diff(slow) >= least_gap])]
    gaps = np.diff(starts)
    if len(gaps) < LEAST_EVENTS - 1:
        return None
    middle = float(np.median(gaps))
    equal = gaps[np.abs(gaps - middle) <= GAP_TOLERANCE]
    exact = len(equal) >= PERIODIC_SHARE * len(gaps) and equal.sum() >= COVERED * len(excess)
    # Groups of dies may open blocks at equal distances, of which several make a block.
    exact = exact and _follow(slow[slow < len(excess) // 2], float(np.mean(equal))) >= COMMON_SHARE
    if not exact and (lag := _common_lag(slow, len(excess) // 2, least_gap)) is not None:
        # Groups of dies open their blocks at different writes.
        heights = excess[slow[slow < len(excess) // 2]]
        middle = float(np.median(heights))
        spread = float(np.median(np.abs(heights - middle)))
        return Period(lag, Interval(middle, max(spread, 1.0)), exact=True)
    # Relocated pages use up blocks as well, later in the fill: the first gaps are whole.
    gap = float(np.mean(equal) if exact else np.max(gaps[: LEAST_EVENTS - 1]))
    heights = np.array([excess[each : each + 2].max() for each in starts])
    middle = float(np.median(heights))
    spread = float(np.median(np.abs(heights - middle)))
    return Period(gap, Interval(middle, max(spread, 1.0)), exact)


def _follow(slow: NDArray[np.int64], lag: float) -> float:
    """Return the share of slow writes that one follows at a distance, but for a rounded write."""
    expected = slow[slow <= slow[-1] - lag] + lag if len(slow) else np.zeros(0)
    if not len(expected):
        return 1.0
    at = np.searchsorted(slow, expected)
    near = slow[np.clip([at - 1, at], 0, len(slow) - 1)]
    return float(np.mean(np.min(np.abs(near - expected), axis=0) <= GAP_TOLERANCE))


def _common_lag(slow: NDArray[np.int64], end: int, least_gap: float) -> float | None:
    """Return the least distance at which slow writes of a beginning follow slow ones; or None.

    Later, relocations disturb the order.
    """
    early = slow[slow < end]
    if len(early) < 2 * LEAST_EVENTS or len(early) > MOST_EVENTS * end:
        return None

    def share(lag: int, reach: int) -> float:
        """Return the share of the events that are followed, of those before the last `reach`."""
        expected = early[early < end - reach] + lag
        nearest = early[np.clip(np.searchsorted(early, expected), 0, len(early) - 1)]
        return float(np.mean(nearest == expected)) if len(expected) else 0.0

    lags = range(math.ceil(least_gap), end // LEAST_EVENTS)
    for multiple in lags:
        is_covered = len(early) * multiple >= COVERED * end
        if is_covered and share(multiple, multiple) >= COMMON_SHARE:
            # Where the end is disturbed, only a multiple of the period reaches no such write.
            parts = [lag for lag in lags[: multiple - lags[0]] if multiple % lag == 0]
            return float(
                next((lag for lag in parts if share(lag, multiple) >= COMMON_SHARE), multiple)
            )
    return None


def block_pages(period: Period, run: Observation, dies: int, page: int) -> int:
    """Return the pages of a block from the period; a guess if it is irregular.

    Relocated pages shorten an irregular period; then the next power of two is taken.
    """
    pages = period.gap * run.io_size / page / dies
    if not period.exact:
        least = max(round(SHORTEST_SHARE * pages), 1)
        return 1 << (least - 1).bit_length()
    resolution = GAP_TOLERANCE * run.io_size / page / dies
    for unit in (64, 32, 16, 8):
        nearest = round(pages / unit) * unit
        if nearest and abs(nearest - pages) <= min(resolution, unit / 8):
            return nearest
    return max(round(pages), 1)


class WriteSimulator:
    """Repeats the writes of the probes on twins, and compares the last ones.

    Parameters
    ----------
    observations : Observations
        What was measured.
    budget : Budget, optional
        Shared with other simulators of the same search.
    """

    def __init__(self, observations: Observations, budget: Budget | None = None) -> None:
        self.observations = observations
        self.budget = budget or Budget()
        measured = [observations.last(probe, pattern) for probe, pattern in COMPARED]
        runs = [run.response_ns for run in measured if run is not None]
        self.measured = [signature(run) for run in runs]
        self._rough: dict[tuple[int, str], float] = {}
        self._errors: dict[tuple[int, str, int], float] = {}

    def fill(self, twin: Twin) -> Observation | None:
        """Return the simulated fill."""
        return next(iter(self.run(twin, ("fill",))), None)

    def run(self, twin: Twin, probes: Sequence[str]) -> list[Observation]:
        """Repeat all writes of the probes on a twin, and return those of some, in order."""
        device, left, found = twin.open(), [*probes], []
        for key, run in self.observations.runs.items():
            if not left:
                break
            if key.probe in left:
                left.remove(key.probe)
                found.append(repeat(device, key.probe, run.spec))
            elif run.spec.parts[0].mode != "read":
                device.apply(run.spec)
        self.budget.pages -= (device.counters() or {}).get("pages_programmed", 0)
        return found

    def rough_error(self, twin: Twin, blocks: int, policy: str) -> float:
        """Return the difference of courses where the simulated one follows from counts.

        The work of a part is that of its programs, relocations and erases, one after the other;
        the same factor for all parts makes up for what happens at once.
        """
        key = blocks, policy
        if key not in self._rough:
            found = self._guarded(twin, blocks, policy, self._count)
            errors = [_shape_error(work, known) for work, known in found[1:]]
            self._rough[key] = float(np.mean(errors)) if errors else math.inf
        return self._rough[key]

    def error(self, twin: Twin, blocks: int, policy: str, seed: int = SEEDS[0]) -> float:
        """Return the difference between the simulated and the measured courses.

        It is infinite for a twin that is too small, or beyond the budget.
        """
        key = blocks, policy, seed
        if key not in self._errors:
            if self.budget.is_spent:
                return math.inf
            found = self._guarded(twin.but(seed=seed), blocks, policy, self._simulate)
            errors = [float(np.mean(np.abs(time - known))) for time, known in found]
            self._errors[key] = float(np.mean(errors)) if errors else math.inf
        return self._errors[key]

    def _guarded(
        self, twin: Twin, blocks: int, policy: str, run: Callable[[Twin], list[Floats]]
    ) -> list[tuple[Floats, Floats]]:
        """Return simulated and measured courses; none if the twin has too little spare space."""
        candidate = twin.with_capacity(self.observations.capacity_bytes, blocks).but(gc=policy)
        try:
            return list(zip(run(candidate), self.measured, strict=True))
        except CANNOT_SIMULATE:
            return []

    def _simulate(self, twin: Twin) -> list[Floats]:
        return [
            signature(run.response_ns) for run in self.run(twin, [probe for probe, _ in COMPARED])
        ]

    def _count(self, twin: Twin) -> list[Floats]:
        device, found = twin.open(), [np.zeros(PARTS)]  # none of a fill
        for key, run in self.observations.runs.items():
            if (key.probe, key.pattern) in COMPARED and key.pattern == "RW":
                found.append(_work(twin, device, run))
            elif run.spec.parts[0].mode != "read":
                device.apply(run.spec)
        return found


def _work(twin: Twin, device: Device, run: Observation) -> Floats:
    """Return the logarithm of the work of each part of a run, from counts without time."""
    transfer = (
        (twin.number("page_bytes") + twin.number("spare_bytes"))
        * 1e9
        / twin.number("channel_bytes_per_s")
    )
    program = transfer + twin.number("program_ns")
    relocation = program + transfer + twin.number("read_ns")
    before, work = device.counters(), []
    assert before is not None
    for n, part in enumerate(np.array_split(run.response_ns, PARTS)):
        device.apply(run.spec.but(io_count=len(part), seed=n + 1))
        after = device.counters()
        assert after is not None
        written, programmed, erased = (after[name] - before[name] for name in COUNTERS)
        moved = programmed - written
        total = written * program + moved * relocation + erased * twin.number("erase_ns")
        work.append(math.log(max(total / len(part), 1.0)))
        before = after
    return np.array(work)


def _shape_error(work: Floats, known: Floats) -> float:
    difference = work - known[:PARTS]
    return float(np.mean(np.abs(difference - np.median(difference))))


def course(response_ns: Floats) -> Floats:
    """Return the logarithms of the means of the parts of a run (parts,)."""
    parts = np.array_split(response_ns, PARTS)
    means = np.array([np.mean(part) for part in parts], dtype=np.float64)
    return np.asarray(np.log(np.maximum(means, 1.0)))


def signature(response_ns: Floats) -> Floats:
    """Return the course of a run, then its quantiles, each repeated until both weigh the same."""
    found = np.quantile(response_ns, QUANTILES)
    logarithms = np.log(np.maximum(found, 1.0))
    return np.concatenate([course(response_ns), np.repeat(logarithms, PARTS // len(QUANTILES))])


def erase_ns(simulator: WriteSimulator, twin: Twin, period: Period) -> Interval | None:
    """Return the erase time with which the twin's slow writes are as slow as the measured ones."""
    erase = float(LONG_ERASE_NS)
    least = least_blocks(simulator.observations, twin)
    roomy = twin.with_capacity(simulator.observations.capacity_bytes, ROOMY * least)
    for _ in range(2):
        run = simulator.fill(roomy.but(erase_ns=round(erase)))
        if run is None:
            return None
        found = period_of(run, twin.dies, int(twin.number("page_bytes")))
        if found is None:
            return None
        erase += period.excess.value - found.excess.value
        if erase <= 0:
            return None
    return Interval(erase, period.excess.half)


@dataclass(frozen=True)
class Spare:
    """The best twin of the overwrite: its blocks and policy, their rivals, and its error."""

    blocks: int
    low: int
    high: int
    policy: str
    rivals: tuple[str, ...]
    error: float
    errors: dict[str, float] = field(default_factory=dict)
    is_complete: bool = True  #: Whether the search ended within its budget.


def first_blocks(observations: Observations, twin: Twin) -> int:
    """Return the number of blocks of a die from the writes until the first that are slow."""
    run = observations.last("overwrite", "RW")
    assert run is not None
    row = twin.dies * twin.number("pages_per_block") * twin.number("page_bytes")
    parts = np.array([np.mean(part) for part in np.array_split(run.response_ns, 4 * PARTS)])
    fast = np.median(parts[:8])
    slower = np.flatnonzero(parts > 1.3 * fast)
    onset = slower[0] / len(parts) if len(slower) else 0.1
    written = onset * len(run.response_ns) * run.io_size
    return max(round((observations.capacity_bytes + written) / row) + 1, 3)


def least_blocks(observations: Observations, twin: Twin) -> int:
    """Return the fewest blocks of a die that hold the capacity, an open and a reserved one.

    Blocks of an SLC cache come on top.
    """
    row = twin.dies * twin.number("pages_per_block") * twin.number("page_bytes")
    cached = int(twin.number("slc_blocks")) if twin.has("slc_blocks") else 0
    return math.ceil(observations.capacity_bytes / row) + 2 + cached


@dataclass(frozen=True)
class _Fraction:
    """A search at a fraction of the capacity: its writes and its twin, which has a smaller cache.

    `whole`: the writes to the whole device.
    """

    whole: WriteSimulator
    simulator: WriteSimulator
    twin: Twin

    @classmethod
    def of(cls, whole: WriteSimulator, twin: Twin) -> Self:
        """Return the fraction to search; all of a small device, or of one that caches its map."""
        capacity, page = whole.observations.capacity_bytes, int(twin.number("page_bytes"))
        blocks = least_blocks(whole.observations, twin)
        divisor = min(blocks // FRACTION_BLOCKS, capacity // page // FRACTION_PAGES)
        if divisor < 2 or twin.has("slc_blocks") or twin.has("mapping_cache_bytes"):
            return cls(whole, whole, twin)
        if twin.has("write_cache_bytes"):
            units = int(twin.number("write_cache_bytes")) // divisor // page
            twin = twin.but(write_cache_bytes=max(units, 1) * page)
        small = whole.observations.at_fraction(divisor, COMPARED)
        return cls(whole, WriteSimulator(small, whole.budget), twin)

    def at_whole(self, spare: Spare | None) -> Spare | None:
        """Return the blocks of the whole device, and their range."""
        whole, small = self.whole.observations, self.simulator.observations
        if spare is None or small is whole:
            return spare
        ratio = whole.capacity_bytes / small.capacity_bytes
        low, high = math.floor((spare.low - FEWER) * ratio), math.ceil((spare.high + MORE) * ratio)
        return replace(spare, blocks=round(spare.blocks * ratio), low=low, high=high)


def spare_of(simulator: WriteSimulator, twin: Twin) -> Spare | None:
    """Return the number of blocks and the policy with the most similar course."""
    if not simulator.measured:
        return None
    fraction = _Fraction.of(simulator, twin)
    return fraction.at_whole(_spare_of(fraction.simulator, fraction.twin))


def _spare_of(simulator: WriteSimulator, twin: Twin) -> Spare | None:
    least = least_blocks(simulator.observations, twin)
    start = max(first_blocks(simulator.observations, twin), least)
    search = _Search(simulator, twin, least)
    rough = search.rough_blocks(start)
    errors = {policy: search.error(blocks, policy) for policy, blocks in rough.items()}
    ranked = sorted(POLICIES, key=lambda policy: errors[policy])
    limit = FINALIST_FACTOR * errors[ranked[0]]
    finalists = [each for n, each in enumerate(ranked) if n < FINALISTS or errors[each] <= limit]
    best = {policy: search.refine(policy, rough[policy]) for policy in finalists}
    first = min(best, key=lambda policy: search.error(best[policy], policy))
    # A search may end at another minimum than that of the best policy.
    best = {
        policy: min(
            blocks, search.refine(policy, best[first]), key=partial(search.error, policy=policy)
        )
        for policy, blocks in best.items()
    }
    errors = {policy: search.error(blocks, policy) for policy, blocks in best.items()}
    winner = min(errors, key=lambda policy: errors[policy])
    unfinished = Spare(
        best[winner], best[winner], best[winner], winner, (), errors[winner], is_complete=False
    )
    if simulator.budget.is_spent:
        return unfinished
    if not math.isfinite(errors[winner]):
        return None
    errors = {policy: search.mean_error(policy, blocks) for policy, blocks in best.items()}
    winner = min(errors, key=lambda policy: errors[policy])
    limit = POLICY_FACTOR * errors[winner] + POLICY_DIFFERENCE
    if errors[winner] > LARGEST_ERROR:
        # Nothing but a far worse fit excludes a policy if the best one fits badly.
        limit = CLEARLY_WORSE * errors[winner]
    rivals = tuple(policy for policy in best if policy != winner and errors[policy] < limit)
    scatter = max(search.error(best[winner], winner, seed) for seed in SEEDS)
    limit = BLOCKS_FACTOR * scatter + BLOCKS_DIFFERENCE
    low, high = search.equal_range(winner, best[winner], limit)
    if simulator.budget.is_spent:
        return unfinished
    others = [best[policy] for policy in rivals if errors[policy] < limit]
    low, high = min([low, *others]), max([high, *others])
    return Spare(best[winner], low, high, winner, rivals, errors[winner], errors)


def pages_and_spare(simulator: WriteSimulator, twin: Twin) -> tuple[int, bool, Spare | None]:
    """Return the pages of a block of an irregular fill, whether they are certain, and the spare.

    A write may wait until a victim is empty, so that the quantiles of long runs depend on the pages
    of a block, while their means hardly do.
    """
    first = int(twin.number("pages_per_block"))
    if not simulator.measured:
        return first, False, None
    fraction = _Fraction.of(simulator, twin)
    simulator, twin = fraction.simulator, fraction.twin
    observations = simulator.observations
    fewest = least_blocks(observations, twin)
    search = _Search(simulator, twin, fewest)
    rough = search.rough_blocks(max(first_blocks(observations, twin), fewest))
    policy = min(rough, key=lambda policy: search.error(rough[policy], policy))
    flash = rough[policy] * first
    others = {pages: twin.but(pages_per_block=pages) for pages in BLOCK_PAGES}
    searches = {
        pages: _Search(
            WriteSimulator(observations, simulator.budget), other, least_blocks(observations, other)
        )
        for pages, other in others.items()
        if flash / pages >= LEAST_BLOCKS_SEARCHED
    }
    if first in searches:
        searches[first] = search
    blocks = {pages: max(round(flash / pages), each.least) for pages, each in searches.items()}
    errors = {pages: each.error(blocks[pages], policy) for pages, each in searches.items()}
    least = min(errors.values(), default=math.inf)
    for pages in [pages for pages, error in errors.items() if error < PAGES_SEARCHED * least]:
        blocks[pages] = searches[pages].refine(policy, blocks[pages])
        errors[pages] = searches[pages].error(blocks[pages], policy)
    ranked = sorted(errors, key=lambda pages: errors[pages])
    if not ranked or not math.isfinite(errors[ranked[0]]):
        return first, False, fraction.at_whole(_spare_of(simulator, twin))
    fits = errors[ranked[0]] <= LARGEST_ERROR
    limit = (PAGES_FACTOR if fits else CLEARLY_WORSE) * errors[ranked[0]]
    is_certain = all(errors[pages] > limit for pages in ranked[1:])
    best = searches[ranked[0]]
    spare = fraction.at_whole(_spare_of(best.simulator, best.twin))
    return ranked[0], is_certain and not simulator.budget.is_spent, spare


@dataclass(frozen=True)
class _Search:
    """Searches for the number of blocks of a die with which a policy fits best."""

    simulator: WriteSimulator
    twin: Twin
    least: int

    def error(self, blocks: int, policy: str, seed: int = SEEDS[0]) -> float:
        return self.simulator.error(self.twin, blocks, policy, seed)

    def rough_error(self, blocks: int, policy: str) -> float:
        return self.simulator.rough_error(self.twin, blocks, policy)

    def mean_error(self, policy: str, blocks: int) -> float:
        """Return the mean error of devices that differ by their seed only."""
        errors = [self.simulator.error(self.twin, blocks, policy, seed) for seed in SEEDS]
        return float(np.mean(errors))

    def rough_blocks(self, start: int) -> dict[str, int]:
        """Return the best numbers of blocks of simulations without time, by policy."""
        return {policy: self.descend(policy, start) for policy in POLICIES}

    def descend(self, policy: str, start: int) -> int:
        """Return the best number of blocks of simulations without time."""
        starts = [start]
        if policy in UNSTEADY:
            # Their pages move from the beginning, so that the first slow writes show little.
            starts += [start * percent // 100 for percent in (85, 110, 120, 135, 150)]
        begin = min(
            (max(each, self.least) for each in starts),
            key=lambda each: self.rough_error(each, policy),
        )
        return self._descend(begin, FINE, policy, self.rough_error)

    def refine(self, policy: str, blocks: int) -> int:
        """Return the best number of blocks of simulations with time, from a rough one on."""
        return self._descend(blocks, COARSE if policy in UNSTEADY else FINE, policy, self.error)

    def _descend(
        self, blocks: int, parts: int, policy: str, error: Callable[[int, str], float]
    ) -> int:
        step = max(blocks // parts, 1)
        while True:
            sides = [each for each in (blocks - step, blocks + step) if each >= self.least]
            best = min([blocks, *sides], key=lambda each: error(each, policy))
            if best == blocks:
                if step == 1:
                    return blocks
                step = max(step // 4, 1)
            blocks = best

    def equal_range(self, policy: str, blocks: int, limit: float) -> tuple[int, int]:
        """Return the numbers of blocks next to the best one that are hardly worse."""
        step = max(blocks // RANGE_STEP, 1)
        low = high = blocks
        for _ in range(RANGE_STEPS):
            if low - step >= self.least and self.error(low - step, policy) < limit:
                low -= step
            if self.error(high + step, policy) < limit:
                high += step
        return low, high
