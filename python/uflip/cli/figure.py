"""`uflip figure`: one figure of a result as a file, for a paper."""

from pathlib import Path

import click

from uflip.cli.common import force_option
from uflip.cli.terminal import echo

EPILOG = """\b
Examples:
  uflip figure results/demo granularity -o granularity.pdf
  uflip figure results/demo locality-relative -o locality.svg
  uflip figure results/dfc luns -o luns.png
  uflip figure results/demo

\b
KIND is the name of a micro-benchmark, or
  locality-relative   its random writes over sequential ones
  traces, phases      every I/O of the baselines; what was found in them
  pause               what random writes leave behind
  bands, luns, wear, channel, channels, writers   of an open-channel device
Without KIND, what this result has is listed.
"""


@click.command("figure", epilog=EPILOG)
@click.argument("results", type=click.Path(path_type=Path))
@click.argument("kind", required=False)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    help="The file, .pdf, .svg or .png.  [default: KIND.pdf]",
)
@force_option
def command(results: Path, kind: str | None, out: Path | None, force: bool) -> None:
    """Draw one figure of RESULTS, as wide as a column or a page, legible in black and white."""
    from uflip.report.figures import paper
    from uflip.report.figures.files import check_library, check_name, save
    from uflip.results import Results, summary

    loaded = Results.load(results)
    if loaded.is_open_channel:
        from uflip.oc.drawing import kinds_of

        found = kinds_of(loaded)
    else:
        found = paper.kinds_of(loaded, summary(loaded))
    if kind is None:
        echo("\n".join(found))
        return
    draw = paper.choose(found, kind)
    check_library()
    place = Path(f"{kind}.pdf") if out is None else out
    check_name(place, force=force)
    echo(save(paper.drawn(draw), place, kind, force=force))
