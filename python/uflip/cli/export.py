"""`uflip export`: results as tidy tables for other programs."""

from pathlib import Path

import click

from uflip.cli.options import ANY_PATH, json_option, path_option, quiet_option
from uflip.cli.terminal import echo, echo_json
from uflip.units import format_size

# Spreadsheets cannot open larger tables.
LARGE_BYTES = 100 << 20
# A row of CSV takes 90 to 165 bytes.
CSV_ROW_BYTES = 125
LISTED_FILES = 4

EPILOG = """\b
Examples:
  uflip export results/demo
  uflip export results/demo --format parquet -o tables
  uflip export results/demo --format fio-job
"""


@click.command("export", epilog=EPILOG)
@click.argument("results", type=ANY_PATH)
@click.option(
    "--format",
    "file_format",
    metavar="csv|parquet|fio-job|perfetto",
    default="csv",
    show_default=True,
    help="csv: one table of all I/Os; parquet: a table of I/Os per run; fio-job: a fio job per "
    "run, without tables; perfetto: tracks of I/Os, waits, channels and dies per run.",
)
@path_option("-o", "--out", metavar="FOLDER", help="New folder.  [default: RESULTS-FORMAT]")
@quiet_option
@json_option
def command(results: Path, file_format: str, out: Path | None, quiet: bool, as_json: bool) -> None:
    """Export the result folder RESULTS: a row per I/O, a row per run, and a description of columns.

    With --format fio-job, export fio jobs, with which others can repeat the runs. With --format
    perfetto, export a trace of each run for ui.perfetto.dev; runs recorded with --inside have
    channels, dies, and arrows from a wait to what it waited for.
    """
    from uflip.results import Results
    from uflip.results.export import export

    loaded = Results.load(results)
    folder = out or results.resolve().with_name(f"{results.resolve().name}-{file_format}")
    if file_format == "csv" and not quiet and not as_json:
        expected = CSV_ROW_BYTES * sum(loaded.summary_of([run]).io_count for run in loaded.runs)
        if expected > LARGE_BYTES:
            stored = sum(run.path.stat().st_size for run in loaded.runs)
            echo(
                f"A row for each I/O in CSV: some {format_size(expected)}. --format parquet "
                f"takes about the {format_size(stored)} of the results.",
                err=True,
            )
    files = export(loaded, folder, file_format)
    if as_json:
        echo_json({"folder": str(folder), "files": [path.name for path in files]})
    elif not quiet:
        sizes = {path.name: _size(path) for path in files}
        listed = [f"{name} ({format_size(size)})" for name, size in sizes.items()]
        if len(sizes) > LISTED_FILES:
            listed[1:-1] = ["..."]
        echo(
            f"{folder}: {len(sizes)} files, {format_size(sum(sizes.values()))}: "
            + ", ".join(listed)
        )


def _size(path: Path) -> int:
    """Return the size of a file, or of all files in a folder [bytes]."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files)
