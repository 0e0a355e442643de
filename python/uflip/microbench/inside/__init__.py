"""Probes of the suite `inside`: each identifies properties of a device that is a black box.

They are made in this order, once, and each leaves the device to the next. `uflip.inference` has
the estimators. All sizes are fixed in advance, because no property of the device is known yet.

=====================  =======================================================================
`clear`                deallocate everything, write the window in order: a known layout
`read_size`            random reads by size: partial transfers
`read_each`            a sector of every 4 KiB, in order: page types
`read_bursts`          several reads at once: page, dies, channels, cell and channel times
`read_arrivals`        reads at random times: channels of which dies have one each
`read_deallocated`     reads of no data: command, host link
`write_size`           random writes by size: mapping unit, program time
`write_bursts`         two writes at once: command
`read_beside_writes`   reads among writes: suspended programs
`cache_burst`          bursts that need not be durable: write cache
`fill`                 write everything in order: block, erase time
`read_range`           random reads by the size of their range: map cache
`rewrite`              writes in place, and far apart: FTL family
`overwrite`            random writes to the whole device: spare factor
`overwrite_part`       random writes to an eighth: victim policy
=====================  =======================================================================
"""

from functools import partial

from uflip.durability import FUA
from uflip.microbench.experiment import Context
from uflip.microbench.micro_benchmark import MicroBenchmark

MIB = 1 << 20
WINDOW_BYTES = 16 * MIB
# On a small device, the part of it that the window is.
SHARE = 8


def window_bytes(context: Context) -> int:
    """Return the size of the window [bytes]: the beginning of the device, written in order."""
    return max(min(WINDOW_BYTES, context.capacity // SHARE) // MIB, 1) * MIB


def deallocated_bytes(context: Context) -> int:
    """Return the size of the end of the device that is not written [bytes]; 0 without trims."""
    return MIB if context.info.details.deallocates and context.capacity >= SHARE * MIB else 0


# Writes are durable, so that a write cache does not hide the flash.
Probe = partial(
    MicroBenchmark,
    levels=False,
    suites=("inside",),
    own_length=True,
    fixed_order=True,
    durability=FUA,
)
