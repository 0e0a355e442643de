"""`uflip plan`: show what `uflip run` would do, how much, and for how long; touches nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click

from uflip.benchmark import (
    BenchmarkRequest,
    Plan,
    PlanEstimate,
    RunEstimate,
    describe_wear,
    estimate,
    wear_of,
    write_plan,
)
from uflip.benchmark.cost import cost_of
from uflip.benchmark.plan import REFRESH_TIMES, ZONES
from uflip.benchmark.session import plan_jobs
from uflip.benchmark_options import SCALES, SUITES
from uflip.cli.benchmark_progress import announce_state
from uflip.cli.options import (
    add_options,
    device_argument,
    force_option,
    json_option,
    path_option,
)
from uflip.cli.terminal import echo, echo_json, echo_table
from uflip.data.device import DeviceInfo
from uflip.data.document import plain
from uflip.data.spec import Job, JobTotals
from uflip.data.summary import WarningSummary
from uflip.durability import CACHED, describe_durability
from uflip.errors import UsageError
from uflip.microbench import has_rounds
from uflip.microbench.labels import format_value
from uflip.options import PLAN
from uflip.results import outputs
from uflip.spec import DURATIONS, SIZES
from uflip.units import format_count, format_duration_ns, format_size

EPILOG = """\b
Examples:
  uflip plan sim:demo
  uflip plan file:scratch.bin --size 1GiB --scale quick
  uflip plan file:scratch.bin --only order --runs
  uflip plan sim:demo --out plan.toml
  uflip plan sim:demo --fio-job job.fio
  uflip plan /dev/nvme1n1 --budget 2h
  uflip plan file:new.bin --size 4TB --suites
"""

RESETS_SHOWN = 5
# A working day, and the writes of a standard run of the nine: the plan names what takes more.
LONG_NS = 8 * 3_600 * 10**9
MANY_DRIVE_WRITES = 6
# Least share of the time or of the writes of a plan that is named.
NAMED_SHARE = 0.05

SKIPPED_SHOWN = 5

HEAD = ("micro-benchmark", "runs", "skipped", "I/Os", "read", "written", "about")

SUITES_HEAD = (
    "suite", "scale", "target", "runs", "written", "drive writes", "state", "at least", "at most",
)  # fmt: skip

JOB_HEAD = ("jobs", "commands", "read", "written", "blocks erased")


@click.command("plan", epilog=EPILOG)
@device_argument
@add_options(*PLAN)
@path_option(
    "--out",
    metavar="FILE",
    help="Write the plan to a file (TOML), to be edited and passed to `uflip run --plan`.",
)
@force_option
@click.option(
    "--runs", "list_runs", is_flag=True, help="List every run in order, and the skipped ones."
)
@path_option("--fio-job", metavar="FILE", help="Plan the jobs of a job file of fio instead.")
@click.option(
    "--suites",
    "all_suites",
    is_flag=True,
    help="Show time and bytes of every suite at every scale, or at that of --scale.",
)
@json_option
def command(
    *,
    device: str,
    out: Path | None,
    force: bool,
    list_runs: bool,
    fio_job: Path | None,
    all_suites: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Show what `uflip run` would do on DEVICE: runs, I/Os, bytes, time. Touches nothing."""
    request = BenchmarkRequest(device=device, **options)
    if request.is_open_channel:
        _show_jobs(request, out=out, list_runs=list_runs, as_json=as_json)
        return
    if all_suites:
        _show_suites(request, as_json=as_json)
        return
    if out is not None:
        _output_path(out, force)
    info = request.inspect()
    plan = request.plan(info) if fio_job is None else _plan_of_job(fio_job, request, info)
    estimated = estimate(plan)
    in_state = request.is_in_state(info, plan)
    preparation_ns = request.preparation_ns(info, plan)
    state_bytes = plan.state.bytes_written if plan.state is not None and preparation_ns else 0
    wear, written = wear_of(info), state_bytes + estimated.bytes_written
    if out is not None:
        outputs.write(_output_path(out, force), write_plan(plan).encode())
    if as_json:
        wear_document = plain(wear) | {"share": wear.share(written)}
        echo_json({**_document(plan, estimated, in_state=in_state), "wear": wear_document})
        return
    echo_table(HEAD, _rows(plan, estimated))
    echo(f"\n{_describe_total(info, estimated.time_ns, preparation_ns, written)}")
    echo(f"assumed: {estimated.assumptions}")
    excess = _excess(plan, estimated, preparation_ns)
    notes = [excess] if excess else []
    notes += [*_notes(plan, in_state=in_state), f"wear: {describe_wear(wear, written)}"]
    for line in notes:
        echo(line)
    if list_runs:
        echo()
        echo_table(("run", "target at", "I/Os", "about"), _run_rows(plan, estimated))
    for reason, names in _skipped(plan).items():
        echo(f"skipped: {_first_names(names, every=list_runs)}: {reason}")
    for warning in plan.warnings:
        echo(f"warning: {warning['message']}\n         {warning['advice']}")


