"""Shared parts of the reproductions of OFC's measurements: device and workloads.

**Source**: OFC (2011) §V.A and Table II.
**Faithful**: the profile `ofc`, its traffic generator (`simulated_device`), 5.5 million I/Os
an experiment where a figure follows time.
**Simplified**: a steady state is reached in functional mode; measurements are timed.
**Ambiguous**: rates in MB/s. 115 and 72 MB/s are 27 and 17 kIOPS only if a page counts 4320 bytes,
with its metadata and ECC (with 4096 they would be 28 and 18): this reading is used.
"""

from typing import Any

from uflip.reproduce import simulated_device
from uflip.reproduce.simulated_device import Counters, SimulatedDevice, Window, device_url
from uflip.spec import basic

PROFILE = "ofc"

OUTSTANDING = 6
"""Outstanding requests of the traffic generator: fitted to 24 kIOPS of random reads (§V.F). Five
come closer to that, but cannot sustain the 18 kIOPS of writes to a clean device."""

IOS = 5_500_000
"""I/Os of an experiment (Table II)."""

PAGES_PER_BLOCK = 128
DATA_PAGES_PER_BLOCK = 127
BLOCKS = 8192
SPARE_FACTOR = 0.45

KIOPS_BY_SPARE = {0.30: 6.0, 0.45: 8.5, 0.60: 13.0}
"""Spare factor -> random writes, as §V.C and §V.D print them [kIOPS]."""


def device(profile: str = PROFILE, **overrides: Any) -> SimulatedDevice:
    """Return the OFC device, from one of its profiles, with some keys changed."""
    return SimulatedDevice(device_url(profile, **overrides))


def sequential(
    device: SimulatedDevice, mode: str, ios: int, outstanding: int = OUTSTANDING
) -> Window:
    """Measure a sequential stream from the beginning of the device."""
    return device.run(
        *simulated_device.sequential_requests(
            mode,
            logical_pages=device.logical_pages,
            page_bytes=device.page_bytes,
            outstanding=outstanding,
            ios=ios,
        )
    )


def random(
    device: SimulatedDevice, mode: str, ios: int, seed: int, outstanding: int = OUTSTANDING
) -> Window:
    """Measure random requests over the whole device."""
    return device.run(
        *simulated_device.random_requests(
            mode, page_bytes=device.page_bytes, outstanding=outstanding, ios=ios, seed=seed
        )
    )


def write_untimed(
    device: SimulatedDevice, location: str, pages: int, *, seed: int = 1, **target: int
) -> Counters:
    """Write pages in functional mode; return the counters."""
    return device.apply(
        basic("write", location, io_size=device.page_bytes, io_count=pages, seed=seed, **target)
    )


def steady_random_writes(device: SimulatedDevice, times: int = 6) -> None:
    """Bring the device into the steady state of uniform random writes.

    Parameters
    ----------
    device : SimulatedDevice
        In any state.
    times : int
        Device sizes to write. After six, one page in 400 is still where the previous state put it.
    """
    write_untimed(device, "random", times * device.logical_pages, seed=101)
