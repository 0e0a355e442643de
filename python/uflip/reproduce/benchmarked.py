"""A simulated device of uFLIP's paper through the whole benchmark, as the paper set it up.

**Source**: uFLIP (CIDR 2009) §4 and §5.1.
**Faithful**: all nine micro-benchmarks over their whole ranges, by the same plan and execution as
`uflip run`; the random state before, IOIgnore, IOCount and the pause between runs as in §5.1.
**Simplified**: each run is made once; the simulator repeats itself exactly.
**Ambiguous**: nothing beyond what the micro-benchmarks say themselves.
"""

import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from uflip.errors import InterruptedRun
from uflip.methodology import (
    Choices,
    Found,
    History,
    Plan,
    execute,
    make_plan,
    measure_harness,
    state_of_profile,
)
from uflip.reproduce import table3
from uflip.results import Results, ResultsWriter, host_provenance, summary
from uflip.run import Device, open_device

SCALE = "standard"
SEED = 1


def resting(profile: str) -> int:
    """Return how long a device is left alone before each run [ns]: 5 s for Mtron, 1 s else."""
    return table3.PAUSE_NS.get(profile, table3.OTHER_PAUSE_NS)


def plan_for(profile: str, device: Device, only: Sequence[str] | None = None) -> Plan:
    """Plan the benchmark of a device of Table 3 with the settings of §5.1."""
    choices = Choices(
        only=None if only is None else tuple(only),
        pause_ns=resting(profile),
        repetitions=1,
        io_counts=table3.counts(profile),
    )
    return make_plan(device.info, SCALE, SEED, choices)


def benchmark(
    profile: str,
    only: Sequence[str] | None = None,
    stopped: Callable[[], bool] = lambda: False,
    url: str | None = None,
) -> dict[str, Any]:
    """Run the benchmark on a new device and return the summary of its results.

    Parameters
    ----------
    profile : str
        One of Table 3's.
    only : sequence of str, optional
        Names of micro-benchmarks; all without it.
    stopped : callable
        Asked before each run; once it says so, no other run begins.
    url : str, optional
        Names the device with some of its constants changed.

    Raises
    ------
    InterruptedRun
        After Ctrl-C, or when `stopped` says so.
    """
    with open_device(f"sim:{profile}" if url is None else url) as device:
        return benchmark_on(device, plan_for(profile, device, only), stopped)


def benchmark_on(
    device: Device, plan: Plan, stopped: Callable[[], bool] = lambda: False
) -> dict[str, Any]:
    """Carry out a plan on an open device, in a folder that is gone afterwards; see `benchmark`."""

    def look(_event: object) -> None:
        if stopped():
            raise InterruptedRun("The benchmark was interrupted", where=device.url)

    with tempfile.TemporaryDirectory(prefix="uflip-") as folder:
        writer = ResultsWriter.create(
            Path(folder) / "result",
            device=plan.device,
            host=host_provenance(["uflip", "reproduce"]),
            harness=measure_harness(),
            scale=plan.scale,
            seed=plan.seed,
            pause_ns=plan.pause_ns,
            repetitions=plan.repetitions,
            durability=device.durability,
            plan=[run.as_dict() for run in plan.runs],
            skipped=[skip.as_dict() for skip in plan.skipped],
            warnings=plan.warnings,
        )
        history = History(state_of_profile(device.info["details"]["profile"]))
        execute(plan, device, writer, look, history=history, found=Found(plan, writer))
        return summary(Results.load(writer.path))


class Stop:
    """Tells the other threads that one was interrupted: `with Stop() as stopped: ...`."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def __enter__(self) -> Callable[[], bool]:
        return self._event.is_set

    def __exit__(self, *_: object) -> None:
        self._event.set()
