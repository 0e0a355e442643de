"""The phases found in the baselines: start-up shaded, levels of the running phase as lines.

**Source** uFLIP (CIDR 2009) §4.2, §5.1, Figures 3 and 4.

**Faithful** Time in I/O operations, response time [ms] on a logarithmic axis.

**Simplified** The levels are drawn as lines whose width is their share of the I/Os.

**Ambiguous** Nothing.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from uflip.data.manifest import PhasesOfPattern
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
from uflip.report.figures.chart import Axis, Band, Box, Chart, Mark, Panel, Polyline
from uflip.report.figures.svg import Drawing
from uflip.report.figures.svg import draw as drawn

HEIGHT, PANEL_HEIGHT = 36.0, 97.0
LEGEND = (
    Polyline(color=palette.MUTED, width=0, marker="o", size=2, label="one I/O"),
    Polyline(width=1.2, label="levels (thicker: more I/Os)"),
    Box(edge=palette.GRID, label="start-up"),
)


def draw(
    baselines: Sequence[BaselineTrace], patterns: Mapping[str, PhasesOfPattern], *, simulated: bool
) -> Drawing | None:
    """Draw the long baseline runs with their phases.

    `baselines`: their runs: phases are those of the first. `patterns`: `patterns` of the phases of
    a manifest. `simulated`: whether to mark the figure as simulated.
    """
    analysed = [trace for trace in first_runs(baselines) if trace.pattern in patterns]
    if not analysed:
        return None
    description = "; ".join(
        f"{trace.pattern}: {_verdict(patterns[trace.pattern])}" for trace in analysed
    )
    chart = chart_of(analysed, patterns, simulated=simulated)
    return drawn(chart, "phases", "Phases of the baselines", description + ".")


def chart_of(
    traces: Sequence[BaselineTrace], patterns: Mapping[str, PhasesOfPattern], *, simulated: bool
) -> Chart:
    """Return the chart of some long baseline runs with known phases."""
    y = scales.times_axis(np.concatenate([trace.response_time_ms for trace in traces]), "[ms]")
    return Chart(
        [_panel(trace, patterns[trace.pattern], y) for trace in traces],
        HEIGHT + PANEL_HEIGHT * -(-len(traces) // 2),
        columns=2,
        legend=LEGEND,
        x_label="I/O number",
        share_y=True,
        simulated=simulated,
    )


def figure(document: Document, baselines: Traces) -> Figure | None:
    """Return the figure of the phases of the long baseline runs."""
    phases = document["phases"]
    patterns = phases["patterns"] if phases else {}
    drawing = draw(baselines, patterns, simulated=is_simulated(document))
    if drawing is None:
        return None
    return Figure(
        "phases",
        "Phases",
        drawing,
        "What does the device do in a long run? The shaded part at the left is the start-up that "
        "was found; lines are the levels of the running phase (steady state), the thicker the more "
        "I/Os." + (" They are those of the first run of each." * are_repeated(baselines)),
    )


def _panel(trace: BaselineTrace, phases: PhasesOfPattern, y: Axis) -> Panel:
    times = trace.response_time_ms
    n, startup = len(times), phases.startup_ios
    color = palette.look(trace.pattern).dot
    marks: list[Mark] = [Band(0.5, startup + 0.5)] if startup else []
    number = np.arange(1, n + 1)
    marks.append(
        Polyline(number, times, color, width=0, marker="o", size=1.1, alpha=0.5, raster=True)
    )
    for level in phases.levels:
        height = level.mean_ns / 1e6
        width = 0.6 + 2.4 * level.share
        marks.append(Polyline([startup + 1, n], [height, height], width=width, alpha=0.8))
    title = f"{trace.pattern}: {_verdict(phases)}"
    return Panel(Axis(0.5, n + 0.5, grid=False), y, marks, title)


def _verdict(phases: PhasesOfPattern) -> str:
    period = phases.period_ios
    tail = f", period {period:,}" if period > 1 else ", no period"
    return f"{phases.phase}, start-up {phases.startup_ios:,}{tail}"
