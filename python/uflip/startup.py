"""How much of a device's start-up a run has behind it: bytes written since the device was idle.

    baseline RW, 32 KiB    ▁▁▁▁▁▁▁▁█▇█▇█▇█▇█▇█▇     start-up of 8 I/Os = 256 KiB
    a run of 4 KiB writes  ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁     20 I/Os =  80 KiB: all of it is start-up

A device has so much room, and what fills it is bytes. A start-up that a baseline shows in
I/Os of 32 KiB lasts eight times as many of 4 KiB, and a quarter as many for each of four
processes.

**Source** uFLIP (CIDR 2009) §4.2: "derive upper bounds across the patterns" of the start-up, and
set IOIgnore and IOCount by them.
**Faithful** The bound is the largest of any pattern that is known when a run begins.
**Simplified** One bound for all that writes, one for what only reads.
**Ambiguous** (1) The unit. The paper counts I/Os, all of 32 KB. Room is bytes where a page map
has free blocks, and I/Os where each takes a log block: a run must have passed the start-up in both.
Reads use up no room: theirs is counted in I/Os. Of a mix of two patterns that write, each must have
passed it by itself: sequential writes fill no log of random ones. (2) Time. A device reclaims room
while it is idle, and reads and pauses between writes leave it idle. A write takes `m` in the long
run, as the running phase of its baseline shows. Of this the device does `i`, the idle time that
comes with each write, in the background, and the room for n writes lasts for n × m / (m - i) of
them: 119 random writes of sim:mtron (m = 8.9 ms) beside eight reads each (i = 3 ms) for 180. With
`ENOUGH_IDLE` times `m` it lasts for ever; between 0.8 and that times `m` nobody knows.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf, isinf

from uflip.data.phases import Phases, PhasesOfPattern
from uflip.data.spec import Basic, Mix, MixPart, Parallel, Spec
from uflip.data.spec_base import DRAWN, OPEN_TIMES

LABELS_OF_WRITES = ("SW", "RW")
NOT_OVER = "start_up_not_over"
# Twice the time that the work takes: what is done in the background may be done less well.
ENOUGH_IDLE = 2.0
# Idle for longer than this part of the work, room is used up so slowly that it may never end.
BALANCED = 0.8
# Spare space of a drive that sells as many GB as it has GiB of flash; few have less.
SPARE_SHARE = 1 - 10**9 / 2**30
MOST_ROWS = 1 << 40


@dataclass(frozen=True)
class Startup:
    """The start-up that the baselines show, of reads and of writes, in I/Os of a size [bytes].

    `means_ns` are the means of the running phases of the baselines, by label, as far as they are
    known [ns]; `read_effect` and `write_effect` say by which part of these the start-up is off.
    """

    reads: int
    writes: int
    io_size: int
    means_ns: Mapping[str, float] = field(default_factory=dict)
    read_effect: float = 1.0
    write_effect: float = 1.0


def startup_of(phases: Phases, io_size: int) -> Startup:
    """Return the upper bounds across the patterns; one that is not over lasts all of its run.

    Parameters
    ----------
    phases : Phases
        As the manifest holds them.
    io_size : int
        Of the runs that were analysed [bytes].
    """
    return longest_of([*phases["patterns"].items(), *phases.get("again", {}).items()], io_size)


def longest_of(
    shown: Iterable[tuple[str, PhasesOfPattern]], io_size: int, *, settled: bool = False
) -> Startup:
    """Return the upper bounds across some patterns: pairs of a label and what it shows.

    Runs are laid out for the longest start-up that an analysis sees; what they measured is judged
    by where the baseline had `settled`.
    """
    longest = {True: 0, False: 0}
    effects: dict[bool, float] = {}
    means: dict[str, float] = {}
    for label, found in shown:
        mean_ns = found.get("running_ns", found.get("mean_ns"))
        if mean_ns is not None:
            means.setdefault(label, mean_ns)
        is_write, ios = label in LABELS_OF_WRITES, found["startup_ios"]
        here = found.get("settled_ios", ios)
        ios = here if settled else max(ios, here)
        effect = (
            abs(found["settling_ns"] / mean_ns - 1) if mean_ns and "settling_ns" in found else 1.0
        )
        if NOT_OVER in found["reasons"]:
            ios, effect = found["ios"], 1.0
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
    """Return the start-up in what `io_count` counts of a pattern; 0 for patterns side by side.

    Examples
    --------
    >>> from uflip.spec import baseline
    >>> in_rows(baseline("RW", io_size=4096), Startup(reads=0, writes=68, io_size=32768))
    544
    >>> in_rows(baseline("RW", io_size=262144, parallel_degree=4), Startup(0, 68, 32768))
    17
    """
    rows = startup_rows(spec, startup)
    # A start-up that may never end: the longest run that fits.
    return MOST_ROWS if isinf(rows) else int(rows)


def startup_rows(spec: Spec, startup: Startup) -> float:
    """Return the same as a number; infinity where nobody can say that it ends."""
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
    if not rows or not spec.writes or idle >= ENOUGH_IDLE:
        return rows
    return inf if idle > BALANCED else _ceil(rows, 1 - idle)


def never_ends(spec: Spec, startup: Startup) -> bool:
    """Whether a pattern leaves the device so much idle time that its writes stay quick for ever."""
    return spec.writes and idle_share(spec, startup) >= ENOUGH_IDLE


def idle_share(spec: Spec, startup: Startup) -> float:
    """Return how long a pattern leaves a device idle, in times of what its writes cost it.

    Examples
    --------
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
        # I/Os arrive whether earlier ones have ended or not: what serving them leaves is idle.
        arrivals = sum(count for _, count in row) if isinstance(spec, Mix) else 1
        idle = max(arrivals * float(spec.interval or 0) - service, 0.0)
    return idle / work if work else 0.0


