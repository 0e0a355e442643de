"""A plan, an open device and a result folder: everything that the runs need."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec
from msgspec import structs

from uflip._native import Trace
from uflip.benchmark.calibration import Calibration, measure_harness
from uflip.benchmark.cost import wear_of
from uflip.benchmark.estimate import estimate
from uflip.benchmark.events import OnEvent, RunsBegin, ignore
from uflip.benchmark.execute import execute
from uflip.benchmark.plan import Plan
from uflip.benchmark.prepare import AS_IS
from uflip.benchmark.state import History
from uflip.data.device import DeviceInfo, DeviceWear, with_details
from uflip.data.manifest import After, DeviceState
from uflip.device.disk import disk_below, temperature_of, virtual_disk_of
from uflip.device.handle import Device
from uflip.experiment import PlannedRun
from uflip.results import ResultsWriter, host_provenance
from uflip.results.initial_manifest import manifest_of, processor_time
from uflip.results.state_record import StateRecord


@dataclass(frozen=True)
class BenchmarkRun:
    """A benchmark whose runs are about to be made.

    Attributes
    ----------
    device : Device
        Open for writing.
    plan : Plan
        Its plan.
    writer : ResultsWriter
        The result folder, with the finished runs.
    history : History
        The state of the device, which runs change.
    calibration : Calibration
        Phases and pause, measured on the way or stored before.
    replay : callable or None
        Checks that a rebuilt simulated device repeats its earlier runs.
    """

    device: Device
    plan: Plan
    writer: ResultsWriter
    history: History
    calibration: Calibration
    replay: Callable[[PlannedRun, Trace], None] | None = None

    def carry_out(self, max_time_ns: int | None = None, on_event: OnEvent = ignore) -> None:
        """Make the missing runs, and store them one by one.

        Raises
        ------
        UflipError
            From `uflip.benchmark.execute`.
        """
        done = self.writer.done
        if self.device.info.real:
            self.writer.at_end = partial(final_state, self.device.info, processor_time())
        on_event(RunsBegin(self.plan, estimate(self.plan), len(done)))
        execute(
            self.plan,
            self.device,
            self.writer,
            on_event,
            history=self.history,
            calibration=self.calibration,
            max_time_ns=max_time_ns,
            done=done,
            replay=self.replay,
        )


def final_state(info: DeviceInfo, before: tuple[int, int]) -> After:
    """Read temperature, wear and stolen time of a real device after its benchmark.

    `before` is the result of `processor_time` before the first run.
    """
    stolen, demanded = (now - then for now, then in zip(processor_time(), before, strict=True))
    share = round(stolen / demanded, 4) if demanded > 0 else None
    return After(temperature_of(info), wear_of(info), share)


def new_benchmark_run(
    device: Device,
    plan: Plan,
    out: Path,
    initial_state: DeviceState,
    *,
    record: StateRecord | None = None,
    wear: DeviceWear | None = None,
    command: Sequence[str] | None = None,
) -> BenchmarkRun:
    """Make the result folder of a plan, ready for its runs.

    Parameters
    ----------
    device : Device
        Open for writing.
    plan : Plan
        For this device.
    out : Path
        An unused name.
    initial_state : DeviceState
        The state of the device (`uflip.benchmark.prepare`).
    record : StateRecord, optional
        The state record of the device.
    wear : DeviceWear, optional
        Wear of the device, if it is known already.
    command : sequence of str, optional
        The command line to store; without it, that of this process.

    Raises
    ------
    ResultsError
        If the folder exists, or cannot be made.
    """
    wear_before = wear_of(plan.device) if wear is None else wear
    host = host_provenance(sys.argv if command is None else command) | {
        "virtual_disk": virtual_disk_of(plan.device),
        "disk": msgspec.to_builtins(disk_below(plan.device)),
    }
    writer = ResultsWriter.create(
        out,
        manifest_of(
            device=with_details(plan.device, wear=wear_before),
            host=host,
            harness=measure_harness(),
            scale=plan.scale,
            seed=plan.seed,
            pause_ns=plan.pause_ns,
            target_size_bytes=plan.target_size,
            repetitions=plan.repetitions,
            method=plan.method,
            durability=plan.durability,
            state=initial_state
            if record is None
            else structs.replace(initial_state, record=str(record.path)),
            plan=plan.runs,
            skipped=plan.skipped,
            warnings=plan.warnings,
        ),
    )
    return BenchmarkRun(
        device, plan, writer, History(initial_state.state_id, record), Calibration(plan, writer)
    )


def store_run(device: Device, plan: Plan, trace: _native.Trace, folder: Path) -> None:
    """Make a result folder for a finished run.

    Raises
    ------
    ResultsError
        If the folder exists, or cannot be written.
    """
    writer = new_benchmark_run(device, plan, folder, AS_IS).writer
    writer.commit(plan.runs[0], trace)
    writer.finish("complete")
