"""Times: command, host link, cells, channel and program, as differences of response times.

::

    read of a sector without data   command + link
    read of a sector                command + cells + transfer + link
    second of two reads             later by a transfer on the same channel
    write of a page                 command + link + transfer + program
    trim                            command
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from uflip.inference.estimate import NORMAL, ROUNDING_NS, Interval, median_of, quickest_of
from uflip.inference.observations import Observation, Observations
from uflip.inference.structure import (
    CONTRAST,
    Structure,
    clean_ns,
    command_ns,
    flash_ns,
    quick_reads,
)

# Host links of real devices: SATA 1 to PCIe 6 with 16 lanes [bytes/s].
LINK_RANGE = (100e6, 120e9)
# The smallest piece that a link carries by itself: a page [bytes].
PIECE_BYTES = 2048
# Writes from which dies follow: their least pages, how much longer they take than their data on the
# link, and the difference of their programs from a whole number.
LARGE_WRITE_PAGES, LINK_FACTOR, WAVE_TOLERANCE = 4, 1.3, 0.1
# The same difference behind a map, whose reads and writes add to it, relative and absolute.
MAP_TOLERANCE, MAP_MOST = 0.2, 0.45


@dataclass(frozen=True)
class Times:
    """Durations of the steps [ns], None for what is not identified.

    Attributes
    ----------
    command_read, command_write : Interval or None
        Processor time of a command.
    link_byte : Interval or None
        A byte on the host link.
    flash : Interval or None
        Cells and transfer of a page together.
    transfer : Interval or None
        A page on its channel.
    write_page : Interval or None
        Transfer and program of a page together.
    excess : (Interval, int) or None
        Of a read of a page over one of a part, beyond the link: the rest of the transfer; and that
        part [bytes]. None if every read transfers whole pages.
    """

    command_read: Interval | None = None
    command_write: Interval | None = None
    link_byte: Interval | None = None
    flash: Interval | None = None
    transfer: Interval | None = None
    write_page: Interval | None = None
    excess: tuple[Interval, int] | None = None

    @property
    def partial_transfer(self) -> bool:
        """Whether a read transfers only the requested part of a page."""
        return self.excess is not None


def times_of(observations: Observations, structure: Structure) -> Times:
    """Return the times that follow from response times without a simulation."""
    link = link_byte_ns(observations)
    without = command_ns(observations)
    sector = observations.sector_bytes
    command_read = (
        None
        if without is None or link is None
        else quickest_of(quick_reads(observations, sector)) - link * sector
    )
    if command_read is not None:
        # The link carries a sector in whole nanoseconds.
        command_read = Interval(command_read.value, command_read.half + 1.0)
    command_write = _trim_ns(observations)
    return Times(
        command_read,
        command_write,
        link,
        flash_ns(observations),
        _visible_transfer(structure, without),
        _write_page(observations, structure, command_write, link),
        _excess_of_page(observations, structure, link),
    )


def link_byte_ns(observations: Observations) -> Interval | None:
    """Return the time of a byte on the link, the slope of reads without data [ns]."""
    runs = observations.by_value("read_deallocated", "RR")
    if command_ns(observations) is None or len(runs) < 3:
        return None
    sizes = np.array(sorted(runs), dtype=np.float64)
    medians = [median_of(quick_reads(observations, int(size))) for size in sizes]
    times = np.array([each.value for each in medians])
    weights = 1 / np.array([each.half for each in medians])
    slope, _ = np.polyfit(sizes, times, 1, w=weights)
    # A page is sent by itself, in whole nanoseconds: neighbouring slopes differ by that.
    steps = np.diff(times) / np.diff(sizes)
    spread = np.sqrt(np.sum(weights**2 * (sizes - np.average(sizes, weights=weights**2)) ** 2))
    half = float(max(np.abs(np.median(steps) - slope), ROUNDING_NS / PIECE_BYTES, 1.0 / spread))
    rate = 1e9 / slope if slope > 0 else np.inf
    if slope <= NORMAL * half or not LINK_RANGE[0] <= rate <= LINK_RANGE[1]:
        return None
    return Interval(float(slope), half)


def _trim_ns(observations: Observations) -> Interval | None:
    """Return the time of a trim [ns]; None if it takes as long as a write."""
    trims = observations.last("clear", "ST")
    writes = observations.by_value("write_size", "RW")
    if trims is None or not writes:
        return None
    each = quickest_of(trims.response_ns)
    return each if each.value < min(map(clean_ns, writes.values())) else None


def _visible_transfer(structure: Structure, command: Interval | None) -> Interval | None:
    """Return the time of a transfer if pairs on one channel show it, longer than a command."""
    if structure.channel_ns is not None and structure.channels is not None:
        return structure.channel_ns
    apart = structure.apart_ns
    if apart is None or command is None or apart.value < (1 + CONTRAST) * command.value:
        return None
    # Every pair on different dies waits for more than a command: there is one channel.
    return apart


def _write_page(
    observations: Observations,
    structure: Structure,
    command: Interval | None,
    link: Interval | None,
) -> Interval | None:
    unit = structure.mapping_unit
    run = observations.by_value("write_size", "RW").get(unit or 0)
    if run is None or unit is None or command is None or link is None:
        return None
    return _clean(run) - command - link * unit


def _clean(run: Observation) -> Interval:
    """Return the response time of a write that meets no collection, with its interval [ns]."""
    clean = run.response_ns[run.response_ns <= np.median(run.response_ns)]
    return Interval(clean_ns(run), median_of(clean).half)


def program_in_blocks(
    observations: Observations, page: int | None, times: Times
) -> Interval | None:
    """Return transfer and program of a page where a large write programs one after the other [ns].

    Programs of the first pages hide the link's time of the others.
    """
    run = observations.last("clear", "SW")
    if run is None or page is None or times.command_write is None or times.link_byte is None:
        return None
    programs = _clean(run) - times.command_write - times.link_byte * page
    return programs * (page / run.io_size)


def _excess_of_page(
    observations: Observations, structure: Structure, link: Interval | None
) -> tuple[Interval, int] | None:
    """Return by how much a read of a page is longer than one of a part, beyond the link.

    The part, which all smaller reads transfer, is a mapping unit or a sector [bytes].
    """
    runs = observations.by_value("read_size", "RR")
    page, sector = structure.page, observations.sector_bytes
    if link is None or page is None or page <= sector or page not in runs or sector not in runs:
        return None

    def excess(size: int) -> Interval:
        return median_of(runs[size].response_ns) - first - link * (size - sector)

    first = median_of(runs[sector].response_ns)
    whole, rise = excess(page), median_of(runs[page].response_ns) - first
    if whole.value <= max(2 * whole.half, CONTRAST * rise.value):
        return None
    inner = [size for size in runs if sector < size < page]
    equal = [s for s in inner if excess(s).value <= CONTRAST * whole.value * s / page]
    return whole, max(equal, default=sector)


def with_whole_pages(times: Times, structure: Structure) -> Times:
    """Return times of whole pages, where small reads transfer a part of a page."""
    page = structure.page
    if times.excess is None or page is None or times.flash is None:
        return times
    excess, part = times.excess
    transfer = excess * (page / (page - part))
    return replace(times, transfer=transfer, flash=times.flash + excess)


def dies_of_writes(observations: Observations, structure: Structure, times: Times) -> int | None:
    """Return the dies that share the pages of a large write; None if the writes disagree.

    A write of n pages takes n / dies programs, one after the other. Dies that divide n are found
    if every large write takes at least two, and longer than its data on the link.
    """
    runs = [*observations.by_value("write_size", "RW").values()]
    runs += [*observations.by_value("clear", "SW").values()]
    found = set()
    for pages, programs, is_on_link in _rounds(structure, times, runs):
        if programs < 2 - CONTRAST:
            continue
        rounded = round(programs)
        if is_on_link or pages % rounded or abs(programs - rounded) > WAVE_TOLERANCE * rounded:
            return None
        found.add(pages // rounded)
    return found.pop() if len(found) == 1 else None


def dies_behind_map(
    observations: Observations, structure: Structure, times: Times
) -> tuple[int, int | None]:
    """Return the fewest dies, and the dies, that large writes of a device with a map show.

    Writes of the map make some sizes slower; these do not count. Pages of the map are placed among
    those of the host, so that reads show less.
    """
    runs = [*observations.by_value("write_size", "RW").values()]
    least, found = 1, set()
    for pages, programs, is_on_link in _rounds(structure, times, runs):
        rounded = max(round(programs), 1)
        if (
            is_on_link
            or pages % rounded
            or abs(programs - rounded) > min(MAP_TOLERANCE * rounded, MAP_MOST)
        ):
            continue
        if rounded == 1:
            least = max(least, pages)
        else:
            found.add(pages // rounded)
    dies = found.pop() if len(found) == 1 else None
    return least, None if dies is not None and dies < least else dies


def _rounds(
    structure: Structure,
    times: Times,
    runs: list[Observation],
) -> Iterator[tuple[int, float, bool]]:
    """Yield the pages of large writes, their programs, and whether the link takes as long."""
    unit, page_ns, link = structure.mapping_unit, times.write_page, times.link_byte
    if unit is None or page_ns is None or link is None or times.command_write is None:
        return
    for run in runs:
        pages = run.io_size // unit
        if pages < LARGE_WRITE_PAGES:
            continue
        programs = (clean_ns(run) - times.command_write.value - link.value * unit) / page_ns.value
        yield pages, programs, programs * page_ns.value < LINK_FACTOR * link.value * run.io_size
