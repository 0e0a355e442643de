"""Measurement of a point of a sweep: the device, an optional warm-up, the run, and the costs.

The device is created from its profile, in the profile's state; with the cache a second sweep of the
same devices starts at once.

**Source** of the costs: DFTL (ASPLOS 2009) §2 for the map's share of a controller's memory.
**Faithful** Spare capacity: flash size minus the size that the host can address.
**Simplified** Memory is that of the map and of the write cache; buffers of pages in flight are
small in comparison.
**Ambiguous** Size of a map entry: 4 bytes if the whole page map is in memory, indexed by address;
otherwise the memory that the profile gives to a map cache, or to map pages. Profiles do not give
the tables of a hybrid FTL: its memory is unknown.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from uflip.data.device import DeviceInfo
from uflip.data.document import Table
from uflip.data.spec import MODES
from uflip.data.summary import StatisticsSummary
from uflip.device.handle import Device
from uflip.device.opener import open_device
from uflip.device.resolve import resolve
from uflip.results.run_statistics import statistics_of, write_amplification
from uflip.spec import Functions, Parallel
from uflip.sweeping.points import SweepPoint

# Entry of a map that is an array of physical addresses.
ENTRY_BYTES = 4


@dataclass(frozen=True)
class SweepRow:
    """The measurements of a point."""

    values: Table  #: The varied values.
    device: str  #: The device's URL, for repeating the run by hand.
    durability: str  #: When writes were complete, see `uflip.durability`.
    #: Costs of the configuration, see `uflip.sweeping.measure_point`; None if unknown.
    spare_bytes: int | None
    memory_bytes: int | None
    ios: int  #: I/Os of the run, ignored ones included.
    #: From the first submission to the last completion [ns]; None in functional mode.
    elapsed_ns: int | None
    #: Rates of the I/Os that are not ignored.
    ios_per_s: float | None
    bytes_per_s: float | None
    #: Statistics of their response times: mean_ns, std_ns, percentiles, ...; None without any.
    reads: StatisticsSummary | None
    writes: StatisticsSummary | None
    #: Bytes programmed over bytes that the host wrote; None if it wrote none.
    write_amplification: float | None
    #: Pages relocated per collected block; None if no block was collected.
    relocated_pages_per_block: float | None
    counters: dict[str, int]  #: Device counters of the run.
    #: Statistics of the response times of all I/Os, as in `uflip pattern`; None without any.
    statistics: StatisticsSummary | None = None
    #: Mode -> statistics of other I/Os: "trim", "append", "reset", ...
    others: dict[str, StatisticsSummary] = field(default_factory=dict)

    @property
    def times(self) -> dict[str, StatisticsSummary]:
        """Response times by mode, for modes with I/Os, in the order of `MODES`."""
        every = {"read": self.reads, "write": self.writes, **self.others}
        return {mode: times for mode in MODES if (times := every.get(mode))}


def measure(point: SweepPoint, *, warm_up: float, timed: bool) -> SweepRow:
    """Measure a point, exactly as it would be measured alone."""
    with open_device(point.url, durability=point.durability) as device:
        if warm_up > 0:
            _warm_up(device, point.spec, warm_up)
        return _timed(device, point) if timed else _untimed(device, point)


def _warm_up(device: Device, spec: Functions, times: float) -> None:
    """Write by the same pattern, with another seed, the given multiple of the device size."""
    info = device.info
    written = resolve(spec, info).totals.bytes_written
    rounds = times * info.capacity_bytes / max(written, 1)
    device.apply(_lengthen(spec, rounds).but(seed=((spec.seed or 0) + 1) % 2**64))


def _lengthen(spec: Functions, rounds: float) -> Functions:
    """Return a pattern of that multiple of its length."""
    if isinstance(spec, Parallel):
        return spec.but(patterns=tuple(_lengthen(each, rounds) for each in spec.patterns))
    io_count = max(1, round(spec.ios * rounds))
    return spec.but(stop=None, io_count=io_count, io_ignore=0)


def _timed(device: Device, point: SweepPoint) -> SweepRow:
    trace = device.run(point.spec)
    run_statistics = statistics_of([trace])
    times = {mode: of["statistics"] for mode, of in run_statistics.by_mode.items()}
    counters = json.loads(trace.counters_json() or "{}")
    return _row(
        device,
        point,
        counters,
        write_amplification=write_amplification(
            counters, device.info.page_bytes, trace.bytes_written
        ),
        ios=len(trace),
        elapsed_ns=trace.elapsed_ns(),
        ios_per_s=run_statistics.ios_per_s,
        bytes_per_s=run_statistics.bytes_per_s,
        statistics=run_statistics.statistics,
        reads=times.pop("read", None),
        writes=times.pop("write", None),
        others=times,
    )


def _untimed(device: Device, point: SweepPoint) -> SweepRow:
    counters = device.apply(point.spec)
    totals = resolve(point.spec, device.info).totals
    ratio = write_amplification(counters, device.info.page_bytes, totals.bytes_written)
    nothing = dict.fromkeys(("elapsed_ns", "ios_per_s", "bytes_per_s", "reads", "writes"))
    return _row(device, point, counters, write_amplification=ratio, ios=totals.total_ios, **nothing)


def _row(device: Device, point: SweepPoint, counters: dict[str, int], **measured: Any) -> SweepRow:
    collected = counters["blocks_collected"]
    return SweepRow(
        values=point.values,
        device=point.url,
        durability=point.durability,
        relocated_pages_per_block=counters["pages_relocated"] / collected if collected else None,
        counters=counters,
        **vars(costs(device.info)),
        **measured,
    )


@dataclass(frozen=True)
class Costs:
    """Bytes of spare flash, and of memory; None if unknown."""

    spare_bytes: int | None
    memory_bytes: int | None


def costs(info: DeviceInfo) -> Costs:
    """Return the costs of a simulated device.

    >>> from uflip.device.catalogue import inspect_device
    >>> costs(inspect_device("sim:demo?write_cache_bytes=1MiB"))
    Costs(spare_bytes=759169024, memory_bytes=5242880)
    """
    flash_bytes = info.details.flash_bytes
    spare = flash_bytes - info.capacity_bytes if flash_bytes is not None else None
    profile = info.profile_table
    map_bytes = None
    if "stripes" in profile:
        map_bytes = int(profile["stripes"]["map_memory_bytes"])
    elif "mapping" in profile:
        map_bytes = int(profile["mapping"]["mapping_cache_bytes"])
    elif profile["ftl"]["ftl"] == "page_map":
        pages = info.capacity_bytes // int(profile["geometry"]["page_bytes"])
        map_bytes = ENTRY_BYTES * pages
    if map_bytes is None:
        return Costs(spare, None)
    return Costs(spare, map_bytes + int(profile["cache"]["write_cache_bytes"]))
