"""`uflip import`: convert logs of other tools to results."""  # noqa: N999

from pathlib import Path

import click

from uflip.cli.options import ANY_PATH, json_option, path_option, quiet_option
from uflip.cli.show import show_results
from uflip.errors import unknown_name
from uflip.options import COLUMNS_HELP

EPILOG = """\b
Examples:
  fio --name=job --rw=randread --filename=x --size=1g --write_lat_log=job --log_offset=1
  uflip import fio-log job_lat.1.log --out results/job
  uflip import fio-log before_clat.*.log --out results/before
  uflip import fio-log after_clat.*.log --out results/after
  uflip compare results/before results/after
  uflip import auto usr_0.csv.gz --out results/usr

\b
FORMAT is one of docs/reference/formats.md; auto recognises it. Each file becomes one run, named
after its I/Os (read, write, rw), the logged time (lat, clat, slat, Q2C, D2C) and the number of the
job. With log_offset=1 fio logs the offsets of its I/Os; with log_avg_msec it logs only averages,
which cannot be used here. fio names its logs after their quantity; for another name, --unit states
that the values are response times.
"""

AUTO = "auto"


@click.command("import", epilog=EPILOG)
@click.argument("file_format", metavar="FORMAT")
@click.argument("files", nargs=-1, required=True, type=ANY_PATH)
@path_option("--out", required=True, help="New folder for the results.")
@click.option(
    "--unit", type=click.Choice(["ns", "us", "ms", "s"]), help="Unit of the response times."
)
@click.option("--columns", metavar="MAP", help=COLUMNS_HELP)
@quiet_option
@json_option
def command(
    *,
    file_format: str,
    files: tuple[Path, ...],
    out: Path,
    unit: str | None,
    columns: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Convert latency logs of fio (write_lat_log), or traces with response times, to results.

    `show`, `report`, `compare` and `explore` read them. Values that the logs lack stay unknown;
    missing offsets become 0, with a warning.
    """
    from uflip._native import recording_formats
    from uflip.analysis.files import ReadOptions
    from uflip.benchmark.import_logs import import_logs

    formats = (AUTO, *recording_formats())
    if file_format not in formats:
        raise unknown_name("format to import", file_format, formats, where="import")
    options = ReadOptions(
        format=None if file_format == AUTO else file_format, unit=unit, columns=columns
    )
    show_results(import_logs(files, out, options), quiet=quiet, as_json=as_json, hints=False)
