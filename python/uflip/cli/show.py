"""`uflip show`: print the results of a run, as text or as JSON."""

import textwrap
from collections.abc import Mapping
from pathlib import Path

import click

from uflip.cli.options import ANY_PATH, duration_option, json_option
from uflip.cli.terminal import echo, echo_json
from uflip.cli.time_rows import RowOptions, echo_time_rows
from uflip.errors import UsageError
from uflip.escape import plain

EPILOG = """\b
Examples:
  uflip show results/demo
  uflip show results/demo --full
  uflip show results/demo --every 1s --csv
"""


@click.command("show", epilog=EPILOG)
@click.argument("results", type=ANY_PATH)
@click.argument("others", metavar="[FILE]...", nargs=-1, type=ANY_PATH)
@click.option("--full", is_flag=True, help="Print a row per run, not per experiment.")
@duration_option(
    "--every",
    help="Print a row for each interval of every run or log, such as 1s: rates, percentiles, I/Os "
    "in flight.",
)
@click.option("--csv", "as_csv", is_flag=True, help="Print these rows as CSV.")
@json_option
def command(
    *,
    results: Path,
    others: tuple[Path, ...],
    full: bool,
    every: int | None,
    as_csv: bool,
    as_json: bool,
) -> None:
    """Print the results in the folder RESULTS, finished or not.

    RESULTS can also be a file of another tool: a trace, a log or an output of fio, diskspd XML,
    elbencho CSV, iostat JSON. Several logs of fio are those of the jobs of one run. Of several
    SMART logs of a drive (nvme-cli, smartctl), the differences are printed.
    """
    rows = RowOptions(every=every, as_csv=as_csv, as_json=as_json)
    if results.is_file() and results.suffix != ".parquet":
        from uflip.cli.foreign_files import show_files

        show_files([results, *others], rows)
        return
    if others:
        raise UsageError(
            "Only one result can be shown at a time",
            where="show",
            got=f"{results} and {len(others)} more",
            allowed="one folder, or files of one run of another tool",
            action="compare results with `uflip compare`",
        )
    if every is not None or as_csv:
        _show_rows(results, rows)
        return
    from uflip.result_views import summary, text
    from uflip.results import Results

    loaded = Results.load(results)
    document = summary(loaded)
    if as_json:
        echo_json(document)
        return
    echo(text(loaded, plain(document), full=full))


def _show_rows(folder: Path, options: RowOptions) -> None:
    """Print all runs over time."""
    from uflip.results import Results
    from uflip.results.time_rows import time_rows

    every = options.interval()
    echo_time_rows(
        {run.id: time_rows(run.trace(), every) for run in Results.load(folder).runs}, options
    )


def show_results(
    folder: Path,
    *,
    quiet: bool,
    as_json: bool,
    hints: bool = True,
    more: Mapping[str, object] | None = None,
    in_one_line: bool = False,
) -> None:
    """Show a result folder that was just written, and the next commands; JSON has `more`."""
    from uflip.result_views import summary, text
    from uflip.results import Results

    results = Results.load(folder)
    document = summary(results)
    if as_json:
        echo_json({"results": str(folder)} | dict(more or {}) | document, in_one_line=in_one_line)
        return
    echo(text(results, plain(document)))
    if not quiet:
        from uflip.report.text import next_commands

        echo(f"\nResults are in {folder}. Next:")
        echo(textwrap.indent(next_commands(str(folder), hints=hints), "  "))
