"""`uflip why`: explain the response times of any log, trace or run."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from uflip.cli.options import (
    ANY_PATH,
    force_option,
    json_option,
    no_cache_option,
    path_option,
    quiet_option,
    response_time_options,
)
from uflip.cli.terminal import echo, echo_json
from uflip.units import format_count

if TYPE_CHECKING:
    from uflip.explain.explanation import Explanation

EPILOG = """\b
Examples:
  uflip why job_clat.1.log
  uflip why results/demo/runs/0001-baseline-RW.parquet -o why.html
  uflip why trace.csv --device sim:mtron --device sim:mine.toml
  uflip why trace.csv --json

\b
FILE is a run, or any log or trace with response times (docs/reference/formats.md).
Each statement is
  found       with its evidence
  absent      it was looked for, and the data exclude it, as far as they reach
  undecided   the data do not tell; the reason follows
With --nearest, the first 5,000 I/Os are replayed on every built-in simulated
device. Their creation takes minutes the first time, and is cached.
"""


@click.command("why", epilog=EPILOG)
@click.argument("file", type=ANY_PATH)
@click.option(
    "--nearest", is_flag=True, help="Compare with all built-in simulated devices (minutes)."
)
@click.option(
    "--device",
    "devices",
    metavar="sim:NAME",
    multiple=True,
    help="Compare with this simulated device; may be repeated.",
)
@response_time_options
@path_option("-o", "--out", metavar="FILE", help="Draw the findings: .html, .svg, .pdf or .png.")
@force_option
@no_cache_option
@quiet_option
@json_option
def command(
    *,
    file: Path,
    nearest: bool,
    devices: tuple[str, ...],
    column: str | None,
    unit: str | None,
    file_format: str | None,
    columns: str | None,
    out: Path | None,
    force: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Explain the response times in FILE: levels, start-up, rhythm, cache, slow I/Os, device."""
    from uflip.analysis.files import ReadOptions
    from uflip.cli.progress import display
    from uflip.explain.explanation import explain
    from uflip.explain.io_log import read_io_log
    from uflip.explain.nearest_device import check_devices, default_devices
    from uflip.explain.picture import check_picture, write_picture

    if out is not None:
        check_picture(out, force=force)
    compared = [*devices, *(default_devices() if nearest else ())]
    check_devices(compared)
    options = ReadOptions(column=column, unit=unit, format=file_format, columns=columns)
    log = read_io_log(file, options)
    with display(len(compared), quiet=quiet or as_json or not compared) as sink:
        explained = explain(log, compared, lambda done, _, name: sink.draw(done, name))
    if as_json:
        echo_json(explained.document)
    else:
        _print(file, explained.document)
    if out is not None:
        write_picture(explained, file.name, out, force=force)


def _print(file: Path, document: "Explanation") -> None:
    echo(f"{file.name}, {format_count(document.ios)} I/Os", bold=True)
    echo(f"read as {document.read_as.describe()}")
    for finding in document.findings:
        head = f"{finding.topic}, {finding.subject}" if finding.subject else finding.topic
        echo(f"\n{head}: {finding.verdict}", bold=finding.verdict == "found")
        echo(f"  {finding.statement}")