def _plan_of_job(path: Path, request: BenchmarkRequest, info: DeviceInfo) -> Plan:
    """Return the plan of a job file of fio: a run for each stage, on the device as it is."""
    from uflip.benchmark.fio_job_file import read_job_file
    from uflip.benchmark.plan import label_of, plan_pattern
    from uflip.device.resolve import resolve

    durability, plans = request.resolved_durability(), []
    for stage in read_job_file(path, lambda: info.capacity_bytes):
        complete = resolve(stage, info).spec
        plans.append(plan_pattern(complete, info, label=label_of(complete), durability=durability))
    runs = (replace(run, id=f"{number:04}{run.id[4:]}")
            for number, plan in enumerate(plans, 1) for run in plan.runs)  # fmt: skip
    return replace(plans[0], runs=tuple(runs))


def _output_path(out: Path, force: bool) -> outputs.OutputPath:
    return outputs.check(out, outputs.PLAN, "--out", force=force)


def _describe_total(info: DeviceInfo, runs_ns: int, state_ns: int, written: int) -> str:
    """Return the time of state and runs, and the writes in multiples of the device."""
    drive_writes, time_ns = written / info.capacity_bytes, runs_ns + state_ns
    return (
        f"in all: about {format_duration_ns(time_ns)} at most, of which the state "
        f"{format_duration_ns(state_ns)}; {drive_writes:.2g} drive writes"
    )


def _excess(plan: Plan, estimated: PlanEstimate, preparation_ns: int) -> str:
    """Name what takes a plan of a drive beyond the limits, and why; empty if nothing does."""
    if plan.device.simulated or plan.device.null:
        return ""
    costs: dict[str, tuple[int, int]] = {}
    if plan.state is not None and preparation_ns:
        costs["the state"] = plan.state.bytes_written, preparation_ns
    for run, cost in zip(plan.runs, estimated.each, strict=True):
        bytes_written, time_ns = costs.get(run.micro_benchmark, (0, 0))
        costs[run.micro_benchmark] = bytes_written + cost.bytes_written, time_ns + cost.time_ns
    written, total_ns = (sum(each) for each in zip(*costs.values(), strict=True))
    capacity = plan.device.capacity_bytes
    exceeded = [
        text
        for text, is_exceeded in (
            (format_duration_ns(LONG_NS), total_ns > LONG_NS),
            (f"{MANY_DRIVE_WRITES} drive writes", written > MANY_DRIVE_WRITES * capacity),
        )
        if is_exceeded
    ]
    if not exceeded:
        return ""
    named = ", ".join(
        f"{name} {size / capacity:.2g} ({format_duration_ns(ns)}{_why_long(plan, name)})"
        for name, (size, ns) in costs.items()
        if size > NAMED_SHARE * written or ns > NAMED_SHARE * total_ns
    )
    return (
        f"more than {' and '.join(exceeded)}, in drive writes: {named}. `--budget 8h` uses a part "
        "of the device, or less"
    )


def _why_long(plan: Plan, name: str) -> str:
    """Return why a micro-benchmark writes much: resets, or runs until steady state."""
    runs = [run for run in plan.runs if run.micro_benchmark == name]
    if any(run.reset_before for run in runs):
        return "; the state is enforced again"
    until_steady = sum(has_rounds(run) for run in runs)
    return f"; {until_steady} runs until steady state" if until_steady else ""


