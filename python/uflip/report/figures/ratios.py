"""Two results compared: ratios of their experiments, the largest differences first.

**Source** none of the papers compares devices in a figure: it is the forest plot of meta-analyses.

**Faithful** Ratio of the two means with its interval, as `uflip.results.comparison` has them.

**Simplified** No more than `MAX_ROWS` experiments are drawn; the table has all of them.

**Ambiguous** The order: first differences beyond chance, then the others, each by the factor of the
ratio, in either direction.
"""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from uflip.microbench.labels import format_value, parameter_name
from uflip.report.blocks import Figure
from uflip.report.figures import axes as scales
from uflip.report.figures import palette
from uflip.report.figures.chart import (
    WIDTH,
    Axis,
    Band,
    Chart,
    Mark,
    Panel,
    Polyline,
    ReferenceLine,
    Spans,
)
from uflip.report.figures.matplotlib_chart import INCH, styled
from uflip.report.figures.svg import Drawing
from uflip.report.figures.svg import draw as drawn
from uflip.report.labels import title
from uflip.results.comparison import ComparedExperiment, ResultComparison
from uflip.results.statistics import AGREEMENT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_ROWS = 30
ROW_HEIGHT, MARGINS = 13.3, 72.0
DIFFERENT = ("slower", "faster")
# Ratios whose intervals all lie within this factor of 1 are drawn on an axis of this width.
MIN_SPAN = 1.2
# A very wide interval must not compress all others.
MAX_SPAN = 8.0
# Most ratios are near 1, where a logarithmic scale has no round numbers.
NEAR_ONE_TICKS = (0.8, 1.25)
HOW_TO_READ = (
    "A line is an experiment: the ratio of its means, second over first, with its 95 % interval. "
    "Right of 1 the second is slower, left of it faster. Filled marks differ by more than chance; "
    f"the shaded band is ±{AGREEMENT:.0%}. Arrows leave the figure."
)


def largest(rows: Sequence[ComparedExperiment], most: int = MAX_ROWS) -> list[ComparedExperiment]:
    """Return the rows that differ most, those beyond chance first."""
    finite = [row for row in rows if row.ratio > 0 and math.isfinite(row.ratio)]
    ranked = sorted(finite, key=lambda row: (row.verdict not in DIFFERENT, -_factor(row.ratio)))
    return ranked[:most]


def figure(comparison: ResultComparison, name: str) -> Figure | None:
    """Return the figure of a comparison; None if the results have nothing in common."""
    experiments = largest(comparison.rows)
    if not experiments:
        return None
    order = f"the {len(experiments)} largest of {len(comparison.rows)} differences"
    if len(experiments) == len(comparison.rows):
        order = f"{len(experiments)} experiments, the largest difference first"
    return Figure(name, f"Second over first: {order}", draw(experiments, name), HOW_TO_READ)


def draw(rows: Sequence[ComparedExperiment], name: str) -> Drawing:
    """Draw rows from top to bottom.

    `rows`: in their order; one at least. `name`: unique in the page.
    """
    ends = "; ".join(f"{_label(row)}: {row.ratio:.3g}" for row in rows[:3])
    panel, legend = _panel(rows)
    chart = Chart([panel], MARGINS + ROW_HEIGHT * len(rows), legend=legend)
    return drawn(chart, name, "Ratios of means, second over first", f"Largest: {ends}.")


@styled
def draw_on(axis: "Axes | None", comparison: ResultComparison) -> "Axes":
    """Draw a comparison on axes of the caller, or on those of a new figure of pyplot."""
    from uflip.report.figures.matplotlib_chart import draw_panel, handles

    rows = largest(comparison.rows)
    if axis is None:
        from matplotlib import pyplot

        height = MARGINS + ROW_HEIGHT * max(len(rows), 1)
        _, axis = pyplot.subplots(figsize=(WIDTH / INCH, height / INCH), layout="constrained")
    if rows:
        panel, legend = _panel(rows)
        draw_panel(axis, panel)
        axis.legend(handles=handles(legend), loc="lower right")
    axis.set_title("Second over first")
    return axis


