"""The whole distribution of the baselines: which share of I/Os is slower than a given time.

Both axes are logarithmic, so that the rare slow I/Os, which a mean hides and a user feels, take up
as much room as the many fast ones. A vertical step is a response time that many I/Os share; the
height at which a line meets a time reads as a percentile: 1 % slower is p99.
"""

from collections.abc import Sequence

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
from uflip.report.words import format_ms

HEIGHT = 2.9
LINE_POINTS = 600

TICKS = {
    1.0: "all",
    0.5: "50 %  (median)",
    0.1: "10 %  (p90)",
    0.01: "1 %  (p99)",
    0.001: "0.1 %  (p99.9)",
    0.0001: "0.01 %  (p99.99)",
}


@styled
def draw(baselines: Sequence[BaselineTrace], *, simulated: bool) -> Drawing | None:
    """Draw the share of I/Os slower than a time, a line per pattern, start-up left out.

    Returns
    -------
    Drawing or None
        None if there is nothing to draw.
    """
    measured = [trace for trace in baselines if len(trace.measured_ms)]
    if not measured:
        return None
    figure, (axis,) = new_figure(height=HEIGHT)
    handles = []
    for trace in measured:
        time_ms, share = slower_than(trace.measured_ms)
        look = palette.look(trace.pattern)
        name = f"{trace.pattern} {PATTERN_NAMES.get(trace.pattern, '')}"
        (line,) = axis.step(time_ms, share, where="post", color=look.color, label=name)
        axis.plot(
            time_ms[-1], share[-1], marker=look.marker, color=look.color, markersize=4, ls="none"
        )
        line.set_marker("")
        handles.append(line)
    most = max(len(trace.measured_ms) for trace in measured)
    axis.set_yscale("log")
    axis.set_ylim(0.8 / most, 1.15)
    ticks = [share for share in TICKS if share >= 0.8 / most]
    axis.set_yticks(ticks, [TICKS[share] for share in ticks])
    axis.set_yticks([], minor=True)
    _time_axis(axis, measured)
    axis.set_ylabel("share of I/Os slower")
    legend_above(figure, handles)
    mark_simulated(figure, simulated)
    return to_drawing(figure, "distribution", "Distribution of response times", _describe(measured))


def figure(document: Document, baselines: Traces) -> Figure | None:
    """The distributions of all baselines."""
    drawing = draw(baselines, simulated=is_simulated(document))
    if drawing is None:
        return None
    return Figure(
        "distribution",
        "Distribution",
        drawing,
        "How slow are the slow ones? "
        "Read upwards from a time: the height of a line is the share of I/Os slower than that. "
        "A steep line is a predictable device; a long tail to the right is what a mean hides.",
    )


def slower_than(response_time_ms: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """Points of the line: (times [ms], share of I/Os at least that slow), thinned for drawing.

    The thinning is even in the logarithm of the rank, so the slowest I/Os are all there.
    """
    ordered = np.sort(response_time_ms)
    n = len(ordered)
    from_the_top = np.unique(np.geomspace(1, n, LINE_POINTS).astype(int))
    picked = np.sort(n - from_the_top)
    return ordered[picked], (n - picked) / n


def _time_axis(axis: object, measured: Sequence[BaselineTrace]) -> None:
    from matplotlib.axes import Axes

    assert isinstance(axis, Axes)
    every = np.concatenate([trace.measured_ms for trace in measured])
    positive = every[every > 0]
    if len(positive) == 0:
        return
    low, high = float(positive.min()) / 1.15, float(positive.max()) * 1.15
    axis.set_xscale("log")
    axis.set_xlim(low, high)
    ticks = scales.log_ticks(low, high)
    axis.set_xticks(ticks, [scales.plain(tick) for tick in ticks])
    axis.set_xticks([], minor=True)
    axis.set_xlabel("response time [ms]")


def _describe(measured: Sequence[BaselineTrace]) -> str:
    parts = []
    for trace in measured:
        ordered = np.sort(trace.measured_ms)
        middle, slow = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)]
        parts.append(
            f"{trace.pattern}: half of the I/Os within {format_ms(middle * 1e6)} ms, "
            f"99 % within {format_ms(slow * 1e6)} ms, the slowest {format_ms(ordered[-1] * 1e6)} ms"
        )
    return "Share of I/Os slower than a given time. " + "; ".join(parts) + "."
