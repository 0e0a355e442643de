"""Write amplification of a workload on a simulated drive of lines.

A *line* is a superblock: a block on every die, filled, collected and erased as one. Lines hide the
dies, so a drive of lines is a page map over one die whose blocks are the lines.

**Source**: FEMU (Li et al., FAST 2018) and NVMeVirt (Kim et al., FAST 2023) collect by lines.
**Faithful**: victims, frontiers, spare space, and the length of each phase, relative to the drive.
**Simplified**: the drive is scaled down. A line has `RANDOM_LINE_PAGES` pages under random writes,
since write amplification depends on the number of pages of a line only when they are few (Desnoyers
2012), and a page is `ZONE_PAGE_MIB` under zones, where every write is long.
**Ambiguous**: how writes of several open zones alternate: by eighths of a zone.
"""

import random
from dataclasses import dataclass
from functools import cache
from math import gcd, log

from uflip.reproduce.drives.workload import Workload
from uflip.reproduce.simulated_device import SimulatedDevice, device_url
from uflip.spec import Basic, Mix, basic, mix

PAGE_BYTES = 4096
PAGES_PER_GIB = (1 << 30) // PAGE_BYTES
EXACT_RANKS = 32
RANDOM_LINES, RANDOM_LINE_PAGES = 256, 256
ZONE_PAGE_MIB = 4
COUNTED = 0.2
"""The share of a phase that is counted: its end."""
PIECES_OF_ZONE = 8
MOST_ZONES = 200
"""A larger drive is simulated at the fraction of its capacity that has this number of zones."""
LEAST_SPARE_LINES = 8
"""A fraction has this number of spare lines at least; a drive with fewer cannot collect."""


@dataclass(frozen=True)
class Lines:
    """The lines of a drive."""

    spare_factor: float  #: Share of the flash that the written range does not cover.
    line_share: float = 0.0  #: Size of a line, in capacities of the range; only zones depend on it.
    policy: str = "greedy"  #: Victim policy, as in a profile.
    apart: bool = True  #: Whether relocated pages fill lines of their own.


@cache
def write_amplification(
    workload: Workload, lines: Lines, written: float, capacity_gib: float
) -> float:
    """Simulate a phase and return the write amplification of its end.

    Parameters
    ----------
    workload : Workload
        The writes.
    lines : Lines
        The drive.
    written : float
        Length of the phase, in capacities.
    capacity_gib : float
        The range that is written [GiB]; zones and Zipf's law depend on it.
    """
    if workload.kind == "sequential":
        return 1.0
    if workload.kind == "zones":
        return _zones(workload, lines, written, capacity_gib)
    device = _open(lines, RANDOM_LINES, RANDOM_LINE_PAGES)
    pages = device.logical_pages
    # A shuffled first fill scatters the areas: it numbers the pages anew.
    stride = _coprime(pages) if workload.kind == "two_areas" else 1
    device.apply(_write("ordered", 0, pages, pages, incr=stride))
    counted = {}
    for seed, share in ((1, 1 - COUNTED), (2, COUNTED)):
        ios = max(1, round(pages * written * share))
        counted = device.apply(_random(workload, pages, ios, seed, capacity_gib))
    return counted["pages_programmed"] / counted["host_pages_written"]


