"""`uflip sweep`: one pattern on many simulated devices, over grids and samples of parameters."""

import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from uflip import signals
from uflip.benchmark_options import MAX_WARM_UP
from uflip.cli.options import (
    ANY_PATH,
    add_options,
    check_resume_options,
    executor_options,
    float_parser,
    force_option,
    int_parser,
    json_option,
    no_cache_option,
    on_executor,
    parsed_by,
    quiet_option,
)
from uflip.cli.pattern import requested_pattern, spec_option
from uflip.cli.progress import display, with_time_left
from uflip.cli.sweep_axes import FORMS, read_sample, read_varied
from uflip.cli.sweep_findings import (
    FindingOptions,
    check_finding_options,
    draw,
    findings,
    print_findings,
)
from uflip.cli.sweep_output import (
    check_table,
    impossible_line,
    output_path,
    print_rows,
    write_table,
)
from uflip.cli.terminal import echo, echo_error, echo_json, error_document
from uflip.durability import durability_or_default
from uflip.errors import InterruptedRun, UflipError, UsageError
from uflip.options import DURABILITY, parse_names
from uflip.pattern_options import PATTERN, STOPPING

if TYPE_CHECKING:
    from uflip.cli.sweep_findings import SweepFindings
    from uflip.data.sweep import Varied
    from uflip.sweeping import PlannedSweep, SweepRow

RESUME_OPTIONS = (
    "--resume FOLDER, with --jobs, --workers, --scheduler, --best, --pareto, --sensitivity, --out, "
    "--csv, --quiet, --json"
)

EPILOG = """\b
Examples:
  uflip sweep sim:ofc --vary spare_factor=0.3,0.45,0.6 --vary gc=greedy,cyclic --pattern RW
  uflip sweep sim:demo --vary queue_depth=1,2,4,8,16 --pattern RR --io-size 4k -o depth.png
  uflip sweep sim:tlc-nvme --vary die_queue=fifo,reads_first --pattern RR --mix RW --ratio 3 \\
    --best read_p99
  uflip sweep sim:demo --vary gc=d_choices:2,d_choices:10 --pattern RW --warm-up 4 --untimed
  uflip sweep sim:demo --vary spare_factor=0.1..0.5 --vary queue_depth=1..64:log --pattern RW \\
    --sample lhs:200 --data rows --workers 2
  uflip sweep sim:demo --vary spare_factor=0.05..0.4 --vary write_cache_bytes=0..4MiB/64k \\
    --sample lhs:200 --pattern RW --pareto spare_bytes,memory_bytes,p99 -o front.svg
  uflip sweep sim:demo --vary spare_factor=0.05..0.4 --vary queue_depth=1..64:log --pattern RW \\
    --sample sobol:64 --sensitivity p99
  uflip sweep --resume rows --scheduler tls://rack:8786

\b
A NAME is a parameter of the pattern (io_size, queue_depth, pattern, ...), durability, or a key of
the profile. Each combination is a device of its own, in the state of its profile. They run on all
cores; the rows are in order, and the same on every executor.
"""