def _show_suites(request: BenchmarkRequest, *, as_json: bool) -> None:
    """Print what each suite of the device costs, at each scale."""
    info = request.inspect()
    scales = SCALES if request.scale is None else (request.scale,)
    costs = [
        _cost_of_suite(request, info, suite, scale)
        for suite in SUITES
        if (suite == ZONES) == info.zoned
        for scale in scales
    ]
    if as_json:
        echo_json(
            {
                "device": info,
                "suites": list(map(asdict, costs)),
                "assumptions": cost_of(info.kind).describe(),
            }
        )
        return
    rows = [
        (
            cost.suite,
            cost.scale,
            format_size(cost.target_size_bytes),
            str(cost.runs),
            format_size(cost.bytes_written),
            f"{cost.drive_writes:.2g}",
            *map(format_duration_ns, (cost.state_ns, cost.at_least_ns, cost.time_ns)),
        )
        for cost in costs
    ]
    echo_table(SUITES_HEAD, rows)
    echo(f"\nassumed: {cost_of(info.kind).describe()}")
    echo("written, at least, at most: with the state")
    for cost in costs:
        reasons = [warning["message"] for warning in cost.warnings]
        for reason in (*reasons, *filter(None, (cost.excess,))):
            echo(f"{cost.suite} {cost.scale}: {reason}")


@dataclass(frozen=True)
class SuiteCost:
    """What a suite costs at a scale, with its state: at most, and `at_least_ns`."""

    suite: str
    scale: str
    target_size_bytes: int
    runs: int
    bytes_written: int
    drive_writes: float
    state_ns: int
    at_least_ns: int
    time_ns: int
    excess: str
    warnings: tuple[WarningSummary, ...]


def _cost_of_suite(
    request: BenchmarkRequest, info: DeviceInfo, suite: str, scale: str
) -> SuiteCost:
    chosen = replace(request, suite=suite, scale=scale)
    plan = chosen.plan(info)
    estimated, state_ns = estimate(plan), chosen.preparation_ns(info, plan)
    state_bytes = 0 if plan.state is None or not state_ns else plan.state.bytes_written
    written = state_bytes + estimated.bytes_written
    return SuiteCost(
        suite=suite,
        scale=plan.scale,
        target_size_bytes=plan.target_size,
        runs=estimated.runs,
        bytes_written=written,
        drive_writes=written / info.capacity_bytes,
        state_ns=state_ns,
        at_least_ns=state_ns + estimated.fewest.time_ns,
        time_ns=state_ns + estimated.time_ns,
        excess=_excess(plan, estimated, state_ns)
        if plan.runs
        else f"no run is possible: {'; '.join(_skipped(plan))}",
        warnings=plan.warnings if plan.runs else (),
    )


def _notes(plan: Plan, *, in_state: bool) -> list[str]:
    """Return notes about the plan: initial state, resets, repetitions, wear."""
    notes = [f"repetitions: {_repetitions(plan)}"]
    if plan.durability != CACHED:
        notes.append(f"durability {plan.durability}: {describe_durability(plan.durability)}")
    if any(run.spec.stop for run in plan.runs):
        notes.append("lengths: a run ends when its mean has converged; each line shows the maximum")
    longer = [spec for run in plan.runs if (spec := plan.longer_baseline(run)) is not None]
    if longer:
        most = max(spec.ios * spec.io_bytes for spec in longer)
        notes.append(
            f"write baselines: up to {format_size(most)} each, included above, on a device that "
            "buffers writes"
        )
    if plan.state is None:
        notes.append("state: the device is measured as it is")
    elif in_state:
        notes.append(f"state: {plan.state.request['state']}; the device is in it already")
    else:
        notes.append(f"before the first run: {announce_state(plan.state)}")
    if plan.refreshes:
        notes.append(
            "clean-up: after each run that writes sequentially or to a part of the target, random "
            f"writes to the whole target, {REFRESH_TIMES} times as much; included with the run"
        )
    if plan.state is not None and plan.resets:
        noun = "reset" if plan.resets == 1 else "resets"
        size = format_size(plan.resets * plan.state.bytes_written)
        notes.append(f"{plan.resets} {noun} of the state, {size}: included with the next run")
        notes.extend(_why_reset(plan))
    elif plan.state is not None:
        notes.append("state resets: none, as no run overlaps sequential writes of an earlier one")
    if plan.block_bytes is not None:
        notes.append(
            f"sequential writes: no two runs share a block of {format_size(plan.block_bytes)}"
        )
    return notes


