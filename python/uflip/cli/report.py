"""`uflip report`: write results as one self-contained HTML page."""

from pathlib import Path

import click

from uflip.cli.options import ANY_PATH, force_option, json_option, path_option, quiet_option
from uflip.cli.terminal import echo, echo_json
from uflip.units import format_size

EPILOG = """\b
Examples:
  uflip report results/demo -o report.html
"""


@click.command("report", epilog=EPILOG)
@click.argument("results", type=ANY_PATH)
@path_option(
    "-o",
    "--out",
    metavar="FILE",
    default=Path("report.html"),
    show_default=True,
    help="The HTML file; an older report of this name is replaced.",
)
@force_option
@quiet_option
@json_option
def command(results: Path, out: Path, force: bool, quiet: bool, as_json: bool) -> None:
    """Write the result folder RESULTS as one self-contained HTML page."""
    from uflip.result_views import write_report
    from uflip.results import Results, outputs

    # Check the name before seconds are spent on figures.
    outputs.check(out, outputs.REPORT, "--out", force=force)
    outputs.check_ending(out, "report", "--out", (".html",))
    loaded = Results.load(results)
    size_bytes = write_report(loaded, out, force=force)
    if as_json:
        echo_json({"report": str(out), "size_bytes": size_bytes, "runs": len(loaded.runs)})
    elif not quiet:
        echo(f"{out}  {format_size(size_bytes)}, {len(loaded.runs)} runs; opens in a browser")
