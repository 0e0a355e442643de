"""`uflip report`: results as one self-contained page of HTML."""

from pathlib import Path

import click

from uflip.cli.common import echo_json, json_option, quiet_option
from uflip.errors import UsageError
from uflip.units import format_size


@click.command("report")
@click.argument("results", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--out",
    metavar="FILE",
    type=click.Path(path_type=Path),
    default=Path("report.html"),
    show_default=True,
    help="The HTML file; an older report of this name is replaced.",
)
@quiet_option
@json_option
def command(results: Path, out: Path, quiet: bool, as_json: bool) -> None:
    """Turn the results in the folder RESULTS into one HTML page that needs nothing else."""
    from uflip.report import write_report
    from uflip.results import Results

    loaded = Results.load(results)
    _check_out(out)
    size_bytes = write_report(loaded, out)
    if as_json:
        echo_json({"report": str(out), "size_bytes": size_bytes, "runs": len(loaded.runs)})
    elif not quiet:
        click.echo(f"{out}  {format_size(size_bytes)}, {len(loaded.runs)} runs; opens in a browser")


def _check_out(out: Path) -> None:
    """Refuse names that cannot become a file before seconds are spent on figures."""
    if out.is_dir() or not out.parent.is_dir():
        raise UsageError(
            "This cannot become a report",
            where="--out",
            got=f"{out} (a folder)" if out.is_dir() else f"{out} (its folder does not exist)",
            allowed="a file name in a folder that exists",
            action="give a name such as report.html",
        )
