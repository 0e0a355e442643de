"""Layout of a figure on a page: positions of panels, and widths of text.

A page uses the reader's font. The layout assumes DejaVu Sans, which is wider than most, so that
texts fit.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from uflip.report.figures.axes import ticks_of
from uflip.report.figures.chart import TEXT, Axis, Box, Chart, Panel, Polyline

# Advance widths of the characters from " " to "~" in DejaVu Sans 2.37 [1/1000 of the size].
_ADVANCES = (
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, 636, 636, 636,
    636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632,
    575, 775, 752, 295, 295, 656, 557, 863, 748, 787, 603, 787, 695, 635, 611, 732, 684, 989, 685,
    611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579,
    278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838,
)  # fmt: skip
_OTHER, _WIDE = 640, 1000
# From here on most characters are as wide as they are high.
_FIRST_WIDE = 0x2E80

EDGE = 3.0
TITLE = 15.0
LABEL = 13.0
TICK, PAD = 3.0, 3.5
ROW = 14.0
SWATCH, GAP, ENTRY_GAP = 14.0, 6.0, 16.0
SIMULATED = 84.0
"""Width of "simulated device", at the right."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The rectangle of a panel [points from the upper left]."""

    left: float
    top: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """Its right edge."""
        return self.left + self.width

    @property
    def bottom(self) -> float:
        """Its lower edge."""
        return self.top + self.height


@dataclass(frozen=True, slots=True)
class Layout:
    """Frames of the panels in order, and positions of legend entries: (left, middle) each."""

    frames: Sequence[Frame]
    legend: Sequence[tuple[float, float]]


def text_width(text: str, size: float = TEXT) -> float:
    """Return the width of a text [points].

    Examples
    --------
    >>> round(text_width("RW"), 1)
    14.3
    """
    codes = (ord(each) for each in text)
    return sum(map(_advance, codes)) * size / 1000


def _advance(code: int) -> int:
    if 32 <= code < 127:
        return _ADVANCES[code - 32]
    return _WIDE if code >= _FIRST_WIDE else _OTHER


def lay_out(chart: Chart) -> Layout:
    """Return the layout of a chart."""
    legend, top = _legend(chart)
    columns, rows = chart.columns, chart.rows
    lefts = [_left_margin(chart, column) for column in range(columns)]
    rights = [_right_margin(chart, column) for column in range(columns)]
    width = (chart.width - 2 * EDGE - sum(lefts) - sum(rights)) / columns
    titled = [any(p.title for p in _row(chart, row)) for row in range(rows)]
    tops = [TITLE if titled[row] else (PAD if row == 0 else 2 * PAD) for row in range(rows)]
    bottoms = [max(_bottom_margin(panel.x) for panel in _row(chart, row)) for row in range(rows)]
    free = chart.height - top - EDGE - (LABEL if chart.x_label else 0)
    height = (free - sum(tops) - sum(bottoms)) / rows
    frames, y = [], top
    for row in range(rows):
        y += tops[row]
        x = EDGE
        for column in range(len(_row(chart, row))):
            x += lefts[column]
            frames.append(Frame(x, y, max(width, 1.0), max(height, 1.0)))
            x += width + rights[column]
        y += height + bottoms[row]
    return Layout(frames, legend)


def _row(chart: Chart, row: int) -> Sequence[Panel]:
    return chart.panels[row * chart.columns : (row + 1) * chart.columns]


def _legend(chart: Chart) -> tuple[list[tuple[float, float]], float]:
    """Return the entries row by row, in as many columns as fit, and their lower edge."""
    if not chart.legend:
        return [], EDGE + (ROW if chart.simulated else 0)
    widths, columns = _entry_widths(chart), legend_columns(chart)
    lefts = [0.0, *accumulate(_column_widths(widths, columns))]
    positions = [
        (EDGE + lefts[number % columns], EDGE + ROW * (number // columns + 0.5))
        for number in range(len(widths))
    ]
    return positions, EDGE + ROW * math.ceil(len(widths) / columns) + PAD


def legend_columns(chart: Chart) -> int:
    """Return the number of columns of a legend that has entries."""
    widths = _entry_widths(chart)
    available = chart.width - 2 * EDGE - (SIMULATED if chart.simulated else 0) + ENTRY_GAP
    columns = len(widths)
    while columns > 1 and sum(_column_widths(widths, columns)) > available:
        columns -= 1
    return columns


def _entry_widths(chart: Chart) -> list[float]:
    return [entry_width(each) + ENTRY_GAP for each in chart.legend]


def _column_widths(widths: Sequence[float], columns: int) -> list[float]:
    """Return the column widths for a number of columns."""
    return [max(widths[column::columns]) for column in range(columns)]


def entry_width(entry: Polyline | Box) -> float:
    """Return the width of a legend entry: its swatch and its label."""
    return SWATCH + GAP + text_width(entry.label)


def _left_margin(chart: Chart, column: int) -> float:
    """Return the space to the left of the panels of a column."""
    panels = chart.panels[column :: chart.columns]
    if chart.share_y and column:
        return 2 * PAD
    return max(_axis_width(panel.y) for panel in panels)


def _axis_width(axis: Axis) -> float:
    # Bold letters are a tenth wider.
    wide = max((text_width(name) for _, name in ticks_of(axis)), default=0.0)
    return wide * (1.1 if axis.bold else 1) + TICK + PAD + (LABEL if axis.label else 0)


def _right_margin(chart: Chart, column: int) -> float:
    """Return the space to the right: for a second axis, or an overhanging last tick label."""
    panels = chart.panels[column :: chart.columns]
    length = 0.8 * chart.width / chart.columns
    return max(_axis_width(p.right) if p.right else _label_overhang(p.x, length) for p in panels)


def _label_overhang(axis: Axis, length: float) -> float:
    ticks = ticks_of(axis)
    if not ticks or axis.label_rotation or axis.log:
        return 2 * PAD
    position, name = max(ticks)
    inside = (axis.high - position) / ((axis.high - axis.low) or 1) * length
    return max(2 * PAD, text_width(name) / 2 - inside)


def _bottom_margin(axis: Axis) -> float:
    """Return the space below a panel: for tick labels, turned or not, and an axis label."""
    angle = math.radians(axis.label_rotation)
    wide = max((text_width(name) for _, name in ticks_of(axis)), default=0.0)
    names = TEXT * math.cos(angle) + wide * math.sin(angle) if axis.ticks != [] else 0.0
    return TICK + PAD + names + (LABEL if axis.label else 0) + PAD
