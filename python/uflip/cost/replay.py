"""Replay of a workload's I/Os on a simulated device: the error of the formula.

The device is created as for the benchmark, and random writes use up its free blocks, as in the
running phase that means are taken of. The I/Os form one list, replayed as by `uflip replay`: each
follows the one before, and each response time is recorded. An error therefore has a visible cause:
another number of I/Os than in the formula, or reads or writes that cost more or less than among
I/Os of their own kind.
"""

from dataclasses import dataclass

import numpy as np

from uflip.cost.workloads import Parameters, Workload
from uflip.data.spec import read_spec
from uflip.device.handle import Device
from uflip.device.io_list import native_ios
from uflip.device.opener import open_device
from uflip.spec import baseline

WARM_UP_BYTES = 32 << 10
"""Size of the writes that use up free blocks [bytes]: that of uFLIP's baselines."""
SEED = 7
MODES = "read", "write"


@dataclass(frozen=True)
class Replayed:
    """The measured cost of a workload."""

    time_ns: int  #: Total time [ns].
    ios: dict[str, int]  #: Number of I/Os by mode.
    ns_per_io: dict[str, float]  #: Mean response time by mode [ns]; modes without I/Os are missing.

    @property
    def every_io(self) -> int:
        """Total number of I/Os."""
        return sum(self.ios.values())


def replay(url: str, workload: Workload, parameters: Parameters) -> Replayed:
    """Run the I/Os of a workload on a new simulated device."""
    with open_device(url) as device:
        _use_up_free_blocks(device)
        ios = native_ios(workload.ios(parameters), device)
        device.set_replay_ios(ios)
        trace = device.run(read_spec(ios.spec_json(1)))
        writes = np.asarray(trace.column("mode")) == 1
        response_ns = np.asarray(trace.column("response_time_ns")).astype(np.int64)
    of_mode = {"read": response_ns[~writes], "write": response_ns[writes]}
    return Replayed(
        trace.elapsed_ns(),
        {mode: len(times_ns) for mode, times_ns in of_mode.items()},
        {mode: float(times_ns.mean()) for mode, times_ns in of_mode.items() if len(times_ns)},
    )


def _use_up_free_blocks(device: Device) -> None:
    spare = (device.info.details.flash_bytes or 0) - device.info.capacity_bytes
    count = max(spare, 0) // WARM_UP_BYTES
    if count:
        device.apply(baseline("RW", io_size=WARM_UP_BYTES, io_count=count, seed=SEED))
