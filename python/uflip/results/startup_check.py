"""Start-up check: is a run past the start-up of the device, as far as its plan shows?

256 writes of 4 KiB on a device with 2 MiB of free blocks are quick from the first I/O to the last:
the run looks steady and is wrong (uFLIP §4.2). It cannot be found in the run; it can in a baseline.

    bytes written    0 ......... 44 MiB ............ 290 MiB ............
    RW of a drive    write cache | blocks that were | garbage collection
    of today           10.9 µs   | ready:    46 µs  |           400 µs

A run that is not clear of it is *marked*, with one of `MARKS`, and counts as not converged wherever
its numbers are shown. `mark_of` reads the mark of an experiment.

**Source** uFLIP (CIDR 2009) §4.2: with an IOCount that is too low, "only the start-up phase" is
measured.
**Faithful** The start-up of the baselines is carried over to every other run.
**Simplified** The unit is that of `uflip.startup`, whatever the pattern. Bursts that ask for the
cache (`cache_cliff`, `cache_refill`) are not judged: what they measure ends with the cache.
**Ambiguous** (1) How much start-up is too much. A run is marked if its share of start-up changes
the mean by more than `AGREEMENT`, by the difference between the beginning of the baseline and its
running phase. A run that looks for its own start-up must be twice as long as the start-up of the
baselines. The start-up of sequential writes counts for sequential writes only. A run that continues
for long enough after the start-up is clear of it if its mean equals that of the remaining part.
(2) Whether a baseline is past the start-up. It is not if its analysis reports a start-up that is
not over. On a device that answers writes from a buffer, `SPARE_SHARE` of the capacity must be
written first, and all write baselines must be past it: an SLC cache and blocks that were collected
ahead are spare space, and response times do not show whether they are used up.
(3) What a run shows by itself. The slowest writes that together take half of the time of the
baseline's running phase are slow, and so is a write that takes half as long as the quickest of
these. A run must have as many slow writes as the same number of baseline writes, beyond a
chance of one in a hundred. A run without slow writes that is long enough, in bytes or in idle time,
avoids them: this is a result, not a start-up. On a device with a buffer, a long enough run also
writes more than the spare space of most drives, beyond what its idle time lets the device move.
(4) Free space. A device without a write cache also has erased blocks. Sequential writes leave
little to collect: their cost changes by little when these are used up, and a short baseline does
not show it. Writes in place fill the spare space with copies of the same data. Such runs keep their
findings, but do not count as converged (`has_free_space`). (5) Runs that never left the write
cache. On a simulated device, the measured writes have no causes but the interface and the
controller. On a real one, fewer than one in a hundred took longer than the quickest and a program
operation of the fastest existing flash (`PROGRAM_NS`), and the device answers a write sooner than
it reads. (6) Experiments of which some repetitions are marked. One is marked if most repetitions
are, or if the mean of the marked ones differs from that of the others by more than `AGREEMENT`.
(7) Map entries in memory. A device that reads its map from flash has the entries of a share h of
all addresses in memory (`warm_share`). A scan finds these on its way, and evicts them: in the long
run it waits for the map 1 / (1 − h) times as long. Random reads of a part of the device, in a mix,
find more and more of their entries: h × capacity / part in the long run. (`cold_reads` judges those
without writes.) Such a run is marked if that changes its mean by more than `AGREEMENT`. A scan of
addresses that another run has just used finds all of their entries: its share of waits is less than
half of that of the baseline SR. Only the causes of a simulated device show these waits. (8) Map
entries that earlier writes changed. The device programs them when it evicts them, also for a read.
Reads change none, so reads without writes wait for such programs only until all are evicted: such a
run is marked if the waits are more than `AGREEMENT` of its time.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, exp, sqrt
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from uflip._native import Trace
from uflip.data.manifest import Phases, PhasesOfPattern, PlanEntry
from uflip.data.spec import Basic, Mix, MixPart, Spec
from uflip.data.summary import MeanSummary, Repetitions, WarningSummary
from uflip.flash_waits import (
    BINS_PER_OCTAVE,
    BUFFER_SPEEDUP,
    DurationHistogram,
    Writes,
    is_buffered,
    quickest_ns,
)
from uflip.footprint import NEARLY_ALL
from uflip.results.columns import measured_column, split
from uflip.results.statistics import AGREEMENT, MARKS, Mark
from uflip.startup import (
    LABELS_OF_WRITES,
    SPARE_SHARE,
    STARTUP_NOT_OVER,
    Startup,
    idle_share,
    in_rows,
    label_of,
    longest_of,
    never_ends,
    startup_of,
    steady_bytes,
)

# Runs that show the start-up themselves.
BASELINE, INTERFERENCE = "baseline", "interference"
CACHE_BURSTS = ("cache_cliff", "cache_refill")
"""Micro-benchmarks of bursts that end before the cache is full."""
# A steady device shows no slow write with this chance at most.
BY_CHANCE = 0.01
DEALLOCATE = "deallocate"
TWICE = 2
# The fastest flash on sale takes as long to read; a map entry in host memory takes less [ns].
FLASH_READ_NS = 3_000
# Number of parts of a run that are compared with each other.
PARTS = 16


@dataclass(frozen=True)
class MapWaits:
    """Waits of the measured I/Os for the map of the device."""

    ios: int
    waiting: int  #: Number of I/Os that wait for it.
    share_of_time: float
    programs_share: float = 0.0  #: Share of the time that programs of the map may take.


@dataclass(frozen=True)
class StartupInput:
    """A run: its resolved specification, and whether it had a stop rule."""

    run_id: str
    spec: Spec
    has_stop_rule: bool
    baseline: str | None = None  # which of them, if it is one
    micro_benchmark: str = ""
    writes: tuple[Writes, ...] = ()
    # Of a baseline: all response times, and of a read the quickest of twenty [ns].
    times_ns: NDArray[Any] = field(default_factory=lambda: np.empty(0))
    # Means of equal parts of what was measured, in the order of the I/Os [ns].
    parts_ns: tuple[float, ...] = ()
    map_waits: MapWaits | None = None


@dataclass(frozen=True)
class StartupMark:
    """A run that is not past the start-up, and the share of start-up in its measured I/Os."""

    run_id: str
    share: float
    startup_ios: int
    io_count: int
    io_ignore: int


@dataclass(frozen=True)
class Checked:
    """The result of checking all runs."""

    inside: list[StartupMark]  #: Runs that are not past the start-up.
    never_left: list[str]  #: Runs of writes that never left the write cache.
    #: Number of examined runs, and of those that write.
    runs: int
    write_runs: int
    #: Bytes written before writes began to wait for flash; None if they never did.
    cache_bytes: int | None
    most_bytes: int  #: Largest amount written by a run that never left the cache.


MARKED: dict[Mark, str] = {
    "never_left_write_cache": "the writes never left the write cache",
    "inside_startup": "the run is inside the start-up of the device",
}
"""The meaning of a mark, as a clause."""


def mark_of(experiment: Repetitions) -> Mark | None:
    """Return the mark of an experiment of a summary; None if its mean is clear of the start-up.

    A marked experiment measured the start-up of the device, or its write cache, and does not show
    the cost of the pattern in the long run: it is never converged, and no finding rests on it.
    """
    return mark_among(experiment["repetitions"])


def mark_among(repetitions: Sequence[MeanSummary]) -> Mark | None:
    """Return the most certain mark of repetitions; None if their common mean is clear of it.

    Some repetitions may be marked and others clear. The mean of all then includes start-up: it is
    marked if most repetitions are, or if the two groups differ by more than `AGREEMENT`.
    """
    marked = [each for each in repetitions if _marks_in(each)]
    clear = [each for each in repetitions if not _marks_in(each)]
    if 2 * len(marked) <= len(repetitions) and not _means_differ(marked, clear):
        return None
    return next((mark for mark in MARKS if any(mark in _marks_in(each) for each in marked)), None)


def _marks_in(repetition: MeanSummary) -> set[Mark]:
    return {mark for mark in MARKS if mark in (repetition.get("reasons") or ())}


def _means_differ(some: Iterable[MeanSummary], others: Iterable[MeanSummary]) -> bool:
    """Return whether the means of two groups of repetitions differ by more than `AGREEMENT`."""
    means = [
        np.mean(known)
        for group in (some, others)
        if (known := [mean for each in group if (mean := each["mean_ns"]) is not None])
    ]
    return len(means) == 2 and bool(abs(means[0] - means[1]) > AGREEMENT * means[1])


def has_free_space(
    name: str, value: float | None, spec: Spec, baselines: Iterable[Spec], capacity: int
) -> bool:
    """Whether a run may have written less than the free space that the device began with.

    Judged are sequential writes, unless a baseline of these wrote as much; writes in place, to a
    target smaller than this space; and random writes after a trim. The free space is the spare
    space of most drives, and what was trimmed before. Writes in place also change what is left to
    collect: until they have written the spare space, it holds old copies of other data.

    `name`: the micro-benchmark. `value`: what it varies; of `deallocate` the trimmed part of the
    device [%]. `spec`: the run. `baselines`: the baseline runs. `capacity`: size of the device
    [bytes].
    """
    if name in CACHE_BURSTS or not isinstance(spec, Basic | Mix):
        return False
    free = SPARE_SHARE * capacity
    trimmed = (value or 0) / 100 * capacity if name == DEALLOCATE else 0
    if not any(_is_in_place(spec, part, free) for part in spec.parts):
        if any(label_of(part) == "SW" for part in spec.parts):
            most_written = max(
                (_bytes_written(each) for each in baselines if _has_label(each, "SW")), default=0
            )
            free = free if most_written < free else 0
        elif not trimmed:
            return False
    return _bytes_written(spec) < free + trimmed


def _is_in_place(spec: Spec, part: MixPart, free: float) -> bool:
    """Return whether a part writes repeatedly to a target smaller than the free space."""
    if not part.is_write or not 0 < (part.target_size or 0) < free:
        return False
    once = label_of(part) == "SW" and part.incr != 0
    return not once or spec.ios * part.processes * part.io_bytes > part.target_bytes


def _has_label(spec: Spec, label: str) -> bool:
    return isinstance(spec, Basic) and label_of(spec) == label


def _bytes_written(spec: Spec) -> int:
    return sum(
        spec.ios * part.processes * part.io_bytes
        for part in spec.parts
        if part.is_write and spec.io_count is not None
    )


def marks_of(warnings: Iterable[WarningSummary]) -> dict[str, Mark]:
    """Return the marks of runs, by their ids, as the warnings of a result store them."""
    marks: dict[str, Mark] = {}
    for warning in warnings:
        for mark in MARKS:
            if warning["code"] == mark:
                runs = warning["numbers"].get("runs")
                marks |= {str(run): mark for run in runs} if isinstance(runs, list) else {}
    return marks


def baseline_startup(phases: Phases, plan: Sequence[PlanEntry]) -> Startup | None:
    """Return the start-up that the runs of a plan show; None where nothing shows it."""
    for name in (BASELINE, INTERFERENCE):
        for entry in plan:
            if (
                entry.micro_benchmark == name
                and isinstance(entry.spec, Basic)
                and entry.spec.io_size
            ):
                return startup_of(phases, entry.spec.io_size)
    return None


def check_runs(
    runs: Sequence[StartupInput],
    phases: Phases | None,
    plan: Sequence[PlanEntry],
    capacity: int,
) -> Checked:
    """Find the runs that are not clear of the start-up, and those that never left the write cache.

    `runs`: all runs; those of the interference experiment stand in for baselines that are missing.
    `phases`, `plan`: the values of the manifest. `capacity`: size of the device [bytes].
    """
    baselines = _Baselines(runs, phases, capacity)
    startup = None if phases is None else baseline_startup(phases, plan)
    if startup is not None:
        startup = baselines.only_long_run_means(startup)
    # The start-up of reads and writes does not apply to trims and zone commands.
    judged = [
        run
        for run in runs
        if run.micro_benchmark != INTERFERENCE
        and any(part.is_write or part.mode == "read" for part in run.spec.parts)
    ]
    writing = [run for run in judged if run.writes]
    never = [run for run in writing if baselines.never_left(run, startup)]
    inside: list[StartupMark] = []
    if phases is not None and startup is not None:
        others = [run for run in judged if run not in never]
        inside = _inside(others, baselines, phases, startup.io_size, capacity)
    waited_after = [
        each.bytes_before_wait
        for run in writing
        for each in run.writes
        if each.bytes_before_wait and _is_plain(run.spec)
    ]
    return Checked(
        inside=inside,
        never_left=[run.run_id for run in never],
        runs=len(judged),
        write_runs=len(writing),
        cache_bytes=min(waited_after, default=None),
        most_bytes=max((each.bytes_written for run in never for each in run.writes), default=0),
    )


def _inside(
    runs: Sequence[StartupInput],
    baselines: "_Baselines",
    phases: Phases,
    io_size: int,
    capacity: int,
) -> list[StartupMark]:
    """Return the marks of the runs that are not clear of the start-up."""
    warm, scan = warm_share(runs, capacity), next((r for r in runs if r.baseline == "SR"), None)
    marks = []
    for run in runs:
        if run.micro_benchmark in CACHE_BURSTS:
            continue
        startup = longest_of(_relevant_patterns(run, phases), io_size, settled=True)
        startup = baselines.only_long_run_means(startup)
        mark = (
            inside_startup(run, startup)
            or baselines.not_past(run, startup)
            or finds_other_map(run, warm, capacity, scan)
        )
        marks += [] if mark is None else [mark]
    return marks


def _is_plain(spec: Spec) -> bool:
    """Whether one write follows the other: what waits then waits for the cache to be flushed."""
    if not isinstance(spec, Basic) or spec.depth > 1 or spec.processes > 1:
        return False
    return spec.time in (None, "consecutive")


def _relevant_patterns(run: StartupInput, phases: Phases) -> list[tuple[str, PhasesOfPattern]]:
    """Return what bounds the start-up of a run: of a baseline what it shows itself."""
    patterns = [*phases["patterns"].items(), *phases["again"].items()]
    if run.baseline is not None:
        return [each for each in patterns[: len(phases["patterns"])] if each[0] == run.baseline]
    if any(label_of(part) == "SW" for part in run.spec.parts):
        return patterns
    return [each for each in patterns if each[0] != "SW"]


def inside_startup(run: StartupInput, startup: Startup) -> StartupMark | None:
    """Return the mark of a run that measured start-up; None if it is past it."""
    if run.spec.io_count is None:
        return None  # patterns side by side have lengths of their own
    if run.baseline is None and never_ends(run.spec, startup):
        return None
    count, ignored = run.spec.ios, run.spec.ignored_ios
    rows = in_rows(run.spec, startup)
    found_startup = run.has_stop_rule and count >= TWICE * rows
    within = 0 if found_startup else rows - ignored
    share = min(within / max(count - ignored, 1), 1.0)
    effect = startup.write_effect if run.spec.writes else startup.read_effect
    mark = StartupMark(run.run_id, share, rows, count, ignored)
    return mark if share * effect > AGREEMENT and not _is_level(run, share) else None


def map_waits_of(trace: Trace, programs: int = 0) -> MapWaits | None:
    """Return the waits for the map in a run; None if no measured I/O waits, or if it is unknown.

    `programs`: pages of the map that the device programmed; they take the longest waits.
    """
    if "mapping_ns" not in trace.causes:
        return None
    times, count, waits_ns, longest = measured_column(trace), 0, 0, np.empty(0, np.uint64)
    for part in split(measured_column(trace, "mapping_ns")):
        waits = part[part >= FLASH_READ_NS]
        count, waits_ns = count + len(waits), waits_ns + int(waits.sum(dtype=np.uint64))
        if programs:
            longest = np.sort(np.concatenate([longest, waits]))[-programs:]
    total_ns = int(times.sum())
    return MapWaits(
        len(times), count, waits_ns / total_ns, int(longest.sum(dtype=np.uint64)) / total_ns
    ) if count else None  # fmt: skip


def warm_share(runs: Iterable[StartupInput], capacity: int) -> float:
    """Return the share of all addresses with their map entries in memory; 0 if it is unknown.

    At least this share of random reads over the device does not wait for the map, beyond two
    standard errors. Judged are the smallest ones: a large read rarely finds all of its entries, and
    may wait for another of its pages while it loads one.
    """
    waits = [
        (run.spec.io_bytes, run.map_waits)
        for run in runs
        if run.map_waits is not None
        and isinstance(run.spec, Basic)
        and (run.spec.mode, run.spec.location) == ("read", "random")
        and run.spec.target_bytes >= NEARLY_ALL * capacity
    ]
    smallest = min((size for size, _ in waits), default=0)
    ios = sum(each.ios for size, each in waits if size == smallest)
    if not ios:
        return 0.0
    share = 1 - sum(each.waiting for size, each in waits if size == smallest) / ios
    return max(share - 2 * sqrt(share * (1 - share) / ios), 0.0)


def finds_other_map(
    run: StartupInput, warm: float, capacity: int, baseline: StartupInput | None = None
) -> StartupMark | None:
    """Return the mark of a run that would wait for the map more often, or less, if it were longer.

    `run`: the run; judged are reads that evict what writes changed, scans, and mixes with random
    reads of a part of the device. `warm`:
    the share of all addresses with their map entries in memory. `capacity`: size of the device
    [bytes]. `baseline`: a scan; one of the same I/O size that waits for less than half of its share
    is marked.
    """
    spec, waits = run.spec, run.map_waits
    if waits is not None and not spec.writes and waits.programs_share > AGREEMENT:
        return StartupMark(run.run_id, waits.programs_share, 0, spec.ios, spec.ignored_ios)
    later = warm
    if _is_scan(spec):
        later = 0.0
        share = 0.0 if waits is None else waits.share_of_time
        if TWICE * share < _usual_share(spec, baseline):
            return StartupMark(run.run_id, 1.0, 0, spec.ios, spec.ignored_ios)
    elif isinstance(spec, Mix):
        sizes = [part.target_bytes for part in spec.parts if label_of(part) == "RR"]
        later = min(warm * capacity / min(sizes, default=capacity), 1.0)
    if waits is None or not 0 < warm < 1:
        return None
    if waits.share_of_time * abs((1 - later) / (1 - warm) - 1) <= AGREEMENT:
        return None
    return StartupMark(run.run_id, warm, 0, spec.ios, spec.ignored_ios)


def _usual_share(spec: Basic, baseline: StartupInput | None) -> float:
    """Return the share of time that scans of an I/O size wait for the map; 0 if it is unknown."""
    if baseline is None or baseline.map_waits is None or not isinstance(baseline.spec, Basic):
        return 0.0
    share = baseline.map_waits.share_of_time
    return share if share > AGREEMENT and baseline.spec.io_size == spec.io_size else 0.0


def _is_scan(spec: Spec) -> TypeGuard[Basic]:
    """Return whether a run reads in order, and no address twice."""
    return (
        isinstance(spec, Basic)
        and label_of(spec) == "SR"
        and spec.incr != 0
        and spec.ios * spec.processes * spec.io_bytes <= spec.target_bytes
    )


def part_means(measured_ns: NDArray[Any]) -> tuple[float, ...]:
    """Return the means of `PARTS` equal parts of response times (n,) [ns]; none of too few."""
    if len(measured_ns) < PARTS:
        return ()
    return tuple(float(part.mean()) for part in np.array_split(measured_ns, PARTS))


def _is_level(run: StartupInput, share: float) -> bool:
    """Whether the mean of a run is that of its rest after a share of it, and the rest is long."""
    remainder = run.parts_ns[ceil(share * PARTS) :]
    if len(remainder) < PARTS // 2:
        return False
    mean_ns, remainder_ns = np.mean(run.parts_ns), np.mean(remainder)
    return bool(abs(mean_ns - remainder_ns) <= AGREEMENT * remainder_ns)


class _Baselines:
    """The baselines, a reference for the writes of other runs."""

    def __init__(self, runs: Sequence[StartupInput], phases: Phases | None, capacity: int) -> None:
        self._capacity = capacity
        self._writes: dict[str, Writes] = {}
        self._running: dict[str, DurationHistogram] = {}
        self._over: dict[str, bool] = {}
        self._read_ns: float | None = None
        self._quickest: dict[int, float] = {}
        for run in runs:
            for each in run.writes:
                quickest = self._quickest.setdefault(each.io_size, each.quickest_ns)
                self._quickest[each.io_size] = min(quickest, each.quickest_ns)
        for name in (BASELINE, INTERFERENCE):
            for run in runs:
                if run.micro_benchmark == name:
                    self._add(run, phases)

    def _add(self, run: StartupInput, phases: Phases | None) -> None:
        if run.baseline == "RR" and len(run.times_ns):
            self._read_ns = quickest_ns(run.times_ns)
        for each in run.writes:
            if each.label in self._writes or len(run.writes) > 1:
                continue
            pattern_phases = None
            if phases is not None:
                by_label = {**phases["again"], **phases["patterns"]}
                pattern_phases = by_label.get(each.label)
            self._writes[each.label] = each
            self._over[each.label] = (
                pattern_phases is None or STARTUP_NOT_OVER not in pattern_phases.reasons
            )
            start = 0 if pattern_phases is None else pattern_phases.startup_ios
            self._running[each.label] = DurationHistogram.from_times(run.times_ns[start:])

    def _is_buffered(self, each: Writes) -> bool:
        return is_buffered(each, self._read_ns)

    def _is_past(self, label: str) -> bool | None:
        """Return whether a baseline is past the start-up; None without a baseline."""
        each = self._writes.get(label)
        if each is None:
            return None
        if not self._is_buffered(each):
            return self._over[label]
        needed_bytes = SPARE_SHARE * self._capacity
        return all(self._over.values()) and all(
            other.bytes_written >= needed_bytes for other in self._writes.values()
        )

    def only_long_run_means(self, startup: Startup) -> Startup:
        """Omit means of baselines that are not past the start-up.

        They do not measure the work that a write causes, nor the idle time that it needs.
        """
        means = {
            label: mean
            for label, mean in startup.means_ns.items()
            if label not in LABELS_OF_WRITES or self._is_past(label) is not False
        }
        return replace(startup, means_ns=means)

    def never_left(self, run: StartupInput, startup: Startup | None) -> bool:
        """Whether the writes of a run never left the write cache, and a longer run would."""
        if run.micro_benchmark in CACHE_BURSTS:
            return False
        if startup is not None and run.baseline is None and never_ends(run.spec, startup):
            return False
        return all(map(self._never_waited, run.writes)) and any(
            self._would_leave(run, each, startup) for each in run.writes
        )

    def _never_waited(self, each: Writes) -> bool:
        if each.waited is not None:
            return each.never_waited
        # A write that always waits for a full cache waits evenly: it is slower than the quickest.
        middle = float(np.searchsorted(np.cumsum(each.times.counts), each.times.total / 2))
        level_ns = 2 ** (middle / BINS_PER_OCTAVE)
        is_quick = level_ns <= BUFFER_SPEEDUP * self._quickest[each.io_size]
        return each.never_waited and is_quick and self._is_buffered(each)

    def _would_leave(self, run: StartupInput, each: Writes, startup: Startup | None) -> bool:
        if run.baseline is not None or not (is_past := self._is_past(each.label)):
            if run.baseline is None:
                return True
            return each.bytes_written < SPARE_SHARE * self._capacity
        assert is_past, "its baseline is"
        startup_bytes = 0 if startup is None else startup.writes * startup.io_size
        return each.bytes_written < TWICE * startup_bytes

    def not_past(self, run: StartupInput, startup: Startup) -> StartupMark | None:
        """Return the mark of a run that nothing shows to be past the start-up, else None."""
        count, ignored = run.spec.io_count, run.spec.io_ignore
        rows = in_rows(run.spec, startup)
        mark = StartupMark(run.run_id, 1.0, rows, count or 0, ignored or 0)
        if run.baseline is not None:
            return mark if self._is_past(run.baseline) is False and run.writes else None
        if never_ends(run.spec, startup) or self._is_long(run):
            return None
        for each in run.writes:
            if self._is_past(each.label) is False:
                return mark
            is_short = count is not None and count < TWICE * rows
            if (is_short or self._absorbs(run, each, startup)) and self._is_too_quick(each):
                return mark
        return None

    def _absorbs(self, run: StartupInput, each: Writes, startup: Startup) -> bool:
        """Whether the spare space of a buffered device may hold all writes of a run.

        What the device moves in the idle time of the run needs no space.
        """
        kept_bytes = each.bytes_written * (1 - idle_share(run.spec, startup))
        return self._is_buffered(each) and kept_bytes < SPARE_SHARE * self._capacity

    def _is_long(self, run: StartupInput) -> bool:
        """Whether a run wrote so much that it is past any start-up, whatever baselines show."""
        needed_bytes = steady_bytes(self._capacity)
        return bool(run.writes) and all(each.bytes_written >= needed_bytes for each in run.writes)

    def _is_too_quick(self, each: Writes) -> bool:
        """Whether fewer writes are slow than of its baseline, beyond chance."""
        base, times = self._writes.get(each.label), self._running.get(each.label)
        if base is None or times is None or not times.total:
            return False
        size_ratio = min(each.io_size / base.io_size, 1.0)
        slow = times.slow_from() - BINS_PER_OCTAVE
        expected = each.times.total * size_ratio * times.since(slow) / times.total
        slow_bin = slow + round(BINS_PER_OCTAVE * float(np.log2(size_ratio)))
        return _poisson(each.times.since(slow_bin), expected) < BY_CHANCE


def _poisson(most: int, expected: float) -> float:
    """Return the probability of at most this number of events.

    >>> round(_poisson(0, 5.0), 4), round(_poisson(2, 3.0), 4)
    (0.0067, 0.4232)
    """
    if most > expected:
        return 1.0
    term = total = exp(-expected)
    for n in range(1, most + 1):
        term *= expected / n
        total += term
    return total
