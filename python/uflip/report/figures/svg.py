"""A chart as SVG for a page: elements as data, which a template turns into markup.

Text stays searchable text, in the font of the page. Colours are variables of its theme with the
light colour as fallback, so that a figure follows the dark theme and is correct when it is cut out
of the page. Equal charts give equal bytes. matplotlib would take seconds for the figures of a
report; this takes milliseconds, measured by `benches/reporting.py`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from uflip.report.figures import palette
from uflip.report.figures.axes import ticks_of
from uflip.report.figures.chart import TEXT, Axis, Band, Box, Chart, Panel, Polyline
from uflip.report.figures.elements import MIDDLE, Clip, Element, n, path, stroke, text_element
from uflip.report.figures.layout import (
    EDGE,
    GAP,
    LABEL,
    PAD,
    ROW,
    SWATCH,
    TICK,
    Frame,
    lay_out,
    text_width,
)
from uflip.report.figures.marks import Scales, box, mark_elements, markers
from uflip.report.labels import anchor

AXIS_WIDTH, GRID_WIDTH = 0.7, 0.6
TITLE_SIZE, SMALL = 9.0, 8.0


@dataclass(frozen=True, slots=True)
class Drawing:
    """A drawing for a page.

    Attributes
    ----------
    name
        Unique in the page, and the prefix of its ids.
    title, description
        The text for a screen reader.
    view_box
        Its width and height, as an SVG attribute.
    clips, elements
        Its contents.
    """

    name: str
    title: str
    description: str
    view_box: str
    clips: Sequence[Clip]
    mark_elements: Sequence[Element]


def draw(chart: Chart, name: str, title: str, description: str) -> Drawing:
    """Draw a chart for a page.

    Parameters
    ----------
    chart
        The contents.
    name
        Unique in the page; as an anchor it becomes part of every id.
    title, description
        The text for a screen reader.
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
