"""How well each mean is known: half the width of its interval, relative to the mean, a dot a run.

**Source** uFLIP (CIDR 2009) §4.2, which asks for an IOCount that lets the averages converge.

**Faithful** Every run; the bound that was asked for is drawn.

**Simplified** Runs without an interval are not drawn, and counted below.

**Ambiguous** Nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from uflip.report.figures import palette
from uflip.report.figures.canvas import legend_above, mark_simulated, new_figure, styled, to_svg
from uflip.report.words import title

HEIGHT = 2.6
ASKED = 0.05
# Of a device that repeats itself exactly the half width is zero, which has no place on the axis.
LEAST = 1e-4


@styled
def convergence(experiments: Mapping[str, Sequence[Mapping[str, Any]]], *, simulated: bool) -> str:
    """Draw the half widths of all runs.

    Parameters
    ----------
    experiments
        Name of the micro-benchmark -> its runs, as in a summary.
    simulated
        Whether to mark the figure as simulated.

    Returns
    -------
    str
        SVG; empty if no interval is known.
    """
    from matplotlib.lines import Line2D

    figure, (axis,) = new_figure(height=HEIGHT)
    drawn = 0
    for column, runs in enumerate(experiments.values()):
        for number, run in enumerate(runs):
            for each in run["repetitions"]:
                if each["half_width_ns"] is None or not each["mean_ns"]:
                    continue
                drawn += 1
                half_width = max(each["half_width_ns"] / each["mean_ns"], LEAST)
                look = palette.look(run["pattern"].split("/")[-1])
                axis.plot(
                    column + 0.1 + 0.8 * number / max(len(runs), 1),
                    half_width,
                    ls="none",
                    marker=look.marker,
                    ms=3.2,
                    mew=0.7,
                    mec=look.color,
                    mfc=look.color if each["converged"] else "none",
                )
    if not drawn:
        return ""
    axis.axhline(ASKED, color=palette.MUTED, lw=0.8, ls=":")
    axis.set_yscale("log")
    axis.set_ylim(LEAST / 1.5, 5)
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
    return to_svg(figure, "fig-convergence", "How well the means are known", told)
