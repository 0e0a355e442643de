"""How well each mean is known: half the width of its interval, relative to the mean, a dot a run.

**Source** uFLIP (CIDR 2009) §4.2, which asks for an IOCount that lets the averages converge.

**Faithful** Every run; the bound that was asked for is drawn.

**Simplified** Runs without an interval are not drawn, and counted below.

**Ambiguous** Nothing.
"""

from collections.abc import Mapping, Sequence

from uflip.data.summary import Experiment as Run
from uflip.report.blocks import Figure
from uflip.report.data import Document, is_simulated
from uflip.report.figures import palette
from uflip.report.figures.canvas import (
    Drawing,
    legend_above,
    mark_simulated,
    new_figure,
    styled,
    to_drawing,
)
from uflip.report.words import title

HEIGHT = 2.6
ASKED = 0.05
# Of a device that repeats itself exactly the half width is zero, which has no place on the axis.
LEAST = 1e-4


@styled
def draw(experiments: Mapping[str, Sequence[Run]], *, simulated: bool) -> Drawing | None:
    """Draw the half widths of all runs.

    Parameters
    ----------
    experiments
        Name of the micro-benchmark -> its runs, as in a summary.
    simulated
        Whether to mark the figure as simulated.

    Returns
    -------
    Drawing or None
        None if no interval is known.
    """
    from matplotlib.lines import Line2D

    figure, (axis,) = new_figure(height=HEIGHT)
    groups = _places(experiments)
    if not groups:
        return None
    # A line for each kind of mark: one for each run would take seconds.
    for (look, is_filled), places in groups.items():
        axis.plot(
            *zip(*places, strict=True),
            ls="none",
            marker=look.marker,
            ms=3.2,
            mew=0.7,
            mec=look.color,
            mfc=look.color if is_filled else "none",
        )
    drawn = sum(map(len, groups.values()))
    axis.axhline(ASKED, color=palette.MUTED, lw=0.8, ls=":")
    axis.set_yscale("log")
    axis.set_ylim(LEAST / 1.5, 5)
    axis.set_yticks([], minor=True)
    axis.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
    axis.set_xlim(0, len(experiments))
    axis.set_xticks(
        [column + 0.5 for column in range(len(experiments))],
        [title(name) for name in experiments],
        rotation=20,
        ha="right",
    )
    axis.set_ylabel("half width / mean")
    axis.grid(visible=False, axis="x")
    handles: list[object] = [
        Line2D([], [], ls="none", marker=look.marker, ms=4, color=look.color, label=name)
        for name, look in palette.PATTERNS.items()
    ]
    hollow = Line2D([], [], ls="none", marker="o", ms=4, mec=palette.INK, mfc="none")
    hollow.set_label("hollow: not converged")
    handles.append(hollow)
    legend_above(figure, handles)
    mark_simulated(figure, simulated)
    told = f"Half widths of the intervals of {drawn} runs relative to their means."
    return to_drawing(figure, "convergence", "How well the means are known", told)


def _places(
    experiments: Mapping[str, Sequence[Run]],
) -> dict[tuple[palette.Look, bool], list[tuple[float, float]]]:
    """Where runs stand, by how they are drawn: their look, and whether they have converged."""
    found: dict[tuple[palette.Look, bool], list[tuple[float, float]]] = {}
    for column, runs in enumerate(experiments.values()):
        for number, run in enumerate(runs):
            look = palette.look(run["pattern"].split("/")[-1])
            for each in run["repetitions"]:
                if each["half_width_ns"] is None or not each["mean_ns"]:
                    continue
                place = column + 0.1 + 0.8 * number / max(len(runs), 1)
                half_width = max(each["half_width_ns"] / each["mean_ns"], LEAST)
                found.setdefault((look, bool(each["converged"])), []).append((place, half_width))
    return found


def figure(document: Document, experiments: Mapping[str, Sequence[Run]]) -> Figure | None:
    """How well the means of all runs are known."""
    drawing = draw(experiments, simulated=is_simulated(document))
    if drawing is None:
        return None
    return Figure(
        "convergence",
        "How well the means are known",
        drawing,
        "Below the dotted line a mean is known to 5 %. Hollow marks have not converged: their "
        "interval is too wide, or something speaks against believing it.",
    )