def _panel(rows: Sequence[ComparedExperiment]) -> tuple[Panel, list[Polyline]]:
    """Return the panel with rows from top to bottom, and its legend entries."""
    low, high = _limits(rows)
    marks: list[Mark] = [Band(1 / (1 + AGREEMENT), 1 + AGREEMENT)]
    marks.append(ReferenceLine(1, palette.MUTED, width=0.9, vertical=True))
    for position, row in enumerate(rows):
        marks += _row(position, row, (low, high))
    ticks = [(tick, f"{tick:g}") for tick in _ticks(low, high)]
    x = Axis(low, high, "mean of the second over mean of the first", log=True, ticks=ticks)
    names = [(float(position), _label(row)) for position, row in enumerate(rows)]
    y = Axis(len(rows) - 0.4, -0.6, ticks=names, grid=False)
    legend = [
        Polyline(color=look.color, width=0, marker=look.marker, size=5, label=pattern)
        for pattern, look in _looks(rows).items()
    ]
    return Panel(x, y, marks), legend


def _row(position: int, row: ComparedExperiment, limits: tuple[float, float]) -> Iterator[Mark]:
    color = palette.look(row.pattern).color
    low, high = limits
    if row.low is not None and row.high is not None:
        begin, end = max(row.low, low), min(row.high, high)
        yield Spans([position], [begin], [end], color, width=1.6, alpha=0.6, horizontal=True)
        for leaves, limit, arrow in ((row.low < low, low, "<"), (row.high > high, high, ">")):
            if leaves:
                yield Polyline(
                    [limit], [position], color, width=0, marker=arrow, size=5, clip=False
                )
    yield Polyline(
        [min(max(row.ratio, low), high)],
        [position],
        color,
        width=0,
        marker=palette.look(row.pattern).marker,
        face=color if row.verdict in DIFFERENT else palette.CARD,
        edge=color,
        edge_width=1,
        clip=False,
    )


def _limits(rows: Sequence[ComparedExperiment]) -> tuple[float, float]:
    """Return the limits of the axis: all ratios, and intervals that are not far too wide."""
    ratios = [row.ratio for row in rows]
    low, high = min(1 / MIN_SPAN, *ratios), max(MIN_SPAN, *ratios)
    ends = [end for row in rows for end in (row.low, row.high) if end is not None]
    inside = [end for end in ends if low / MAX_SPAN <= end <= high * MAX_SPAN]
    return min([low, *inside]) / 1.03, max([high, *inside]) * 1.03


def _ticks(low: float, high: float) -> list[float]:
    """Return round ratios on either side of 1."""
    if high / low > 4:
        near = [tick for tick in NEAR_ONE_TICKS if low < tick < high]
        return sorted({*scales.log_ticks(low, high), *near})
    step = next(step for step in (0.02, 0.05, 0.1, 0.2, 0.5) if (high - low) / step <= 10)
    return [round(n * step, 2) for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _looks(rows: Sequence[ComparedExperiment]) -> dict[str, palette.Look]:
    """Return the look of each pattern, in the order of the paper; all mixes look the same."""
    patterns = {row.pattern for row in rows}
    looks = {pattern: look for pattern, look in palette.PATTERNS.items() if pattern in patterns}
    return looks | ({"a mix": palette.OTHER} if patterns - palette.PATTERNS.keys() else {})


def _label(row: ComparedExperiment) -> str:
    varies = f"{parameter_name(row.parameter)} {format_value(row.value, row.unit)}".strip()
    return f"{title(row.micro_benchmark)} {row.pattern} {varies}".strip()


def _factor(ratio: float) -> float:
    return max(ratio, 1 / ratio)
