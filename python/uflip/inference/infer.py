"""The inference: estimates of all properties, a twin, and whether the twin predicts the probes."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from uflip import _native
from uflip.data.inference import Property, StoredInference, TwinError
from uflip.inference.channels import SPARE_SHARE, Division, complete_channels
from uflip.inference.collection import (
    ROOMY,
    SEEDS,
    Period,
    Spare,
    WriteSimulator,
    block_pages,
    erase_ns,
    least_blocks,
    pages_and_spare,
    period_of,
    spare_of,
)
from uflip.inference.estimate import Estimate, Interval
from uflip.inference.family import BLOCK_MAP, EVIDENCE, merging_family
from uflip.inference.family import PROBE as FAMILY_PROBE
from uflip.inference.map_cache import (
    ENTRY_BYTES,
    MapCache,
    map_cache_estimates,
    map_cache_of,
)
from uflip.inference.observations import Observation, Observations, RunKey
from uflip.inference.page_types import (
    PageTypes,
    corrected,
    page_type_estimates,
    page_types_of,
)
from uflip.inference.probes import repeat
from uflip.inference.slc_cache import (
    SlcCache,
    beyond,
    exceeds_window,
    programs,
    slc_cache_of,
    slc_estimates,
    with_slc,
)
from uflip.inference.structure import (
    Structure,
    reads_map,
    structure_of,
    structure_of_blocks,
)
from uflip.inference.suspension import KEYS as SUSPEND_KEYS
from uflip.inference.suspension import PROBE as SUSPEND_PROBE
from uflip.inference.suspension import suspend_estimates, suspended
from uflip.inference.times import (
    Times,
    dies_behind_map,
    dies_of_writes,
    program_in_blocks,
    times_of,
    with_whole_pages,
)
from uflip.inference.twin import CANNOT_SIMULATE, Twin, Value
from uflip.inference.write_cache import EAGER, cache_estimates, write_cache_of
from uflip.inference.write_cache import PROBE as CACHE_PROBE
from uflip.results import Results
from uflip.results.stored_inference import sources_of

# Spare area of a page in data sheets, as a share of its data, and rates of flash channels of
# drives since 2009 [bytes/s]: bounds of what no probe separates.
SPARE_SHARES = (0.03, 0.11)
CHANNEL_RATES = (100e6, 1600e6)
USUAL_CHANNEL_RATE = 400e6
# An estimate from bounds counts only if they are this close to it.
NARROW = 0.25
NO_CONFLICTS = "reads at once meet at no regular distance, or the device takes one at a time"
# Capacities are whole MiB [bytes].
CAPACITY_ROUNDING = 1 << 20
LONG = ("fill", "overwrite", "overwrite_part", "cache_burst", "read_beside_writes")
# Probes whose I/Os meet at dies: FTLs that merge make others meet than those with a map of pages.
MEETINGS = ("read_bursts", "read_arrivals", "write_bursts", "read_beside_writes")
# Estimates that a misfit of other probes makes doubtful, too; those that need no model; and the
# number of misfits from which on the model of the device is wrong.
NEEDS = {
    "page_bytes": ("read_size", "read_bursts"),
    "dies": ("read_size", "read_bursts", "read_arrivals"),
    "read_ns": ("read_size", "read_bursts", "read_each"),
    "program_ns": ("clear", "write_size"),
    "channel_bytes_per_s": ("read_size", "read_bursts"),
    "channels": ("clear", "read_bursts", "read_arrivals", "read_size", "write_size"),
    "pages_per_block": ("clear", "fill", *MEETINGS),
    "superblock_bytes": ("clear", "fill", *MEETINGS),
    "erase_ns": ("clear", "fill", *MEETINGS),
    "spare_factor": ("fill", "overwrite"),
    "gc": ("fill", "overwrite", "overwrite_part"),
}
# Estimates whose estimators hold for page maps only.
OF_PAGE_MAPS = ("spare_factor", "gc", "superblock_bytes", "erase_ns", "pages_per_block")
# Bursts to erased blocks of a block map are quicker than durable writes, all of which merge.
CACHE_KEYS = ("write_cache_bytes", "flush", "write_cache_drain_bytes_per_s")
DIRECT = ("mapping_unit_bytes", "command_read_ns", "command_write_ns", "link_bytes_per_s",
          "map_cache_range_bytes", "write_cache_drain_bytes_per_s")  # fmt: skip
# A read that meets another one at its die waits for this many reads of the quickest pages.
DIE_WAIT = (0.8, 2.2)
CELL_KEYS = ("read_ns", "read_middle_ns", "read_high_ns", "program_ns")
LAYOUT = ("page_bytes", "dies")
# The largest page of data sheets, also with two planes [bytes]; more needs the check by a twin.
LARGEST_PAGE = 32 << 10
WRONG_MODEL, NO_LAYOUT = 3, 5
# Probes that another initial state of the same device may change as much; these are simulated with
# other seeds before a device is refused.
BY_CHANCE = ("overwrite", "overwrite_part")
# A die with fewer blocks than this has a period of something else.
LEAST_BLOCKS = 8
# A family does not fit if its twin's median error on a probe is larger.
MISFIT = 0.25


Found = dict[str, Estimate]


@dataclass(frozen=True)
class ProbeError:
    """The error of a twin on a run of a probe: simulated over measured mean, less one."""

    probe: str
    pattern: str
    value: int
    error: float


@dataclass(frozen=True)
class Inference:
    """The result of an inference.

    Attributes
    ----------
    observations : Observations
        What the probes observed.
    estimates : tuple of Estimate
        All properties, also those that are not identified.
    twin : Twin or None
        The twin; None if the structure is not identified, or no family fits.
    why_no_twin : str
        The reason.
    errors : tuple of ProbeError
        The predictive check.
    """

    observations: Observations
    estimates: tuple[Estimate, ...]
    twin: Twin | None
    why_no_twin: str = ""
    errors: tuple[ProbeError, ...] = ()

    def estimate(self, key: str) -> Estimate:
        """Return the estimate of a property."""
        return next(each for each in self.estimates if each.key == key)


@dataclass(frozen=True)
class InferenceDocument:
    """An inference as plain data: `uflip infer --json`.

    Attributes
    ----------
    results : str
        Folder of the runs.
    properties : tuple of Estimate
        All properties.
    bytes_written : int
        Bytes that the probes wrote.
    twin : mapping or None
        Keys of the twin's profile that are not assumed.
    written_to : str or None
        The file of the twin.
    why_no_twin : str
        Why the inference has no twin.
    errors : tuple of ProbeError
        The predictive check.
    """

    results: str
    properties: tuple[Estimate, ...]
    bytes_written: int
    twin: Mapping[str, Value] | None
    written_to: str | None
    why_no_twin: str
    errors: tuple[ProbeError, ...]


def stored(found: Inference, results: Results) -> StoredInference:
    """Return an inference as the folder of its runs stores it."""
    return StoredInference(
        _native.__version__,
        sources_of(results),
        tuple(Property(**vars(each)) for each in found.estimates),
        found.observations.bytes_written,
        found.why_no_twin,
        tuple(TwinError(**vars(each)) for each in found.errors),
    )


def infer(observations: Observations) -> Inference:
    """Infer the properties of a device from the runs of the probes.

    Parameters
    ----------
    observations : Observations
        From `uflip.inference.observations.collect`.

    Returns
    -------
    Inference
    """
    if (family := merging_family(observations)) is not None:
        return _merging(observations, family)
    slc = slc_cache_of(observations)
    types = page_types_of(observations, 0 if slc is None else slc.ordered_from)
    if types is None or types.bits in (None, 1):
        # Cells of one bit have no quicker mode.
        slc, types = None, page_types_of(observations)
    equal = observations if slc is None else beyond(observations, slc.ordered_from)
    equal = corrected(equal, types)
    structure = structure_of(equal)
    times = times_of(equal, structure)
    structure = _with_dies_of_writes(equal, structure, times)
    structure = _without_unproved_dies(structure, times)
    quick = None
    if slc is not None:
        times, quick = programs(slc, structure, times)
    elif types is not None and types.bits != 1 and exceeds_window(observations):
        structure, times = Structure(structure.mapping_unit), replace(times, write_page=None)
    times = with_whole_pages(times, structure)
    structure, times, division = complete_channels(equal, structure, times)
    found = _by_key(_times_estimates(structure, times))
    found |= _by_key(page_type_estimates(types, found["read_ns"]))
    found |= _by_key(_structure_estimates(structure))
    mapped = map_cache_of(equal)
    found |= _by_key(map_cache_estimates(equal, mapped))
    found |= _by_key(slc_estimates(observations, slc, quick, times.write_page, found["program_ns"]))
    if missing := _missing(found):
        found |= _by_key(_collection_estimates(observations, None, None, None, None))
        behind_slc = slc is not None or exceeds_window(observations)
        found |= _by_key(cache_estimates(observations, structure, None, behind_slc=behind_slc))
        found |= {key: _no_twin(key, SUSPEND_PROBE) for key in SUSPEND_KEYS}
        if times.transfer is None:
            # Without a twin nothing checks the range of channels that these assume.
            found |= {key: _no_twin(key, found[key].probe) for key in CELL_KEYS}
        if found["dies"].value == 1 or (structure.page or 0) > LARGEST_PAGE:
            why = f"no twin checks it, because {missing}"
            found |= {
                key: Estimate.absent(key, found[key].probe, why) for key in (*LAYOUT, "channels")
            }
        return _refused(observations, found, missing)
    twin = _twin_of(equal, found, times, division)
    layout = _Layout(equal, structure, times, types, mapped, slc, quick)
    try:
        return _with_twin(observations, found, twin, layout)
    except CANNOT_SIMULATE as error:
        return _refused(observations, found, f"no simulated device has these values: {error.what}")


def _merging(observations: Observations, family: str) -> Inference:
    """Return the inference of a device that merges blocks: its layout and times, without a twin."""
    types = page_types_of(observations)
    equal = corrected(observations, types)
    structure = structure_of_blocks(equal)
    times = times_of(equal, structure)
    times = replace(times, write_page=program_in_blocks(equal, structure.page, times))
    structure = _without_unproved_dies(structure, times)
    times = with_whole_pages(times, structure)
    found = _by_key(_times_estimates(structure, times))
    found |= _by_key(page_type_estimates(types, found["read_ns"]))
    found |= _by_key(_structure_estimates(structure))
    found |= _by_key(map_cache_estimates(equal, None))
    found |= _by_key(slc_estimates(observations, None, None, None, found["program_ns"]))
    found |= _by_key(_collection_estimates(observations, None, None, None, None))
    found |= _by_key(cache_estimates(observations, structure, None))
    found |= {key: _no_twin(key, SUSPEND_PROBE) for key in SUSPEND_KEYS}
    why = f"{family} merges blocks: the estimator is for page maps"
    withdrawn = (*OF_PAGE_MAPS, *(CACHE_KEYS if family == BLOCK_MAP else ()))
    found |= {key: Estimate.absent(key, found[key].probe, why) for key in withdrawn}
    if structure.block is not None and structure.page is not None:
        pages = structure.block // structure.page
        found |= {
            "pages_per_block": Estimate("pages_per_block", pages, pages, pages, "read_bursts")
        }
    found |= {"program_ns": replace(found["program_ns"], probe="clear")}
    found |= {"ftl": Estimate("ftl", family, probe=FAMILY_PROBE, reason=EVIDENCE[family])}
    why = f"the search has no twins of the family {family}"
    return Inference(observations, tuple(found.values()), None, why)


@dataclass(frozen=True)
class _Layout:
    """Estimates from the probes without a twin.

    `reads` are the observations with reads as if all pages were equal and in order, `quick` is a
    program of the SLC cache with its transfer.
    """

    reads: Observations
    structure: Structure
    times: Times
    types: PageTypes | None
    mapped: MapCache | None
    slc: SlcCache | None
    quick: Interval | None


def _with_twin(observations: Observations, found: Found, twin: Twin, layout: _Layout) -> Inference:
    """Complete a twin by simulations: blocks, suspension, write cache, spare space, policy."""
    equal, times, mapped = layout.reads, layout.times, layout.mapped
    simulator = WriteSimulator(equal)
    period, twin = _with_block(observations, twin)
    if period is not None and mapped is not None:
        # Writes of the map are slow, too.
        period = replace(period, exact=False)
    twin = _with_types(twin, layout.types)
    if layout.slc is not None and layout.quick is not None:
        twin = with_slc(twin, layout.slc, layout.quick)
    erase = None if period is None else _erase(simulator, twin, period, times)
    twin = twin if erase is None else twin.but(erase_ns=round(erase.value))
    roomy = ROOMY * least_blocks(observations, twin)
    large = twin.with_capacity(observations.capacity_bytes, roomy)
    # The policies that relocate the fewest and the most pages.
    extremes = [large.but(gc=policy) for policy in ("greedy", "random")]
    found |= _by_key(suspend_estimates(equal, times, extremes, simulator))
    if mapped is not None and found[SUSPEND_KEYS[1]].is_identified:
        why = "reads also wait for the map"
        found |= {SUSPEND_KEYS[1]: Estimate.absent(SUSPEND_KEYS[1], SUSPEND_PROBE, why)}
    twin = _with_map_cache(_with_suspension(twin, found), mapped)
    large = twin.with_capacity(observations.capacity_bytes, roomy)
    early = _errors(observations, large, until=CACHE_PROBE)
    if misfits := _misfits(early):
        # No search of caches and spare space can mend this.
        found |= _by_key(_collection_estimates(observations, twin, period, erase, None))
        behind_slc = layout.slc is not None or exceeds_window(observations)
        without = cache_estimates(observations, layout.structure, None, behind_slc=behind_slc)
        found |= _by_key(without)
        return _not_fitting(observations, found, misfits, early)
    cache, exact = write_cache_of(simulator, large), period is not None and period.exact
    found |= _by_key(cache_estimates(observations, layout.structure, cache, exact=exact))
    twin = _with_cache(twin, found)
    if period is None:
        spare = None
    elif period.exact or mapped is not None:
        spare = spare_of(simulator, twin)
    else:
        with_kinds = WriteSimulator(observations, simulator.budget)
        pages, is_certain, spare = pages_and_spare(with_kinds, twin)
        period, twin = replace(period, exact=is_certain), twin.but(pages_per_block=pages)
        # The slow writes of an irregular fill show more than one erase.
        erase = None
    blocks = least_blocks(observations, twin) + 2 if spare is None else spare.blocks
    twin = twin.with_capacity(observations.capacity_bytes, blocks)
    twin = twin if spare is None else twin.but(gc=spare.policy)
    if found[SUSPEND_KEYS[1]].is_identified:
        found |= _suspend_estimates_again(twin, layout, spare, simulator)
        twin = _with_suspension(twin, found)
    found |= _by_key(_collection_estimates(observations, twin, period, erase, spare))
    reasons = {
        key: f"{each.reason} ({each.probe})"
        for key, each in found.items()
        if not each.is_identified and key in twin.values
    }
    twin = replace(twin, sources=_sources(found, twin), reasons=reasons)
    return _checked(observations, found, twin)


def _suspend_estimates_again(
    twin: Twin, layout: _Layout, spare: Spare | None, simulator: WriteSimulator
) -> Found:
    """Return the time to suspend with the relocations of the whole twin, or why it is hidden."""
    why = ""
    if layout.types is not None and len(layout.types.kinds) > 1:
        why = "reads differ by their kind of page, and the twin's by another order of kinds"
    elif spare is not None and spare.policy == "random":
        why = "reads also wait for the erases of random victims"
    if why:
        return {SUSPEND_KEYS[1]: Estimate.absent(SUSPEND_KEYS[1], SUSPEND_PROBE, why)}
    others = [twin.but(seed=seed) for seed in SEEDS]
    return _by_key(suspend_estimates(layout.reads, layout.times, others, simulator))


def _with_dies_of_writes(
    observations: Observations, structure: Structure, times: Times
) -> Structure:
    """Return the structure with the dies that large writes show, where reads do not."""
    unit = structure.mapping_unit
    if reads_map(observations):
        least, dies = dies_behind_map(observations, structure, times)
        if dies is not None and dies != structure.dies:
            return Structure(unit, page=unit, dies=dies, of_writes=True)
        is_possible = structure.dies is not None and structure.dies >= least
        return structure if is_possible else Structure(unit)
    if structure.dies is None and (dies := dies_of_writes(observations, structure, times)):
        return replace(structure, page=unit, dies=dies, of_writes=True)
    return structure


def _without_unproved_dies(structure: Structure, times: Times) -> Structure:
    """Return the structure without dies whose reads do not wait for a whole read of flash.

    Reads that meet at a bus wait only for its transfer.
    """
    if structure.die_ns is None or structure.of_writes:
        return structure
    low, high = DIE_WAIT
    flash = times.flash
    if flash is not None and low <= structure.die_ns.value / flash.value <= high:
        return structure
    return Structure(structure.mapping_unit)


def _by_key(estimates: Iterable[Estimate]) -> Found:
    return {each.key: each for each in estimates}


def _no_twin(key: str, probe: str) -> Estimate:
    return Estimate.absent(key, probe, "no twin repeats the probe")


def _missing(found: Found) -> str:
    """Return why there can be no twin; empty if there can."""
    for key in ("page_bytes", "dies", "program_ns", "command_read_ns"):
        if not found[key].is_identified:
            return f"{key} is not identified: {found[key].reason}"
    return ""


def _structure_estimates(structure: Structure) -> Iterator[Estimate]:
    def count(key: str, value: int | None, probe: str, reason: str) -> Estimate:
        if value is None:
            return Estimate.absent(key, probe, reason)
        return Estimate(key, value, value, value, probe)

    probe = "write_size" if structure.of_writes else "read_bursts"
    yield count("page_bytes", structure.page, probe, NO_CONFLICTS)
    yield count(
        "mapping_unit_bytes", structure.mapping_unit, "write_size", "no size of writes saves a read"
    )
    yield count("dies", structure.dies, probe, NO_CONFLICTS)
    why = "simulations with several numbers of channels fit as well: commands hide transfers"
    yield count("channels", structure.channels, "read_bursts", why)
    if structure.allocator is not None:
        yield Estimate("allocator", structure.allocator, probe="read_bursts")
    else:
        yield Estimate.absent("allocator", "read_bursts", "it needs several channels and dies")


def _times_estimates(structure: Structure, times: Times) -> Iterator[Estimate]:
    page = structure.page
    yield _duration("command_read_ns", times.command_read, "read_deallocated")
    yield _duration("command_write_ns", times.command_write, "clear")
    if times.link_byte is None:
        why = "reads without data have no slope, or the device does not deallocate"
        yield Estimate.absent("link_bytes_per_s", "read_deallocated", why)
    else:
        rate = times.link_byte.inverse(1e9)
        yield rate.estimate("link_bytes_per_s", "read_deallocated")
    if page is None:
        for key in ("read_ns", "program_ns", "channel_bytes_per_s"):
            yield Estimate.absent(key, "read_bursts", "the page is not identified")
        return
    yield _channel_rate(page, structure, times)
    yield _cell_time("read_ns", times.flash, times, page, "read_size")
    yield _cell_time("program_ns", times.write_page, times, page, "write_size")


def _duration(key: str, time: Interval | None, probe: str) -> Estimate:
    if time is None:
        why = "the device does not deallocate, or reads of deallocated data take as long as others"
        return Estimate.absent(key, probe, why)
    return time.estimate(key, probe)


def _channel_rate(page: int, structure: Structure, times: Times) -> Estimate:
    if times.transfer is None:
        why = "no die shares its channel, so that cells and transfer are seen together only"
        if structure.channels is None:
            why = "commands hide transfers"
        return Estimate.absent("channel_bytes_per_s", "read_bursts", why)
    least, most = (page * (1 + share) for share in SPARE_SHARES)
    low = math.floor(least) / (times.transfer.value + times.transfer.half) * 1e9
    high = math.ceil(most) / (times.transfer.value - times.transfer.half) * 1e9
    value = page * (1 + SPARE_SHARE) / times.transfer.value * 1e9
    why = "with 3 to 11 % of spare area in a page"
    return Estimate("channel_bytes_per_s", value, low, high, "read_bursts", why)


def _cell_time(key: str, whole: Interval | None, times: Times, page: int, probe: str) -> Estimate:
    """Return the time of cells: what is left of a time without the transfer."""
    if whole is None:
        why = "a step of the times that are subtracted is not identified"
        return Estimate.absent(key, probe, why)
    if times.transfer is not None:
        return (whole - times.transfer).estimate(key, probe)
    low = whole.value - whole.half - page * (1 + SPARE_SHARES[1]) / CHANNEL_RATES[0] * 1e9
    high = whole.value + whole.half - page / CHANNEL_RATES[1] * 1e9
    value = whole.value - _usual_transfer_ns(page)
    if high - low > 2 * NARROW * value:
        why = "it cannot be separated from the transfer, which takes a large part"
        return Estimate.absent(key, probe, why)
    why = "with a channel of 100 to 1600 MB/s"
    return Estimate(key, value, low, high, probe, why)


def _usual_transfer_ns(page: int) -> float:
    return page * (1 + SPARE_SHARE) / USUAL_CHANNEL_RATE * 1e9


def _twin_of(
    observations: Observations,
    found: Found,
    times: Times,
    division: Division | None,
) -> Twin:
    """Return a twin with everything but collection."""
    page, dies = int(found["page_bytes"].number()), int(found["dies"].number())
    channels = dies if division is None else division.channels
    values: dict[str, Value] = {
        "page_bytes": page,
        "channels": channels,
        "dies_per_channel": dies // channels,
        "spare_bytes": round(SPARE_SHARE * page),
        "sector_bytes": observations.sector_bytes,
    }
    for key in ("command_read_ns", "command_write_ns", "link_bytes_per_s", "channel_bytes_per_s"):
        if found[key].is_identified:
            values[key] = round(found[key].number())
    rate = USUAL_CHANNEL_RATE
    if division is not None and channels < dies:
        rate = page * (1 + SPARE_SHARE) * 1e9 / division.transfer_ns
    values.setdefault("channel_bytes_per_s", round(rate))
    assert times.flash is not None
    assert times.write_page is not None
    # What the probes see is the sum of cells and transfer: the twin keeps it.
    transfer = page * (1 + SPARE_SHARE) * 1e9 / float(values["channel_bytes_per_s"])
    program = max(round(times.write_page.value - transfer), 0)
    values |= {"program_ns": program, "program_high_ns": program}
    values["read_ns"] = max(round(times.flash.value - transfer), 0)
    if times.partial_transfer:
        values["partial_transfer"] = True
    if division is not None:
        values["allocator"] = division.allocator
    if found["mapping_unit_bytes"].is_identified and found["mapping_unit_bytes"].value != page:
        values["mapping_unit_bytes"] = int(found["mapping_unit_bytes"].number())
    return Twin(values)


def _with_block(observations: Observations, twin: Twin) -> tuple[Period | None, Twin]:
    """Return the period of a fill, and the twin with the pages of a block."""
    fill = observations.last("fill", "SW")
    page = int(twin.number("page_bytes"))
    period = None if fill is None else period_of(fill, twin.dies, page)
    if fill is None or period is None:
        return None, twin
    pages = block_pages(period, fill, twin.dies, page)
    if pages * page * twin.dies * LEAST_BLOCKS > observations.capacity_bytes:
        return None, twin
    return period, twin.but(pages_per_block=pages)


def _with_cache(twin: Twin, found: Found) -> Twin:
    """Return the twin with its write cache, which drains at once if that is unknown."""
    size, flush = found["write_cache_bytes"], found["flush"]
    if not size.is_identified or not size.number():
        return twin
    page = int(twin.number("page_bytes"))
    policy = str(flush.value) if flush.is_identified else EAGER
    return twin.but(write_cache_bytes=max(int(size.number()), page), flush=policy)


def _with_suspension(twin: Twin, found: Found) -> Twin:
    stop = found["program_suspend_ns"]
    return suspended(twin, stop.number()) if stop.is_identified else twin


def _with_map_cache(twin: Twin, mapped: MapCache | None) -> Twin:
    """Return the twin with its map on flash, if that is what the reads show."""
    if mapped is None:
        return twin
    values = {key: value for key, value in twin.values.items() if key != "mapping_unit_bytes"}
    entries = max(round(mapped.covered / twin.number("page_bytes")), 1)
    return replace(twin, values=values).but(
        ftl="dftl",
        mapping_cache_bytes=entries * ENTRY_BYTES,
        mapping_cache_policy="lru",
        mapping_batch_update=True,
    )


def _with_types(twin: Twin, types: PageTypes | None) -> Twin:
    """Return the twin with the kinds of its pages."""
    if types is None or types.bits is None or types.bits == 1:
        return twin
    more = [round(kind.value - types.kinds[0].value) for kind in types.kinds[1:]]
    read = int(twin.number("read_ns"))
    values: dict[str, Value] = {"bits_per_cell": types.bits, "read_high_ns": read + more[-1]}
    if len(more) > 1:
        values["read_middle_ns"] = read + more[0]
    return twin.but(**values)


def _erase(simulator: WriteSimulator, twin: Twin, period: Period, times: Times) -> Interval | None:
    """Return the erase time; an erase that begins before the next write is partly hidden."""
    found = erase_ns(simulator, twin, period)
    fill = simulator.observations.last("fill", "SW")
    if found is None or fill is None or times.link_byte is None or times.command_write is None:
        return found
    hidden = times.command_write.value + times.link_byte.value * fill.io_size
    return Interval(found.value, max(found.half, hidden))


def _collection_estimates(
    observations: Observations,
    twin: Twin | None,
    period: Period | None,
    erase: Interval | None,
    spare: Spare | None,
) -> Iterator[Estimate]:
    if twin is None or period is None:
        why = "a fill has no period of slow writes: the device is new, or hides its erases"
    else:
        pages = int(twin.number("pages_per_block"))
        why = f"relocations make the period of a fill irregular; the twin has {pages} pages a block"
    if twin is None or period is None or not period.exact:
        for key in ("pages_per_block", "superblock_bytes", "erase_ns"):
            yield Estimate.absent(key, "fill", why)
    else:
        superblock = pages * twin.dies * int(twin.number("page_bytes"))
        yield Estimate("pages_per_block", pages, pages, pages, "fill")
        yield Estimate("superblock_bytes", superblock, superblock, superblock, "fill")
        if erase is None:
            yield Estimate.absent("erase_ns", "fill", "erases are hidden behind other writes")
        else:
            yield erase.estimate("erase_ns", "fill")
    if twin is None or spare is None or not spare.is_complete:
        why = "no twin repeats the overwrite" if spare is None else "the search reached its budget"
        yield Estimate.absent("spare_factor", "overwrite", why)
        yield Estimate.absent("gc", "overwrite_part", why)
        return
    yield _spare_factor(observations.capacity_bytes, twin, spare)
    if spare.rivals:
        rivals = ", ".join((spare.policy, *spare.rivals))
        yield Estimate.absent("gc", "overwrite_part", f"these fit as well: {rivals}")
    else:
        yield Estimate("gc", spare.policy, probe="overwrite_part")


def _spare_factor(capacity: int, twin: Twin, spare: Spare) -> Estimate:
    """Return the spare factor: a capacity is rounded down, so that its flash has a range."""
    block = twin.dies * twin.number("pages_per_block") * twin.number("page_bytes")
    low = 1 - (capacity + CAPACITY_ROUNDING) / (spare.low * block)
    high = 1 - capacity / (spare.high * block)
    value = 1 - (capacity + CAPACITY_ROUNDING / 2) / (spare.blocks * block)
    return Estimate("spare_factor", value, low, high, "overwrite")


def _sources(found: Found, twin: Twin) -> dict[str, str]:
    """Return the source of every inferred key of a twin."""
    sources = {
        key: f"{each.probe}: {describe_interval(each)}"
        for key, each in found.items()
        if each.is_identified and key in twin.values
    }
    if found["dies"].is_identified and found["channels"].is_identified:
        sources["dies_per_channel"] = f"read_bursts: {found['dies'].value} dies"
    if twin.value("partial_transfer"):
        sources["partial_transfer"] = "read_size: reads of a part of a page transfer less"
    if "program_ns" in sources:
        sources["program_high_ns"] = sources["program_ns"]
    if found["spare_factor"].is_identified:
        sources["blocks_per_die"] = sources["spare_factor"]
    return sources


def describe_interval(estimate: Estimate) -> str:
    """Return an interval in words, in the units of the key."""
    if estimate.low is None or estimate.high is None:
        return str(estimate.value)
    if estimate.low == estimate.high:
        return "exact"
    digits = 4 if abs(estimate.high) < 10 else 0
    return f"90 % within {estimate.low:.{digits}f} to {estimate.high:.{digits}f}"


def _refused(observations: Observations, found: Found, why: str, *errors: ProbeError) -> Inference:
    """Return an inference without a twin, and thus without a family."""
    found |= {"ftl": Estimate.absent("ftl", "all", f"no known family: {why}")}
    return Inference(observations, tuple(found.values()), None, why, errors)


def _checked(observations: Observations, found: Found, twin: Twin) -> Inference:
    """Return the inference with its predictive check; without the twin if no family fits."""
    errors = _errors(observations, twin)
    misfits = _misfits(errors)
    if misfits and misfits.keys() <= set(BY_CHANCE):
        others = [_errors(observations, twin.but(seed=seed)) for seed in SEEDS[1:]]
        chance = {probe for probe in misfits if _spread(probe, errors, *others) > MISFIT}
        misfits = {probe: error for probe, error in misfits.items() if probe not in chance}
        if not misfits:
            why = f"{', '.join(sorted(chance))} takes another time from each initial state"
            for key in ("spare_factor", "gc"):
                found |= {key: Estimate.absent(key, found[key].probe, why)}
    if misfits:
        return _not_fitting(observations, found, misfits, errors)
    found |= {"ftl": Estimate("ftl", twin.value("ftl"), probe="all")}
    return Inference(observations, tuple(found.values()), twin, "", errors)


def _spread(probe: str, *twins: Sequence[ProbeError]) -> float:
    """Return the relative difference of the times of a probe on twins."""
    times = [1 + each.error for errors in twins for each in errors if each.probe == probe]
    return max(times) / min(times) - 1


def _misfits(errors: Sequence[ProbeError]) -> dict[str, float]:
    """Return the probes that a twin misses, with its median error.

    The few writes of `rewrite` meet collection by chance; they show families that merge only.
    """
    worst = {
        probe: float(np.median([abs(e.error) for e in errors if e.probe == probe]))
        for probe in dict.fromkeys(each.probe for each in errors)
    }
    worst.pop(FAMILY_PROBE, None)
    return {probe: error for probe, error in worst.items() if error > MISFIT}


def _not_fitting(
    observations: Observations,
    found: Found,
    misfits: Mapping[str, float],
    errors: Sequence[ProbeError],
) -> Inference:
    missed = ", ".join(f"{probe} by {error:.0%}" for probe, error in misfits.items())
    # That all I/Os meet at one die is no layout, but what is left if none explains them.
    is_single = found["dies"].value == 1
    found = {
        key: _withdrawn(each, set(misfits), no_layout=is_single) for key, each in found.items()
    }
    why = f"no known family fits: the best twin misses {missed}"
    return _refused(observations, found, why, *errors)


def _withdrawn(estimate: Estimate, misfits: set[str], *, no_layout: bool) -> Estimate:
    """Return an abstention from an estimate that a wrong model of the device made."""
    needs = NEEDS.get(estimate.key, (estimate.probe,))
    is_wrong = bool(misfits & set(needs)) or len(misfits) >= WRONG_MODEL
    if estimate.key in DIRECT:
        is_wrong = False
    if estimate.key in LAYOUT:
        # The layout of data in order holds for many families, but not if most probes are missed.
        is_wrong = no_layout or bool(misfits & set(needs)) or len(misfits) >= NO_LAYOUT
    if not estimate.is_identified or not is_wrong:
        return estimate
    why = f"the twin misses {', '.join(sorted(misfits))}: the estimate has no valid model"
    return Estimate.absent(estimate.key, estimate.probe, why)


def _errors(observations: Observations, twin: Twin, until: str = "") -> tuple[ProbeError, ...]:
    """Repeat all probes before one, or all, on a twin, and return its error on each run."""
    device, errors = twin.open(), []
    for key, measured in observations.runs.items():
        if key.probe == until:
            break
        simulated = repeat(device, key.probe, measured.spec)
        if measured.spec.parts[0].moves_data:
            errors.append(_error(key, simulated, measured))
    return tuple(errors)


def _error(key: RunKey, simulated: Observation, measured: Observation) -> ProbeError:
    # Short runs meet a few erases, by chance, and where half of the writes meet one the median is
    # as uncertain; long ones are about them.
    mean, middle = (
        float(statistic(simulated.response_ns) / statistic(measured.response_ns)) - 1
        for statistic in (np.mean, np.median)
    )
    return ProbeError(*key, mean if key.probe in LONG else min(mean, middle, key=abs))
