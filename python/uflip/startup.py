"""The start-up phase of a run: derived from the bytes written since the device was idle.

    baseline RW, 32 KiB    ▁▁▁▁▁▁▁▁█▇█▇█▇█▇█▇█▇     start-up of 8 I/Os = 256 KiB
    a run of 4 KiB writes  ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁     20 I/Os =  80 KiB: all of it is start-up

A device has a limited amount of free space, which is filled in bytes. A start-up that a baseline
shows with I/Os of 32 KiB lasts eight times as many I/Os of 4 KiB, and a quarter as many for each of
four processes.

**Source** uFLIP (CIDR 2009) §4.2: "derive upper bounds across the patterns" of the start-up, and
set IOIgnore and IOCount by them.
**Faithful** The bound is the largest of any pattern that is known when a run begins.
**Simplified** One bound for all patterns that write, one for those that only read.
**Ambiguous** (1) The unit. The paper counts I/Os, all of 32 KB. Free space is bytes where a page
map has free blocks, and I/Os where each takes a log block: a run must have passed the start-up in
both. Reads use up no space: their start-up is counted in I/Os. In a mix of two patterns that write,
each must have passed it by itself: sequential writes do not fill a log of random ones. (2) Time. A
device reclaims space while it is idle, and reads and pauses between writes leave it idle. A write
takes `m` in the running phase of its baseline. The device does a part `i` of this in the
background, in the idle time of each write, so the space for n writes lasts for n × m / (m - i): 119
random writes of sim:mtron (m = 8.9 ms) with eight reads each (i = 3 ms) last for 180. With an idle
time of `ENOUGH_IDLE_RATIO` times `m` it lasts for ever; between 0.8 and that the end is unknown.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf, isinf

from uflip.data.locations import DRAWN
from uflip.data.manifest import Phases, PhasesOfPattern
from uflip.data.spec import OPEN_TIMES, Basic, Mix, MixPart, Parallel, Spec

LABELS_OF_WRITES = ("SW", "RW")
STARTUP_NOT_OVER = "start_up_not_over"
# Twice the time of the work: background work may be less efficient.
ENOUGH_IDLE_RATIO = 2.0
# With more idle time than this part of the work, space is used up so slowly that it may never end.
BALANCED_IDLE_SHARE = 0.8
# Spare space of a drive that sells as many GB as it has GiB of flash; few drives have less.
SPARE_SHARE = 1 - 10**9 / 2**30
MAX_ROWS = 1 << 40


@dataclass(frozen=True)
class Startup:
    """The start-up of reads and of writes that the baselines show, in I/Os of a size [bytes].

    `means_ns` holds the known means of the running phases of the baselines, by label [ns];
    `read_effect` and `write_effect` are the relative deviations of the start-up from these means.
    """

    reads: int
    writes: int
    io_size: int
    means_ns: Mapping[str, float] = field(default_factory=dict)
    read_effect: float = 1.0
    write_effect: float = 1.0


def startup_of(phases: Phases, io_size: int) -> Startup:
    """Return the upper bounds across the patterns; a start-up that is not over lasts the whole run.

    `phases`: from the manifest. `io_size`: of the analysed runs [bytes].
    """
    return longest_of([*phases["patterns"].items(), *phases["again"].items()], io_size)


def longest_of(
    labelled_phases: Iterable[tuple[str, PhasesOfPattern]], io_size: int, *, settled: bool = False
) -> Startup:
    """Return the upper bounds across some patterns, given as pairs of a label and its phases.

    Runs are planned for the longest start-up that an analysis finds; their results are checked
    against the I/O at which the baseline had `settled`.
    """
    longest = {True: 0, False: 0}
    effects: dict[bool, float] = {}
    means: dict[str, float] = {}
    for label, phases in labelled_phases:
        means.setdefault(label, phases.running_ns)
        is_write, ios = label in LABELS_OF_WRITES, phases.settled_ios
        if not settled:
            ios = max(phases.startup_ios, ios)
        effect = abs(phases.settling_ns / phases.running_ns - 1)
        if STARTUP_NOT_OVER in phases.reasons:
            ios, effect = phases.ios, 1.0
        if ios:
            longest[is_write] = max(longest[is_write], ios)
            effects[is_write] = max(effects.get(is_write, 0.0), effect)
    return Startup(
        longest[False],
        longest[True],
        io_size,
        means,
        effects.get(False, 1.0),
        effects.get(True, 1.0),
    )


def in_rows(spec: Spec, startup: Startup) -> int:
    """Return the start-up in the unit of a pattern's `io_count`; 0 for parallel patterns.

    >>> from uflip.spec import baseline
    >>> in_rows(baseline("RW", io_size=4096), Startup(reads=0, writes=68, io_size=32768))
    544
    >>> in_rows(baseline("RW", io_size=262144, parallel_degree=4), Startup(0, 68, 32768))
    17
    """
    rows = startup_rows(spec, startup)
    # A start-up that may never end: the longest possible run.
    return MAX_ROWS if isinf(rows) else int(rows)


def startup_rows(spec: Spec, startup: Startup) -> float:
    """Return the same as a number; infinity if it may never end."""
    if isinstance(spec, Parallel):
        return 0
    rows = 0
    for part, count in _of_a_row(spec):
        if not count:
            continue
        ios = startup.writes if part.is_write else startup.reads if part.mode == "read" else 0
        rows = max(rows, _ceil(ios, count))
        if part.is_write:
            rows = max(rows, _ceil(ios * startup.io_size, count * part.io_bytes))
    idle = idle_share(spec, startup)
    if not rows or not spec.writes or idle >= ENOUGH_IDLE_RATIO:
        return rows
    return inf if idle > BALANCED_IDLE_SHARE else _ceil(rows, 1 - idle)


def never_ends(spec: Spec, startup: Startup) -> bool:
    """Return whether a pattern leaves the device so much idle time that its writes stay fast."""
    return spec.writes and idle_share(spec, startup) >= ENOUGH_IDLE_RATIO


def idle_share(spec: Spec, startup: Startup) -> float:
    """Return the idle time that a pattern leaves a device, relative to the work of its writes.

    >>> from uflip.spec import baseline, mix
    >>> known = Startup(0, 119, 32768, {"RR": 375_000, "RW": 9_000_000})
    >>> read, write = (baseline(label, io_size=32768) for label in ("RR", "RW"))
    >>> idle_share(mix(read, write, 8), known)
    0.3333333333333333
    """
    work = idle = service = 0.0
    if not startup.io_size:
        return 0.0
    row = _of_a_row(spec)
    for part, count in row:
        mean_ns = startup.means_ns.get(label_of(part))
        if part.is_write:
            if mean_ns is None:
                return 0.0
            work += count * mean_ns * max(part.io_bytes / startup.io_size, 1.0)
            idle += count * _pause_ns(part)
        elif spec.depth == 1:
            idle += count * (mean_ns or 0.0) * min(part.io_bytes / startup.io_size, 1.0)
        service += count * (mean_ns or 0.0) * part.io_bytes / startup.io_size
    if isinstance(spec, Basic | Mix) and spec.time in OPEN_TIMES:
        # I/Os arrive whether earlier ones have ended or not: the time not spent on them is idle.
        arrivals = sum(count for _, count in row) if isinstance(spec, Mix) else 1
        idle = max(arrivals * float(spec.interval or 0) - service, 0.0)
    return idle / work if work else 0.0


def _pause_ns(part: MixPart) -> float:
    """Return the idle time that a pattern adds with each of its I/Os [ns]."""
    if part.time == "burst":
        return float(part.pause or 0) / max(part.burst or 1, 1) / part.processes
    return float(part.pause or 0) / part.processes if part.time == "pause" else 0.0


def label_of(part: MixPart) -> str:
    """Return the baseline that a pattern resembles: SR, RR, SW or RW."""
    return ("R" if part.location in DRAWN else "S") + ("W" if part.is_write else "R")


def _of_a_row(spec: Spec) -> list[tuple[MixPart, float]]:
    """Return the basic patterns of a specification, and the number of I/Os of each in a row."""
    if not isinstance(spec, Mix):
        return [(part, float(part.processes)) for part in spec.parts]
    if (percent := spec.first_percent) is not None:
        return [(spec.first, percent / 100), (spec.second, 1 - percent / 100)]
    return [(spec.first, float(spec.turns)), (spec.second, 1.0)]


def _ceil(total: float, each: float) -> int:
    return int(-(-total // each))


STEADY_PART, MOVED_PART, STARTUPS = 8, 2, 2


def steady_bytes(
    capacity_bytes: int, startup_bytes: int = 0, *, overwritten: bool = True, uniform: bool = True
) -> int:
    """Return the bytes of random writes needed before steady state can be judged.

    The last half is judged; the first half is as long. A device that was overwritten at random was
    steady once: in advance it takes only the space that it reclaimed while idle, at most a part of
    its spare space. An eighth of the device is more than the spare space of most drives, and no
    known start-up is half as long. Writes that are not uniform also move the data that they leave:
    half of the device before the judged half. On simulated devices that brings the write
    amplification of all patterns of the suite iq within 3 % of its final value. Any other device is
    fast until all its free blocks are used up, which takes its whole capacity and more.

    >>> steady_bytes(1 << 30) == 1 << 28, steady_bytes(1 << 30, 1 << 28) == 1 << 30
    (True, True)
    >>> steady_bytes(1 << 30, uniform=False) == 1 << 30
    True
    >>> steady_bytes(1 << 30, overwritten=False) == 2 << 30
    True
    """
    least = capacity_bytes
    if overwritten:
        least //= STEADY_PART if uniform else MOVED_PART
    return 2 * max(least, STARTUPS * startup_bytes)
