"""Causes of response times, reported only by simulated devices.

Every I/O of a simulated device is divided into causes (waiting, flash operations, relocation, …)
that sum to its response time. There are two bars per baseline: all I/Os, and the slowest hundredth,
since the causes of slow means and of a few very slow I/Os may differ.
"""

from collections.abc import Iterator, Mapping, Sequence

from uflip.report.blocks import Figure
from uflip.report.data import BaselineTrace, Document, Traces, is_simulated, pooled
from uflip.report.figures import palette
from uflip.report.figures.chart import Axis, Box, Chart, Mark, Panel, TextLabel
from uflip.report.figures.svg import Drawing
from uflip.report.figures.svg import draw as drawn
from uflip.report.labels import format_ms
from uflip.report.tables import causes_tables
from uflip.results.causes import cause_name

HEIGHT, ROW_HEIGHT, LEGEND_ROW = 42.0, 29.0, 14.0
SHARES = ((0.0, "0"), (0.25, "25 %"), (0.5, "50 %"), (0.75, "75 %"), (1.0, "100 %"))
BAR = 0.72
# A narrower segment has no space for its percentage.
LABEL_FROM = 0.07
# Space for the mean to the right of a bar, as part of the bar's length.
MEAN_ROOM = 0.2
# Causes that never reach this share of any bar are left out of the figure (the table has them).
NEGLIGIBLE = 0.001


def draw(baselines: Sequence[BaselineTrace], *, simulated: bool = True) -> Drawing | None:
    """Draw shares of the mean response time by cause, for all I/Os and for the slowest 1 %."""
    traces = [trace for trace in pooled(baselines) if trace.causes_ms and len(trace.measured_ms)]
    if not traces:
        return None
    both = [[trace.mean_by_cause_ms(), trace.mean_by_cause_ms(slowest=0.01)] for trace in traces]
    causes = _causes(both)
    if not causes:
        return None
    rows = [(float(row), trace.pattern) for row, trace in enumerate(traces)]
    # From top to bottom.
    y = Axis(len(traces) - 0.5, -0.5, ticks=rows, grid=False, hide_line=True, bold=True)
    x = Axis(0, 1 + MEAN_ROOM, ticks=SHARES, grid=False, hide_line=True)
    panels = [
        Panel(
            x, y, [m for row, bars in enumerate(both) for m in _bar(row, bars[part], causes)], name
        )
        for part, name in enumerate(("all I/Os", "slowest 1 %"))
    ]
    chart = Chart(
        panels,
        HEIGHT + ROW_HEIGHT * len(traces) + LEGEND_ROW * -(-len(causes) // 5),
        columns=2,
        legend=[Box(color=color, label=cause_name(cause)) for cause, color in causes.items()],
        share_y=True,
        simulated=simulated,
    )
    description = _describe(traces, [bars[0] for bars in both])
    return drawn(chart, "spent", "Time by cause", description)


def figure(document: Document, baselines: Traces) -> Figure | None:
    """Return the figure of the causes, with the counters of the device."""
    drawing = draw(baselines, simulated=is_simulated(document))
    if drawing is None:
        return None
    return Figure(
        "spent",
        "Time by cause",
        drawing,
        "Why does it take so long? The parts of the response time as the simulator charged "
        "them, for all I/Os and for the slowest hundredth; the number beside a bar is the mean "
        "response time. A cause that grows from left to right is what makes slow I/Os slow.",
        data=causes_tables(document),
    )


def _causes(bars: Sequence[Sequence[Mapping[str, float]]]) -> dict[str, str]:
    """Return the causes worth drawing with their colours."""
    every = list(bars[0][0])
    largest = {cause: max(_share(bar, cause) for pair in bars for bar in pair) for cause in every}
    return {cause: palette.activity(cause) for cause in every if largest[cause] >= NEGLIGIBLE}


def _share(mean_ms: Mapping[str, float], cause: str) -> float:
    total = sum(mean_ms.values())
    return mean_ms[cause] / total if total else 0.0


def _bar(row: int, mean_ms: Mapping[str, float], causes: Mapping[str, str]) -> Iterator[Mark]:
    left, height = 0.0, (row - BAR / 2, row + BAR / 2)
    for cause, color in causes.items():
        share = _share(mean_ms, cause)
        yield Box((left, left + share), height, color, edge=palette.CARD)
        if share >= LABEL_FROM:
            ink = palette.readable_on(color)
            middle = left + share / 2
            yield TextLabel(middle, row, f"{share:.0%}", color=ink, size=7.5, anchor="middle")
        left += share
    yield TextLabel(1.02, row, f"{format_ms(sum(mean_ms.values()) * 1e6)} ms", size=8)


def _describe(traces: Sequence[BaselineTrace], bars: Sequence[Mapping[str, float]]) -> str:
    parts = []
    for trace, bar in zip(traces, bars, strict=True):
        total = sum(bar.values()) or 1.0
        largest = sorted(bar.items(), key=lambda item: -item[1])[:3]
        shares = ", ".join(f"{cause_name(cause)} {ms / total:.0%}" for cause, ms in largest)
        parts.append(f"{trace.pattern}: {shares}")
    return "Largest parts of the mean response time. " + "; ".join(parts) + "."
