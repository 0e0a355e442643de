"""Elements of SVG as data: paths, texts and images, in the colours of the page's theme.

A template turns them into markup, and escapes all text.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from uflip.report.figures import palette
from uflip.report.figures.chart import TEXT, Dashes
from uflip.report.figures.layout import Frame
from uflip.report.labels import safe_text

# Distance from the middle of letters to their baseline, in parts of their size.
MIDDLE = 0.36


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
