"""A benchmark from the name of a device to its results; also resumes an interrupted one.

An interrupted run may have written an unknown amount to its target space. On a real device its
sequential writes therefore get another space, or a reset if no space is left. A simulated device
ended with its process: it is rebuilt, and the finished runs are repeated on it, which restores its
exact state.

**Source**: uFLIP (CIDR 2009) §4.1, §4.2: target spaces of sequential writes are used once.
**Faithful**: no written target space is reused; the state is not enforced again before the space
is used up.
**Simplified**: an interrupted run counts as begun even if it had not written yet.
**Ambiguous**: the paper does not cover resumption.

The plan of an open-channel device (uFLIP-OC) is a list of jobs over physical addresses, which
follow from the geometry and the scale.
"""

import re
import sys
import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import numpy as np
from msgspec import structs

from uflip import signals
from uflip._native import FlashTrace, Trace
from uflip.benchmark.calibration import Calibration, measure_harness
from uflip.benchmark.cost import wear_of
from uflip.benchmark.estimate import check_worth_running, estimate
from uflip.benchmark.events import (
    JobsBegin,
    OnEvent,
    RunFinished,
    RunProgress,
    RunStarted,
    WearReport,
    ignore,
)
from uflip.benchmark.execute import BenchmarkRun, Tally, new_benchmark_run, store_outcome
from uflip.benchmark.plan import Plan, plan_as_is
from uflip.benchmark.prepare import bring_into_state, known_state, record_of
from uflip.benchmark.request import BenchmarkRequest
from uflip.benchmark.state import History, plan_request
from uflip.benchmark.target_spaces import BLOCK, SPACING, SpaceAllocator
from uflip.benchmark_options import SCALE
from uflip.data.device import DeviceInfo
from uflip.data.manifest import Manifest
from uflip.data.spec import Replay as ReplaySpec
from uflip.data.summary import WarningSummary
from uflip.device.catalogue import inspect_device
from uflip.device.guard import IO_TIMEOUT_NS
from uflip.device.handle import Device
from uflip.device.identity import identity, medium, medium_difference
from uflip.device.opener import open_device
from uflip.durability import open_channel_durability
from uflip.errors import DeviceError, RefusedError, ResultsError, UsageError, unknown_name
from uflip.footprint import all_but_written_sequentially, union, written_sequentially
from uflip.microbench import check_names, has_fixed_order
from uflip.microbench.experiment import PlannedRun, Skipped
from uflip.microbench.open_channel import oc1
from uflip.microbench.open_channel.jobs import SCALES, JobScope
from uflip.oc.benchmark import layout
from uflip.oc.device import FlashDevice, open_flash_device
from uflip.oc.session import check_unused, choose_sacrifice, execute
from uflip.results import ResultsWriter, host_provenance
from uflip.results.initial_manifest import manifest_of
from uflip.results.result_dir import refuse_existing, why_not_writable
from uflip.results.state_record import StateRecord, check_record_path, default_path, open_record


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

    `device`: only a check, since the results contain its name. `destroy`, `io_timeout_ns`, `power`:
    as for `uflip.open_device`. `record`: the state record of the device, if not at the default
    path. `max_time_ns`: no run begins after this time.
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
    return f"{file_name_of(device)}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"


def file_name_of(device: str) -> str:
    """Return a device as part of a file name: the end of its path, the beginning of its keys.

    Examples
    --------
    >>> file_name_of("sim:demo?spare_factor=0.1"), file_name_of("file:/" + "a" * 80 + "/b.img")[-8:]
    ('sim-demo-spare-factor-0.1', 'aa-b.img')
    """
    path, keys = (
        re.sub(r"[^A-Za-z0-9.]+", "-", part).strip("-.") for part in device.partition("?")[::2]
    )
    return f"{path[-60:]}-{keys}"[:60].strip("-.") or "device"


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


