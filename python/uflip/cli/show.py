"""`uflip show`: print the results of a run, as text or as JSON."""

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from uflip.cli.options import ANY_PATH, json_option, read_duration
from uflip.cli.terminal import echo, echo_json, echo_pairs, echo_table
from uflip.errors import UsageError
from uflip.escape import plain
from uflip.units import format_count, format_duration_ns, format_size

if TYPE_CHECKING:
    from uflip.analysis.fio_output import FioOutput
    from uflip.results.time_rows import TimeRow


@click.command("show")
@click.argument("results", type=ANY_PATH)
@click.option("--full", is_flag=True, help="Print a row per run, not per experiment.")
@click.option(
    "--every",
    metavar="DURATION",
    callback=read_duration,
    help="Print a row for each interval of every run, such as 1s: rates, percentiles, I/Os in "
    "flight.",
)
@click.option("--csv", "as_csv", is_flag=True, help="Print these rows as CSV.")
@json_option
def command(*, results: Path, full: bool, every: int | None, as_csv: bool, as_json: bool) -> None:
    """Print the results in the folder RESULTS, finished or not; of a trace or log, what it is."""
    if every is not None or as_csv:
        _show_rows(results, every, as_csv=as_csv, as_json=as_json)
        return
    if results.is_file() and results.suffix != ".parquet":
        _show_trace(results, as_json=as_json)
        return
    from uflip.result_views import summary, text
    from uflip.results import Results

    loaded = Results.load(results)
    document = summary(loaded)
    if as_json:
        echo_json(document)
        return
    echo(text(loaded, plain(document), full=full))


def _show_rows(folder: Path, every: int | None, *, as_csv: bool, as_json: bool) -> None:
    """Print all runs over time."""
    import csv
    import io

    from msgspec.structs import astuple

    from uflip.results import Results
    from uflip.results.time_rows import COLUMNS, time_rows

    if not every:
        raise UsageError(
            "The interval of the rows is missing",
            where="--every",
            got="0" if every == 0 else "--csv alone",
            allowed="a duration above 0, such as 1s",
            action="give --every 1s",
        )
    runs = [(run.id, time_rows(run.trace(), every)) for run in Results.load(folder).runs]
    if as_json:
        echo_json({"every_ns": every, "runs": [{"run": run, "rows": rows} for run, rows in runs]})
        return
    if as_csv:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(("run", *COLUMNS))
        writer.writerows((run, *astuple(row)) for run, rows in runs for row in rows)
        echo(text.getvalue(), newline=False)
        return
    head = ("from", "I/Os", "IOPS", "MB/s", "in flight", "p50", "p99", "p99.9")
    for run, rows in runs:
        echo(run, bold=True)
        echo_table(head, [_row_cells(row) for row in rows])


def _row_cells(row: "TimeRow") -> tuple[str, ...]:
    times = (row.p50_ns, row.p99_ns, row.p999_ns)
    return (
        format_duration_ns(row.start_ns),
        format_count(row.ios),
        f"{row.ios_per_s:,.0f}",
        f"{row.bytes_per_s / 1e6:,.1f}",
        f"{row.in_flight:.2f}",
        *("" if each is None else format_duration_ns(each) for each in times),
    )


def _show_trace(path: Path, *, as_json: bool) -> None:
    """Print how a trace or log of another tool is read, and its numbers."""
    import json

    import numpy as np

    from uflip.analysis.files import ReadOptions, SeriesSource
    from uflip.analysis.fio_output import is_fio_output, read_fio_output
    from uflip.benchmark.replay import read_recording

    if is_fio_output(path):
        _show_fio_output(read_fio_output(path), path, as_json=as_json)
        return
    recording = read_recording(path, ReadOptions())
    document = json.loads(recording.summary_json())
    if as_json:
        echo_json(document)
        return
    source = SeriesSource.parse(recording.summary_json())
    times = np.frombuffer(recording.response_times())
    size = format_size(document["bytes_read"]), format_size(document["bytes_written"])
    span = document["span_ns"]
    measured = ""
    if len(times) and source.averaged_ns is None:
        p50, p99 = (format_duration_ns(float(each)) for each in np.percentile(times, [50, 99]))
        measured = f"mean {format_duration_ns(float(times.mean()))}, p50 {p50}, p99 {p99}"
    pairs = [
        ("read as", source.describe()),
        (
            "I/Os",
            f"{format_count(document['ios'])}, of which {format_count(document['reads'])} read",
        ),
        ("bytes", f"{size[0]} read, {size[1]} written"),
        ("time", "" if span is None else f"{format_duration_ns(span)} from first to last"),
        ("response times", measured),
    ]
    echo(path.name, bold=True)
    echo_pairs(pairs, "  ")


def _show_fio_output(output: "FioOutput", path: Path, *, as_json: bool) -> None:
    """Print the numbers that fio computed."""
    if as_json:
        echo_json(output)
        return
    shares = ("50", "90", "99", "99.9")
    head = ("job", "", "IOPS", "MB/s", "mean", *(f"p{share}" for share in shares))
    rows = [
        (
            each.job,
            each.direction,
            f"{each.iops:,.0f}",
            f"{each.bytes_per_s / 1e6:,.1f}",
            format_duration_ns(each.mean_ns),
            *(_percentile(each.percentiles, share) for share in shares),
        )
        for each in output.summaries
    ]
    echo(f"{path.name}: {output.format} of {output.version or 'fio'}", bold=True)
    echo_table(head, rows)
    echo("These numbers were computed by fio: there are no I/Os, no intervals and no start-up.")


def _percentile(values: Mapping[str, float], share: str) -> str:
    return format_duration_ns(values[share]) if share in values else ""


def show_results(folder: Path, *, quiet: bool, as_json: bool, hints: bool = True) -> None:
    """Show a result folder that was just written, and the next commands."""
    from uflip.result_views import summary, text
    from uflip.results import Results

    results = Results.load(folder)
    document = summary(results)
    if as_json:
        echo_json({"results": str(folder)} | document)
        return
    echo(text(results, plain(document)))
    if not quiet:
        from uflip.report.text import next_commands

        echo(f"\nResults are in {folder}. Next:")
        echo(textwrap.indent(next_commands(str(folder), hints=hints), "  "))
