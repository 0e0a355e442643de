"""Every I/O of the baselines: start-up and running phase, with running averages.

**Source** uFLIP (CIDR 2009) §5.1, figures 3 and 4.

**Faithful** Time in I/O operations, response time [ms] on a logarithmic axis, running average with
(dashed) and without (solid) the start-up.

**Simplified** Many points are drawn as an image; axes and averages stay vectors. Each run is drawn
twice: its first I/Os, on a scale that shows start-up and period, and all of them.

**Ambiguous** Nothing.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from uflip.microbench.labels import PATTERN_NAMES
from uflip.report.blocks import Figure
from uflip.report.data import (
    BaselineTrace,
    Document,
    Traces,
    are_repeated,
    first_runs,
    is_simulated,
)
from uflip.report.figures import axes as scales
from uflip.report.figures import palette
from uflip.report.figures.chart import (
    DASHED,
    SOLID,
    Axis,
    Band,
    Box,
    Chart,
    Dashes,
    Mark,
    Panel,
    Polyline,
)
from uflip.report.figures.matplotlib_chart import draw_chart, styled
from uflip.report.figures.svg import Drawing
from uflip.report.figures.svg import draw as drawn
from uflip.report.labels import format_ms
from uflip.report.tables import baselines_tables
from uflip.stats import running_mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEIGHT, PANEL_HEIGHT = 32.0, 112.0
# The paper's longest start-up (Mtron, 125 I/Os) and a few of its longest periods (128 I/Os) fit.
FIRST_IOS = 400
# A vector mark costs a hundred bytes, a pixel a few bits: more points than this become an image.
MAX_VECTOR_POINTS = 500
# A running average is smooth: this many points draw it to the width of a line.
LINE_POINTS = 400
LEGEND = (
    Polyline(color=palette.MUTED, width=0, marker="o", size=2, label="one I/O"),
    Polyline(width=1.2, label="running average without start-up"),
    Polyline(width=1.2, dashes=DASHED, label="with start-up"),
    Box(edge=palette.GRID, label="start-up (IOIgnore)"),
)


def draw(baselines: Sequence[BaselineTrace], *, simulated: bool) -> Drawing | None:
    """Draw the traces of the baselines, a panel each on a common scale."""
    first = first_runs(baselines)
    if not first:
        return None
    chart = chart_of(baselines, simulated=simulated)
    return drawn(chart, "traces", "Traces of the baselines", _describe(first))


def chart_of(baselines: Sequence[BaselineTrace], *, simulated: bool) -> Chart:
    """Return the chart of some baselines that have first runs."""
    first = first_runs(baselines)
    y = scales.times_axis(np.concatenate([trace.response_time_ms for trace in first]))
    run = " of the first run" if are_repeated(baselines) else ""
    return Chart(
        [
            _panel(trace, count, y, run)
            for trace in first
            for count in (FIRST_IOS, len(trace.response_time_ms))
        ],
        HEIGHT + PANEL_HEIGHT * len(first),
        columns=2,
        legend=LEGEND,
        x_label="I/O number",
        share_y=True,
        simulated=simulated,
    )


def figure(document: Document, baselines: Traces) -> Figure | None:
    """Return the figure of the traces, with the numbers of the baseline runs."""
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
        "averages part, the start-up would have distorted the mean."
        + (" The figure has the first run of each; the table has all." * are_repeated(baselines)),
        data=baselines_tables(document),
    )


@styled
def draw_on(axis: "Axes | None", trace: BaselineTrace) -> "Axes":
    """Draw every I/O of a run on axes of the caller, or on those of a new figure of pyplot."""
    if axis is None:
        from matplotlib import pyplot

        _, axis = pyplot.subplots(layout="constrained")
    times = trace.response_time_ms
    panel = _panel(trace, len(times), scales.times_axis(times), "")
    draw_chart(axis, Chart([panel], HEIGHT + PANEL_HEIGHT, legend=LEGEND))
    axis.set_xlabel("I/O number")
    axis.set_title(panel.title)
    return axis


def _panel(trace: BaselineTrace, count: int, y: Axis, run: str) -> Panel:
    """Return the panel of the first `count` I/Os of a run, with their running averages."""
    times, ignored = trace.response_time_ms[:count], trace.io_ignore
    n = len(times)
    look = palette.look(trace.pattern)
    number = np.arange(1, n + 1)
    few = n <= MAX_VECTOR_POINTS
    marks: list[Mark] = [Band(0.5, ignored + 0.5)] if ignored else []
    marks.append(
        Polyline(
            number,
            times,
            look.color if few else look.dot,
            width=0,
            marker="o",
            size=2.0 if few else 1.3,
            alpha=0.8 if few else 0.7,
            raster=not few,
        )
    )
    if ignored:
        marks.append(_average(number, running_mean(times), DASHED))
    if ignored < n:
        marks.append(_average(number[ignored:], running_mean(times[ignored:]), SOLID))
    part = f"first {n:,} I/Os" if n < len(trace.response_time_ms) else f"all {n:,} I/Os"
    name = f"{trace.pattern} {PATTERN_NAMES.get(trace.pattern, '')}".rstrip()
    title = f"{name}, {part}{run}"
    return Panel(Axis(0.5, n + 0.5, grid=False), y, marks, title)


def _average(number: NDArray[np.int_], mean_ms: NDArray[np.float64], dashes: Dashes) -> Polyline:
    """Return a running average, with most points at the start, where it changes most."""
    picked = np.unique(np.geomspace(1, len(number), LINE_POINTS).astype(int)) - 1
    return Polyline(number[picked], mean_ms[picked], width=1.2, dashes=dashes)


def _describe(baselines: Sequence[BaselineTrace]) -> str:
    parts = [
        f"{trace.pattern}: {len(trace.response_time_ms)} I/Os, {trace.io_ignore} of them start-up, "
        f"average {format_ms(float(trace.measured_ms.mean()) * 1e6)} ms without it"
        for trace in baselines
        if len(trace.measured_ms)
    ]
    return "Response time of every I/O in order of submission. " + "; ".join(parts) + "."
