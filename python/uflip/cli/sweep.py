"""`uflip sweep`: one pattern on many simulated devices, over grids and samples of parameters."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from uflip import signals
from uflip.benchmark_options import MAX_WARM_UP
from uflip.cli.completion import propose_devices
from uflip.cli.options import (
    add_options,
    check_resume_options,
    checked_output,
    count_option,
    executor_options,
    force_option,
    json_option,
    no_cache_option,
    number_option,
    on_executor,
    parsed_by,
    path_option,
    quiet_option,
)
from uflip.cli.pattern import requested_pattern, spec_option
from uflip.cli.progress import display, with_time_left
from uflip.cli.terminal import (
    echo,
    echo_error,
    echo_json,
    echo_table,
    echo_twin,
    error_document,
)
from uflip.data.spec import MODES, PLURALS
from uflip.data.summary import ResponseTime
from uflip.data.sweep import METHODS, Range, Sample, Varied
from uflip.device.url import parse_url, read_override
from uflip.durability import durability_or_default
from uflip.errors import InterruptedRun, UflipError, UsageError, unknown_name
from uflip.options import DURABILITY, parse_names
from uflip.pattern_options import PATTERN, STOPPING
from uflip.profiles import twin_errors
from uflip.units import (
    format_count,
    format_duration_ns,
    format_size,
    parse_count,
    parse_duration,
    parse_size,
)

if TYPE_CHECKING:
    from uflip.data.device import TwinErrors
    from uflip.results.outputs import OutputPath
    from uflip.sweeping import Design, PlannedSweep, SweepRow
    from uflip.sweeping.ranking import SobolIndex


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

RESUME_OPTIONS = (
    "--resume FOLDER, with --jobs, --workers, --scheduler, --best, --pareto, --sensitivity, --out, "
    "--csv, --quiet, --json"
)

FORMS = "NAME=V1,V2,... | NAME=LOW..HIGH[/STEP][:log]"

_RANGE = re.compile(
    r"(?P<low>[^.,/:]+(\.\d+)?)\.\.(?P<high>[^,/:]+)(/(?P<step>[^,/:]+)|:(?P<log>log))?"
)

# A range with a step becomes a list; a longer list is probably a typing error.
MAX_STEPS = 10_000

# Costs of a row that can be printed.
COSTS = ("spare_bytes", "memory_bytes")

# Printed response times of a row.
STATISTICS: tuple[ResponseTime, ...] = ("mean_ns", "p50_ns", "p99_ns", "max_ns")


@click.command("sweep", epilog=EPILOG)
@click.argument("device", required=False, shell_complete=propose_devices)
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
@count_option("--sample-seed", help="Seed of the sample.  [default: 0]")
@add_options(*PATTERN, *STOPPING)
@spec_option
@add_options(DURABILITY)
@number_option(
    "--warm-up",
    metavar="TIMES",
    most=MAX_WARM_UP,
    default="0",
    help="First write this multiple of the device's size by the same pattern, untimed.",
)
@click.option(
    "--untimed",
    is_flag=True,
    help="Functional simulation: counters at the speed of memory, no times.",
)
@executor_options
@path_option(
    "--data",
    metavar="FOLDER",
    help="Store the rows in a new folder as they are measured, as Parquet.",
)
@path_option("--resume", metavar="FOLDER", help="Resume the interrupted sweep in this folder.")
@path_option(
    "-o",
    "--out",
    metavar="FIGURE",
    help="Draw a figure: .png, .svg or .pdf; an older one is replaced.",
)
@path_option("--csv", "table", metavar="FILE", help="Write the rows to a new .csv file.")
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
    from uflip.report.figures import matplotlib_chart
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
    if table is not None:
        _table_output(table, force)
    if out is not None:
        matplotlib_chart.check_name(out, force=force)
        matplotlib_chart.check_library()
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
            write_table(rows, _table_output(table, force))
        if out is not None:
            draw(rows, design, requested, out, force=force)
    except UflipError as error:  # the rows are printed nevertheless
        failed = error
    _print_results(planned, rows, findings(requested, rows), failed, as_json=as_json)


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


def _varied_pattern(varied: Varied, parameters: Mapping[str, object]) -> Mapping[str, str]:
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
        echo_twin(planned.design.device, _twin_of(planned.design.device))
        print_rows(rows, names)
        if planned.impossible:
            echo(impossible_line(planned))
        print_findings(findings, rows, names)
        if failed is not None:
            echo_error(failed)
    if failed is not None:
        raise click.exceptions.Exit(failed.exit_code)


def _twin_of(device: str) -> "TwinErrors | None":
    """Return the errors of the device as a twin; without the varied keys it may be no device."""
    target = parse_url(device)
    return twin_errors(target.name) if target.kind == "sim" else None


def _document(planned: "PlannedSweep", rows: "list[SweepRow]") -> Mapping[str, object]:
    design = planned.design
    return {
        "device": design.device,
        "twin": _twin_of(design.device),
        "spec": design.spec,
        "vary": {n: v if isinstance(v, list) else str(v) for n, v in design.vary.items()},
        "sample": design.sample,
        "warm_up": design.warm_up,
        "timed": design.timed,
        "impossible": [values for values, _ in planned.impossible],
        "rows": rows,
    }


# The varied parameters, NAME=V1,V2,... or NAME=LOW..HIGH, and the sample.


def read_varied(arguments: Sequence[str]) -> Varied:
    """Parse the values of --vary, NAME=V1,V2,... each.

    >>> read_varied(["gc=greedy,cyclic", "queue_depth=1..4/1", "spare_factor=0.1..0.3"])
    {'gc': ['greedy', 'cyclic'], 'queue_depth': [1, 2, 3, 4], \
'spare_factor': Range(low=0.1, high=0.3, logarithmic=False)}
    """
    varied: Varied = {}
    for text in arguments:
        name, equals, values = text.partition("=")
        items = [value.strip() for value in values.split(",") if value.strip()]
        if not equals or not name or not items or name in varied:
            raise UsageError(
                "The values to vary cannot be parsed"
                if name not in varied
                else "A name is varied twice",
                where="--vary",
                got=text,
                allowed=f"{FORMS}, as in spare_factor=0.1,0.2 or spare_factor=0.1..0.3",
                action="give a name and its values, separated by commas, or two ends of a range",
            )
        # Values with units stay texts until the pattern or the profile parses them.
        ends = _RANGE.fullmatch(values.strip())
        varied[name.strip()] = (
            [read_override("", value) for value in items] if ends is None else _range(text, ends)
        )
    return varied


def _range(text: str, match: re.Match[str]) -> list[Any] | Range:
    low, high = (_number(text, match[end]) for end in ("low", "high"))
    full_range = Range(low, high, match["log"] is not None)
    full_range.check(text)
    if match["step"] is None:
        return full_range
    step = _number(text, match["step"])
    if step <= 0 or (high - low) / step > MAX_STEPS:
        raise UsageError(
            "The step does not lead from one end of the range to the other",
            where=text,
            got=match["step"],
            allowed=f"a number above 0, with at most {MAX_STEPS} steps",
            action="correct the step",
        )
    count = int((high - low) / step * (1 + 1e-12)) + 1
    values = [low + step * number for number in range(count)]
    return [float(f"{value:.12g}") if isinstance(value, float) else value for value in values]


def _number(text: str, end: str) -> int | float:
    """Parse an end of a range: a number, a size or a duration."""
    value = read_override("", end.strip())
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    for read in (parse_size, parse_duration):
        try:
            return read(end.strip(), text)
        except UflipError:
            continue
    raise UsageError(
        "An end of the range is not a number",
        where=text,
        got=end,
        allowed="numbers, sizes or durations, as in 1..64, 4KiB..64KiB, 10us..1ms",
        action="list the values instead: NAME=V1,V2,...",
    )


def read_sample(text: str | None, seed: int | None) -> Sample | None:
    """Parse METHOD:COUNT.

    >>> read_sample("lhs:200", 7)
    Sample(method='lhs', count=200, seed=7)
    """
    if text is None:
        if seed is not None:
            raise UsageError(
                "--sample-seed requires --sample",
                where="--sample-seed",
                got=str(seed),
                allowed="a seed with --sample",
                action="select a sampling method: --sample lhs:100",
            )
        return None
    method, _, count = text.partition(":")
    if method not in METHODS:
        raise unknown_name("sampling method", method, METHODS, where="--sample")
    return Sample(method, parse_count(count, "--sample", 1, 100_000), seed or 0)  # type: ignore[arg-type]


# The rows: a printed table, and a CSV file with all numbers.


def print_rows(rows: "list[SweepRow]", names: list[str], others: Sequence[str] = ()) -> None:
    """Print the table; costs in `others` are printed before the measurements."""
    present_modes = {mode for row in rows for mode in row.times}
    modes = [mode for mode in MODES if mode in present_modes]
    costs = [name for name in COSTS if name in others]
    head = [*names, *(name.removesuffix("_bytes") for name in costs)]
    if modes:
        head.append("IOPS")
        prefixes = [f"{PLURALS[mode]} " if len(modes) > 1 else "" for mode in modes]
        head += [prefix + name.removesuffix("_ns") for prefix in prefixes for name in STATISTICS]
    head += ["write amplification", "valid pages per victim"]
    echo_table(head, [_cells(row, names, costs, modes) for row in rows], left=len(names))


def _cells(row: "SweepRow", names: list[str], costs: list[str], modes: list[str]) -> list[str]:
    cells = [str(row.values[name]) for name in names]
    sizes = [getattr(row, name) for name in costs]
    cells += ["" if size is None else format_size(size) for size in sizes]
    if modes:
        cells.append("" if row.ios_per_s is None else format_count(round(row.ios_per_s)))
    for mode in modes:
        statistics = row.times.get(mode)
        times = [None if statistics is None else statistics[name] for name in STATISTICS]
        cells += ["" if time is None else format_duration_ns(time) for time in times]
    ratios = (row.write_amplification, row.relocated_pages_per_block)
    return cells + ["" if ratio is None else f"{ratio:.2f}" for ratio in ratios]


def impossible_line(planned: "PlannedSweep") -> str:
    """Return how many combinations of a sample make no device, and the reason for the first."""
    count, total = len(planned.impossible), len(planned.impossible) + len(planned.points)
    values, error = planned.impossible[0]
    first = " ".join(f"{name}={value}" for name, value in values.items())
    return f"{count} of {total} combinations make no device; {first}: {error.what}"


def _table_output(path: Path, force: bool) -> "OutputPath":
    return checked_output(path, "TABLE", "--csv", (".csv",), force=force)


def write_table(rows: "list[SweepRow]", output: "OutputPath") -> None:
    """Write one line per point: the varied values, then every number under its name."""
    from uflip.results.outputs import write_table as write
    from uflip.sweeping.data_set import columns, flatten

    names = columns(rows)
    write(output, names, ([values.get(name) for name in names] for values in map(flatten, rows)))


# Findings in the rows: best point, Pareto front, sensitivity, and their figure.


@dataclass(frozen=True)
class FindingOptions:
    """The requested findings: a measure for each kind, or None."""

    best: str | None
    objectives: tuple[str, ...] | None
    sensitivity: str | None


@dataclass(frozen=True)
class BestPoint:
    """The best row by a measure, and its value; None if no row can be ranked."""

    by: str
    row: "SweepRow | None"
    value: float | None


@dataclass(frozen=True)
class SweepFindings:
    """The best row, the indices of the rows on the front, and the shares of a variance."""

    best: BestPoint | None
    front: tuple[tuple[str, ...], list[int]] | None
    sensitivity: "tuple[str, Sequence[SobolIndex]] | None"
    doubt: str | None = None
    """Why the shares are doubtful, or why they are missing."""

    def document(self) -> Mapping[str, object]:
        """Return the `--json` document."""
        content: dict[str, object] = {}
        if self.best is not None:
            row = self.best.row
            content["best"] = {
                "by": self.best.by,
                "value": self.best.value,
                "values": None if row is None else row.values,
                "device": None if row is None else row.device,
            }
        if self.front is not None:
            objectives, points = self.front
            content["pareto"] = {"objectives": objectives, "points": points}
        if self.sensitivity is not None:
            measure, indices = self.sensitivity
            content["sensitivity"] = {"of": measure, "indices": indices, "doubt": self.doubt}
        return content


def check_finding_options(requested: FindingOptions, planned: "PlannedSweep") -> None:
    """Reject findings that the rows of a sweep cannot support, before any work is done."""
    from uflip.sweeping.ranking import check_measure, check_objectives, check_sensitivity

    design = planned.design
    for option, measure in (("--best", requested.best), ("--sensitivity", requested.sensitivity)):
        if measure is not None:
            check_measure(measure, design.spec, timed=design.timed, where=option)
    if requested.objectives is not None:
        check_objectives(requested.objectives, design.spec, timed=design.timed)
    if requested.sensitivity is None:
        return
    if design.sample is None or design.sample.method != "sobol":
        raise UsageError(
            "Sobol' indices need their design",
            where="--sensitivity",
            got="combinations of another design",
            allowed="--sample sobol:N",
            action="give --sample sobol:N; N is a power of two, 64 or more",
        )
    check_sensitivity(planned.points, requested.sensitivity, timed=design.timed)


def findings(requested: FindingOptions, rows: "list[SweepRow]") -> SweepFindings:
    """Return the requested findings."""
    from uflip.sweeping.ranking import pareto_front

    objectives, measure = requested.objectives, requested.sensitivity
    indices, doubted = ([], None) if measure is None else _shares(rows, measure)
    return SweepFindings(
        None if requested.best is None else _best(rows, requested.best),
        None if objectives is None else (objectives, pareto_front(rows, objectives)),
        None if measure is None else (measure, indices),
        doubted,
    )


def _shares(rows: "list[SweepRow]", measure: str) -> "tuple[Sequence[SobolIndex], str | None]":
    """Return the shares of a variance with a doubt about them, or why they are missing."""
    from uflip.sweeping.ranking import sensitivity, why_sensitivity_doubtful

    try:
        return sensitivity(rows, measure), why_sensitivity_doubtful(rows)
    except UsageError as error:
        return [], f"{error.what}: {error.got}; {error.action}"


def print_findings(findings: SweepFindings, rows: "list[SweepRow]", names: list[str]) -> None:
    """Print the findings."""
    if findings.front is not None:
        objectives, points = findings.front
        echo(f"\nPareto front of {', '.join(objectives)}: {len(points)} of {len(rows)} points")
        print_rows([rows[index] for index in points], names, objectives)
    if findings.sensitivity is not None:
        measure, indices = findings.sensitivity
        echo(f"\nshare of the variance of {measure} that a name explains")
        cells = [
            (
                each.name,
                f"{each.first:.2f} ± {each.first_half_width:.2f}",
                f"{each.total:.2f} ± {each.total_half_width:.2f}",
            )
            for each in indices
        ]
        if cells:
            echo_table(("name", "alone", "with interactions"), cells)
        if findings.doubt is not None:
            echo(f"warning: {findings.doubt}")
    if findings.best is not None:
        echo(_best_line(findings.best))


def _best(rows: "list[SweepRow]", by: str) -> BestPoint:
    from uflip.sweeping.ranking import best, measured

    row = best(rows, by)
    return BestPoint(by, row, None if row is None else measured(row, by))


def _best_line(best: BestPoint) -> str:
    """Return a line about the best point."""
    by, row, value = best.by, best.row, best.value
    if row is None or value is None:
        return f"best {by}: no point has enough I/Os for it"
    point = " ".join(f"{name}={each}" for name, each in row.values.items())
    if by == "iops":
        return f"best {by}: {point}, {format_count(round(value))} IOPS"
    if by == "bytes_per_s":
        return f"best {by}: {point}, {format_size(round(value))}/s"
    text = f"{value:.2f}" if by == "write_amplification" else format_duration_ns(value)
    return f"best {by}: {point}, {text}"


def draw(
    rows: "list[SweepRow]", design: "Design", requested: FindingOptions, out: Path, *, force: bool
) -> None:
    """Draw the figure that fits the options: a front, a sample, or a grid."""
    from uflip.report.figures import design_space
    from uflip.report.figures.design_space import draw_points
    from uflip.sweeping.ranking import pareto_front

    if requested.objectives is not None and design.sample is None:
        on_front = pareto_front(rows, requested.objectives)
        first, *_, last = (_column(rows, name) for name in requested.objectives)
        design_space.draw_front(first, last, on_front, design.device, out, force=force)
    elif design.sample is not None:
        on_front = pareto_front(rows, requested.objectives) if requested.objectives else []
        measures = requested.objectives or [
            requested.best or requested.sensitivity or _default(rows)
        ]
        varied = [(name, [row.values[name] for row in rows]) for name in design.vary]
        columns = [*varied, *(_column(rows, name) for name in measures)]
        design_space.draw_parallel(columns, design.device, out, front=on_front, force=force)
    else:
        draw_points(rows, design.device, out, force=force)


def _default(rows: "list[SweepRow]") -> str:
    """Return the measure that is drawn by default."""
    modes = [*rows[0].times]
    if not modes:
        return "write_amplification"
    return "mean" if len(modes) == 1 else f"{modes[0]}_mean"


def _column(rows: "list[SweepRow]", name: str) -> tuple[str, list[float | None]]:
    """Return a measure of every row, in the unit of its label."""
    from uflip.sweeping.ranking import COSTS, RATES, WRITE_AMPLIFICATION, measured

    values = [measured(row, name) for row in rows]
    if name in (*RATES, WRITE_AMPLIFICATION):
        return name.replace("_", " "), values
    label, unit = (f"{name[:-6]} [MiB]", 1 << 20) if name in COSTS else (f"{name} [ms]", 10**6)
    return label.replace("_", " "), [None if value is None else value / unit for value in values]
