"""Write amplification of each victim policy with a closed form, under uniform random writes.

**Source**: the closed forms of `uflip.models.write_amplification`, each with its own source.
**Faithful**: uniform random single-page writes to every logical page, steady state, one pool.
**Simplified**: some thousand blocks, where theory has infinitely many.
**Ambiguous**: the blocks that theory's T counts. A victim is chosen among the blocks that are full
at that moment. A die begins to collect when the host opens the last block that it may: then its
reserve is free, this block is open and nearly empty, and all others are full. So T is the blocks
of the die, less `reserved_blocks`, less one. Each of several dies has such a pool.
"""

from collections.abc import Callable
from functools import partial

from uflip.models import write_amplification as theory
from uflip.reproduce.simulated_device import SimulatedDevice, device_url
from uflip.selftest.check import SelfTest
from uflip.spec import basic

# Largest deviation from the theory.
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
