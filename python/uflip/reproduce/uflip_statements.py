"""uFLIP (2009), statements of the text without a figure, measured on the devices of Table 3.

**Source**: uFLIP (CIDR 2009) §5.1, §5.2, §5.3.
**Faithful**: 32 KiB I/Os on devices in the random state. The random state itself is written as in
§4.1, in timed writes of random size, three times over the device as `uflip run` does.
**Simplified**: the time of a random state is that of a sample of its writes, times their number.
**Ambiguous**: "until the area becomes so small that the writes become in-place" names no size: the
smallest area here is 4 MiB, the smallest one of Table 3. The paper does not print how much it wrote
for a random state. Bursts of fewer than 40 I/Os pause for longer than random writes need.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from uflip.benchmark.state import OVERWRITES
from uflip.data.spec import read_spec
from uflip.device.handle import Device
from uflip.device.io_list import native_ios
from uflip.device.opener import open_device
from uflip.executors import OnStep, on_all
from uflip.microbench.partitioning import MAX_TARGET_BYTES
from uflip.reproduce import figure, table3
from uflip.reproduce.reproduction import (
    Reproduction,
    ReproductionRow,
    WiderTolerance,
    at_least,
    below,
    between,
    compare_printed,
    compare_stated,
)
from uflip.results.key_characteristics import LIKE_FACTOR
from uflip.spec import Basic, baseline, basic

if TYPE_CHECKING:
    from matplotlib.figure import Figure

IO_SIZE = 32 << 10
MIB = 1 << 20
REST_NS = 60 * 10**9
AREAS = (4 * MIB, 8 * MIB, 16 * MIB)
BURSTS = (40, 80, 160, 320, 640)
BURST_PAUSE_NS = 100_000_000
BURST_IOS = 1280
WITH_PAUSES = ("memoright", "mtron")
"""Devices with an effect of pauses in Table 3."""
MANY_PARTITIONS = 128
START_UP_IOS = 128
"""The start-up of the Mtron, and whole periods of devices that merge a log at once."""
LARGEST_BYTES = 128 << 10
SECTOR = 512
SAMPLE = 5_000
UNPRINTED = WiderTolerance(
    0.2, "the paper does not print how much it wrote; three times the device here"
)


@dataclass(frozen=True)
class DeviceStatements:
    """The measurements of one device."""

    profile: str  #: The device.
    #: Size of the target [bytes] -> cost of sequential writes within it, over the baseline.
    areas: dict[int, float]
    partitions: float  #: Cost of `MANY_PARTITIONS` sequential writers over that of random writes.
    start_up: float  #: Mean of the first `START_UP_IOS` random writes over that of the others.
    lingering: float  #: Sequential reads after random writes over those before.
    #: I/Os of a burst -> total time [s]; empty for devices without an effect of pauses.
    bursts: dict[int, float]
    random_state_h: float | None  #: Time to write a random state [h]; of the Memoright.


@dataclass(frozen=True)
class Statements:
    """All devices, in the order of Table 3."""

    devices: tuple[DeviceStatements, ...]


def mean_ms(device: Device, spec: Basic, ignore: int = 0) -> float:
    """Run a pattern on a rested device; return its mean response time [ms]."""
    device.idle(REST_NS)
    times = np.asarray(device.run(spec).column("response_time_ns"))[ignore:]
    return float(times.mean()) / 1e6


def measure_device(profile: str) -> DeviceStatements:
    """Measure one device."""
    with open_device(f"sim:{profile}") as device:
        device.idle(REST_NS)
        random = baseline("RW", io_size=IO_SIZE, io_count=1024, seed=5)
        times = np.asarray(device.run(random).column("response_time_ns"))
        sequential = baseline("SW", io_size=IO_SIZE, io_count=1024)
        whole = mean_ms(device, sequential, 256)
        areas = {
            size: mean_ms(device, sequential.but(target_size=size), 256) / whole for size in AREAS
        }
        target = min(device.info.capacity_bytes // 2, MAX_TARGET_BYTES)
        writers = basic(
            "write", "partitioned", partitions=MANY_PARTITIONS, io_size=IO_SIZE, io_count=2048,
            target_size=target // (MANY_PARTITIONS * IO_SIZE) * (MANY_PARTITIONS * IO_SIZE),
        )  # fmt: skip
        many = mean_ms(device, writers, 512) / float(times[256:].mean() / 1e6)
        reads = baseline("SR", io_size=IO_SIZE, io_count=1024, target_size=1024 * IO_SIZE)
        before = mean_ms(device, reads)
        device.run(random.but(seed=6))
        after = float(np.asarray(device.run(reads).column("response_time_ns")).mean()) / 1e6
        bursts = {n: total_s(device, n) for n in BURSTS} if profile in WITH_PAUSES else {}
    return DeviceStatements(
        profile,
        areas,
        many,
        float(times[:START_UP_IOS].mean() / times[START_UP_IOS:].mean()),
        after / before,
        bursts,
        random_state_h(profile) if profile == "memoright" else None,
    )


def total_s(device: Device, burst: int) -> float:
    """Return the time of random writes in bursts, pauses included [s]."""
    device.idle(REST_NS)
    spec = basic(
        "write", "random", io_size=IO_SIZE, time="burst", pause=BURST_PAUSE_NS, burst=burst,
        io_count=BURST_IOS, seed=4,
    )  # fmt: skip
    return device.run(spec).elapsed_ns() / 1e9


def random_state_h(profile: str) -> float:
    """Return the time of writes of random size, `OVERWRITES` times over the device [h]."""
    draw = np.random.default_rng(11)
    with open_device(f"sim:{profile}") as device:
        sectors = device.info.capacity_bytes // SECTOR
        sizes = draw.integers(1, LARGEST_BYTES // SECTOR, SAMPLE, endpoint=True)
        begins = draw.integers(0, sectors - sizes, endpoint=True)
        pairs = zip((begins * SECTOR).tolist(), (sizes * SECTOR).tolist(), strict=True)
        ios = native_ios((("write", begin, size) for begin, size in pairs), device)
        device.set_replay_ios(ios)
        times = np.asarray(device.run(read_spec(ios.spec_json(1))).column("response_time_ns"))
        capacity = device.info.capacity_bytes
    # The first half uses up the free blocks.
    half = SAMPLE // 2
    ns_per_byte = float(times[half:].sum()) / float(sizes[half:].sum() * SECTOR)
    return OVERWRITES * capacity * ns_per_byte / 1e9 / 3600


def measure(on_step: OnStep) -> Statements:
    """Measure every device of Table 3."""
    profiles = [row.profile for row in table3.TABLE]
    return Statements(tuple(on_all(measure_device, profiles, on_step)))


def rows(data: Statements) -> list[ReproductionRow]:
    """Compare with the statements, device by device."""
    return [row for one in data.devices for row in _rows_of(one)]


def _rows_of(one: DeviceStatements) -> list[ReproductionRow]:
    stated = partial(compare_stated, device=one.profile)
    rows = [
        stated(
            f"uflip/5.2/{one.profile}/sequential_locality", max(one.areas.values()),
            below(LIKE_FACTOR),
        ),
        stated(
            f"uflip/5.3/{one.profile}/many_partitions", one.partitions, between(0.5, 2),
            note=MANY_NOTE,
        ),
    ]  # fmt: skip
    if one.profile not in WITH_PAUSES:
        rows.append(stated(f"uflip/5.1/{one.profile}/no_start_up", one.start_up, at_least(0.8)))
    if one.profile != "mtron":
        rows.append(stated(f"uflip/5.1/{one.profile}/no_lingering", one.lingering, below(1.05)))
    if one.bursts:
        spread = max(one.bursts.values()) / min(one.bursts.values())
        rows.append(stated(f"uflip/5.2/{one.profile}/bursts", spread, below(1.05)))
    if one.random_state_h is not None:
        rows.append(
            compare_printed(
                f"uflip/5.1/{one.profile}/random_state", one.random_state_h, wider=UNPRINTED
            )
        )
    return rows


MANY_NOTE = (
    "with more partitions than open units every writer closes a unit of another one; how much that "
    "costs was fitted to two to eight partitions only"
)


def draw(data: Statements) -> Figure:
    """Draw sequential writes over the size of their target."""
    sheet, [axis] = figure.panels(height=3.8)
    names = {row.profile: row.name for row in table3.TABLE}
    for one in data.devices:
        axis.plot(list(one.areas), list(one.areas.values()), marker=".", label=names[one.profile])
    axis.axhline(LIKE_FACTOR, **figure.EQUATION)
    figure.sizes(axis, "size of the target")
    figure.from_zero(axis, "sequential writes over the baseline", 6, 1)
    figure.title(axis, "Locality of sequential writes", "uFLIP §5.2: below the line unaffected")
    sheet.legend(loc="outside lower center", ncols=4)
    return sheet


REPRODUCTION = Reproduction(
    id="uflip-statements",
    title="statements of the text: locality, bursts, partitions, start-up, random state",
    source="uFLIP (2009) §5.1, §5.2, §5.3",
    steps=len(table3.TABLE),
    measure=measure,
    rows=rows,
    draw=draw,
)
