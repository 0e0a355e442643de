"""Structure: mapping unit, page, dies and channels, from reads that meet and writes that read.

A page of data that was written in order lies on die (page mod dies), so two reads meet at a die if
their pages are a multiple of the number of dies apart. Every combination of page, dies and channels
divides the measured pairs into three groups; the combination whose groups differ most wins, by the
Bayesian information criterion.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from uflip.inference.estimate import NORMAL, Interval, median_of
from uflip.inference.observations import Floats, Observation, Observations

PAGES = tuple(1024 << k for k in range(7))
MAX_DIES = 128
# Blocks of FTLs that fill one on a die before the next: 64 KiB to 8 MiB.
BLOCKS = tuple(64 << k + 10 for k in range(8))
# Of several thousand combinations the best explains pairs that have no structure with a likelihood
# ratio of about 25; and a richer one must be better by this.
LEAST_RATIO, PARAMETER_COST = 60.0, 30.0
# A structure that explains less has a wrong model of the layout [share of the variance].
LEAST_EXPLAINED = 0.5
# Times that differ by a smaller share are equal.
CONTRAST = 0.03
# Response times without collection and other disturbances: a low quantile of all.
CLEAN_PERCENT = 20
# Waits of pairs on a single die differ from a read of flash by less than this, also with noise.
WAIT_FACTOR = 1.33
# A write of part of a unit reads it: the step is at least this share of a read of flash.
STEP_SHARE = 0.4
# Without a map on flash at least this share of reads without data take the same time.
QUICK_SHARE = 0.9
# A page of flash takes longer to program than this: faster writes are cached [ns].
FASTEST_PROGRAM_NS = 60_000
ROUND_ROBIN, DIE_FIRST = "round_robin", "die_first"


@dataclass(frozen=True)
class Structure:
    """The structure of a device, with None for what is not identified.

    Attributes
    ----------
    mapping_unit : int or None
        Smallest write without a read [bytes].
    page : int or None
        Bytes of a die before the next die follows [bytes].
    dies, channels : int or None
        Their numbers; None for channels whose transfers are not visible.
    allocator : str or None
        The order of dies: `round_robin` over channels, or `die_first`.
    apart_ns, channel_ns, die_ns : Interval or None
        Time from the first to the second read of a pair on different channels, on the same
        channel, and on the same die [ns].
    explained : float
        Share of the variance of pairs that the structure explains.
    of_writes : bool
        Whether dies follow from large writes, because reads show none.
    block : int or None
        Bytes of a block that is filled on one die before the next [bytes]; None if pages of data
        in order are on all dies.
    """

    mapping_unit: int | None
    page: int | None = None
    dies: int | None = None
    channels: int | None = None
    allocator: str | None = None
    apart_ns: Interval | None = None
    channel_ns: Interval | None = None
    die_ns: Interval | None = None
    explained: float = 0.0
    of_writes: bool = False
    block: int | None = None


def mapping_unit(observations: Observations) -> int | None:
    """Return the smallest size of writes that read nothing [bytes]; None without a step."""
    writes = observations.by_value("write_size", "RW")
    reads = observations.by_value("read_size", "RR")
    if not writes or not reads:
        return None
    read_ns = reads[min(reads)].median_ns
    command = command_ns(observations)
    if command is not None:
        read_ns -= command.value
    elif observations.by_value("read_deallocated", "RR"):
        # A map on flash is read first: until it is cached, writes take longer, whatever their size.
        return None
    sizes = sorted(writes)
    if clean_ns(writes[sizes[0]]) < read_ns + FASTEST_PROGRAM_NS:
        # A cache takes the writes.
        return None
    for smaller, size in pairwise(sizes):
        if clean_ns(writes[smaller]) - clean_ns(writes[size]) > STEP_SHARE * read_ns:
            # Each smaller write reads, too; otherwise the step is scatter.
            parts = [clean_range_ns(writes[part])[0] for part in sizes if part < size]
            return size if min(parts) > clean_range_ns(writes[size])[1] else None
    return None


def clean_ns(run: Observation) -> float:
    """Return the response time of a write that meets no collection [ns]."""
    return float(np.percentile(run.response_ns, CLEAN_PERCENT))


def clean_range_ns(run: Observation) -> tuple[float, float]:
    """Return an interval of 90 % of the same, from the ranks of a binomial distribution [ns]."""
    share = CLEAN_PERCENT / 100
    error = 100 * NORMAL * math.sqrt(share * (1 - share) / len(run.response_ns))
    low, high = np.percentile(
        run.response_ns, [max(CLEAN_PERCENT - error, 0), CLEAN_PERCENT + error]
    )
    return float(low), float(high)


def pairs(observations: Observations) -> tuple[NDArray[np.int64], Floats] | None:
    """Return the offsets (n, 2) of pairs of reads, and the time of the second after the first."""
    run = observations.by_value("read_bursts", "RR").get(2)
    if run is None:
        return None
    offsets = run.offset_bytes.reshape(-1, 2)
    times = run.response_ns.reshape(-1, 2)
    later = times[:, 1] - times[:, 0]
    # The second may overtake the first where that waits; both orders meet at the same die.
    return offsets, np.abs(later)


def structure_of(observations: Observations) -> Structure:
    """Return the structure that explains the pairs of reads best."""
    unit = mapping_unit(observations)
    measured = pairs(observations)
    if measured is None:
        return Structure(unit)
    found = _structure_of_pairs(observations, unit, *measured)
    if found.dies is None and len(measured[1]):
        # Pages that moved while the window was written shift the order of its beginning.
        offsets, later = measured
        late = offsets.min(axis=1) >= (offsets.max() // 2)
        found = _structure_of_pairs(observations, unit, offsets[late], later[late])
    return found


def structure_of_blocks(observations: Observations) -> Structure:
    """Return the structure of a device that fills a block on a die before the next one.

    Reads within a block meet, and those of blocks that are a multiple of the number of dies apart.
    Its pages are mapping units, and reads of several pages wait for each other.
    """
    unit = mapping_unit(observations)
    pages = {unit, _page_of_reads(observations)} - {None}
    page = pages.pop() if len(pages) == 1 else None
    measured = pairs(observations)
    if measured is None or not len(measured[1]):
        return Structure(unit, page)
    offsets, later = measured
    found = _structure_of_pairs(observations, unit, offsets, later, BLOCKS)
    if found.dies == 1:
        return replace(found, page=page)
    block = found.page
    # With as many dies as blocks in the window, or more, no two of its blocks meet.
    if found.dies is None or block is None or found.dies > offsets.max() // block:
        return Structure(unit, page, explained=found.explained, block=block)
    return replace(found, page=page, block=block)


def _structure_of_pairs(
    observations: Observations,
    unit: int | None,
    offsets: NDArray[np.int64],
    later: Floats,
    pages: Sequence[int] = PAGES,
) -> Structure:
    if not len(later):
        return Structure(unit)
    spread = float(np.percentile(later, 99.5) - np.percentile(later, 0.5))
    if spread < CONTRAST * float(np.median(later)):
        return _without_contrast(unit, later, observations)
    best, structure = math.inf, Structure(unit)
    for page in pages:
        least = observations.sector_bytes if unit is None else unit
        if page < least or page % least:
            continue
        rows = offsets // page
        for dies in range(1, MAX_DIES + 1):
            for found in _candidates(rows, later, dies, unit, page):
                if found[0] < best:
                    best, structure = found
    is_likely = _ratio(len(later), structure.explained) > LEAST_RATIO
    if is_likely and structure.explained > LEAST_EXPLAINED:
        return structure
    return Structure(unit) if is_likely else _without_contrast(unit, later, observations)


def _ratio(n: int, explained: float) -> float:
    """Return the log likelihood ratio, doubled, of a division against none."""
    return -n * math.log(max(1 - explained, 1e-9))


def _without_contrast(unit: int | None, later: Floats, observations: Observations) -> Structure:
    """Return the structure if all pairs take the same time: one die, or no visible conflict."""
    each, flash = median_of(later), flash_ns(observations)
    if flash is None or abs(each.value - flash.value) > CONTRAST * flash.value:
        return Structure(unit)
    command = command_ns(observations)
    if command is not None and command.value > flash.value:
        return Structure(unit)
    low, high = np.percentile(later, (5, 95)) / flash.value
    if low < 1 / WAIT_FACTOR or high > WAIT_FACTOR:
        # On a single die every second read waits for a whole one.
        return Structure(unit)
    page = _page_of_reads(observations) or unit
    return Structure(unit, page=page, dies=1, channels=1, die_ns=each, explained=1.0)


def _page_of_reads(observations: Observations) -> int | None:
    """Return the largest read that takes one read of the only die [bytes]; None without a step."""
    reads = observations.by_value("read_size", "RR")
    without = observations.by_value("read_deallocated", "RR")
    flash = {
        size: reads[size].median_ns - float(np.median(quick_reads(observations, size)))
        for size in sorted(reads.keys() & without.keys())
    }
    for smaller, size in pairwise(flash):
        if flash[size] > (1 + STEP_SHARE) * flash[smaller]:
            # Parts of a page that are transferred alone have no step at its end.
            is_flat = flash[smaller] < (1 + CONTRAST) * flash[min(flash)]
            return smaller if is_flat else None
    return None


def command_ns(observations: Observations) -> Interval | None:
    """Return the time of a read of a sector without flash [ns]; None if flash was read."""
    reads = observations.by_value("read_size", "RR")
    without = observations.by_value("read_deallocated", "RR")
    size = observations.sector_bytes
    if size not in reads or size not in without:
        return None
    whole = median_of(reads[size].response_ns)
    quick = quick_reads(observations, size)
    command = median_of(quick)
    cells = STEP_SHARE if len(quick) <= len(without[size].response_ns) / 2 else CONTRAST
    return command if whole.value - command.value > cells * whole.value else None


def reads_map(observations: Observations) -> bool:
    """Return whether some reads without data read a part of the map on flash first."""
    run = observations.by_value("read_deallocated", "RR").get(observations.sector_bytes)
    if run is None or command_ns(observations) is None:
        return False
    quick = quick_reads(observations, observations.sector_bytes)
    return len(quick) < QUICK_SHARE * len(run.response_ns)


def quick_reads(observations: Observations, size: int) -> Floats:
    """Return the response times of reads without data that did not read a map on flash [ns]."""
    times = observations.by_value("read_deallocated", "RR")[size].response_ns
    whole = observations.by_value("read_size", "RR")[observations.sector_bytes].median_ns
    least = float(times.min())
    return times[times <= least + max(STEP_SHARE * (whole - least), CONTRAST * least)]


def flash_ns(observations: Observations) -> Interval | None:
    """Return the time of cells and channel in a read of a sector [ns]."""
    command = command_ns(observations)
    if command is None:
        return None
    run = observations.by_value("read_size", "RR")[observations.sector_bytes]
    return median_of(run.response_ns) - command


Candidate = tuple[float, Structure]


def _candidates(
    rows: NDArray[np.int64], later: Floats, dies: int, unit: int | None, page: int
) -> list[Candidate]:
    """Return the divisions of pairs by a number of dies, with every number of channels."""
    places = rows % dies
    same_die = places[:, 0] == places[:, 1]
    if same_die.sum() < 3 or (~same_die).sum() < 3:
        return []
    layout = Structure(unit, page, dies)
    whole = _divided(later, same_die, np.zeros_like(same_die), layout)
    if whole is None or _ratio(len(later), whole[1].explained) < LEAST_RATIO / 2:
        # A wrong number of dies, whatever the channels are.
        return []
    found = [whole]
    for channels in range(1, dies):
        if dies % channels:
            continue
        orders = {ROUND_ROBIN: places % channels}
        if channels > 1:
            orders[DIE_FIRST] = places // (dies // channels)
        for order, lanes in orders.items():
            same_channel = (lanes[:, 0] == lanes[:, 1]) & ~same_die
            divided = replace(layout, channels=channels, allocator=order)
            found += filter(None, [_divided(later, same_die, same_channel, divided)])
    return found


def _divided(
    later: Floats,
    same_die: NDArray[np.bool_],
    same_channel: NDArray[np.bool_],
    layout: Structure,
) -> Candidate | None:
    """Return the criterion of a division, smaller for a better one, and the layout with times."""
    groups = [later[same_die], later[same_channel], later[~same_die & ~same_channel]]
    if groups[0].mean() <= later[~same_die].mean():
        return None
    if len(groups[1]) and np.median(groups[0]) <= (1 + CONTRAST) * np.median(groups[1]):
        # A die is busy for cells and transfer, its channel for the transfer only.
        return None
    residual = sum(float(np.sum((each - each.mean()) ** 2)) for each in groups if len(each))
    total = float(np.sum((later - later.mean()) ** 2))
    n = len(later)
    parameters = sum(len(each) > 0 for each in groups)
    criterion = n * math.log(residual / n + 1.0) + PARAMETER_COST * parameters
    die, channel, apart = (median_of(each) if len(each) >= 3 else None for each in groups)
    return criterion, replace(
        layout, die_ns=die, channel_ns=channel, apart_ns=apart, explained=1 - residual / total
    )
