"""A chart as SVG for a page: elements as data, which a template turns into markup.

    Chart ─▶ layout: positions of panels ─▶ marks ─▶ elements: paths, texts, images ─▶ template

Text stays searchable text, in the font of the page. Colours are variables of its theme with the
light colour as fallback, so that a figure follows the dark theme and is correct when it is cut out
of the page. The template escapes all text. Equal charts give equal bytes. matplotlib would take
seconds for the figures of a report; this takes milliseconds, measured by `benches/reporting.py`.

The layout assumes DejaVu Sans, which is wider than most fonts, so that texts fit. Many dots become
an image: a vector mark costs a hundred bytes of a page, a pixel a few bits.
"""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from uflip.report.figures import palette
from uflip.report.figures.axes import ticks_of
from uflip.report.figures.chart import (
    TEXT,
    Area,
    Axis,
    Band,
    Box,
    Chart,
    Dashes,
    Mark,
    Panel,
    Polyline,
    ReferenceLine,
    Spans,
    TextLabel,
)
from uflip.report.labels import anchor, safe_text

AXIS_WIDTH, GRID_WIDTH = 0.7, 0.6

TITLE_SIZE, SMALL = 9.0, 8.0

EDGE = 3.0

TITLE = 15.0

LABEL = 13.0

TICK, PAD = 3.0, 3.5

ROW = 14.0

SWATCH, GAP, ENTRY_GAP = 14.0, 6.0, 16.0

SIMULATED = 84.0
"""Width of "simulated device", at the right."""

# Distance from the middle of letters to their baseline, in parts of their size.
MIDDLE = 0.36

DENSITY = 200 / 72
"""Pixels per point, the resolution of print."""

LEVELS = 32
"""Levels of opacity."""

# Coordinates beyond this are outside of every figure.
MAX_COORDINATE = 1e4

# Corners of markers around their centre, in half sizes.
_SQUARE = ((-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0))

_CORNERS = {
    "s": _SQUARE,
    "D": tuple(((x - y) * 0.71, (x + y) * 0.71) for x, y in _SQUARE),
    "^": ((0.0, -1.0), (1.0, 1.0), (-1.0, 1.0)),
    "v": ((0.0, 1.0), (1.0, -1.0), (-1.0, -1.0)),
    "<": ((-1.0, 0.0), (1.0, -1.0), (1.0, 1.0)),
    ">": ((1.0, 0.0), (-1.0, -1.0), (-1.0, 1.0)),
}

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

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Drawing:
    """A drawing for a page."""

    name: str  #: Unique in the page, and the prefix of its ids.
    #: The text for a screen reader.
    title: str
    description: str
    view_box: str  #: Its width and height, as an SVG attribute.
    #: Its contents.
    clips: Sequence[Clip]
    elements: Sequence[Element]


def draw(chart: Chart, name: str, title: str, description: str) -> Drawing:
    """Draw a chart for a page.

    `chart`: the contents. `name`: unique in the page; as an anchor it becomes part of every id.
    `title`, `description`: the text for a screen reader.
    """
    name = f"fig-{anchor(name)}"
    layout = lay_out(chart)
    clips: list[Clip] = []
    drawn: list[Element] = []
    for number, (panel, frame) in enumerate(zip(chart.panels, layout.frames, strict=True)):
        clips.append(Clip(f"{name}-{number}", frame))
        is_first = number % chart.columns == 0
        drawn += _panel(panel, frame, clips[-1].name, names=is_first or not chart.share_y)
    for entry, (left, middle) in zip(chart.legend, layout.legend, strict=True):
        drawn += _entry(entry, left, middle)
    if chart.x_label:
        low = chart.height - EDGE - 1
        drawn.append(text_element(chart.x_label, chart.width / 2, low, anchor="middle"))
    if chart.simulated:
        right, low = chart.width - EDGE, EDGE + ROW / 2 + SMALL * MIDDLE
        drawn.append(
            text_element(
                "simulated device", right, low, anchor="end", color=palette.MUTED, size=SMALL
            )
        )
    view_box = f"0 0 {n(chart.width)} {n(chart.height)}"
    return Drawing(name, title, description, view_box, clips, drawn)


