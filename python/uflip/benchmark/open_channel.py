"""A benchmark of an open-channel device (uFLIP-OC) from its name to its results.

Its plan is a list of jobs over physical addresses, which follow from the geometry and the scale.
When a benchmark is resumed, a simulated device is rebuilt: the finished jobs are repeated on it,
and must take the same times.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from uflip import signals
from uflip._native import FlashTrace
from uflip.benchmark.calibration import measure_harness
from uflip.benchmark.events import JobsBegin, OnEvent, RunFinished, RunProgress, RunStarted, ignore
from uflip.benchmark.execute import Tally, store_outcome
from uflip.benchmark.plan import Plan
from uflip.benchmark.request import BenchmarkRequest
from uflip.benchmark.resume import ReplayCheck, check_same_device, planned_runs
from uflip.benchmark_options import SCALE
from uflip.durability import open_channel_durability
from uflip.errors import ResultsError, UsageError, unknown_name
from uflip.microbench import check_names
from uflip.microbench.experiment import PlannedRun
from uflip.microbench.open_channel import oc1
from uflip.microbench.open_channel.jobs import SCALES, JobScope
from uflip.oc.benchmark import layout
from uflip.oc.device import FlashDevice, open_flash_device
from uflip.oc.session import check_unused, choose_sacrifice, execute
from uflip.results import ResultsWriter, host_provenance
from uflip.results.initial_manifest import manifest_of


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
    return device, Plan(
        device=device.info,
        scale=scale,
        seed=device.info.profile.state.seed,
        runs=tuple(layout(scope, names)),
        skipped=(),
        pause_ns=0,
        target_size=device.info.capacity_bytes,
        state=None,
        repetitions=1,
        method="paper",
        durability=open_channel_durability(device.info.profile.controller.write_back),
        warnings=(),
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
            trace = _run_job(device, run, index, on_event)
            if run.id in done:
                replay(run, trace)
            else:
                writer.commit(run, trace)
                tally.finished += 1
            on_event(RunFinished(index, run, trace.elapsed_ns()))


def _run_job(device: FlashDevice, run: PlannedRun, index: int, on_event: OnEvent) -> FlashTrace:
    def report_progress(done: int, total: int, last_ns: int) -> None:
        on_event(RunProgress(index, run, done, total, last_ns))

    return execute(device, run, report_progress)