def resume_benchmark(
    writer: ResultsWriter,
    *,
    device: str | None,
    destroy: str | None,
    record: Path | None,
    io_timeout_ns: int,
    power: str | None = None,
    on_event: OnEvent,
) -> BenchmarkRun:
    """Open the device of an interrupted benchmark, and find the remainder of its plan."""
    try:
        manifest = writer.manifest
        opened = _reopen(manifest, device, destroy, io_timeout_ns, power)
        plan = _rebuild_plan(manifest, opened)
        simulated = opened.info.simulated
        state_record = _state_record(manifest, opened.info, record)
        history = History(manifest.state.state_id, state_record)
        if simulated:
            if manifest.state.known_from == "enforced" and plan.state is not None:
                bring_into_state(opened, plan.state, None, on_event)
        else:
            plan = _resume_real_device(plan, writer.done, history, state_record)
        writer.replan(plan.runs)
    except BaseException:
        writer.close()
        raise
    # A rebuilt device shows the interference again; a real one has shown it already.
    calibration = Calibration(plan, writer, None if simulated else manifest.interference)
    return BenchmarkRun(
        opened, plan, writer, history, calibration, ReplayCheck(writer) if simulated else None
    )


def _reopen(
    manifest: Manifest,
    url: str | None,
    destroy: str | None,
    io_timeout_ns: int,
    power: str | None,
) -> Device:
    measured = manifest.device
    check_same_device(manifest, url)
    buffered = measured.buffered
    size = measured.capacity_bytes if measured.null else None
    current = inspect_device(measured.url, size=size, buffered=buffered)
    current_identity, measured_identity = identity(current), identity(measured)
    different = [
        key
        for key in {**measured_identity, **current_identity}
        if current_identity.get(key) != measured_identity.get(key)
    ]
    if different:
        key = different[0]
        raise DeviceError(
            "This is not the device that was measured",
            where=measured.url,
            got=f"{key} {current_identity.get(key, 'none')}",
            allowed=f"{key} {measured_identity.get(key, 'none')}",
            action="connect the same device again, or start another benchmark with a new --out",
        )
    _check_medium(measured, current)
    data = measured.data or "random" if measured.outlives_process else "random"
    brand = measured.details.brand if measured.is_disk else None
    device = open_device(
        measured.url,
        io_timeout_ns=io_timeout_ns,
        size=size,
        buffered=buffered,
        durability=manifest.durability,
        data=data,
        # A replay of reads only is no reason to open for writing.
        writable=any(
            entry.spec.writes or not isinstance(entry.spec, ReplaySpec) for entry in manifest.plan
        ),
        destroy=destroy,
        brand=brand,
        completion=measured.completion if measured.kind == "file" or measured.is_disk else None,
        power=power,
    )
    _check_medium(measured, device.info)
    return device


def _check_medium(measured: DeviceInfo, current: DeviceInfo) -> None:
    """Refuse another medium under the same name."""
    if measured.outlives_process and (difference := medium_difference(medium(measured), current)):
        raise RefusedError(
            "This is not the medium that was measured",
            where=measured.url,
            got=difference[0],
            allowed=difference[1],
            action="connect the same medium again, or start another benchmark with a new --out",
        )


def check_same_device(manifest: Manifest, url: str | None) -> None:
    """Refuse a named device other than the measured one."""
    measured_url = manifest.device.url
    if url is not None and url != measured_url:
        raise UsageError(
            "These results are from another device",
            where="DEVICE",
            got=url,
            allowed=measured_url,
            action="omit DEVICE: the results contain its name",
        )


def _rebuild_plan(manifest: Manifest, device: Device) -> Plan:
    info = device.info
    request = manifest.state.request
    return Plan(
        device=info,
        scale=manifest.scale,
        seed=manifest.seed,
        runs=tuple(planned_runs(manifest)),
        skipped=tuple(Skipped(**structs.asdict(skip)) for skip in manifest.skipped),
        pause_ns=manifest.pause_ns,
        target_size=manifest.target_size_bytes or info.capacity_bytes,
        state=None if request is None else plan_request(info, request),
        repetitions=manifest.repetitions,
        method=manifest.method,
        durability=device.durability,
        warnings=tuple(
            cast(WarningSummary, structs.asdict(warning)) for warning in manifest.warnings
        ),
    )


