"""OFC (2011), §VI: a pipelined processor with more channels; its constants and its rates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from uflip.executors import OnStep, on_all
from uflip.models.channel import device_rate, pipelined_channel_rate
from uflip.reproduce import figure, ofc
from uflip.reproduce.published import PUBLISHED
from uflip.reproduce.reproduction import (
    Reproduction,
    ReproductionRow,
    above,
    at_least,
    below,
    compare_printed,
    compare_stated,
    equation,
)
from uflip.reproduce.simulated_device import GENERATOR
from uflip.spec import basic

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# The OFC device with a pipelined processor, and its constants that are found by simulation.
#
# The values are in `profiles/ofc-pipelined.toml` and below. After a change of the simulator's
# timing, this computes new ones (a minute)::
#
#     python -c "from uflip.reproduce.ofc_pipelined import print_fits; print_fits()"
#
# **Source**: OFC (2011) §III, §V.F and §VI.
# **Faithful**: the printed rate of a bus; one block collected on each channel; a relocated page
# costs a read and a write, and no constant is fitted to relocation.
# **Simplified**: constants are found by bisection, one after the other.
# **Ambiguous**: the slow set-up of transfers by which buses of 100 MB/s carry 30 and 20 kIOPS; and
# the division of a command's latency between its beginning and its end. So a relocated page has the
# latency of one command: of the read, which delays the write, and not of the write.


PIPELINED_PROFILE = "ofc-pipelined"

PIPELINED_OUTSTANDING = 12
"""Outstanding requests of the traffic generator: fitted to 24 kIOPS of random reads (§V.F)."""

RAW = {
    "command_read_ns": 0, "command_write_ns": 0,
    "command_read_latency_ns": 0, "command_write_latency_ns": 0,
}  # fmt: skip
"""\"When the additional processing overhead is minimized\" (§III)."""


PIPELINED_FITS = (
    ("command_read_latency_ns", "ofc/sequential_reads", ofc.sequential_reads, 1_000_000),
    ("collect_ns", "ofc/erasing_writes", ofc.sequential_writes, 2_000_000),
)
"""Constant, the printed number that it is fitted to, the measurement, and its upper limit."""

AS_READS = ("command_write_latency_ns", "relocate_latency_ns")
"""Constants that are inferred from the latency of a read."""


