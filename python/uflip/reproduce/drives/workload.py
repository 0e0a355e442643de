"""A phase as a workload, and the phases to which constants are fitted.

**Source**: Haas et al., SSD-iq (PVLDB 2025), and the notes beside its tables.
**Faithful**: shares of space and writes, exponents, sizes of zones, number of open zones.
**Simplified**: nothing.
**Ambiguous**: `fiozipf` is fio's generator; which of its ranks are hashed together is not known, so
its phases are listed and not simulated, as is one pass of writes in a shuffled order.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from uflip.reproduce.drives.tables import Phase

ZONE_PAGES_PER_GIB = 2048
"""Writes of 512 KiB that make a GiB of a zone."""


@dataclass(frozen=True)
class Workload:
    """Writes to a drive."""

    kind: str  #: "sequential", "uniform", "zipf", "two_areas" or "zones".
    skew_percent: int = 0  #: Of `zipf`: θ in hundredths.
    #: Of `two_areas`: the first area's share of the space and of the writes.
    space_percent: int = 0
    writes_percent: int = 0
    zone_gib: float = 0.0  #: Of `zones`: the size of a zone [GiB].
    open_zones: int = 1  #: Of `zones`: zones that are written at a time.


def workload_of(phase: Phase) -> Workload | None:
    """Return the workload of a phase, or None if it is not simulated.

    Examples
    --------
    >>> found = workload_of(Phase("zones-shuffle", "s0.4 f0 s0.6 f1", 894))
    >>> found.kind, found.space_percent, found.writes_percent
    ('two_areas', 40, 0)
    """
    if phase.offered_per_s or phase.pattern == ONE_SHUFFLED_PASS:
        return None
    parse = PARSERS.get(phase.pattern.removesuffix("-noshuffle").removesuffix("-shuffle"))
    return parse(phase.details) if parse else None


def _zipf(details: str) -> Workload | None:
    if not re.fullmatch(r"\d+(\.\d+)?", details):
        return None
    return Workload("zipf", skew_percent=round(100 * float(details)))


def _areas(details: str) -> Workload | None:
    number = r"(\d+(?:\.\d+)?)"
    parts = re.fullmatch(rf"s{number} f{number} s{number} f{number}", details)
    if parts is None:
        return None
    space, writes, rest, other = (round(100 * float(part)) for part in parts.groups())
    if space + rest != 100 or writes + other != 100 or not 0 < space < 100:
        return None
    return Workload("two_areas", space_percent=space, writes_percent=writes)


def _zones(details: str) -> Workload | None:
    parts = re.fullmatch(r"activeZones: (\d+) pagesPerZone: (\d+)", details)
    if parts is None:
        return None
    open_zones, pages = map(int, parts.groups())
    return Workload("zones", zone_gib=pages / ZONE_PAGES_PER_GIB, open_zones=open_zones)


ONE_SHUFFLED_PASS = "sequential-shuffle"
PARSERS: dict[str, Callable[[str], Workload | None]] = {
    "sequential": lambda _: Workload("sequential"),
    "uniform": lambda _: Workload("uniform"),
    "zipf": _zipf,
    "zones": _areas,
    "zns": _zones,
}
"""Name of a pattern -> the function that reads its details."""


def is_calibration(phase: Phase, capacity_gib: float) -> bool:
    """Return whether constants are fitted to a phase: a rule for any drive.

    These are sequential and uniform writes to the whole drive, mild skew, a little or most of the
    drive only read, and one open zone of 1, 2 or 16 GiB.

    Examples
    --------
    >>> is_calibration(Phase("zipf-shuffle", "0.4", 894), 894)
    True
    >>> is_calibration(Phase("uniform", "", 372), 894)
    False
    """
    workload = workload_of(phase)
    if workload is None or phase.capacity_gib != capacity_gib:
        return False
    match workload.kind:
        case "zipf":
            return workload.skew_percent == 40
        case "two_areas":
            return workload.writes_percent == 0 and workload.space_percent in (40, 80)
        case "zones":
            return workload.open_zones == 1 and workload.zone_gib in (1, 2, 16)
    return True
