"""Measurement of a point of a sweep: the device, an optional warm-up, and the run.

The device is created from its profile, in the profile's state; with the cache a second sweep of the
same devices starts at once.
"""

import json
from typing import Any

from uflip.device.handle import Device
from uflip.device.opener import open_device
from uflip.device.resolve import resolve
from uflip.results.run_statistics import statistics_of, write_amplification
from uflip.spec import Functions, Parallel
from uflip.sweeping.costs import costs
from uflip.sweeping.points import SweepPoint
from uflip.sweeping.row import SweepRow


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