def _repetitions(plan: Plan) -> str:
    """Return the repetitions as text; an edited plan may list fewer than it requests."""
    listed = max((run.repetition for run in plan.runs), default=plan.repetitions)
    if listed == plan.repetitions:
        return f"{listed} of each run"
    return f"{listed} of each run, as listed; `repetitions = {plan.repetitions}` has no effect"


def _why_reset(plan: Plan) -> list[str]:
    """Return the reasons for resets, and the number needed if all runs were short."""
    lines = [f"  before {name}: {why}" for name, why in plan.why_reset.items()]
    if len(lines) > RESETS_SHOWN:
        more = len(lines) - RESETS_SHOWN
        lines = [*lines[:RESETS_SHOWN], f"  and {more} more for the same reason (--json has all)"]
    if plan.fewest_resets is not None and plan.fewest_resets < plan.resets:
        lines.append(
            f"  space is reserved for the longest possible runs; with the shortest, "
            f"{plan.fewest_resets} would suffice; --method paper has fixed lengths"
        )
    return lines


def _rows(plan: Plan, estimated: PlanEstimate) -> list[tuple[str, ...]]:
    names = dict.fromkeys(
        [run.micro_benchmark for run in plan.runs] + [skip.micro_benchmark for skip in plan.skipped]
    )
    rows = [_row(name, plan, estimated) for name in names]
    fewest = estimated.fewest
    if fewest.ios == estimated.ios:
        return [*rows, _row(None, plan, estimated)]
    at_least = ("at least", str(len(plan.runs)), "", *_amounts([fewest]))
    return [*rows, _row(None, plan, estimated, "total, at most"), at_least]


def _row(
    name: str | None, plan: Plan, estimated: PlanEstimate, title: str = "total"
) -> tuple[str, ...]:
    """Return the totals of one micro-benchmark, or (without a name) of all of them."""
    pairs = zip(plan.runs, estimated.each, strict=True)
    chosen = [cost for run, cost in pairs if name in (None, run.micro_benchmark)]
    skipped = sum(name in (None, skip.micro_benchmark) for skip in plan.skipped)
    return (name or title, str(len(chosen)), str(skipped), *_amounts(chosen))


def _amounts(costs: Sequence[RunEstimate]) -> tuple[str, ...]:
    return (
        format_count(sum(cost.ios for cost in costs)),
        format_size(sum(cost.bytes_read for cost in costs)),
        format_size(sum(cost.bytes_written for cost in costs)),
        format_duration_ns(sum(cost.time_ns for cost in costs)),
    )


def _run_rows(plan: Plan, estimated: PlanEstimate) -> list[tuple[str, ...]]:
    return [
        (
            run.id,
            " / ".join(
                f"{format_size(part.begin)} + {format_size(part.target_bytes)}"
                for part in run.spec.parts
            ),
            format_count(cost.ios),
            format_duration_ns(cost.time_ns),
        )
        for run, cost in zip(plan.runs, estimated.each, strict=True)
    ]


def _skipped(plan: Plan) -> dict[str, list[str]]:
    """Group the skipped runs by reason."""
    reasons: dict[str, list[str]] = {}
    units = dict.fromkeys(SIZES, "bytes") | dict.fromkeys(DURATIONS, "ns")
    units |= {run.parameter: run.unit for run in plan.runs}
    for skip in plan.skipped:
        value = format_value(skip.value, units.get(skip.parameter, ""))
        name = f"{skip.micro_benchmark} {skip.pattern} {skip.parameter} {value}"
        reasons.setdefault(skip.reason, []).append(name)
    return reasons


