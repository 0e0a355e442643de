"""The I/Os of a workload on a simulated device, one after the other: how wrong is the formula?

The device is made as the benchmark found it, and its free blocks are used up by random writes, as
they are in the running phase that means are of. What follows each other in one direction is one
run; between two runs no time passes.
"""

from collections.abc import Iterator

from uflip.cost.workloads import Io, Parameters, Workload
from uflip.device.opened import Device
from uflip.device.opening import open_device
from uflip.spec import baseline

WARM_UP_BYTES = 32 << 10
"""Size of the writes that use free blocks up [bytes]: that of uFLIP's baselines."""
SEED = 7


def replay(url: str, workload: Workload, given: Parameters) -> tuple[int, int]:
    """Do what a workload does on a new simulated device.

    Returns
    -------
    tuple of int
        How long that took [ns], and how many I/Os it was.
    """
    took_ns = ios = 0
    with open_device(url) as device:
        _use_up_free_blocks(device)
        for mode, offset, size, count in _stretches(workload.ios(given)):
            spec = baseline(
                "SR" if mode == "read" else "SW",
                io_size=size,
                io_count=count,
                target_offset=offset,
                target_size=size * count,
            )
            took_ns += device.run(spec).elapsed_ns()
            ios += count
    return took_ns, ios


def _use_up_free_blocks(device: Device) -> None:
    spare = (device.info.details.flash_bytes or 0) - device.info.capacity_bytes
    count = max(spare, 0) // WARM_UP_BYTES
    if count:
        device.apply(baseline("RW", io_size=WARM_UP_BYTES, io_count=count, seed=SEED))


def _stretches(ios: Iterator[Io]) -> Iterator[tuple[str, int, int, int]]:
    """Put I/Os together that go on where the last one ended: mode, offset, size, how many."""
    mode, begin, size, count = "", 0, 0, 0
    for each_mode, offset, each_size in ios:
        if (each_mode, each_size, offset) == (mode, size, begin + size * count):
            count += 1
            continue
        if count:
            yield mode, begin, size, count
        mode, begin, size, count = each_mode, offset, each_size, 1
    if count:
        yield mode, begin, size, count
