"""Precision of each mean: half-width of its interval relative to the mean, one dot per run.

**Source** uFLIP (CIDR 2009) §4.2: the IOCount must be large enough for the averages to converge.

**Faithful** Every run, and the required bound.

**Simplified** Runs without an interval are not drawn, but counted below.

**Ambiguous** Nothing.
"""

from collections.abc import Mapping, Sequence

from uflip.data.summary import ExperimentSummary as Run
from uflip.report.blocks import Figure
from uflip.report.data import Document, is_simulated
from uflip.report.figures import palette
from uflip.report.figures.chart import DOTTED, Axis, Chart, Mark, Panel, Polyline, ReferenceLine
from uflip.report.figures.svg import Drawing
from uflip.report.figures.svg import draw as drawn
from uflip.report.labels import title
from uflip.report.tables import intervals_table

HEIGHT = 188.0
REQUIRED = 0.05
# An exactly repeatable device has a half-width of zero, which a logarithmic axis cannot show.
MIN_SHARE = 1e-4
TICKS = tuple((share, f"{100 * share:g} %") for share in (1e-4, 1e-3, 1e-2, 0.1, 1.0))
HOLLOW = Polyline(
    width=0, marker="o", size=4.5, face="none", edge=palette.INK, edge_width=0.7,
    label="hollow: not converged",
)  # fmt: skip


def draw(experiments: Mapping[str, Sequence[Run]], *, simulated: bool) -> Drawing | None:
    """Draw the half widths of all runs."""
    groups = _positions(experiments)
    if not groups:
        return None
    marks: list[Mark] = []
    for (look, is_filled), positions in groups.items():
        x, y = zip(*positions, strict=True)
        mark = Polyline(
            x, y, look.color, width=0, marker=look.marker, size=3.4,
            face=look.color if is_filled else "none", edge=look.color, edge_width=0.7, clip=False,
        )  # fmt: skip
        marks.append(mark)
    marks.append(ReferenceLine(REQUIRED, palette.MUTED, dashes=DOTTED))
    columns = [(column + 0.5, title(name)) for column, name in enumerate(experiments)]
    x_axis = Axis(0, len(experiments), ticks=columns, grid=False, label_rotation=20)
    y_axis = Axis(MIN_SHARE / 1.5, 5, "half width / mean", log=True, ticks=TICKS)
    patterns = [
        Polyline(color=look.color, width=0, marker=look.marker, size=5, label=name)
        for name, look in palette.PATTERNS.items()
    ]
    legend = [*patterns, HOLLOW]
    description = (
        f"Half widths of the intervals of {sum(map(len, groups.values()))} runs relative to their "
        "means."
    )
    chart = Chart([Panel(x_axis, y_axis, marks)], HEIGHT, legend=legend, simulated=simulated)
    return drawn(chart, "convergence", "Confidence intervals of the means", description)


def _positions(
    experiments: Mapping[str, Sequence[Run]],
) -> dict[tuple[palette.Look, bool], list[tuple[float, float]]]:
    """Return the positions of runs by look, and whether they have converged."""
    positions: dict[tuple[palette.Look, bool], list[tuple[float, float]]] = {}
    for column, runs in enumerate(experiments.values()):
        for number, run in enumerate(runs):
            look = palette.look(run["pattern"].split("/")[-1])
            for each in run["repetitions"]:
                if each["half_width_ns"] is None or not each["mean_ns"]:
                    continue
                x = column + 0.1 + 0.8 * number / max(len(runs), 1)
                half_width = max(each["half_width_ns"] / each["mean_ns"], MIN_SHARE)
                positions.setdefault((look, bool(each["converged"])), []).append((x, half_width))
    return positions


def figure(document: Document, experiments: Mapping[str, Sequence[Run]]) -> Figure | None:
    """Return the figure of all intervals."""
    drawing = draw(experiments, simulated=is_simulated(document))
    if drawing is None:
        return None
    return Figure(
        "convergence",
        "Confidence intervals of the means",
        drawing,
        "Below the dotted line the interval of a mean is narrower than ±5 %. Hollow marks have not "
        "converged: their interval is too wide, or another convergence check failed.",
        data=[intervals_table(experiments)],
    )
