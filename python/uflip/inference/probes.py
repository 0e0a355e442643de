"""The probes on an open device, one after the other, without a result folder."""

from uflip.data.device import DeviceInfo
from uflip.data.spec import Spec
from uflip.device.handle import Device
from uflip.errors import UsageError
from uflip.inference.observations import Observation, Observations, RunKey, observation_of
from uflip.microbench import MICRO_BENCHMARKS, varied_micro_benchmarks
from uflip.microbench.experiment import Context
from uflip.units import format_size

SUITE, SEED = "inside", 1
# Before each run the device ends what it still does [ns].
PAUSE_NS = 100_000_000
MIN_CAPACITY_BYTES = 64 << 20


def check_device(info: DeviceInfo) -> None:
    """Refuse a device on which the probes cannot identify anything.

    Raises
    ------
    UsageError
        If it is too small, or has zones.
    """
    faults = {
        "The device is too small for the probes": (
            info.capacity_bytes < MIN_CAPACITY_BYTES,
            format_size(info.capacity_bytes),
            f"{format_size(MIN_CAPACITY_BYTES)} or more",
        ),
        "The probes do not support zones": (
            info.zoned,
            "a zoned device",
            "sectors that are written in any order",
        ),
    }
    for what, (is_fault, got, allowed) in faults.items():
        if is_fault:
            raise UsageError(
                what, where=info.url, got=got, allowed=allowed, action="use another device"
            )


def measure(device: Device, seed: int = SEED) -> Observations:
    """Run all probes on a device, in order, and return what they observe.

    Parameters
    ----------
    device : Device
        Open for writing; all of its data is lost.
    seed : int
        Seed of the random patterns.
    """
    context = Context(device.info, "standard", seed)
    planned = [
        run
        for micro_benchmark in varied_micro_benchmarks(SUITE).values()
        for experiment in micro_benchmark.experiments(context)
        for run in experiment.runs
    ]
    runs = {
        RunKey(run.micro_benchmark, run.pattern, run.value): repeat(
            device, run.micro_benchmark, run.spec
        )
        for run in planned
    }
    return Observations(device.info.capacity_bytes, device.info.sector_bytes, runs)


def repeat(device: Device, probe: str, spec: Spec) -> Observation:
    """Make a run of a probe after a pause, as `uflip infer` does."""
    device.idle(PAUSE_NS)
    return observation_of(spec, device.run(spec, durability=MICRO_BENCHMARKS[probe].durability))
