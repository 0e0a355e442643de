"""Distributions of the baselines: the share of I/Os slower than a given time.

Both axes are logarithmic, so that the rare slow I/Os, which a mean hides and a user notices, get as
much space as the many fast ones. A vertical step is a response time that many I/Os share; the
height of a line at a time is a percentile: 1 % slower is p99.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from uflip.microbench.labels import PATTERN_NAMES
from uflip.report.blocks import Figure
from uflip.report.data import BaselineTrace, Document, Traces, is_simulated, pooled
from uflip.report.figures import axes as scales
from uflip.report.figures import palette
from uflip.report.figures.chart import Axis, Chart, Mark, Panel, Polyline
from uflip.report.figures.svg import Drawing
from uflip.report.figures.svg import draw as drawn
from uflip.report.labels import format_ms
from uflip.report.tables import baselines_tables

HEIGHT = 209.0
LINE_POINTS = 600

TICKS = {
    1.0: "all",
    0.5: "50 %  (median)",
    0.1: "10 %  (p90)",
    0.01: "1 %  (p99)",
    0.001: "0.1 %  (p99.9)",
    0.0001: "0.01 %  (p99.99)",
}


def draw(baselines: Sequence[BaselineTrace], *, simulated: bool) -> Drawing | None:
    """Draw the share of I/Os slower than a time, a line per pattern, start-up left out."""
    measured = [trace for trace in pooled(baselines) if len(trace.measured_ms)]
    if not measured:
        return None
    marks: list[Mark] = []
    legend = []
    for trace in measured:
        time_ms, share = slower_than(trace.measured_ms)
        look = palette.look(trace.pattern)
        name = f"{trace.pattern} {PATTERN_NAMES.get(trace.pattern, '')}"
        marks.append(Polyline(time_ms, share, look.color, step=True))
        last = time_ms[-1:], share[-1:]
        marks.append(Polyline(*last, look.color, width=0, marker=look.marker, size=5, clip=False))
        legend.append(Polyline(color=look.color, label=name))
    lowest = 0.8 / max(len(trace.measured_ms) for trace in measured)
    ticks = [(share, name) for share, name in TICKS.items() if share >= lowest]
    y = Axis(lowest, 1.15, "share of I/Os slower", log=True, ticks=ticks)
    chart = Chart(
        [Panel(_time_axis(measured), y, marks)], HEIGHT, legend=legend, simulated=simulated
    )
    return drawn(chart, "distribution", "Distribution of response times", _describe(measured))


def figure(document: Document, baselines: Traces) -> Figure | None:
    """Return the figure of all baselines."""
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
        data=baselines_tables(document),
    )


def slower_than(response_time_ms: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """Return the points of the line: (times [ms], share of I/Os at least that slow), thinned out.

    The thinning is even in the logarithm of the rank, so that the slowest I/Os are all included.
    """
    ordered = np.sort(response_time_ms)
    n = len(ordered)
    from_the_top = np.unique(np.geomspace(1, n, LINE_POINTS).astype(int))
    picked = np.sort(n - from_the_top)
    return ordered[picked], (n - picked) / n


def _time_axis(measured: Sequence[BaselineTrace]) -> Axis:
    every = np.concatenate([trace.measured_ms for trace in measured])
    positive = every[every > 0]
    if len(positive) == 0:
        return Axis(0, 1, scales.RESPONSE_TIME)
    low, high = float(positive.min()) / 1.15, float(positive.max()) * 1.15
    ticks = [(tick, scales.plain(tick)) for tick in scales.log_ticks(low, high)]
    return Axis(low, high, scales.RESPONSE_TIME, log=True, ticks=ticks)


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