def _random(
    workload: Workload, pages: int, ios: int, seed: int, capacity_gib: float
) -> Basic | Mix:
    if workload.kind == "zipf":
        return _zipf(workload.skew_percent, pages, ios, seed, capacity_gib)
    if workload.kind == "uniform":
        return _write("random", 0, pages, ios, seed=seed)
    first = max(1, pages * workload.space_percent // 100)
    if workload.writes_percent == 0:
        return _write("random", first, pages - first, ios, seed=seed)
    if workload.writes_percent == 100:
        return _write("random", 0, first, ios, seed=seed)
    return _write(
        "hotcold", 0, pages, ios, seed=seed,
        hot_space_percent=workload.space_percent, hot_io_percent=workload.writes_percent,
    )  # fmt: skip


def _zipf(skew_percent: int, pages: int, ios: int, seed: int, capacity_gib: float) -> Basic | Mix:
    """Write by Zipf's law over the pages of the range; a simulated page stands for many of them."""
    head = head_percent(skew_percent / 100, pages, capacity_gib * PAGES_PER_GIB)
    if head == 0:
        return _write("zipf", 0, pages, ios, skew_percent=skew_percent, seed=seed)
    shape = {"io_size": PAGE_BYTES, "target_offset": 0}
    return mix(
        basic("write", "random", **shape, target_size=PAGE_BYTES),
        basic("write", "zipf", **shape, target_size=pages * PAGE_BYTES, skew_percent=skew_percent),
        first_percent=head, io_count=ios, seed=seed,
    )  # fmt: skip


def head_percent(theta: float, pages: int, real_pages: float) -> int:
    """Return the share of writes that a small drive must add to its most popular page [%].

    A simulated page stands for `real_pages / pages` of neighbouring ranks. The first of them get
    more of all writes than the first page of a small drive gets by the same law.

    Examples
    --------
    >>> head_percent(0.6, 55_000, 234e6), head_percent(0.8, 55_000, 234e6)
    (1, 7)
    >>> head_percent(1.0, 55_000, 234e6)
    40
    """
    real = zipf_weight(theta, real_pages / pages) / zipf_weight(theta, real_pages)
    simulated = 1 / zipf_weight(theta, pages)
    return max(0, round(100 * (1 - (1 - real) / (1 - simulated))))


def zipf_weight(theta: float, ranks: float) -> float:
    """Return the sum of r^-theta over the first ranks, by Euler and Maclaurin."""
    head = sum(float(rank) ** -theta for rank in range(1, EXACT_RANKS))
    first, last = float(EXACT_RANKS), max(ranks, EXACT_RANKS)
    integral = (
        log(last / first)
        if theta == 1
        else (last ** (1 - theta) - first ** (1 - theta)) / (1 - theta)
    )
    return float(head + integral + (first**-theta + last**-theta) / 2)


def _zones(workload: Workload, lines: Lines, written: float, capacity_gib: float) -> float:
    pages_per_gib = 1024 / ZONE_PAGE_MIB
    line_pages = max(2, round(lines.line_share * capacity_gib * pages_per_gib))
    pages = capacity_gib * pages_per_gib
    spare_to_used = lines.spare_factor / (1 - lines.spare_factor)
    fraction = max(
        MOST_ZONES * workload.zone_gib * pages_per_gib,
        LEAST_SPARE_LINES * line_pages / spare_to_used,
    )
    pages = min(pages, fraction)
    count = max(8, round(pages / (1 - lines.spare_factor) / line_pages))
    device = _open(lines, count, line_pages)
    zone = max(1, round(workload.zone_gib * pages_per_gib))
    zones = device.logical_pages // zone
    device.apply(_write("sequential", 0, device.logical_pages, device.logical_pages))
    piece = zone if workload.open_zones == 1 else max(1, zone // PIECES_OF_ZONE)
    return _write_zones(device, zone, piece, min(workload.open_zones, zones), written)


def _write_zones(
    device: SimulatedDevice, zone: int, piece: int, open_zones: int, written: float
) -> float:
    """Write pieces of open zones, drawn at random; discard another zone when one is full."""
    zones = device.logical_pages // zone
    rng = random.Random(1)
    filled: dict[int, int] = {}
    total = written * zones * zone
    done = programmed = host = 0
    while done < total:
        while len(filled) < open_zones:
            chosen = rng.randrange(zones)
            if chosen not in filled:
                device.trim(chosen * zone, zone)
                filled[chosen] = 0
        chosen = rng.choice(list(filled))
        length = min(piece, zone - filled[chosen])
        first = chosen * zone + filled[chosen]
        counters = device.apply(_write("sequential", first, length, length))
        done += length
        filled[chosen] += length
        if filled[chosen] == zone:
            del filled[chosen]
        if done > total * (1 - COUNTED):
            programmed += counters["pages_programmed"]
            host += counters["host_pages_written"]
    return programmed / host


def _open(lines: Lines, count: int, line_pages: int) -> SimulatedDevice:
    return SimulatedDevice(
        device_url(
            "ofc", channels=1, dies_per_channel=1, blocks_per_die=count,
            pages_per_block=line_pages, page_bytes=PAGE_BYTES, spare_bytes=0, metadata_pages=0,
            reserved_blocks=1, gc=lines.policy, separate_streams=lines.apart,
            spare_factor=round(lines.spare_factor, 6), state="empty",
        )
    )  # fmt: skip


def _write(location: str, first: int, pages: int, ios: int, **parameters: int) -> Basic:
    return basic(
        "write", location, io_size=PAGE_BYTES, io_count=ios, target_offset=first * PAGE_BYTES,
        target_size=pages * PAGE_BYTES, **parameters,
    )  # fmt: skip


def _coprime(pages: int) -> int:
    """Return a step near the golden section that visits every page."""
    step = max(1, int(0.618 * pages))
    while gcd(step, pages) > 1:
        step += 1
    return step