def _panel(panel: Panel, frame: Frame, clip: str, *, names: bool) -> Iterator[Element]:
    """Draw bands, then the grid, marks, and axes."""
    scales = Scales(panel.x, panel.y, frame)
    for mark in panel.marks:
        if isinstance(mark, Band):
            yield from mark_elements(mark, scales, clip)
    yield from _grid(panel, scales)
    if panel.right is not None:
        right = Scales(panel.x, panel.right, frame)
        for mark in panel.right_marks:
            yield from mark_elements(mark, right, clip)
        yield from _right_axis(panel.right, right)
    for mark in panel.marks:
        if not isinstance(mark, Band):
            yield from mark_elements(mark, scales, clip)
    yield from _x_axis(panel.x, scales)
    yield from _y_axis(panel.y, scales, names=names)
    if panel.title:
        yield text_element(panel.title, frame.left, frame.top - 4.5, size=TITLE_SIZE, bold=True)


def _grid(panel: Panel, scales: Scales) -> Iterator[Element]:
    frame, d = scales.frame, ""
    if panel.x.grid:
        for x in scales.x([position for position, _ in ticks_of(panel.x)]):
            d += f"M{n(x)} {n(frame.top)}V{n(frame.bottom)}"
    if panel.y.grid:
        for y in scales.y([position for position, _ in ticks_of(panel.y)]):
            d += f"M{n(frame.left)} {n(y)}H{n(frame.right)}"
    if d:
        yield path(d, stroke(palette.GRID, GRID_WIDTH))


def _x_axis(axis: Axis, scales: Scales) -> Iterator[Element]:
    frame, ticks = scales.frame, ticks_of(axis)
    positions = scales.x([position for position, _ in ticks])
    if not axis.hide_line:
        marks = "".join(f"M{n(x)} {n(frame.bottom)}v{n(TICK)}" for x in positions)
        line = f"M{n(frame.left)} {n(frame.bottom)}H{n(frame.right)}"
        yield path(line + marks, stroke(palette.MUTED, AXIS_WIDTH))
    top = frame.bottom + TICK + PAD
    for position, (_, name) in zip(positions, ticks, strict=True):
        if axis.label_rotation:
            low = top + TEXT / 2
            yield text_element(
                name, position + TEXT / 2, low, anchor="end", rotation=-axis.label_rotation
            )
        elif name:
            yield text_element(name, position, top + TEXT * 0.8, anchor="middle")
    if axis.label:
        low = top + TEXT * 0.8 + LABEL
        yield text_element(axis.label, (frame.left + frame.right) / 2, low, anchor="middle")


def _y_axis(axis: Axis, scales: Scales, *, names: bool) -> Iterator[Element]:
    frame, ticks = scales.frame, ticks_of(axis)
    positions = scales.y([position for position, _ in ticks])
    if not axis.hide_line:
        marks = "".join(f"M{n(frame.left)} {n(y)}h{n(-TICK)}" for y in positions)
        line = f"M{n(frame.left)} {n(frame.top)}V{n(frame.bottom)}"
        yield path(line + marks, stroke(palette.MUTED, AXIS_WIDTH))
    right = frame.left - TICK - PAD
    if not names:
        return
    for position, (_, name) in zip(positions, ticks, strict=True):
        yield text_element(name, right, position + TEXT * MIDDLE, anchor="end", bold=axis.bold)
    if axis.label:
        yield _upwards(axis.label, right - _widest(ticks) - PAD - 1, frame)


def _right_axis(axis: Axis, scales: Scales) -> Iterator[Element]:
    frame, ticks = scales.frame, ticks_of(axis)
    positions = scales.y([position for position, _ in ticks])
    marks = "".join(f"M{n(frame.right)} {n(y)}h{n(TICK)}" for y in positions)
    line = f"M{n(frame.right)} {n(frame.top)}V{n(frame.bottom)}"
    yield path(line + marks, stroke(palette.MUTED, AXIS_WIDTH))
    left = frame.right + TICK + PAD
    for position, (_, name) in zip(positions, ticks, strict=True):
        yield text_element(name, left, position + TEXT * MIDDLE)
    yield _upwards(axis.label, left + _widest(ticks) + LABEL - 1, frame)


def _upwards(label: str, x: float, frame: Frame) -> Element:
    return text_element(label, x, (frame.top + frame.bottom) / 2, anchor="middle", rotation=-90)


def _widest(ticks: Sequence[tuple[float, str]]) -> float:
    return max((text_width(name) for _, name in ticks), default=0.0)