def _pause_ns(part: MixPart) -> float:
    """Return how long a pattern leaves the device alone with each of its I/Os [ns]."""
    if part.time == "burst":
        return float(part.pause or 0) / max(part.burst or 1, 1) / part.processes
    return float(part.pause or 0) / part.processes if part.time == "pause" else 0.0


def label_of(part: MixPart) -> str:
    """Return the baseline that a pattern resembles: SR, RR, SW or RW."""
    return ("R" if part.location in DRAWN else "S") + ("W" if part.is_write else "R")


def _of_a_row(spec: Spec) -> list[tuple[MixPart, float]]:
    """Return the basic patterns of a specification, and how many I/Os of each a row has."""
    if not isinstance(spec, Mix):
        return [(part, float(part.processes)) for part in spec.parts]
    if (percent := spec.first_percent) is not None:
        return [(spec.first, percent / 100), (spec.second, 1 - percent / 100)]
    return [(spec.first, float(spec.turns)), (spec.second, 1.0)]


def _ceil(total: float, each: float) -> int:
    return int(-(-total // each))


STEADY_PART, STARTUPS = 8, 2


def steady_bytes(capacity_bytes: int, startup_bytes: int = 0, *, overwritten: bool = True) -> int:
    """Return how much random writes must write before there is a verdict on steady state [bytes].

    The last half is what the verdict looks at; the first is as long. A device that was overwritten
    at random was steady once: what it takes in advance is what it reclaims while it is idle, a part
    of its spare space at most. An eighth of the device is more than the spare space of most drives,
    and no start-up that is known is half as long. Any other device is fast until all of its free
    blocks are used up, which takes its whole capacity and more.

    Examples
    --------
    >>> steady_bytes(1 << 30) == 1 << 28, steady_bytes(1 << 30, 1 << 28) == 1 << 30
    (True, True)
    >>> steady_bytes(1 << 30, overwritten=False) == 2 << 30
    True
    """
    least = capacity_bytes // STEADY_PART if overwritten else capacity_bytes
    return 2 * max(least, STARTUPS * startup_bytes)
