"""A benchmark from the name of a device to its results; also resumes an interrupted one."""

import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from uflip import signals
from uflip.benchmark.cost import wear_of
from uflip.benchmark.estimate import check_worth_running, estimate
from uflip.benchmark.events import OnEvent, WearReport, ignore
from uflip.benchmark.execute import new_benchmark_run
from uflip.benchmark.open_channel import begin_jobs, resume_jobs
from uflip.benchmark.prepare import bring_into_state, known_state, record_of
from uflip.benchmark.request import BenchmarkRequest
from uflip.benchmark.resume import resume_benchmark
from uflip.device.guard import IO_TIMEOUT_NS
from uflip.errors import ResultsError
from uflip.results import ResultsWriter
from uflip.results.result_dir import refuse_existing, why_not_writable
from uflip.results.state_record import check_record_path, default_path


def begin(
    request: BenchmarkRequest,
    out: Path | None = None,
    on_event: OnEvent = ignore,
    *,
    command: Sequence[str] | None = None,
) -> Path:
    """Plan a benchmark, open the device, bring it into its state, and make every run.

    `request`: the request. `out`: new folder for the results; without it one under `results/`,
    named by device and time. `on_event`: receives events about everything that takes time.
    `command`: the command line to store; without it, that of this process.
    """
    is_open_channel = request.is_open_channel
    if not is_open_channel:
        request.check()
    folder = Path("results") / folder_name(request.device) if out is None else out
    check_out(folder)
    if is_open_channel:
        return begin_jobs(request, folder, on_event, command=command)
    info = request.inspect()
    plan = request.plan(info)
    check_worth_running(plan)
    estimate(plan)
    if info.outlives_process:
        check_record_path(request.record or default_path(request.device))
    # Signals are handled at waits only; nothing else is interrupted half-way.
    began_ns = time.monotonic_ns()
    with signals.shielded(), request.open(info, plan.durability, on_event) as device:
        plan = request.finalize_plan(plan, device.info)
        record = record_of(device.info, request.device, request.record)
        initial_state = known_state(device.info, plan.state, record)
        if initial_state is None:
            assert plan.state is not None, "a device as it is, is in its state"
            initial_state = bring_into_state(device, plan.state, record, on_event)
        wear = wear_of(device.info)
        if not device.info.null and not (device.info.simulated and wear.unknown):
            on_event(WearReport(wear, estimate(plan).bytes_written))
        run = new_benchmark_run(
            device, plan, folder, initial_state, record=record, wear=wear, command=command
        )
        run.carry_out(_time_limit_ns(request, time.monotonic_ns() - began_ns), on_event)
    return folder


def _time_limit_ns(request: BenchmarkRequest, prepared_ns: int) -> int | None:
    """Return the time after which no run begins: the budget includes the state [ns]."""
    limits = [] if request.max_time_ns is None else [request.max_time_ns]
    if request.budget_ns is not None:
        limits.append(max(request.budget_ns - prepared_ns, 0))
    return min(limits, default=None)


def resume(
    folder: Path,
    *,
    device: str | None = None,
    destroy: str | None = None,
    record: Path | None = None,
    io_timeout_ns: int = IO_TIMEOUT_NS,
    power: str | None = None,
    max_time_ns: int | None = None,
    on_event: OnEvent = ignore,
) -> Path:
    """Resume an interrupted benchmark, on the same device.

    Parameters
    ----------
    folder : Path
        Its results.
    device : str, optional
        The device, as a check: the results contain its name.
    destroy, io_timeout_ns, power
        As for `uflip.open_device`.
    record : Path, optional
        The state record of the device, if not at the default path.
    max_time_ns : int, optional
        After this time no run begins [ns].
    on_event : callable
        Receives events about everything that takes time.
    """
    with signals.shielded():
        writer = ResultsWriter.resume(folder)
        if writer.manifest.is_of_jobs:
            resume_jobs(writer, device, on_event)
            return folder
        run = resume_benchmark(
            writer,
            device=device,
            destroy=destroy,
            record=record,
            io_timeout_ns=io_timeout_ns,
            power=power,
            on_event=on_event,
        )
        with run.device:
            run.carry_out(max_time_ns, on_event)
    return folder


def folder_name(device: str) -> str:
    """Return a default folder name from the device and the time."""
    slug = re.sub(r"[^A-Za-z0-9.]+", "-", device).strip("-.")
    return f"{slug[-60:]}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"


def check_out(out: Path) -> None:
    """Fail before the device is opened if no folder can be made here."""
    refuse_existing(out)
    if not (reason := why_not_writable(out)):
        return
    raise ResultsError(
        "The result folder cannot be created",
        where=f"--out {out}",
        got=reason,
        allowed="a new name in a folder that can be written",
        action="choose another --out",
    )
