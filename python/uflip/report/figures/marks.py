"""The marks of a panel as elements of SVG."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from uflip.report.figures import dots
from uflip.report.figures.chart import (
    Area,
    Axis,
    Band,
    Box,
    Mark,
    Polyline,
    ReferenceLine,
    Spans,
    TextLabel,
)
from uflip.report.figures.elements import (
    MIDDLE,
    Element,
    fill,
    image,
    n,
    path,
    stroke,
    text_element,
)
from uflip.report.figures.layout import Frame

Floats = NDArray[np.float64]

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
        url = dots.dots_as_image(at, extent, line.size, line.color, line.alpha)
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
