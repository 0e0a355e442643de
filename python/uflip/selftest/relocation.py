"""Relocated pages of the cyclic buffer on the OFC device, against OFC's equation (2).

**Source**: OFC (2011) §V.C, equation (2); `uflip.models.relocation`.
**Faithful**: the device of Table II, its eight dies and metadata pages, at several spare factors.
**Simplified**: nothing.
**Ambiguous**: S_B and S_P of the equation: here the 127 data pages of a block, and the blocks that
can be victims; the reserve of each die and its open block cannot.
"""

from functools import partial

from uflip.models.relocation import relocated_pages_simplified
from uflip.models.write_amplification import pool_spare_factor
from uflip.reproduce.simulated_device import SimulatedDevice, device_url, relocated_pages
from uflip.selftest.check import SelfTest
from uflip.spec import basic

RELOCATION_TOLERANCE = 0.02

BUFFER_SPARE_FACTORS = (0.1, 0.2, 0.3, 0.45, 0.6)
RESERVED_BLOCKS = 1
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
