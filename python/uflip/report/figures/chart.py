"""What a figure shows, as data: panels with axes, and the marks in them.

A figure is described once, and drawn by whoever needs it: `svg` for a page, where it costs
milliseconds and follows the theme of the page, `plotted` with matplotlib for files and for axes of
somebody else. Lengths are points, 72 an inch, as widths of lines and sizes of text are.

Marks stand over one another in their order. Colours are those of `palette`, "#rrggbb".
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uflip.report.figures import palette

WIDTH = 8.6 * 72
"""Of a figure; a page scales it to its column."""
TEXT = 8.5
"""Size of the text."""

Numbers = Sequence[float] | NDArray[np.floating] | NDArray[np.integer]
"""(n,) of them."""
Dashes = tuple[float, ...]
"""Lengths of dash and gap in turn, in widths of the line; empty for a solid one."""
SOLID: Dashes = ()
DASHED: Dashes = (3.7, 1.6)
DOTTED: Dashes = (1.0, 1.65)
FINE_DOTS: Dashes = (1.0, 3.0)

MARKERS = ("o", "s", "^", "v", "D", "<", ">", "_", "")
"""Circle, square, triangles, diamond, triangles, dash, none."""


@dataclass(frozen=True, slots=True)
class Polyline:
    """Points (n,) in the units of the axes, joined, marked, or both.

    Attributes
    ----------
    width
        Of the line; 0 leaves the marks alone.
    marker, size
        One of `MARKERS`, and how large it is.
    face, edge, edge_width
        Colours within the marks (None: that of the line; "none": hollow) and around them (None:
        nothing there).
    step
        From a point to the next at its height, and then up or down.
    clip
        Whether it ends where the panel does.
    raster
        As an image: of very many marks, which never change, a page needs no more.
    label
        What a legend calls it.
    """

    x: Numbers = ()
    y: Numbers = ()
    color: str = palette.INK
    width: float = 1.5
    dashes: Dashes = SOLID
    marker: str = ""
    size: float = 4.5
    face: str | None = None
    edge: str | None = None
    edge_width: float = 0.6
    alpha: float = 1.0
    step: bool = False
    clip: bool = True
    raster: bool = False
    label: str = ""


@dataclass(frozen=True, slots=True)
class Spans:
    """From `low` to `high` (n,) at each of the places `at` (n,): upright, or across."""

    at: Numbers
    low: Numbers
    high: Numbers
    color: str
    width: float = 1.0
    alpha: float = 1.0
    across: bool = False


@dataclass(frozen=True, slots=True)
class ReferenceLine:
    """A line through the whole panel at a height, or `upright` at a place.

    `part` is how much of the panel it crosses, from its beginning.
    """

    at: float
    color: str
    width: float = 0.8
    dashes: Dashes = SOLID
    upright: bool = False
    part: float = 1.0


@dataclass(frozen=True, slots=True)
class Band:
    """A shade behind everything from `low` to `high` on the x axis."""

    low: float
    high: float
    color: str = palette.SHADE


@dataclass(frozen=True, slots=True)
class Box:
    """A filled rectangle, in the units of the axes; in a legend a patch with a name."""

    x: tuple[float, float] = (0.0, 0.0)
    y: tuple[float, float] = (0.0, 0.0)
    color: str = palette.SHADE
    edge: str | None = None
    edge_width: float = 0.8
    label: str = ""


@dataclass(frozen=True, slots=True)
class Area:
    """What lies between zero and a line (n,)."""

    x: Numbers
    y: Numbers
    color: str
    alpha: float = 0.35


@dataclass(frozen=True, slots=True)
class Words:
    """Text at a place, in the units of the axes.

    `across` says where the place is in the text: "start", "middle" or "end"; `up` likewise:
    "middle" or "top". `shift` moves it to the right by so many points.
    """

    x: float
    y: float
    text: str
    color: str = palette.INK
    size: float = TEXT
    across: str = "start"
    up: str = "middle"
    shift: float = 0.0


Mark = Polyline | Spans | ReferenceLine | Band | Box | Area | Words


@dataclass(frozen=True, slots=True)
class Axis:
    """A scale and its labels.

    Attributes
    ----------
    low, high
        From where to where; the other way round, it is turned.
    label
        What stands on it, with its unit.
    log
        Is it logarithmic?
    ticks
        Places and their names; None for round numbers.
    grid
        Are there lines through the panel at its ticks?
    bare
        Names alone, without a line.
    bold
        Are the names of ticks in bold?
    turned
        By how many degrees they are turned.
    """

    low: float
    high: float
    label: str = ""
    log: bool = False
    ticks: Sequence[tuple[float, str]] | None = None
    grid: bool = True
    bare: bool = False
    bold: bool = False
    turned: int = 0


@dataclass(frozen=True, slots=True)
class Panel:
    """Axes and what is drawn on them; `right_marks` against an axis of their own at the right."""

    x: Axis
    y: Axis
    marks: Sequence[Mark]
    title: str = ""
    right: Axis | None = None
    right_marks: Sequence[Mark] = ()


@dataclass(frozen=True, slots=True)
class Chart:
    """A figure.

    Attributes
    ----------
    panels
        Row by row, `columns` in each.
    height
        [points]
    legend
        In a row above the panels: how each is drawn, and its label.
    x_label
        Of all panels together.
    share_y
        Have all panels the y axis of the first?
    simulated
        Say in the figure that a simulator made its numbers: figures travel without their page.
    """

    panels: Sequence[Panel]
    height: float
    columns: int = 1
    legend: Sequence[Polyline | Box] = ()
    x_label: str = ""
    share_y: bool = False
    simulated: bool = False
    width: float = WIDTH

    @property
    def rows(self) -> int:
        """So many rows have a panel."""
        return -(-len(self.panels) // self.columns)
