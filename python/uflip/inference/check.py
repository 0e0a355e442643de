"""The check of a twin: patterns that no probe uses, on the device and on its twin.

Both are deallocated, filled and overwritten in the same way, and then make the same I/Os, each
pattern after a pause. The error of a statistic is that of the twin over that of the device, less
one.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from uflip.data.spec import Spec
from uflip.device.handle import Device
from uflip.inference.observations import observation_of
from uflip.microbench import MICRO_BENCHMARKS
from uflip.microbench.experiment import Context
from uflip.spec import baseline, basic, mix

SEED = 20_261
IOS = 2000
# Before each pattern the devices end what the writes before it left. Otherwise the slowest reads
# are those that wait for it, which chance decides [ns].
PAUSE_NS = 2_000_000_000
# Part of the device that partitioned writes and the mix use.
SHARE = 8


@dataclass(frozen=True)
class PatternError:
    """Response times of a pattern on a device and its twin [ns], and the twin's relative errors."""

    pattern: str
    measured_mean_ns: float
    twin_mean_ns: float
    mean_error: float
    measured_p99_ns: float
    twin_p99_ns: float
    p99_error: float


@dataclass(frozen=True)
class CheckDocument:
    """A check as plain data: `uflip infer --check --json`."""

    device: str
    twin: str
    patterns: list[PatternError]


def preparation(device: Device) -> Iterator[Spec]:
    """Yield the writes that bring a device and its twin into the same state."""
    context = Context(device.info, "standard", SEED)
    for name in ("clear", "fill"):
        for experiment in MICRO_BENCHMARKS[name].experiments(context):
            yield from (run.spec for run in experiment.runs)
    size = 64 << 10
    yield baseline(
        "RW", io_size=size, queue_depth=8, io_count=max(context.capacity // size, 1), seed=SEED
    )


def held_out(device: Device) -> dict[str, Spec]:
    """Return the patterns that no probe uses, by name."""
    part = max(device.info.capacity_bytes // SHARE >> 20, 1) << 20
    reads = baseline("RR", io_size=8 << 10)
    writes = baseline("RW", io_size=32 << 10)
    return {
        "random reads of 8 KiB beside writes of 32 KiB": mix(
            reads, writes, 3, queue_depth=8, io_count=IOS // 4, seed=SEED
        ),
        "random reads of 48 KiB, 4 at once": baseline(
            "RR", io_size=48 << 10, queue_depth=4, io_count=IOS, seed=SEED
        ),
        "sequential reads of 64 KiB": baseline("SR", io_size=64 << 10, io_count=IOS // 4),
        "random writes of 32 KiB": baseline("RW", io_size=32 << 10, io_count=IOS, seed=SEED),
        "Zipf writes of 32 KiB, 8 at once": basic(
            "write", "zipf", io_size=32 << 10, queue_depth=8, io_count=IOS, seed=SEED
        ),
        "writes of 32 KiB to 16 partitions": basic(
            "write", "partitioned", partitions=16, io_size=32 << 10, target_size=part, io_count=IOS
        ),
    }


def check(device: Device, twin: Device) -> Iterator[PatternError]:
    """Run the patterns on a device and its twin, and yield the errors.

    Parameters
    ----------
    device : Device
        Open for writing; all of its data is lost.
    twin : Device
        The simulated device, of the same capacity.
    """
    for spec in preparation(device):
        device.run(spec)
        twin.run(spec)
    for name, spec in held_out(device).items():
        (mean, p99), (twin_mean, twin_p99) = (_statistics(each, spec) for each in (device, twin))
        yield PatternError(
            name, mean, twin_mean, twin_mean / mean - 1, p99, twin_p99, twin_p99 / p99 - 1
        )


def _statistics(device: Device, spec: Spec) -> tuple[float, float]:
    device.idle(PAUSE_NS)
    response_ns = observation_of(spec, device.run(spec)).response_ns
    return float(np.mean(response_ns)), float(np.percentile(response_ns, 99))
