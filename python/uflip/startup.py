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
**Ambiguous** The unit. The paper counts I/Os, all of 32 KB. Room is bytes where a page map
has free blocks, and I/Os where each takes a log block: a run must have passed the start-up in both.
Reads use up no room: theirs is counted in I/Os.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from uflip.data.phases import Phases, PhasesOfPattern
from uflip.data.spec import Mix, Parallel, Part, Spec

LABELS_OF_WRITES = ("SW", "RW")
NOT_OVER = "start_up_not_over"


@dataclass(frozen=True)
class Startup:
    """The start-up that the baselines show, of reads and of writes, in I/Os of a size [bytes]."""

    reads: int
    writes: int
    io_size: int


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


def longest_of(shown: Iterable[tuple[str, PhasesOfPattern]], io_size: int) -> Startup:
    """Return the upper bounds across some patterns: pairs of a label and what it shows."""
    longest = {True: 0, False: 0}
    for label, found in shown:
        ios = found["ios"] if NOT_OVER in found["reasons"] else found["startup_ios"]
        is_write = label in LABELS_OF_WRITES
        longest[is_write] = max(longest[is_write], ios)
    return Startup(longest[False], longest[True], io_size)


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
    if isinstance(spec, Parallel):
        return 0
    rows = 0
    for writing, ios in ((False, startup.reads), (True, startup.writes)):
        made = [
            (count, count * part.io_bytes)
            for part, count in _of_a_row(spec)
            if part.is_write is writing and count
        ]
        if made and ios:
            in_a_row = sum(count for count, _ in made)
            rows = max(rows, _ceil(ios, in_a_row))
            if writing:
                in_a_row = sum(size for _, size in made)
                rows = max(rows, _ceil(ios * startup.io_size, in_a_row))
    return rows


def _of_a_row(spec: Spec) -> list[tuple[Part, float]]:
    """Return the basic patterns of a specification, and how many I/Os of each a row has."""
    if not isinstance(spec, Mix):
        return [(part, float(part.processes)) for part in spec.parts]
    if (percent := spec.first_percent) is not None:
        return [(spec.first, percent / 100), (spec.second, 1 - percent / 100)]
    return [(spec.first, float(spec.turns)), (spec.second, 1.0)]


def _ceil(total: float, each: float) -> int:
    return int(-(-total // each))