def planned_runs(manifest: Manifest) -> list[PlannedRun]:
    """Return the runs of the plan in a manifest."""
    return [PlannedRun(**structs.asdict(entry)) for entry in manifest.plan]


def _state_record(manifest: Manifest, info: DeviceInfo, named: Path | None) -> StateRecord | None:
    """Open the record of the device; a path that only the results contain is never written."""
    if manifest.state.record is None:
        return None
    recorded = Path(manifest.state.record)
    url = manifest.device.url
    # A block device may have been named by its bare path.
    default_paths = [default_path(url), default_path(url.removeprefix("block:"))]
    candidates = default_paths if named is None else [named]
    path = next((each for each in candidates if each.absolute() == recorded.absolute()), None)
    if path is None:
        raise UsageError(
            "The state record of this benchmark has another path",
            where="--record",
            got=str(candidates[0]),
            allowed=manifest.state.record,
            action=f"if that file is yours, add --record {manifest.state.record}",
        )
    return open_record(path, info, ours_is_last=True)


def _resume_real_device(
    plan: Plan, done: list[str], history: History, record: StateRecord | None
) -> Plan:
    """Return the remainder of the plan for the current state of the device, as far as known."""
    recorded = record.state if record else None
    history.state_id = recorded.state_id if recorded else None
    just_reset = bool(done and recorded and recorded.state_id and recorded.runs_since == 0)
    plan = remaining_plan(plan, done, just_reset=just_reset)
    remaining = [run for run in plan.runs if run.id not in done]
    if remaining:
        history.record_interruption(remaining[0].spec, plan.durability)
    return plan


def remaining_plan(plan: Plan, done: Collection[str], *, just_reset: bool) -> Plan:
    """Return the plan for resuming on a real device."""
    remaining = [number for number, run in enumerate(plan.runs) if run.id not in done]
    if not remaining:
        return plan
    number = remaining[0]
    run = plan.runs[number]
    if just_reset:
        run = replace(run, reset_before=False)
    if run.spec.writes_sequentially and not run.reset_before and not has_fixed_order(run):
        run = _move_to_unused_space(plan, number, run)
    runs = (*plan.runs[:number], run, *plan.runs[number + 1 :])
    return replace(plan, runs=runs)


def _move_to_unused_space(plan: Plan, number: int, run: PlannedRun) -> PlannedRun:
    """Move a run to a space that no run touches between the last reset and the next one."""
    before, after = _runs_between_resets(plan, number)
    # It may have begun to write to its own space.
    disturbed = union(written_sequentially(each.spec) for each in (*before, run))
    later_spaces = [written_sequentially(each.spec) for each in after]
    # Spaces that later runs read, or write at random, must not be disturbed either.
    later_spaces += [all_but_written_sequentially(each.spec) for each in after]
    for block in (SPACING, BLOCK):
        allocator = SpaceAllocator(
            plan.target_size, block=block, disturbed=disturbed, reserved=union(later_spaces)
        )
        placed = allocator.move(run.spec)
        if placed.reset is None:
            return replace(run, spec=placed.spec)
    # No space is left; after a reset its own is unused again.
    return replace(run, reset_before=plan.state is not None)


def _runs_between_resets(
    plan: Plan, number: int
) -> tuple[Sequence[PlannedRun], Sequence[PlannedRun]]:
    """Return the runs since the last reset before run `number`, and those up to the next one."""
    resets = [index for index, run in enumerate(plan.runs) if run.reset_before]
    begin = max((index for index in resets if index <= number), default=0)
    end = min((index for index in resets if index > number), default=len(plan.runs))
    return plan.runs[begin:number], plan.runs[number + 1 : end]


class ReplayCheck:
    """Checks that a rebuilt simulated device repeats its earlier runs."""

    def __init__(self, writer: ResultsWriter) -> None:
        self._writer = writer

    def __call__(self, run: PlannedRun, trace: Trace | FlashTrace) -> None:
        """Raise unless a run took the same times again."""
        stored = self._writer.log_of(run.id)
        assert stored is not None, "the run is done"
        # A worn-out block has a row per cycle, and no response times.
        name = "response_time_ns" if "response_time_ns" in stored.columns else "erase_ns"
        if np.array_equal(np.asarray(stored.column(name)), np.asarray(trace.column(name))):
            return
        raise ResultsError(
            what="The simulated device does not repeat its earlier run",
            where=run.id,
            got="other response times from the same plan",
            allowed="the same version of uflip on the same results",
            action="start another benchmark with a new --out",
        )


