"""Five workloads: the formula of each in terms of patterns, its actual I/Os, and their price.

The price of an I/O is a mean of a benchmark, interpolated for sizes and areas between.

**Source** External merge sort and B-trees: Graefe, "Implementing Sorting in Database Systems" (ACM
Comput. Surv. 38(3), 2006) and "Modern B-Tree Techniques" (2011). Levels: O'Neil et al., "The
Log-Structured Merge-Tree" (Acta Inf. 33, 1996). Focused updates: uFLIP (CIDR 2009) §5.3, hint 4.
Prices: §5.2, Figure 6: the cost of an I/O over its size is a line.
**Faithful** The number of passes, levels, misses and moved bytes. Between two measured sizes the
price lies on the line through them.
**Simplified** One I/O at a time, and no CPU time. Inner pages of a tree are in memory, and inserts
split no leaf. A level is merged into the next as a whole. Below the smallest size an I/O costs as
much as that size; above the largest the last line is extended. The gain of writes to a small area
is measured at one I/O size, and applied to all.
**Ambiguous** When a level is merged: as soon as it is *growth* times as large as the one before.
The paper does not define how prices combine. Here I/Os follow each other one by one, and each costs
as much as among I/Os of its own kind.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, log, log2

from uflip.data.summary import Summary
from uflip.hints.means import Curve, Lines, baseline, lines_of

BASELINE_IO_SIZE = 32 << 10
"""I/O size of experiments that vary something else [bytes], if no baseline reports it."""


@dataclass(frozen=True)
class Prices:
    """Prices of a device."""

    lines: Lines  #: Micro-benchmark and pattern -> means, from `uflip.hints.means`.

    @staticmethod
    def from_summary(document: Summary) -> Prices:
        """Extract the prices from a summary of results."""
        return Prices(lines_of(document))

    def sizes(self, pattern: str) -> Curve:
        """Return the means over sizes."""
        return self.lines.get(f"granularity {pattern}", {})

    def has_price(self, pattern: str) -> bool:
        """Return whether a pattern has a price."""
        return len(self.sizes(pattern)) > 1

    def io_ns(self, pattern: str, size: int) -> float:
        """Return the price of an I/O of a size [bytes], in SR, RR, SW or RW [ns].

        >>> from uflip.hints.means import Mean
        >>> prices = Prices({"granularity SR": {4096: Mean(100.0), 8192: Mean(140.0)}})
        >>> prices.io_ns("SR", 6144), prices.io_ns("SR", 12288), prices.io_ns("SR", 512)
        (120.0, 180.0, 100.0)
        """
        curve = self.sizes(pattern)
        sizes = list(curve)
        if size <= sizes[0]:
            return curve[sizes[0]].ns
        for small, large in pairwise(sizes):
            if size <= large or large == sizes[-1]:
                slope = (curve[large].ns - curve[small].ns) / (large - small)
                return curve[small].ns + slope * (size - small)
        return curve[sizes[-1]].ns

    def partition_factor(self, pattern: str, places: int) -> float:
        """Return the relative price of a sequential I/O that alternates between places."""
        return self._relative(f"partitioning {pattern}", pattern, places)

    def area_factor(self, pattern: str, area: int) -> float:
        """Return the relative price of a random I/O within an area [bytes]."""
        return self._relative(f"locality {pattern}", pattern, area)

    def _relative(self, line: str, pattern: str, value: int) -> float:
        curve, base = self.lines.get(line, {}), baseline(self.lines, pattern)
        if base is None:  # use the same I/O size of granularity
            base = self.sizes(pattern).get(BASELINE_IO_SIZE)
        if not curve or base is None:
            return 1.0
        return _between(curve, value) / base.ns


def _between(curve: Curve, value: int) -> float:
    """Return the mean at a value: log-linear between points, constant beyond the ends."""
    values = [each for each in curve if each > 0]
    if value <= values[0]:
        return curve[values[0]].ns
    for low, high in pairwise(values):
        if value <= high:
            share = log2(value / low) / log2(high / low)
            return curve[low].ns + share * (curve[high].ns - curve[low].ns)
    return curve[values[-1]].ns


Io = tuple[str, int, int]
"""An I/O: mode (`read`, `write`), offset and size [bytes]."""


@dataclass(frozen=True)
class Parameters:
    """Parameters of the workloads."""

    data: int  #: Data to sort, ingest or append, or size of the leaves of the tree [bytes].
    #: Memory for sorting, for pages of the tree, or for the memtable of the levels [bytes].
    memory: int
    block: int  #: Size of sequential I/Os [bytes].
    page: int  #: Size of a leaf, a record of the log, an update [bytes].
    operations: int  #: Number of inserts, appended records, updates.
    area: int  #: Size of the area of updates in place [bytes].
    growth: int = 4  #: Size of each level relative to the one before.
    seed: int = 1  #: Seed of all random numbers.

    @property
    def runs(self) -> int:
        """Number of sorted runs, each as large as memory."""
        return ceil(self.data / self.memory)

    @property
    def fan_in(self) -> int:
        """Runs merged at a time: a block of memory for each, and one for the result."""
        return max(self.memory // self.block - 1, 2)

    @property
    def passes(self) -> int:
        """Number of merge passes over all data."""
        return ceil(log(self.runs, self.fan_in) - 1e-9) if self.runs > 1 else 0

    @property
    def misses(self) -> float:
        """Share of inserts whose leaf is not in memory."""
        return max(1 - self.memory / self.data, 0.0)

    @property
    def levels(self) -> int:
        """Levels on the device."""
        return max(ceil(log(max(self.data / self.memory, 1), self.growth) - 1e-9), 1)

    @property
    def moved(self) -> float:
        """How often each byte is written to a level, as new data or as data being merged with.

        Level *i* gets the content of the level before when that is full, growth^i memories, and
        contains what it got since it was merged itself. The last one is never merged.

        >>> eight = Parameters(data=32, memory=4, block=1, page=1, operations=1, area=1)
        >>> eight.levels, 8 * eight.moved == 2 * (1 + 2 + 3 + 4) + 4 * (1 + 2)
        (2, True)
        """
        written = 0
        for level in range(self.levels):
            size = self.growth**level
            coming = self.runs // size
            rounds = self.growth if level < self.levels - 1 else max(coming, 1)
            full_rounds, remainder = divmod(coming, rounds)
            written += (
                size * (full_rounds * rounds * (rounds + 1) + remainder * (remainder + 1)) // 2
            )
        return written / self.runs


Part = tuple[str, float, float]
"""Description of a step, its number, and the cost of each [ns]."""


@dataclass(frozen=True)
class Workload:
    """A workload."""

    #: Its name on the command line, and as a heading.
    name: str
    title: str
    formula: str  #: In terms of `Parameters`, as the docs explain it.
    needs: tuple[str, ...]  #: Patterns that need a price.
    #: Returns the steps, from prices and parameters.
    parts: Callable[[Prices, Parameters], list[Part]]
    ios: Callable[[Parameters], Iterator[Io]]  #: Returns the I/Os, from parameters.


def _sort_parts(prices: Prices, parameters: Parameters) -> list[Part]:
    blocks = parameters.data / parameters.block
    read, write = (prices.io_ns(pattern, parameters.block) for pattern in ("SR", "SW"))
    interleaved = prices.partition_factor("SR", min(parameters.fan_in, parameters.runs))
    return [
        ("read unsorted data", blocks, read),
        ("write sorted runs", blocks, write),
        ("read runs, in turns", blocks * parameters.passes, read * interleaved),
        ("write merged runs", blocks * parameters.passes, write),
    ]


def _sort_ios(parameters: Parameters) -> Iterator[Io]:
    """Sort the data at the beginning; runs and results alternate between two areas after it."""
    areas, block = [0, parameters.data, 2 * parameters.data], parameters.block
    per_run = parameters.memory // block * block
    for begin in range(0, parameters.data, per_run):
        offsets = range(begin, min(begin + per_run, parameters.data), block)
        yield from (("read", offset, block) for offset in offsets)
        yield from (("write", areas[1] + offset, block) for offset in offsets)
    runs = [
        range(at, min(at + per_run, parameters.data), block)
        for at in range(0, parameters.data, per_run)
    ]
    rng, source, target = random.Random(parameters.seed), areas[1], areas[2]
    while len(runs) > 1:
        merged, out = [], 0
        for first in range(0, len(runs), parameters.fan_in):
            inputs = [iter(run) for run in runs[first : first + parameters.fan_in]]
            begin = out
            while inputs:
                chosen = rng.randrange(len(inputs))
                offset = next(inputs[chosen], None)
                if offset is None:
                    inputs.pop(chosen)
                    continue
                yield "read", source + offset, block
                yield "write", target + out, block
                out += block
            merged.append(range(begin, out, block))
        runs, source, target = merged, target, source


def _tree_parts(prices: Prices, parameters: Parameters) -> list[Part]:
    missed = parameters.operations * parameters.misses
    write = prices.io_ns("RW", parameters.page) * prices.area_factor("RW", parameters.data)
    return [
        ("read a leaf", missed, prices.io_ns("RR", parameters.page)),
        ("write an evicted leaf", missed, write),
    ]


def _tree_ios(parameters: Parameters) -> Iterator[Io]:
    """Insert at random; memory, full of modified leaves, evicts the least recently used."""
    leaves, rng = parameters.data // parameters.page, random.Random(parameters.seed)
    cached: OrderedDict[int, None] = OrderedDict()
    for leaf in rng.sample(range(leaves), min(parameters.memory // parameters.page, leaves)):
        cached[leaf] = None
    for _ in range(parameters.operations):
        leaf = rng.randrange(leaves)
        if leaf in cached:
            cached.move_to_end(leaf)
            continue
        evicted, _ = cached.popitem(last=False)
        yield "read", leaf * parameters.page, parameters.page
        yield "write", evicted * parameters.page, parameters.page
        cached[leaf] = None


def _levels_parts(prices: Prices, parameters: Parameters) -> list[Part]:
    blocks = parameters.runs * (parameters.memory // parameters.block)
    read, write = (prices.io_ns(pattern, parameters.block) for pattern in ("SR", "SW"))
    return [
        ("read levels to merge", blocks * (parameters.moved - 1), read),
        ("write merged levels", blocks * parameters.moved, write),
    ]


def _levels_ios(parameters: Parameters) -> Iterator[Io]:
    """Ingest; a full level is merged into the next, and both move to a new place."""
    block, unit = parameters.block, parameters.memory // parameters.block
    ring = 4 * (parameters.data // block)
    stored: list[list[int]] = [[] for _ in range(parameters.levels)]
    cursor = 0
    for _ in range(parameters.runs):
        coming: list[int] = []  # the memtable is not on the device
        count = unit
        for level in range(parameters.levels):
            old = coming + stored[level]
            new = [(cursor + at) % ring for at in range(count + len(stored[level]))]
            cursor += len(new)
            for number, index in enumerate(new):
                if number < len(old):
                    yield "read", old[number] * block, block
                yield "write", index * block, block
            stored[level] = new
            is_last = level == parameters.levels - 1
            if is_last or len(new) < unit * parameters.growth ** (level + 1):
                break
            coming, count, stored[level] = new, len(new), []


def _log_parts(prices: Prices, parameters: Parameters) -> list[Part]:
    return [("append a record", parameters.operations, prices.io_ns("SW", parameters.page))]


def _log_ios(parameters: Parameters) -> Iterator[Io]:
    for number in range(parameters.operations):
        yield "write", number * parameters.page % parameters.data, parameters.page


def _focus_parts(prices: Prices, parameters: Parameters) -> list[Part]:
    price = prices.io_ns("RW", parameters.page) * prices.area_factor("RW", parameters.area)
    return [("write within the area", parameters.operations, price)]


def _focus_ios(parameters: Parameters) -> Iterator[Io]:
    rng, pages = random.Random(parameters.seed), parameters.area // parameters.page
    for _ in range(parameters.operations):
        yield "write", rng.randrange(pages) * parameters.page, parameters.page


WORKLOADS: Mapping[str, Workload] = {
    one.name: one
    for one in (
        Workload(
            "sort", "external merge sort",
            "data / block · ((SR + SW) + passes · (SR · partitioning(fan-in) + SW))",
            ("SR", "SW"), _sort_parts, _sort_ios,
        ),
        Workload(
            "b-tree", "inserts into a B-tree", "operations · misses · (RR + RW · locality(data))",
            ("RR", "RW"), _tree_parts, _tree_ios,
        ),
        Workload(
            "levels", "a log-structured tree of levels",
            "data / block · (moved · (SR + SW) − SR)",
            ("SR", "SW"), _levels_parts, _levels_ios,
        ),
        Workload(
            "log", "an append-only log", "operations · SW", ("SW",), _log_parts, _log_ios
        ),
        Workload(
            "focus", "updates in place of a focused area", "operations · RW · locality(area)",
            ("RW",), _focus_parts, _focus_ios,
        ),
    )
}  # fmt: skip
"""By name."""
