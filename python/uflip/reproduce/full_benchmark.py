"""The whole benchmark on a simulated device of uFLIP's paper, with the paper's settings.

**Source**: uFLIP (CIDR 2009) §4 and §5.1.
**Faithful**: all nine micro-benchmarks over their whole ranges, by the same plan and execution as
`uflip run`; the random state before, IOIgnore, IOCount and the pause between runs as in §5.1. The
key characteristics follow from every mean, as in the paper: a run that is marked as inside the
start-up counts, because the published value may have been measured inside it as well.
**Simplified**: each run is made once; the simulator repeats itself exactly.
**Ambiguous**: nothing beyond the notes of the micro-benchmarks.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from uflip import signals
from uflip.benchmark import Choices, Plan, make_plan, new_benchmark_run
from uflip.benchmark.prepare import AS_IS, known_state
from uflip.benchmark_options import SCALE, SEED
from uflip.data.summary import Summary
from uflip.device.handle import Device
from uflip.device.opener import open_device
from uflip.reproduce import table3
from uflip.results import Results, summary
from uflip.results.key_characteristics import characteristics


def idle_before_run_ns(profile: str) -> int:
    """Return the idle time before each run [ns]: 5 s for Mtron, 1 s else."""
    return table3.PAUSE_NS.get(profile, table3.OTHER_PAUSE_NS)


def plan_for(profile: str, device: Device, only: Sequence[str] | None = None) -> Plan:
    """Plan the benchmark of a device of Table 3 with the settings of §5.1."""
    choices = Choices(
        only=None if only is None else tuple(only),
        pause_ns=idle_before_run_ns(profile),
        repetitions=1,
        io_counts=table3.counts(profile),
    )
    return make_plan(device.info, SCALE, SEED, choices)


def benchmark(
    profile: str,
    only: Sequence[str] | None = None,
    url: str | None = None,
) -> Summary:
    """Run the benchmark on a new device and return the summary of its results.

    Parameters
    ----------
    profile : str
        One of Table 3's.
    only : sequence of str, optional
        Names of micro-benchmarks; by default all.
    url : str, optional
        The device with some of its constants changed.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C, or when the caller stops waiting.
    """
    with open_device(f"sim:{profile}" if url is None else url) as device:
        return benchmark_on(device, plan_for(profile, device, only))


def benchmark_on(device: Device, plan: Plan) -> Summary:
    """Run a plan on an open device, with results in a temporary folder; see `benchmark`."""
    initial_state = known_state(device.info, plan.state, None) or AS_IS
    with tempfile.TemporaryDirectory(prefix="uflip-") as folder:
        command = ["uflip", "reproduce"]
        run = new_benchmark_run(
            device, plan, Path(folder) / "result", initial_state, command=command
        )
        run.carry_out(on_event=lambda _event: signals.check())
        document = summary(Results.load(run.writer.path))
    row = characteristics(document["baselines_ms"], document["micro_benchmarks"])
    return {**document, "key_characteristics": row.as_dict()}