def _entry(entry: Polyline | Box, left: float, middle: float) -> Iterator[Element]:
    """Draw an entry of the legend: its look and its label."""
    if isinstance(entry, Box):
        yield box(entry, left, middle - 3, SWATCH, 6)
    else:
        if entry.width:
            style = stroke(entry.color, entry.width, entry.dashes)
            yield path(f"M{n(left)} {n(middle)}h{n(SWATCH)}", style)
        if entry.marker:
            yield markers(entry, np.array([left + SWATCH / 2]), np.array([middle]))
    yield text_element(entry.label, left + SWATCH + GAP, middle + TEXT * MIDDLE)


# Layout: positions of panels and legend entries, and widths of text.


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


# Marks.


class Scales:
    """Transformation from the units of two axes to points of the figure."""

    def __init__(self, x: Axis, y: Axis, frame: Frame) -> None:
        self._x, self._y, self.frame = x, y, frame

    def x(self, values: object) -> Floats:
        """Return positions on the x axis (n,) [points from the left]."""
        return _scaled(self._x, values, self.frame.left, self.frame.right)

    def y(self, values: object) -> Floats:
        """Return positions on the y axis (n,) [points from the top]."""
        return _scaled(self._y, values, self.frame.bottom, self.frame.top)


def _scaled(axis: Axis, values: object, begin: float, end: float) -> Floats:
    numbers, low, high = np.asarray(values, dtype=np.float64), axis.low, axis.high
    if axis.log:
        with np.errstate(divide="ignore", invalid="ignore"):
            numbers = np.log10(numbers)
        low, high = float(np.log10(low)), float(np.log10(high))
    share = (numbers - low) / ((high - low) or 1.0)
    return np.asarray(np.clip(begin + share * (end - begin), -MAX_COORDINATE, MAX_COORDINATE))


def mark_elements(mark: Mark, scales: Scales, clip: str) -> Iterator[Element]:
    """Draw a mark of any kind; `clip` names the rectangle that cuts lines."""
    match mark:
        case Polyline():
            yield from _line(mark, scales, clip)
        case Spans():
            yield path(_spans(mark, scales), stroke(mark.color, mark.width, (), mark.alpha), clip)
        case ReferenceLine():
            yield path(
                _reference_line(mark, scales), stroke(mark.color, mark.width, mark.dashes), clip
            )
        case Band():
            low, high = scales.x([mark.low, mark.high])
            top, bottom = n(scales.frame.top), n(scales.frame.bottom)
            yield path(f"M{n(low)} {top}H{n(high)}V{bottom}H{n(low)}z", fill(mark.color), clip)
        case Box():
            (left, right), (top, low) = scales.x(mark.x), scales.y(mark.y)
            yield box(mark, left, top, right - left, low - top)
        case Area():
            x, y = scales.x(mark.x), scales.y(mark.y)
            if len(x):
                (zero,) = scales.y([0.0])
                d = f"M{n(x[0])} {n(zero)}L{_joined(x, y)} {n(x[-1])} {n(zero)}z"
                yield path(d, fill(mark.color, mark.alpha), clip)
        case TextLabel():
            yield from _text_label(mark, scales)


def _text_label(mark: TextLabel, scales: Scales) -> Iterator[Element]:
    x, y = float(scales.x(mark.x)) + mark.shift, float(scales.y(mark.y))
    down = MIDDLE if mark.vertical_anchor == "middle" else 0.8
    for number, text in enumerate(mark.text.split("\n")):
        low = y + mark.size * (down + 1.2 * number)
        yield text_element(text, x, low, anchor=mark.anchor, color=mark.color, size=mark.size)


def _reference_line(mark: ReferenceLine, scales: Scales) -> str:
    frame = scales.frame
    if mark.vertical:
        return f"M{n(float(scales.x(mark.at)))} {n(frame.bottom)}v{n(-mark.span * frame.height)}"
    return f"M{n(frame.left)} {n(float(scales.y(mark.at)))}h{n(mark.span * frame.width)}"


def _spans(spans: Spans, scales: Scales) -> str:
    if spans.horizontal:
        each = zip(scales.y(spans.at), scales.x(spans.low), scales.x(spans.high), strict=True)
        return "".join(f"M{n(low)} {n(at)}H{n(high)}" for at, low, high in each)
    each = zip(scales.x(spans.at), scales.y(spans.low), scales.y(spans.high), strict=True)
    return "".join(f"M{n(at)} {n(low)}V{n(high)}" for at, low, high in each)


