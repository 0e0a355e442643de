"""Every I/O of the baselines: start-up and running phase, and what the mean makes of them.

**Source** uFLIP (CIDR 2009) §5.1, figures 3 and 4.

**Faithful** Time in I/O operations, response time [ms] on a logarithmic axis, running average with
(dashed) and without (solid) the start-up.

**Simplified** Many points are drawn as an image; axes and averages stay vectors. Each run is drawn
twice: its first I/Os, at a scale where start-up and period can be counted, and all of them.

**Ambiguous** Nothing.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from uflip.microbench.words import PATTERN_NAMES
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
from uflip.report.tables import baselines_tables
from uflip.report.words import format_ms
from uflip.stats import running_mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MatplotlibFigure

PANEL_HEIGHT = 1.55
# The paper's longest start-up (Mtron, 125 I/Os) and a few of its longest periods (128 I/Os) fit.
FIRST_IOS = 400
# A vector mark costs a hundred bytes, a pixel a few bits: more points than this become an image.
MOST_VECTOR_POINTS = 500
# A running average is smooth: this many points draw it to the width of a line.
LINE_POINTS = 400


@styled
def draw(baselines: Sequence[BaselineTrace], *, simulated: bool) -> Drawing | None:
    """Draw the traces of the baselines, a panel each on a common scale.

    Parameters
    ----------
    baselines
        At most one per pattern.
    simulated
        Whether to mark the figure as simulated.

    Returns
    -------
    Drawing or None
        None if there is nothing to draw.
    """
    if not baselines:
        return None
    picture = picture_of(baselines, simulated=simulated)
    return to_drawing(picture, "traces", "Traces of the baselines", _describe(baselines))


def picture_of(baselines: Sequence[BaselineTrace], *, simulated: bool) -> "MatplotlibFigure":
    """Draw the traces of some baselines in our style."""
    figure, panels = new_figure(
        len(baselines), 2, height=0.45 + PANEL_HEIGHT * len(baselines), share_y=True
    )
    every = np.concatenate([trace.response_time_ms for trace in baselines])
    positive = every[every > 0]
    if len(positive):
        scales.log_scale(panels[0], float(positive.min()), float(positive.max()))
    for trace, first, whole in zip(baselines, panels[::2], panels[1::2], strict=True):
        _panel(first, trace, FIRST_IOS)
        _panel(whole, trace, len(trace.response_time_ms))
        first.set_ylabel("response time [ms]")
    legend_above(figure, _legend())
    figure.supxlabel("I/O number", size=8.5)
    mark_simulated(figure, simulated)
    return figure


def figure(document: Document, baselines: Traces) -> Figure | None:
    """The traces with the numbers of the baseline runs."""
    drawing = draw(baselines, simulated=is_simulated(document))
    if drawing is None:
        return None
    return Figure(
        "traces",
        "Traces",
        drawing,
        "Is there a start-up phase, and does the running phase repeat itself? Each dot is one "
        "I/O; the first of them on the left, all on the right. A step at the left is a "
        "start-up; bands are cheap and expensive I/Os that alternate; where dashed and solid "
        "averages part, the start-up would have distorted the mean.",
        data=baselines_tables(document),
    )


def _panel(axis: "Axes", trace: BaselineTrace, shown: int) -> None:
    """The first `shown` I/Os of a run, with their running averages."""
    times, ignored = trace.response_time_ms[:shown], trace.io_ignore
    n = len(times)
    look = palette.look(trace.pattern)
    number = np.arange(1, n + 1)
    if ignored:
        axis.axvspan(0.5, ignored + 0.5, color=palette.SHADE, lw=0, zorder=0)
    few = n <= MOST_VECTOR_POINTS
    axis.plot(
        number,
        times,
        linestyle="none",
        marker="o",
        markersize=2.0 if few else 1.3,
        markeredgewidth=0,
        color=look.color if few else look.dot,
        alpha=0.8 if few else 0.7,
        rasterized=not few,
    )
    if ignored:
        _average(axis, number, running_mean(times), "--")
    if ignored < n:
        _average(axis, number[ignored:], running_mean(times[ignored:]), "-")
    part = f"first {n:,} I/Os" if n < len(trace.response_time_ms) else f"all {n:,} I/Os"
    axis.set_title(f"{trace.pattern} {PATTERN_NAMES.get(trace.pattern, '')}, {part}")
    axis.set_xlim(0.5, n + 0.5)
    axis.xaxis.set_major_formatter(lambda place, _: f"{place:,.0f}")
    axis.grid(visible=False, axis="x")


def _average(
    axis: "Axes", number: NDArray[np.int_], mean_ms: NDArray[np.float64], style: str
) -> None:
    """A running average, with most of its points where it moves most: at the start."""
    picked = np.unique(np.geomspace(1, len(number), LINE_POINTS).astype(int)) - 1
    axis.plot(number[picked], mean_ms[picked], color=palette.INK, ls=style, lw=1.2)


def _legend() -> list[object]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    return [
        Line2D([], [], color=palette.MUTED, ls="none", marker="o", markersize=2, label="one I/O"),
        Line2D([], [], color=palette.INK, lw=1.2, label="running average without start-up"),
        Line2D([], [], color=palette.INK, lw=1.2, ls="--", label="with start-up"),
        Patch(facecolor=palette.SHADE, edgecolor=palette.GRID, label="start-up (IOIgnore)"),
    ]


def _describe(baselines: Sequence[BaselineTrace]) -> str:
    parts = [
        f"{trace.pattern}: {len(trace.response_time_ms)} I/Os, {trace.io_ignore} of them start-up, "
        f"average {format_ms(float(trace.measured_ms.mean()) * 1e6)} ms without it"
        for trace in baselines
        if len(trace.measured_ms)
    ]
    return "Response time of every I/O in order of submission. " + "; ".join(parts) + "."
