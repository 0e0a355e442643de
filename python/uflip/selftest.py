"""The self-test: the simulator against independent closed forms.

The counters and times of the simulator come from moving pages one by one; the expected values come
from `uflip.models`. Both are right only if they agree. There are three groups of checks; each check
has a device of its own, whose URL lets a user repeat it by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from uflip.executors import OnStep, ignore, on_all
from uflip.models import write_amplification as theory
from uflip.models.channel import pipelined_channel_rate
from uflip.models.relocation import relocated_pages_simplified
from uflip.models.write_amplification import pool_spare_factor
from uflip.reproduce import simulated_device
from uflip.reproduce.simulated_device import SimulatedDevice, device_url, relocated_pages
from uflip.spec import basic


@dataclass(frozen=True)
class SelfTestRow:
    """The expected and the simulated value of a check."""

    name: str  #: The quantity, and what was varied.
    device: str  #: The simulated device, as `uflip info` and `uflip pattern` take it.
    expected: float  #: Value of the closed form.
    measured: float  #: Value of the simulator.
    deviation: float  #: (measured - expected) / expected.
    tolerance: float  #: The largest allowed deviation, in either direction.
    within: bool  #: Whether the deviation is within the tolerance.


@dataclass(frozen=True)
class SelfTest:
    """A check of the self-test."""

    #: As in `SelfTestRow`.
    name: str
    device: str
    tolerance: float
    #: Opens the device of this URL and returns (expected, measured).
    measure: Callable[[str], tuple[float, float]]

    def run(self) -> SelfTestRow:
        """Run the check.

        >>> SelfTest("one", "sim:demo", 0.01, lambda device: (1.0, 1.005)).run().within
        True
        """
        expected, measured = self.measure(self.device)
        deviation = measured / expected - 1
        within = abs(deviation) <= self.tolerance
        return SelfTestRow(
            self.name, self.device, expected, measured, deviation, self.tolerance, within
        )


# Write amplification of each victim policy with a closed form, under uniform random writes.
#
# **Source**: the closed forms of `uflip.models.write_amplification`, each with its own source.
# **Faithful**: uniform random single-page writes to every logical page, steady state, one pool.
# **Simplified**: some thousand blocks, where theory has infinitely many.
# **Ambiguous**: the blocks that theory's T counts. A victim is chosen among the blocks that are
# full at that moment. A die begins to collect when the host opens the last block that it may: then
# its reserve is free, this block is open and nearly empty, and all others are full. So T is the
# blocks of the die, less `reserved_blocks`, less one. Each of several dies has such a pool.


AMPLIFICATION_TOLERANCE = 0.01

POOL_SPARE_FACTORS = (0.07, 0.125, 0.25, 0.5)
# Pages per block -> blocks of the only die: fewer larger blocks, so that all take as long.
BLOCKS = {64: 4096, 256: 2048, 1024: 1024}
RESERVED_BLOCKS = 1
HELD_BLOCKS = RESERVED_BLOCKS + 1

Model = Callable[..., float]  # of spare_factor and pages_per_block

# Warm-up before counting: device sizes to write, so that few pages (5 %) are still where the first
# fill put them, and the number of times that every block is collected.
WARM_UP_SIZES, WARM_UP_TURNS = 3, 5
# Valid pages of victims vary, the more the more random the policy. Over this number the mean is
# good to 0.3 % even with random victims, from empty to full.
COUNTED_SIZES, COUNTED_VICTIMS = 2, 6_000
MORE_VICTIMS = {"d_choices:2": 30_000, "random": 120_000}


def _any_block_size(model: Model) -> Model:
    return lambda spare_factor, pages_per_block: model(spare_factor=spare_factor)  # noqa: ARG005


POLICIES: dict[str, Model] = {
    "cyclic": _any_block_size(theory.fifo),
    "greedy": theory.greedy,
    "d_choices:2": partial(theory.d_choices, choices=2),
    "d_choices:5": partial(theory.d_choices, choices=5),
    "d_choices:10": partial(theory.d_choices, choices=10),
    "random": _any_block_size(theory.random),
}
"""Victim policy, as a profile names it -> its closed form."""


def amplification_checks() -> list[SelfTest]:
    """Return a check for every policy, spare factor and block size."""
    return [
        _amplification_check(policy, spare_factor, pages_per_block)
        for policy in POLICIES
        for spare_factor in POOL_SPARE_FACTORS
        for pages_per_block in BLOCKS
    ]


def _amplification_check(policy: str, spare_factor: float, pages_per_block: int) -> SelfTest:
    device = device_url(
        "ofc",
        gc=policy,
        spare_factor=spare_factor,
        pages_per_block=pages_per_block,
        blocks_per_die=BLOCKS[pages_per_block],
        channels=1,
        dies_per_channel=1,
        metadata_pages=0,
        reserved_blocks=RESERVED_BLOCKS,
        state="sequential",
    )
    name = f"write amplification {policy}, spare {spare_factor}, {pages_per_block} pages per block"
    return SelfTest(
        name,
        device,
        AMPLIFICATION_TOLERANCE,
        partial(_measure_amplification, policy, pages_per_block),
    )


def _measure_amplification(policy: str, pages_per_block: int, url: str) -> tuple[float, float]:
    device = SimulatedDevice(url)
    pages, blocks = device.logical_pages, BLOCKS[pages_per_block]
    spare_factor = theory.pool_spare_factor(
        physical_blocks=blocks,
        pages_per_block=pages_per_block,
        logical_pages=pages,
        held_blocks=HELD_BLOCKS,
    )
    expected = POLICIES[policy](spare_factor=spare_factor, pages_per_block=pages_per_block)
    gained = pages_per_block / expected  # host pages that a collected block makes room for
    warm_up = max(WARM_UP_SIZES * pages, WARM_UP_TURNS * blocks * gained)
    victims = MORE_VICTIMS.get(policy, COUNTED_VICTIMS)
    counted_ios = max(COUNTED_SIZES * pages, victims * gained)
    for seed, ios in ((1, warm_up), (2, counted_ios)):
        counters = device.apply(
            basic("write", "random", io_size=device.page_bytes, io_count=int(ios), seed=seed)
        )
    return expected, counters["pages_programmed"] / counters["host_pages_written"]


# Rate of flash channels in timed mode, against RB/(B + RT) and the bound for interleaved dies.
#
# **Source**: OFC (2011) §III; `uflip.models.channel`.
# **Faithful**: the report's typical values; one die per channel, and several whose cell times
# overlap; enough outstanding requests that every die always has the next one waiting.
# **Simplified**: no limits of buses, processing and link, no metadata pages, and a clean device for
# writes, so that nothing is erased: the formulas have none of these.
# **Ambiguous**: nothing.


CHANNEL_TOLERANCE = 0.01

INTERFACE_BYTES_PER_S = 166_000_000
CELL_NS = {"read": 25_000, "write": 200_000}
# (channels, dies of each): one die, and numbers below, just below, just above and beyond that which
# fills a channel, 2 for reads and 9 for writes; one channel, and four in parallel.
LAYOUTS = ((1, 1), (4, 1), (1, 2), (4, 2), (1, 4), (1, 8), (1, 9), (4, 16))
REQUESTS_PER_DIE = 3
IOS = 40_000


def channel_checks() -> list[SelfTest]:
    """Return a check for reads and writes on every layout."""
    return [_channel_check(mode, channels, dies) for mode in CELL_NS for channels, dies in LAYOUTS]


def _channel_check(mode: str, channels: int, dies: int) -> SelfTest:
    device = device_url(
        "ofc",
        channels=channels,
        dies_per_channel=dies,
        blocks_per_die=8192 // (channels * dies),
        metadata_pages=0,
        buses=0,
        command_read_ns=0,
        command_write_ns=0,
        state="sequential" if mode == "read" else "empty",
    )
    layout = f"{channels} x {dies} die" + ("s" if dies > 1 else "")
    name = f"channel rate {mode}s, {layout} [MB/s]"
    return SelfTest(
        name, device, CHANNEL_TOLERANCE, partial(_measure_channels, mode, channels, dies)
    )


def _measure_channels(mode: str, channels: int, dies: int, url: str) -> tuple[float, float]:
    device = SimulatedDevice(url)
    page_bytes = device.page_bytes_with_spare
    one = pipelined_channel_rate(
        interface_bytes_per_s=INTERFACE_BYTES_PER_S,
        page_bytes=page_bytes,
        cell_ns=CELL_NS[mode],
        dies=dies,
    )
    window = device.run(
        *simulated_device.sequential_requests(
            mode,
            logical_pages=device.logical_pages,
            page_bytes=device.page_bytes,
            outstanding=channels * dies * REQUESTS_PER_DIE,
            ios=IOS,
        )
    )
    return channels * one / 1e6, window.kiops * page_bytes / 1e3


# Relocated pages of the cyclic buffer on the OFC device, against OFC's equation (2).
#
# **Source**: OFC (2011) §V.C, equation (2); `uflip.models.relocation`.
# **Faithful**: the device of Table II, its eight dies and metadata pages, at several spare factors.
# **Simplified**: nothing.
# **Ambiguous**: S_B and S_P of the equation: here the 127 data pages of a block, and the blocks
# that can be victims; the reserve of each die and its open block cannot.


RELOCATION_TOLERANCE = 0.02

BUFFER_SPARE_FACTORS = (0.1, 0.2, 0.3, 0.45, 0.6)
DIES, BLOCKS_PER_DIE, DATA_PAGES = 8, 1024, 127
BUFFER_HELD_BLOCKS = DIES * (RESERVED_BLOCKS + 1)
BUFFER_WARM_UP_SIZES, BUFFER_COUNTED_SIZES = 5, 4


def relocation_checks() -> list[SelfTest]:
    """Return a check for every spare factor."""
    return [
        SelfTest(
            f"relocated pages cyclic, spare {spare_factor}, 127 + 1 pages per block",
            device_url(
                "ofc",
                spare_factor=spare_factor,
                reserved_blocks=RESERVED_BLOCKS,
                state="sequential",
            ),
            RELOCATION_TOLERANCE,
            _measure_relocation,
        )
        for spare_factor in BUFFER_SPARE_FACTORS
    ]


def _measure_relocation(url: str) -> tuple[float, float]:
    device = SimulatedDevice(url)
    spare_factor = pool_spare_factor(
        physical_blocks=DIES * BLOCKS_PER_DIE,
        pages_per_block=DATA_PAGES,
        logical_pages=device.logical_pages,
        held_blocks=BUFFER_HELD_BLOCKS,
    )
    expected = relocated_pages_simplified(spare_factor=spare_factor, pages_per_block=DATA_PAGES)
    write = partial(basic, "write", "random", io_size=device.page_bytes)
    device.apply(write(io_count=BUFFER_WARM_UP_SIZES * device.logical_pages, seed=1))
    counters = device.apply(write(io_count=BUFFER_COUNTED_SIZES * device.logical_pages, seed=2))
    return expected, relocated_pages(counters)


GROUPS: dict[str, Callable[[], list[SelfTest]]] = {
    "write amplification of victim policies": amplification_checks,
    "relocated pages of the cyclic buffer": relocation_checks,
    "rate of flash channels": channel_checks,
}
"""Subject of a group -> its checks, in the order of execution."""


def checks() -> list[SelfTest]:
    """Return all checks, in order."""
    return [check for group in GROUPS.values() for check in group()]


def run(on_step: OnStep = ignore) -> list[SelfTestRow]:
    """Run all checks, on all cores; the simulator is correct if all rows are `within`.

    `on_step`: called with (checks finished, name of the last one).
    """
    return on_all(SelfTest.run, checks(), on_step, lambda check: check.name)


__all__ = ["GROUPS", "SelfTest", "SelfTestRow", "checks", "run"]