def _line(line: Polyline, scales: Scales, clip: str) -> Iterator[Element]:
    x, y = scales.x(line.x), scales.y(line.y)
    finite = np.isfinite(x) & np.isfinite(y)
    x, y = x[finite], y[finite]
    clip = clip if line.clip else ""
    if not len(x):
        return
    if line.width:
        d = f"M{_steps(x, y) if line.step else _joined(x, y)}"
        yield path(d, stroke(line.color, line.width, line.dashes, line.alpha), clip)
    if line.marker and line.raster:
        frame = scales.frame
        at, extent = (x - frame.left, y - frame.top), (frame.width, frame.height)
        url = dots_as_image(at, extent, line.size, line.color, line.alpha)
        yield image(url, frame)
    elif line.marker:
        yield markers(line, x, y, clip)


def markers(line: Polyline, x: Floats, y: Floats, clip: str = "") -> Element:
    """Return the markers of a line at points (n,) of the figure, as one path."""
    shape, half = line.marker, line.size / 2
    outline = _outline(shape, half)
    d = "".join(f"M{n(a)} {n(b)}{outline}" for a, b in zip(x, y, strict=True))
    if shape == "_":
        return path(d, stroke(line.color, line.edge_width, (), line.alpha), clip)
    style = fill(line.face or line.color, line.alpha, line.edge, line.edge_width)
    return path(d, style, clip)


def _outline(shape: str, half: float) -> str:
    """Return the outline of a marker as path commands, starting from its middle."""
    r, diameter = n(half), n(2 * half)
    if shape == "_":
        return f"m-{r} 0h{diameter}"
    if shape == "o":
        return f"m-{r} 0a{r} {r} 0 1 0 {diameter} 0a{r} {r} 0 1 0-{diameter} 0z"
    corners, at, steps = _CORNERS[shape], (0.0, 0.0), []
    for x, y in corners:
        steps.append(f"{n((x - at[0]) * half)} {n((y - at[1]) * half)}")
        at = x, y
    return f"m{'l'.join(steps)}z"


def box(mark: Box, left: float, top: float, width: float, height: float) -> Element:
    """Return a filled rectangle at a position of the figure."""
    d = f"M{n(left)} {n(top)}h{n(width)}v{n(height)}h{n(-width)}z"
    return path(d, fill(mark.color, 1.0, mark.edge, mark.edge_width))


def _joined(x: Floats, y: Floats) -> str:
    return " ".join(f"{n(a)} {n(b)}" for a, b in zip(x, y, strict=True))


def _steps(x: Floats, y: Floats) -> str:
    steps = "".join(f"H{n(a)}V{n(b)}" for a, b in zip(x[1:], y[1:], strict=True))
    return f"{n(x[0])} {n(y[0])}{steps}"


# Elements of SVG.


@dataclass(frozen=True, slots=True)
class Element:
    """An element: its tag, its attributes, and the text in it."""

    tag: str
    attributes: Mapping[str, str]
    text: str = ""


@dataclass(frozen=True, slots=True)
class Clip:
    """A clipping rectangle, referenced by its name."""

    name: str
    frame: Frame


def path(d: str, style: str, clip: str = "") -> Element:
    """Return a path, optionally clipped."""
    clipped = {"clip-path": f"url(#{clip})"} if clip else {}
    return Element("path", {"d": d, "style": style, **clipped})


def image(url: str, frame: Frame) -> Element:
    """Return an image that fills a frame."""
    position = {"x": n(frame.left), "y": n(frame.top)}
    size = {"width": n(frame.width), "height": n(frame.height), "preserveAspectRatio": "none"}
    return Element("image", {**position, **size, "xlink:href": url})


def text_element(
    text: str,
    x: float,
    y: float,
    *,
    anchor: str = "start",
    color: str = palette.INK,
    size: float = TEXT,
    rotation: int = 0,
    bold: bool = False,
) -> Element:
    """Return text with its baseline at `y`, anchored at its start, end or middle at `x`."""
    where = {"x": n(x), "y": n(y)}
    if rotation:
        where["transform"] = f"rotate({rotation} {n(x)} {n(y)})"
    if anchor != "start":
        where["text-anchor"] = anchor
    style = f"fill:{_color(color)}"
    style += "" if size == TEXT else f";font-size:{size:g}px"
    style += ";font-weight:bold" if bold else ""
    return Element("text", {**where, "style": style}, safe_text(text))


