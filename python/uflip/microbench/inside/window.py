"""The parts of the device that short probes use, and the properties that all probes share."""

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
