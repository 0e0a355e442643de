"""`uflip plan` for an open-channel device: its jobs, with pages read, written and erased.

Their time depends on the device and is not estimated: running them on a simulated device takes
seconds.
"""

from collections.abc import Mapping, Sequence

from uflip.benchmark import BenchmarkRequest, Plan
from uflip.benchmark.open_channel import plan_jobs
from uflip.cli.terminal import echo, echo_json, echo_table
from uflip.data.document import plain
from uflip.data.job import Job, JobTotals
from uflip.durability import describe_durability
from uflip.errors import UsageError
from uflip.units import format_count, format_size

JOB_HEAD = ("jobs", "commands", "read", "written", "blocks erased")


def _show_jobs(request: BenchmarkRequest, *, out: object, list_runs: bool, as_json: bool) -> None:
    """Print what `uflip run` would do on an open-channel device.

    Parameters
    ----------
    request : Request
        The requested benchmark.
    out : object
        The value of `--out`; such plans have no file format.
    list_runs : bool
        List every job.
    as_json : bool
        Print JSON.

    Raises
    ------
    UflipError
        As `uflip run` would.
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