def solve_pipelined(outstanding: int, fitted: int = len(PIPELINED_FITS)) -> dict[str, int]:
    """Find the first `fitted` constants in order, for a number of outstanding requests."""
    constants: dict[str, int] = {}
    for constant, value_id, measured, upper in PIPELINED_FITS[:fitted]:
        published = PUBLISHED[value_id].number
        assert published is not None, "constants are fitted to numbers"
        low, high = 0, upper
        while high - low > max(10, high // 500):
            middle = (low + high) // 2
            candidate = constants | {constant: middle}
            if measured(outstanding, profile=PIPELINED_PROFILE, **candidate) < published:
                high = middle
            else:
                low = middle
        constants[constant] = low
        if constant == PIPELINED_FITS[0][0]:
            constants |= dict.fromkeys(AS_READS, low)
    return constants


def print_fits() -> None:
    """Print all constants, then the results for other numbers of outstanding requests."""
    print(PIPELINED_OUTSTANDING, solve_pipelined(PIPELINED_OUTSTANDING))
    for outstanding in (6, 8, 10, 11, 12, 13, 14, 16):
        constants = solve_pipelined(outstanding, fitted=1)
        reads = ofc.random_reads(outstanding, profile=PIPELINED_PROFILE, **constants)
        writes = ofc.clean_writes(outstanding, profile=PIPELINED_PROFILE, **constants)
        print(f"{outstanding} requests: {constants[PIPELINED_FITS[0][0]]} ns,", end=" ")
        print(f"random reads {reads:.2f} kIOPS, clean writes {writes:.2f} kIOPS")


# OFC with 1 to 16 channels and a pipelined processor, beside `sim:ofc`.
#
# **Source**: OFC (2011) §III (raw rates, limits, "a much larger number of Flash channels"), §V, §VI
# ("up to 16 channels with pipelining can be handled"; garbage collection with 25 % of the pages
# relocated).
# **Faithful**: two dies a channel, two channels a bus, 4096 blocks for each pair of channels; each
# measurement that another reproduction has on `sim:ofc` is made here on both devices.
# **Simplified**: with other numbers of channels the outstanding requests and the buses are in
# proportion: the report measured four channels and states that the device can be extended.
# **Ambiguous**: the meaning of "handled": here that the processor does not keep 16 channels from
# four times the raw rate of 4.


CHANNELS = (1, 2, 4, 8, 16)
SPARE_FACTORS = (0.30, 0.45, 0.60)
QUARTER_PAGES = 32
"""25 % of the 127 pages of a block, or of its 128."""
IDLE_NS = 4 * 10**9
IDLE_FREE_BLOCKS = 400
AHEAD = "ahead"
PAGE_BYTES = 4320
SIXTEEN_AND_FOUR = CHANNELS.index(16), CHANNELS.index(4)
Pair = tuple[float, float]


@dataclass(frozen=True)
class PipelinedScaling:
    """All measurements."""

    #: Id of a published value -> ours with the pipelined processor, and with one lane.
    both: dict[str, Pair]
    #: "read" and "write" -> saturated rates for each of `CHANNELS`, without processing [kIOPS].
    raw: dict[str, tuple[float, ...]]
    #: Name of a curve -> rates for each of `CHANNELS` [thousands a second].
    scaled: dict[str, tuple[float, ...]]
    #: See the rows.
    freed_alone: float
    freed_beside: float


def channel_keys(channels: int) -> dict[str, int]:
    """Return the keys of a device with a number of channels."""
    return {"channels": channels, "buses": max(1, channels // 2)}


def outstanding(channels: int) -> int:
    """Return the proportional number of outstanding requests."""
    return max(1, PIPELINED_OUTSTANDING * channels // 4)


def saturated(mode: str, **overrides: Any) -> float:
    """Return the saturated rate of sequential requests without processing [kIOPS]."""
    state = "sequential" if mode == "read" else "empty"
    device = ofc.ofc_device(state=state, **overrides)
    channels = overrides.get("channels", 4)
    return ofc.sequential(device, mode, ofc.MEASURED_IOS, 16 * channels).kiops


def _random_writes(
    spare_factor: float, requests: int = ofc.OUTSTANDING, **overrides: Any
) -> tuple[float, float]:
    device = ofc.ofc_device(state="sequential", spare_factor=spare_factor, **overrides)
    ofc.steady_random_writes(device)
    window = ofc.random(device, "write", ofc.MEASURED_IOS, 11, requests)
    return window.kiops, window.counters["pages_relocated"] / window.elapsed_ns * 1e6


def _drop(**overrides: Any) -> float:
    return ofc.drop_by_relocation(**overrides)


BOTH: dict[str, Callable[..., float]] = {
    "ofc/raw_reads": lambda **keys: saturated("read", **keys),
    "ofc/raw_writes": lambda **keys: saturated("write", **keys),
    "ofc/sequential_reads": ofc.sequential_reads,
    "ofc/random_reads": ofc.random_reads,
    "ofc/clean_writes": ofc.clean_writes,
    "ofc/erasing_writes": ofc.sequential_writes,
    "ofc/drop_30_pages": _drop,
    **{
        f"ofc/random_writes_{100 * spare:.0f}": (
            lambda outstanding=ofc.OUTSTANDING, spare=spare, **keys: _random_writes(
                spare, outstanding, **keys
            )[0]
        )
        for spare in SPARE_FACTORS
    },
}
"""The measurements on both devices."""


def _measure_both(value_id: str) -> Pair:
    measured = BOTH[value_id]
    if value_id.startswith("ofc/raw"):
        lane = {key: 0 for key in RAW if "latency" not in key}
        return measured(profile=PIPELINED_PROFILE, **RAW), measured(**lane)
    if value_id == "ofc/drop_30_pages":
        return measured(profile=PIPELINED_PROFILE, outstanding=PIPELINED_OUTSTANDING), measured()
    return measured(outstanding=PIPELINED_OUTSTANDING, profile=PIPELINED_PROFILE), measured()


def _raw_rate(point: tuple[str, int]) -> float:
    mode, channels = point
    return saturated(mode, profile=PIPELINED_PROFILE, **RAW, **channel_keys(channels))


def _scaled_rates(channels: int) -> dict[str, float]:
    keys = channel_keys(channels)
    requests = outstanding(channels)
    rates = {
        "sequential reads": ofc.sequential_reads(requests, profile=PIPELINED_PROFILE, **keys),
        "random reads": ofc.random_reads(requests, profile=PIPELINED_PROFILE, **keys),
    }
    for spare in SPARE_FACTORS:
        writes, relocated = _random_writes(spare, requests, profile=PIPELINED_PROFILE, **keys)
        rates[f"random writes, {100 * spare:.0f} % spare"] = writes
        if spare == ofc.SPARE_FACTOR:
            rates["relocated pages, 45 % spare"] = relocated
    return rates


def freed_alone() -> float:
    """Return pages that collection frees in an idle second, 25 % relocated, over clean writes."""
    device = ofc.ofc_device(
        PIPELINED_PROFILE,
        state="empty",
        relocate_at_least=QUARTER_PAGES,
        idle_free_blocks=IDLE_FREE_BLOCKS,
    )
    target = {"target_size": device.logical_pages // 10 * device.page_bytes}
    pages = 3 * ofc.BLOCKS * ofc.PAGES_PER_BLOCK // 2
    ofc.write_untimed(device, GENERATOR, pages, seed=7, **target)
    page = device.page_bytes
    idle_reads = basic(
        "read", "random", io_size=page, io_count=2, time="pause", pause=IDLE_NS, **target
    )
    window = device.run(idle_reads)
    freed = window.counters["blocks_collected"] * (ofc.DATA_PAGES_PER_BLOCK - QUARTER_PAGES)
    return (
        freed
        / window.elapsed_ns
        * 1e6
        / ofc.clean_writes(PIPELINED_OUTSTANDING, profile=PIPELINED_PROFILE)
    )


def freed_beside() -> float:
    """Return random writes while a quarter of each block is relocated, over those while none is."""
    quarter, none = (
        ofc.fixed_relocation(pages, PIPELINED_OUTSTANDING, profile=PIPELINED_PROFILE)
        for pages in (QUARTER_PAGES, 0)
    )
    return quarter / none


def measure_scaling(on_step: OnStep) -> PipelinedScaling:
    """Measure on both devices, then with all numbers of channels, then collection alone."""
    steps = iter(range(1, STEPS + 1))

    def step(_: int, label: str) -> None:
        on_step(next(steps), label)

    both = dict(zip(BOTH, on_all(_measure_both, list(BOTH), step), strict=True))
    modes = [(mode, channels) for mode in ("read", "write") for channels in CHANNELS]
    raw = on_all(_raw_rate, modes, step, "raw {0[0]}s, {0[1]} channels".format)
    scaled = on_all(_scaled_rates, CHANNELS, step, "{} channels".format)
    step(0, AHEAD)
    freed = freed_alone()
    step(0, "beside")
    return PipelinedScaling(
        both,
        {"read": tuple(raw[: len(CHANNELS)]), "write": tuple(raw[len(CHANNELS) :])},
        {name: tuple(row[name] for row in scaled) for name in scaled[0]},
        freed,
        freed_beside(),
    )


STEPS = len(BOTH) + 2 * len(CHANNELS) + len(CHANNELS) + 2


def limit(mode: str, channels: int) -> float:
    """Return the limit of channels and buses, by OFC's equation [thousands of pages a second]."""
    cell_ns, setup_ns = (25_000, 23_467) if mode == "read" else (200_000, 56_800)
    one = pipelined_channel_rate(
        interface_bytes_per_s=166e6, page_bytes=PAGE_BYTES, cell_ns=cell_ns, dies=2
    )
    bus = PAGE_BYTES / (PAGE_BYTES / 100e6 + setup_ns / 1e9)
    buses = channel_keys(channels)["buses"]
    rate = device_rate(channel_bytes_per_s=one, channels=channels, bus_bytes_per_s=bus, buses=buses)
    # The last page of a block is programmed as well, with metadata.
    host = 1 if mode == "read" else ofc.DATA_PAGES_PER_BLOCK / ofc.PAGES_PER_BLOCK
    return host * rate / PAGE_BYTES / 1e3


def rows_scaling(data: PipelinedScaling) -> list[ReproductionRow]:
    """Compare both devices, then raw rates with the equation, then with §VI."""
    return [
        *(
            compare_printed(
                value_id,
                ours,
                device=PIPELINED_PROFILE,
                note=f"with one lane (sim:ofc) {lane:.3g}" + NOTES.get(value_id, ""),
            )
            for value_id, (ours, lane) in data.both.items()
        ),
        *(
            equation(
                f"raw {mode}s, {channels} channel{'s' if channels > 1 else ''}",
                "kIOPS",
                limit(mode, channels),
                ours,
            )
            for mode in data.raw
            for channels, ours in zip(CHANNELS, data.raw[mode], strict=True)
        ),
        *_section_6(data),
    ]


TOO_CHEAP = "; a relocated page takes buses, dies and one latency here, which is too little"
NOTES = {
    "ofc/drop_30_pages": TOO_CHEAP,
    "ofc/random_writes_45": TOO_CHEAP,
    "ofc/random_writes_60": TOO_CHEAP,
}
"""Reasons of misses."""


def _section_6(data: PipelinedScaling) -> list[ReproductionRow]:
    sixteen, four = (data.scaled["sequential reads"][index] for index in SIXTEEN_AND_FOUR)
    return [
        compare_stated(
            "ofc/sixteen_channels", sixteen / four, at_least(3.6), device=PIPELINED_PROFILE
        ),
        compare_stated("ofc/freed_alone", data.freed_alone, above(1), device=PIPELINED_PROFILE),
        compare_stated("ofc/freed_beside", data.freed_beside, below(1), device=PIPELINED_PROFILE),
    ]


def draw_scaling(data: PipelinedScaling) -> Figure:
    """Draw rates over channels: reads, writes and relocated pages, beside the raw limits."""
    sheet, axes = figure.panels(1, 2, height=4.2)
    for axis, mode in zip(axes, ("read", "write"), strict=True):
        limits = [limit(mode, channels) for channels in CHANNELS]
        axis.plot(CHANNELS, limits, color=figure.FAINT, linestyle=":", label="raw, equation")
        for name, rates in data.scaled.items():
            if name.endswith("reads") == (mode == "read"):
                axis.plot(CHANNELS, rates, marker="o", markersize=3.5, label=name)
        axis.set_xscale("log", base=2)
        axis.set_xticks(CHANNELS, [str(channels) for channels in CHANNELS])
        axis.set_xlabel("channels")
        figure.title(axis, f"{mode.title()}s and their limits", "OFC with a pipelined processor")
        figure.from_zero(axis, "kIOPS", float(np.ceil(max(limits) / 10) * 10), 20)
        axis.legend(loc="upper left")
    return sheet


OFC_SCALING = Reproduction(
    id="ofc-scaling",
    title="1 to 16 channels with a pipelined processor, beside one lane",
    source="OFC (2011) §III, §V, §VI",
    steps=STEPS,
    measure=measure_scaling,
    rows=rows_scaling,
    draw=draw_scaling,
)
