"""`uflip figure`: one figure of a result as a file, for a paper."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from uflip.cli.completion import matching
from uflip.cli.options import ANY_PATH, force_option, path_option
from uflip.cli.terminal import echo
from uflip.data.sweep import FILE_NAME as SWEEP
from uflip.errors import UflipError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from click.shell_completion import CompletionItem

    from uflip.report.figures.design_space import VariedPoint
    from uflip.report.figures.paper import Draw

EPILOG = """\b
Examples:
  uflip figure results/demo granularity -o granularity.pdf
  uflip figure results/demo locality-relative -o locality.svg
  uflip figure results/dfc luns -o luns.png
  uflip figure results/demo
  uflip sweep sim:ofc --vary spare_factor=0.3,0.45,0.6 --pattern RW --data spare
  uflip figure spare spare-factor -o spare.pdf

\b
KIND is the name of a micro-benchmark, or
  locality-relative   its random writes over sequential ones
  traces, phases      every I/O of the baselines; their phases
  pause-determination after-effects of random writes, which determine the pause
  workload-history    IOPS over time, the runs in order
  bands, luns, wear, channel, channels, writers   of an open-channel device
For rows of `uflip sweep --data`, KIND is a varied name, as in
  spare-factor        IOPS and write amplification over it
Without KIND, the figures of this result are listed.
"""


def _propose_figures(
    context: click.Context, _param: click.Parameter, incomplete: str
) -> "list[CompletionItem]":
    folder = Path(context.params["results"])
    try:
        return matching(_figures(folder, _points(folder)), incomplete)
    except UflipError:
        return []


@click.command("figure", epilog=EPILOG)
@click.argument("results", type=ANY_PATH)
@click.argument("kind", required=False, shell_complete=_propose_figures)
@path_option("-o", "--out", help="The file, .pdf, .svg or .png.  [default: KIND.pdf]")
@force_option
def command(results: Path, kind: str | None, out: Path | None, force: bool) -> None:
    """Draw one figure of RESULTS, as wide as a column or a page, legible in black and white."""
    from uflip.report.figures import design_space, paper
    from uflip.report.figures.matplotlib_chart import check_library, check_name, save

    points = _points(results)
    kinds = _figures(results, points)
    if kind is None:
        echo("\n".join(kinds))
        return
    draw = paper.choose(kinds, kind)
    check_library()
    path = Path(f"{kind}.pdf") if out is None else out
    check_name(path, force=force)
    echo(save(paper.drawn(draw), path, kind, force=force))
    if points and (more := design_space.omitted_lines(points, kind.replace("-", "_"))):
        note = f"note: {more} lines are omitted, since only {design_space.MAX_LINES} are"
        echo(f"{note} distinguishable; vary fewer names besides {kind}", err=True)


def _figures(folder: Path, points: "Sequence[VariedPoint]") -> "Mapping[str, Draw]":
    from uflip.report.figures import paper
    from uflip.results import Results, summary

    if points:
        return paper.kinds_of_sweep(points)
    loaded = Results.load(folder)
    if loaded.is_open_channel:
        from uflip.oc.figures import kinds_of

        return kinds_of(loaded)
    return paper.kinds_of(loaded, summary(loaded))


def _points(folder: Path) -> "list[VariedPoint]":
    from uflip.report.figures.design_space import VariedPoint
    from uflip.sweeping.run_sweep import read_rows

    rows = read_rows(folder) if (folder / SWEEP).exists() else ()
    return [VariedPoint(row.values, row.ios_per_s, row.write_amplification) for row in rows]
