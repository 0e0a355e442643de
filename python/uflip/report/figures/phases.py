"""The phases of the baselines as they were found: start-up shaded, levels of the running phase.

**Source** uFLIP (CIDR 2009) §4.2, §5.1, Figures 3 and 4.

**Faithful** Time in I/O operations, response time [ms] on a logarithmic axis.

**Simplified** The levels are drawn as lines whose width is their share of the I/Os.

**Ambiguous** Nothing.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from uflip.data.phases import PhasesOfPattern
from uflip.report.blocks import Figure
from uflip.report.data import BaselineTrace, Document, Traces, is_simulated
from uflip.report.figures import axes as scales
from uflip.report.figures import palette
from uflip.report.figures.canvas import (
    Drawing,
    legend_above,
    mark_simulated,
    new_figure,
    styled,
    to_drawing,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MatplotlibFigure

PANEL_HEIGHT = 1.35


@styled
def draw(
    baselines: Sequence[BaselineTrace], found: Mapping[str, PhasesOfPattern], *, simulated: bool
) -> Drawing | None:
    """Draw the long baseline runs with the phases that were found in them.

    Parameters
    ----------
    baselines
        At most one per pattern.
    found
        `patterns` of the phases of a manifest.
    simulated
        Whether to mark the figure as simulated.

    Returns
    -------
    Drawing or None
        None if there is nothing to draw.
    """
    drawn = [trace for trace in baselines if trace.pattern in found]
    if not drawn:
        return None
    told = "; ".join(f"{trace.pattern}: {_verdict(found[trace.pattern])}" for trace in drawn)
    picture = picture_of(drawn, found, simulated=simulated)
    return to_drawing(picture, "phases", "Phases of the baselines", told + ".")


def picture_of(
    drawn: Sequence[BaselineTrace], found: Mapping[str, PhasesOfPattern], *, simulated: bool
) -> "MatplotlibFigure":
    """Draw the phases of some long baseline runs, all of which have been found, in our style."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    rows = -(-len(drawn) // 2)
    figure, panels = new_figure(rows, 2, height=0.5 + PANEL_HEIGHT * rows, share_y=True)
    every = np.concatenate([trace.response_time_ms for trace in drawn])
    positive = every[every > 0]
    if len(positive):
        scales.log_scale(panels[0], float(positive.min()), float(positive.max()))
    for trace, axis in zip(drawn, panels, strict=False):
        _panel(axis, trace, found[trace.pattern])
    for axis in panels[len(drawn) :]:
        axis.set_visible(False)
    legend_above(
        figure,
        [
            Line2D([], [], color=palette.MUTED, ls="none", marker="o", ms=2, label="one I/O"),
            Line2D([], [], color=palette.INK, lw=1.2, label="levels (thicker: more I/Os)"),
            Patch(facecolor=palette.SHADE, edgecolor=palette.GRID, label="start-up"),
        ],
    )
    figure.supxlabel("I/O number", size=8.5)
    mark_simulated(figure, simulated)
    return figure


def figure(document: Document, baselines: Traces) -> Figure | None:
    """The phases of the long baseline runs."""
    phases = document["phases"]
    found = phases["patterns"] if phases else {}
    drawing = draw(baselines, found, simulated=is_simulated(document))
    if drawing is None:
        return None
    return Figure(
        "phases",
        "Phases",
        drawing,
        "What does the device do in a long run? The shaded part at the left is the start-up that "
        "was found; lines are the levels of the running phase (steady state), the thicker the more "
        "I/Os.",
    )


def _panel(axis: "Axes", trace: BaselineTrace, seen: PhasesOfPattern) -> None:
    times = trace.response_time_ms
    n = len(times)
    look = palette.look(trace.pattern)
    startup = seen["startup_ios"]
    if startup:
        axis.axvspan(0.5, startup + 0.5, color=palette.SHADE, lw=0, zorder=0)
    axis.plot(
        np.arange(1, n + 1),
        times,
        ls="none",
        marker="o",
        ms=1.1,
        mew=0,
        color=look.dot,
        alpha=0.5,
        rasterized=True,
    )
    for level in seen["levels"]:
        height = level["mean_ns"] / 1e6
        width = 0.6 + 2.4 * level["share"]
        axis.plot([startup + 1, n], [height, height], color=palette.INK, lw=width, alpha=0.8)
    axis.set_title(f"{trace.pattern}: {_verdict(seen)}", size=8.5)
    axis.set_xlim(0.5, n + 0.5)
    axis.xaxis.set_major_formatter(lambda place, _: f"{place:,.0f}")
    axis.set_ylabel("[ms]")
    axis.grid(visible=False, axis="x")


def _verdict(seen: PhasesOfPattern) -> str:
    period = seen["period_ios"]
    tail = f", period {period:,}" if period > 1 else ", no period"
    return f"{seen['phase']}, start-up {seen['startup_ios']:,}{tail}"
