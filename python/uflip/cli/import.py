"""`uflip import`: convert logs of other tools to results."""  # noqa: N999

from pathlib import Path

import click

from uflip.cli.options import ANY_PATH, json_option, quiet_option
from uflip.cli.show import show_results
from uflip.errors import unknown_name

FORMATS = ("fio-log",)

EPILOG = """\b
Examples:
  fio --name=job --rw=randread --filename=x --size=1g --write_lat_log=job --log_offset=1
  uflip import fio-log job_lat.1.log --out results/job
  uflip import fio-log before_clat.*.log --out results/before
  uflip import fio-log after_clat.*.log --out results/after
  uflip compare results/before results/after

\b
Each file becomes one run, named after its I/Os (read, write, rw), the logged time (lat, clat, slat)
and the number of the job. With log_offset=1 fio logs the offsets of its I/Os; with log_avg_msec it
logs only averages, which cannot be used here.
"""


@click.command("import", epilog=EPILOG)
@click.argument("file_format", metavar="|".join(FORMATS))
@click.argument("files", nargs=-1, required=True, type=ANY_PATH)
@click.option("--out", required=True, type=ANY_PATH, help="New folder for the results.")
@quiet_option
@json_option
def command(
    file_format: str, files: tuple[Path, ...], out: Path, quiet: bool, as_json: bool
) -> None:
    """Convert latency logs of fio (write_lat_log) to results.

    `show`, `report`, `compare` and `explore` read them. Values that the logs lack stay unknown;
    missing offsets become 0, with a warning.
    """
    if file_format not in FORMATS:
        raise unknown_name("format to import", file_format, FORMATS, where="import")
    from uflip.benchmark.import_logs import import_fio_logs

    show_results(import_fio_logs(files, out), quiet=quiet, as_json=as_json, hints=False)
