"""The slowest I/Os of a part of a run, and their common traits.

uFLIP (CIDR 2009) §3.3 stores response times one by one, because means hide the behaviour of flash.
`uflip.results.slow_traits` defines which I/Os are slow, and ranks traits.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import cast

import numpy as np
from numpy.typing import NDArray

from uflip.data.manifest import IMPORTED
from uflip.data.spec import MODES
from uflip.results.causes import cause_name
from uflip.results.run_warnings import STALL_NS
from uflip.results.slow_traits import (
    SHARE,
    Trait,
    host_marks,
    piece_ranges,
    slow_count,
    slowest_numbers,
)
from uflip.results.warnings import HOST_GAP
from uflip.units import format_duration_ns, format_size
from uflip.web.api_io_types import Io, RangeCauses, Slowest
from uflip.web.open_run import PART, OpenRun

NO_EARLIER_IO = -1
"""Value of an I/O without earlier I/Os."""
Whole = NDArray[np.int64]
MAX_LISTED = 50
TRAITS = 8
MIN_LIFT = 1.15
"""Below this lift a trait is about as frequent among the slow I/Os as among all."""
BOUNDARIES = tuple(1 << k for k in (14, 15, 16, 17, 18, 20, 22))
"""Alignments of addresses to test: from a flash page to some erase blocks [bytes]."""
EIGHTS = 8
"""Number of parts of the run, to test whether the slow I/Os are early or late."""
IDLE_NS = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)


def slowest(
    run: OpenRun, start: int, stop: int, listed: int = MAX_LISTED, *, traits: bool = True
) -> Slowest:
    """Return the slowest I/Os of a part of a run, and their common traits."""
    run.wait()
    start, stop = max(start, 0), min(stop, run.io_count)
    count = max(stop - start, 0)
    if not count:
        return {"ios": [], "slow": 0, "least_ns": None, "traits": [], "count": 0}
    some = slow_count(count)
    numbers = slowest_numbers(run.column, start, stop, some)
    least = int(run.column("response_time_ns", int(numbers[-1]), int(numbers[-1]) + 1)[0])
    searched = traits and count > some
    common = _traits(run, start, stop, np.sort(numbers)) if searched else []
    return {
        "ios": [io_view(run, int(number)) for number in numbers[:listed]],
        "slow": some,
        "least_ns": least,
        "count": count,
        "traits": [
            {
                "name": each.name,
                "value": each.value,
                "slow": each.slow / each.of_slow,
                "every": each.every / each.of_every,
                "lift": each.lift,
            }
            for each in common
        ],
    }


MAX_PARTS = 8
"""Maximum number of parts of a column that are read for the causes of a range."""


def causes_of(run: OpenRun, start: int, stop: int) -> RangeCauses:
    """Return the mean time of an I/O by cause, of a range and of its slowest hundredth.

    A long range is sampled: `MAX_PARTS` evenly spaced parts of `PART` consecutive I/Os.
    """
    start, stop = max(start, 0), min(stop, run.io_count)
    parts = [(start, stop)]
    if stop - start > MAX_PARTS * PART:
        begins = np.linspace(start, stop - PART, MAX_PARTS).astype(np.int64) // PART * PART
        parts = [(int(low), min(int(low) + PART, run.io_count)) for low in begins]
    if not run.causes or stop <= start:
        return {"count": 0, "slow": 0, "sampled": False, "least_ns": None, "causes": []}

    def read(name: str) -> NDArray[np.int64]:
        return np.concatenate([run.column(name, *part).astype(np.int64) for part in parts])

    times = read("response_time_ns")
    some = max(int(len(times) * SHARE), 1)
    slow = np.argpartition(-times, some - 1)[:some]
    spent = {name: read(name) for name in run.causes}
    return {
        "count": len(times),
        "slow": some,
        "sampled": len(parts) > 1,
        "least_ns": int(times[slow].min()),
        "causes": [
            {
                "name": name,
                "words": cause_name(name),
                "every_ns": float(ns.mean()),
                "slow_ns": float(ns[slow].mean()),
            }
            for name, ns in spent.items()
            if ns.any()
        ],
    }


def io_view(run: OpenRun, number: int) -> Io:
    """Return all details of one I/O: its row, its causes, and the idle time before it."""
    hidden = {*run.causes, *({HOST_GAP} if _is_imported(run) else ())}
    names = [name for name in run.log.columns if name not in hidden]
    columns = {name: int(run.column(name, number, number + 1)[0]) for name in names}
    view = cast("Io", {"number": number, **columns})
    causes = {name: int(run.column(name, number, number + 1)[0]) for name in run.causes}
    spent = sorted(causes.items(), key=lambda each: -each[1])
    view["causes"] = [
        {"name": name, "code": run.causes.index(name), "words": cause_name(name), "ns": ns}
        for name, ns in spent
        if ns
    ]
    if run.host is not None:
        marks = host_marks(run.host, run.column, number, number + 1)
        view["host"] = ", ".join(words for words, has in marks if has[0])
    grid = run.grid()
    view["begin_ns"] = 0 if grid is None else grid.begin_ns
    if run.has("submit_ns") and not _is_imported(run):
        idle = int(idle_before(run, number, number + 1)[0])
        if idle != NO_EARLIER_IO:
            view["idle_before_ns"] = idle
    return view


def sample(run: OpenRun, start: int, stop: int, most: int) -> NDArray[np.int64]:
    """Return at most `most` I/Os of a range (n,): the slowest, and a sample."""
    run.wait()
    start, stop = max(start, 0), min(stop, run.io_count)
    count = max(stop - start, 0)
    if count <= most:
        return np.arange(start, start + count)
    steady = np.arange(start, stop, -(-count // (most // 2)))
    return np.union1d(slowest_numbers(run.column, start, stop, most // 4), steady)


def _is_imported(run: OpenRun) -> bool:
    """Return whether times come from a log in whole milliseconds: idle times are then unknown."""
    return run.results.manifest.scale == IMPORTED


Counts = dict[tuple[str, str], int]


def _traits(run: OpenRun, start: int, stop: int, slow: NDArray[np.int64]) -> list[Trait]:
    """Return traits that are more frequent among the slow I/Os, the most significant first."""
    of_slow: Counts = {}
    of_every: Counts = {}
    for low, high in piece_ranges(start, stop):
        slow_here = slow[(slow >= low) & (slow < high)] - low
        for key, has in _marks(run, low, high, start, stop):
            of_every[key] = of_every.get(key, 0) + int(np.count_nonzero(has))
            of_slow[key] = of_slow.get(key, 0) + int(np.count_nonzero(has[slow_here]))
    traits = [
        Trait(*key, of_slow[key], of_every[key], len(slow), stop - start)
        for key in of_every
        if of_slow[key] and of_every[key]
    ]
    significant = [each for each in traits if each.lift >= MIN_LIFT and each.beyond_chance]
    return sorted(significant, key=lambda each: -each.rank)[:TRAITS]


Mark = tuple[tuple[str, str], NDArray[np.bool_]]


def _marks(run: OpenRun, low: int, high: int, start: int, stop: int) -> Iterator[Mark]:
    """Yield every trait, with the I/Os of a piece that have it."""
    for name, words in (("mode", dict(enumerate(MODES))), ("component", _PARTS)):
        if run.has(name):
            values = run.column(name, low, high)
            yield from (((name, word), values == code) for code, word in words.items())
    if run.causes:
        yield from _causes(run, low, high)
    if run.has("io_size_bytes"):
        sizes = run.column("io_size_bytes", low, high)
        distinct = np.unique(sizes)[:MAX_LISTED]
        yield from ((("size", format_size(int(each))), sizes == each) for each in distinct)
    if run.has("offset_bytes"):
        yield from _addresses(run, low, high)
    if run.has("submit_ns") and not _is_imported(run):
        yield from _idle_times(run, low, high)
    if run.has(HOST_GAP) and not _is_imported(run):
        stalled = run.column(HOST_GAP, low, high) > STALL_NS
        yield ("host gap", f"more than {format_duration_ns(STALL_NS)}"), stalled
    if run.host is not None:
        marks = host_marks(run.host, run.column, low, high)
        yield from ((("host", f"in a window with {words}"), has) for words, has in marks)
    yield from _positions(run, low, high, start, stop)


def _positions(run: OpenRun, low: int, high: int, start: int, stop: int) -> Iterator[Mark]:
    part = (np.arange(low, high) - start) * EIGHTS // max(stop - start, 1)
    for each in range(EIGHTS):
        yield ("position", f"part {each + 1} of {EIGHTS} of the range"), part == each
    if run.has("ignored"):
        yield ("position", "inside the start-up"), run.column("ignored", low, high) != 0


_PARTS = {0: "first pattern of the mix", 1: "second pattern of the mix"} | {
    number: f"pattern {number + 1} of the mix" for number in range(2, 64)
}


def _causes(run: OpenRun, low: int, high: int) -> Iterator[Mark]:
    spent = {name: run.column(name, low, high) for name in run.causes}
    most = np.argmax(np.array(list(spent.values())), axis=0)
    for code, (name, times) in enumerate(spent.items()):
        words = cause_name(name)
        yield ("most of the time", words), most == code
        yield ("waited for", words), times > 0


def _addresses(run: OpenRun, low: int, high: int) -> Iterator[Mark]:
    offsets = run.column("offset_bytes", low, high)
    for each in BOUNDARIES:
        name = format_size(each)
        yield ("offset", f"a multiple of {name}"), offsets % each == 0
        if run.has("io_size_bytes"):
            last = offsets + run.column("io_size_bytes", low, high) - 1
            yield ("offset", f"crosses a boundary of {name}"), offsets // each != last // each


def _idle_times(run: OpenRun, low: int, high: int) -> Iterator[Mark]:
    before = idle_before(run, low, high)
    yield ("idle before", "none"), before <= IDLE_NS[0]
    for each in IDLE_NS:
        yield ("idle before", f"more than {format_duration_ns(each)}"), before > each


def idle_before(run: OpenRun, low: int, high: int) -> Whole:
    """Return the idle time before I/Os `low` to `high` (n,) [ns]; or `NO_EARLIER_IO`.

    It begins at the end of all I/Os submitted before, in any stream; 0 while one is in flight::

        stream 0   ├── 1 ──┤             ├── 3 ──┤
        stream 1       ├────── 2 ──────┤
                                       ├─┤           idle before 3: 2 ended after 1
    """
    grid = run.wait()
    submitted = run.column("submit_ns", low, high).astype(np.int64)
    completed = np.full(len(submitted), NO_EARLIER_IO)
    for first, last in pairwise(np.searchsorted(grid.starts, grid.streams).tolist()):
        from_block = first + int(np.searchsorted(grid.last_ns[first:last], submitted.min()))
        to_block = first + int(np.searchsorted(grid.first_ns[first:last], submitted.max(), "right"))
        to_block = max(to_block, from_block)
        before = int(grid.ended_ns[first:from_block].max(initial=NO_EARLIER_IO))
        begin, end = int(grid.starts[from_block]), int(grid.starts[to_block])
        begins = run.column("submit_ns", begin, end).astype(np.int64)
        ends = begins + run.column("response_time_ns", begin, end).astype(np.int64)
        latest = np.maximum.accumulate(np.concatenate([[before], ends]))
        # I/Os of its own stream with equal submission times count in their order.
        own = np.arange(low, high) - begin
        is_own = (own >= grid.starts[first] - begin) & (own < grid.starts[last] - begin)
        index = np.where(is_own, own, np.searchsorted(begins, submitted))
        completed = np.maximum(completed, latest[index])
    return np.where(completed == NO_EARLIER_IO, NO_EARLIER_IO, np.maximum(submitted - completed, 0))