def begin_jobs(
    request: BenchmarkRequest,
    out: Path,
    on_event: OnEvent = ignore,
    *,
    command: Sequence[str] | None = None,
) -> Path:
    """Plan, open the device, and carry out every job.

    `request`: the request: `device`, `scale`, `only`, `sacrifice` and `inside`; nothing else
    applies. `out`: new folder for the results. `on_event`: receives events about everything that
    takes time. `command`: the command line to store; without it, that of this process.
    """
    device, plan = plan_jobs(request)
    device.looks_inside = request.inside
    with signals.shielded():
        writer = ResultsWriter.create(
            out,
            manifest_of(
                device=device.info,
                host=host_provenance(sys.argv if command is None else command),
                harness=measure_harness(),
                scale=plan.scale,
                seed=plan.seed,
                pause_ns=plan.pause_ns,
                durability=plan.durability,
                plan=plan.runs,
            ),
        )
        _carry_out(device, writer, plan.runs, on_event)
    return out


def plan_jobs(request: BenchmarkRequest) -> tuple[FlashDevice, Plan]:
    """Lay out the jobs of a benchmark; nothing is executed."""
    request.check_jobs()
    scale = request.scale or SCALE
    if scale not in SCALES:
        raise unknown_name("scale", scale, SCALES, where="--scale")
    device = open_flash_device(request.device)
    names = check_names(request.only, device.info.addresses)
    wears = oc1.NAME in names
    if request.sacrifice is not None and not wears:
        raise UsageError(
            "Only oc1 wears out a block",
            where="--sacrifice",
            got=f"{request.sacrifice} with --only {','.join(names)}",
            allowed="--sacrifice where oc1 is among the micro-benchmarks",
            action="omit it, or add oc1 to --only",
        )
    block = choose_sacrifice(device.info, request.sacrifice) if wears else None
    scope = JobScope(device.geometry, SCALES[scale], block)
    check_unused(device, scope)
    return device, plan_as_is(
        layout(scope, names),
        device.info,
        scale=scale,
        seed=device.info.profile.state.seed,
        durability=open_channel_durability(device.info.profile.controller.write_back),
    )


def resume_jobs(writer: ResultsWriter, device: str | None, on_event: OnEvent) -> None:
    """Make the missing jobs of a folder."""
    try:
        manifest = writer.manifest
        check_same_device(manifest, device)
        opened = open_flash_device(manifest.device.url)
        if opened.geometry != manifest.device.geometry:
            raise ResultsError(
                "This is not the device that was measured",
                where=opened.url,
                got="another geometry",
                allowed="the geometry in its manifest",
                action="start another benchmark with a new --out",
            )
        runs = planned_runs(manifest)
        writer.replan(runs)
    except BaseException:
        writer.close()
        raise
    _carry_out(opened, writer, runs, on_event)


def _carry_out(
    device: FlashDevice,
    writer: ResultsWriter,
    runs: Sequence[PlannedRun],
    on_event: OnEvent,
) -> None:
    replay = ReplayCheck(writer)
    done = set(writer.done)
    tally = Tally(len(done), lambda: len(runs))
    on_event(JobsBegin(device.url, len(runs), len(done)))
    with store_outcome(writer, tally, "jobs"):
        for index, run in enumerate(runs):
            signals.check()
            on_event(RunStarted(index, run))

            def report_progress(*progress: int, index: int = index, run: PlannedRun = run) -> None:
                on_event(RunProgress(index, run, *progress))

            trace = execute(device, run, report_progress)
            if run.id in done:
                replay(run, trace)
            else:
                writer.commit(run, trace)
                tally.finished += 1
            on_event(RunFinished(index, run, trace.elapsed_ns()))