def stroke(color: str, width: float, dashes: Dashes = (), alpha: float = 1.0) -> str:
    """Return the style of a line."""
    style = f"fill:none;stroke:{_color(color)};stroke-width:{width:g};stroke-linejoin:round"
    if dashes:
        style += f";stroke-dasharray:{','.join(f'{width * each:g}' for each in dashes)}"
    return style if alpha == 1 else f"{style};stroke-opacity:{alpha:g}"


def fill(color: str, alpha: float = 1.0, edge: str | None = None, edge_width: float = 0) -> str:
    """Return the style of a surface, with an outline if there is an edge."""
    style = "fill:none" if color == "none" else f"fill:{_color(color)}"
    style += "" if alpha == 1 else f";fill-opacity:{alpha:g}"
    return style + (f";stroke:{_color(edge)};stroke-width:{edge_width:g}" if edge else "")


def _color(color: str) -> str:
    """Return a theme colour as a variable with a fallback; other colours unchanged."""
    if color in palette.THEME:
        return f"var(--{palette.THEME[color][0]},{color})"
    return color


def n(value: float) -> str:
    """Return a length rounded to a hundredth of a point.

    Examples
    --------
    >>> n(12.3456), n(-0.001), n(3.0)
    ('12.35', '0', '3')
    """
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


# Dots as an image.


def dots_as_image(
    at: tuple[NDArray[np.float64], NDArray[np.float64]],
    extent: tuple[float, float],
    size: float,
    color: str,
    alpha: float,
) -> str:
    """Draw round translucent dots.

    `at`: positions: x (n,) and y (n,) [points from the upper left]. `extent`: width and height of
    the image [points]; dots outside are left out. `size`: diameter [points]. `color`, `alpha`:
    "#rrggbb", and the opacity of one dot.
    """
    width, height = (max(int(np.ceil(length * DENSITY)), 1) for length in extent)
    column, row = (np.floor(coordinates * DENSITY).astype(int) for coordinates in at)
    inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
    pixel, count = np.unique(row[inside] * width + column[inside], return_counts=True)
    through = np.zeros(width * height)
    # The transparency of overlapping dots multiplies: a sum of logarithms.
    for right, down, cover in _stamp(size * DENSITY / 2):
        to_column, to_row = pixel % width + right, pixel // width + down
        visible = (to_column >= 0) & (to_column < width) & (to_row >= 0) & (to_row < height)
        through[(to_row * width + to_column)[visible]] += count[visible] * np.log1p(-alpha * cover)
    opacity = np.rint((1 - np.exp(through)) * (LEVELS - 1)).astype(np.uint8)
    return png(opacity.reshape(height, width), color)


def _stamp(radius: float) -> list[tuple[int, int, float]]:
    """Return the pixels of a dot around its centre: (right, down, covered share of the pixel)."""
    reach = int(np.ceil(radius))
    fine = (np.arange(8) + 0.5) / 8 - 0.5
    covered = []
    for down in range(-reach, reach + 1):
        for right in range(-reach, reach + 1):
            share = np.mean((right + fine) ** 2 + (down + fine)[:, None] ** 2 <= radius**2)
            if share > 0:
                covered.append((right, down, min(float(share), 0.999)))
    return covered


def png(opacity: NDArray[np.uint8], color: str) -> str:
    """Return an image of one colour in `LEVELS` of opacity (height, width), as a data URL.

    **Source** PNG (W3C Recommendation, third edition), §11: IHDR, PLTE, tRNS, IDAT, IEND.
    """
    height, width = opacity.shape
    red_green_blue = bytes(int(color[i : i + 2], 16) for i in (1, 3, 5))
    rows = np.zeros((height, width + 1), dtype=np.uint8)  # each begins with its filter: none
    rows[:, 1:] = opacity
    transparency = np.rint(np.linspace(0, 255, LEVELS)).astype(np.uint8).tobytes()
    content = b"\x89PNG\r\n\x1a\n" + b"".join((
        _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        _chunk(b"PLTE", red_green_blue * LEVELS),
        _chunk(b"tRNS", transparency),
        _chunk(b"IDAT", zlib.compress(rows.tobytes(), 6)),
        _chunk(b"IEND", b""),
    ))  # fmt: skip
    return "data:image/png;base64," + base64.b64encode(content).decode()


def _chunk(kind: bytes, content: bytes) -> bytes:
    checked = kind + content
    return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))