@click.command("sweep", epilog=EPILOG)
@click.argument("device", required=False)
@click.option(
    "--vary",
    metavar=FORMS,
    multiple=True,
    help="Parameter to vary; several: every combination. A range needs --sample.",
)
@click.option(
    "--sample",
    metavar="METHOD:COUNT",
    help="Draw combinations instead of taking all: lhs:N (Latin hypercube), random:N, sobol:N.",
)
@click.option(
    "--sample-seed",
    metavar="N",
    callback=int_parser(),
    help="Seed of the sample.  [default: 0]",
)
@add_options(*PATTERN, *STOPPING)
@spec_option
@add_options(DURABILITY)
@click.option(
    "--warm-up",
    metavar="TIMES",
    callback=float_parser(0, MAX_WARM_UP),
    default="0",
    help="First write this multiple of the device's size by the same pattern, untimed.",
)
@click.option(
    "--untimed",
    is_flag=True,
    help="Functional simulation: counters at the speed of memory, no times.",
)
@executor_options
@click.option(
    "--data",
    metavar="FOLDER",
    type=ANY_PATH,
    help="Store the rows in a new folder as they are measured, as Parquet.",
)
@click.option(
    "--resume",
    metavar="FOLDER",
    type=ANY_PATH,
    help="Resume the interrupted sweep in this folder.",
)
@click.option(
    "-o",
    "--out",
    metavar="FIGURE",
    type=ANY_PATH,
    help="Draw a figure: .png, .svg or .pdf; an older one is replaced.",
)
@click.option(
    "--csv",
    "table",
    metavar="FILE",
    type=ANY_PATH,
    help="Write the rows to a new .csv file.",
)
@click.option(
    "--best",
    "by",
    metavar="MEASURE",
    help="Print the best point by: iops, mean, p50, p99, max, write_amplification, ...; for a mix "
    "read_p99, write_p99, ...",
)
@click.option(
    "--pareto",
    metavar="MEASURE,...",
    multiple=True,
    callback=parsed_by(parse_names),
    help="Print the points that no other beats in all of these: measures as for --best, and costs "
    "of a point: spare_bytes, memory_bytes.",
)
@click.option(
    "--sensitivity",
    metavar="MEASURE",
    help="Print the share of a measure's variance that each name explains; with --sample sobol:N.",
)
@force_option
@no_cache_option
@quiet_option
@json_option
def command(
    *,
    device: str | None,
    vary: tuple[str, ...],
    sample: str | None,
    sample_seed: int | None,
    spec_file: str | None,
    durability: str | None,
    warm_up: float,
    untimed: bool,
    jobs: int | None,
    workers: int | None,
    scheduler: str | None,
    data: Path | None,
    resume: Path | None,
    out: Path | None,
    table: Path | None,
    by: str | None,
    pareto: tuple[str, ...] | None,
    sensitivity: str | None,
    force: bool,
    quiet: bool,
    as_json: bool,
    **parameters: Any,
) -> None:
    """Run one pattern on combinations of values of the simulated DEVICE."""
    from uflip.data.sweep import Design
    from uflip.report.figures import files
    from uflip.sweeping import load_plan, plan

    if resume is not None:
        options = {"DEVICE": device, "vary": vary, "sample": sample, "spec": spec_file,
                 "durability": durability, "warm_up": warm_up, "untimed": untimed,
                 "data": data, "sample_seed": sample_seed}  # fmt: skip
        check_resume_options(options | parameters, RESUME_OPTIONS, "sweep")
        planned = load_plan(resume)
    else:
        _check_required(device, vary)
        varied = read_varied(vary)
        if spec_file is None:
            parameters |= _varied_pattern(varied, parameters)
        spec = requested_pattern(spec_file, parameters)
        durability, sampling = durability_or_default(durability), read_sample(sample, sample_seed)
        design = Design(str(device), spec, varied, sampling, durability, warm_up, not untimed)
        planned = plan(design, data)
    design = planned.design
    requested = FindingOptions(by, pareto, sensitivity)
    check_finding_options(requested, planned)
    check_table(table, force)
    if out is not None:
        files.check_name(out, force=force)
        files.check_library()
    total, quiet = planned.distinct, quiet or as_json
    with (
        on_executor(jobs, workers, scheduler),
        display(total, quiet=quiet) as sink,
    ):
        sink.draw(0, "")
        with _explain_resume(planned.folder):
            rows = planned.carry_out(with_time_left(sink, total))
    failed = None
    try:
        if table is not None:
            write_table(rows, output_path(table, force))
        if out is not None:
            draw(rows, design, requested, out, force=force)
    except UflipError as error:  # the rows are printed nevertheless
        failed = error
    _print_results(planned, rows, findings(requested, rows), failed, as_json=as_json)


def _print_results(
    planned: "PlannedSweep",
    rows: "list[SweepRow]",
    findings: "SweepFindings",
    failed: UflipError | None,
    *,
    as_json: bool,
) -> None:
    """Print rows and findings, and then the failure."""
    names = list(planned.design.vary)
    if as_json:
        document = {**_document(planned, rows), **findings.document()}
        echo_json(document if failed is None else {**document, "error": error_document(failed)})
    else:
        print_rows(rows, names)
        if planned.impossible:
            echo(impossible_line(planned))
        print_findings(findings, rows, names)
        if failed is not None:
            echo_error(failed)
    if failed is not None:
        raise click.exceptions.Exit(failed.exit_code)


def _varied_pattern(varied: "Varied", parameters: Mapping[str, object]) -> Mapping[str, str]:
    """Return the first values of varied parameters that a pattern needs and that are not given."""
    exclusions = {
        "pattern": ("mode", "location"), "mode": ("pattern",), "location": ("pattern",),
        "ratio": ("first_percent",), "first_percent": ("ratio",),
    }  # fmt: skip
    return {
        name: str(values[0] if isinstance(values, list) else values.low)
        for name, excluding in exclusions.items()
        if (values := varied.get(name))
        and all(parameters.get(each) is None for each in (name, *excluding))
    }


@contextmanager
def _explain_resume(folder: Path | None) -> Iterator[None]:
    """Explain how to resume an interrupted sweep with stored rows."""
    try:
        yield
    except BaseException as error:
        stopped = isinstance(
            error, KeyboardInterrupt | InterruptedRun
        ) or signals.is_caused_by_signal(error)
        if folder is None or not stopped:
            raise
        raise InterruptedRun(
            "Interrupted",
            where=str(folder),
            got="the measured rows are stored",
            action=f"`uflip sweep --resume {shlex.quote(str(folder))}` measures the others",
        ) from error


def _check_required(device: str | None, vary: tuple[str, ...]) -> None:
    """Reject a sweep without a device, or without varied parameters."""
    if device is None or not vary:
        raise UsageError(
            "A sweep needs a device and parameters to vary",
            where="DEVICE" if device is None else "--vary",
            got="nothing",
            allowed="sim:NAME and --vary NAME=V1,V2,..., or --resume FOLDER",
            action="give both; see `uflip sweep --help`",
        )


def _document(planned: "PlannedSweep", rows: "list[SweepRow]") -> Mapping[str, object]:
    design = planned.design
    return {
        "device": design.device,
        "spec": design.spec,
        "vary": {n: v if isinstance(v, list) else str(v) for n, v in design.vary.items()},
        "sample": design.sample,
        "warm_up": design.warm_up,
        "timed": design.timed,
        "impossible": [values for values, _ in planned.impossible],
        "rows": rows,
    }