def _first_names(names: Sequence[str], *, every: bool) -> str:
    """Return the names of skipped runs: only the first of many."""
    if every or len(names) <= SKIPPED_SHOWN:
        return ", ".join(names)
    first = ", ".join(names[:SKIPPED_SHOWN])
    return f"{format_count(len(names))} runs: {first}, ... (--runs and --json list all)"


def _document(plan: Plan, estimated: PlanEstimate, *, in_state: bool) -> Mapping[str, object]:
    return {
        "device": plan.device,
        "scale": plan.scale,
        "seed": plan.seed,
        "pause_ns": plan.pause_ns,
        "target_size_bytes": plan.target_size,
        "repetitions": plan.repetitions,
        "durability": plan.durability,
        "resets": plan.resets,
        "why_reset": dict(plan.why_reset),
        "fewest_resets": plan.fewest_resets,
        "block_bytes": plan.block_bytes,
        "state": None if plan.state is None else asdict(plan.state) | {"known": in_state},
        "estimate": {
            "runs": estimated.runs,
            "ios": estimated.ios,
            "bytes_read": estimated.bytes_read,
            "bytes_written": estimated.bytes_written,
            "time_ns": estimated.time_ns,
            "at_least": asdict(estimated.fewest),
            "assumptions": estimated.assumptions,
        },
        "runs": list(plan.runs),
        "skipped": list(plan.skipped),
        "warnings": list(plan.warnings),
    }


# The plan of an open-channel device: its jobs, with pages read, written and erased. Their time
# depends on the device and is not estimated: a simulated device runs them in seconds.


def _show_jobs(request: BenchmarkRequest, *, out: object, list_runs: bool, as_json: bool) -> None:
    """Print what `uflip run` would do on an open-channel device.

    `request`: the requested benchmark. `out`: the value of `--out`; such plans have no file format.
    `list_runs`: list every job. `as_json`: print JSON.
    """
    if out is not None:
        raise UsageError(
            "This option does not apply to an open-channel device",
            where="--out",
            got=str(out),
            allowed="--scale, --only, --runs, --json",
            action="omit it: jobs follow from the geometry and the scale",
        )
    device, plan = plan_jobs(request)
    totals = [device.resolve(job.spec).totals for job in plan.runs]
    if as_json:
        echo_json(_jobs_document(plan, totals))
        return
    names = list(dict.fromkeys(job.micro_benchmark for job in plan.runs))
    pairs = list(zip(plan.runs, totals, strict=True))
    rows = [
        (
            name,
            *_job_amounts([job_totals for job, job_totals in pairs if job.micro_benchmark == name]),
        )
        for name in names
    ]
    echo_table(("micro-benchmark", *JOB_HEAD), [*rows, ("total", *_job_amounts(totals))])
    echo(f"\ndurability {plan.durability}: {describe_durability(plan.durability)}")
    for job in plan.runs:
        spec = job.spec
        if isinstance(spec, Job) and spec.wears_out:
            block = f"{spec.first_channel}:{spec.first_lun}:{spec.first_block}"
            echo(f"{job.micro_benchmark} wears out block {block}: it ends when the block fails")
    if list_runs:
        echo()
        echo_table(
            ("job", *JOB_HEAD[1:]),
            [(job.id, *_job_amounts([job_totals])[1:]) for job, job_totals in pairs],
        )


def _job_amounts(totals: Sequence[JobTotals]) -> tuple[str, ...]:
    """Return the number of jobs, and their totals."""
    return (
        str(len(totals)),
        format_count(sum(each.total_ios for each in totals)),
        format_size(sum(each.bytes_read for each in totals)),
        format_size(sum(each.bytes_written for each in totals)),
        format_count(sum(each.blocks_erased for each in totals)),
    )


def _jobs_document(plan: Plan, totals: Sequence[JobTotals]) -> Mapping[str, object]:
    return {
        "device": plan.device,
        "scale": plan.scale,
        "seed": plan.seed,
        "pause_ns": plan.pause_ns,
        "repetitions": plan.repetitions,
        "durability": plan.durability,
        "totals": [plain(each) for each in totals],
        "runs": list(plan.runs),
        "skipped": list(plan.skipped),
        "warnings": list(plan.warnings),
    }
