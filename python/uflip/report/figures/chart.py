"""The contents of a figure as data: panels with axes, and their marks.

A figure is described once and drawn in two ways: by `svg` for a page, within milliseconds and in
the page's theme, and by `matplotlib_chart` for files and axes of the caller. Lengths are points, 72
per inch, as for line widths and text sizes.

Marks are drawn over one another in their order. Colours are those of `palette`, "#rrggbb".
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uflip.report.figures import palette

WIDTH = 8.6 * 72
"""Width of a figure; a page scales it to its column."""
TEXT = 8.5
"""Size of the text."""

Numbers = Sequence[float] | NDArray[np.floating] | NDArray[np.integer]
"""Numbers (n,)."""
Dashes = tuple[float, ...]
"""Lengths of dashes and gaps in turn, in line widths; empty for a solid line."""
SOLID: Dashes = ()
DASHED: Dashes = (3.7, 1.6)
DOTTED: Dashes = (1.0, 1.65)
FINE_DOTS: Dashes = (1.0, 3.0)

MARKERS = ("o", "s", "^", "v", "D", "<", ">", "_", "")
"""Circle, square, triangles, diamond, triangles, dash, none."""


@dataclass(frozen=True, slots=True)
class Polyline:
    """Points (n,) in the units of the axes, joined, marked, or both."""

    x: Numbers = ()
    y: Numbers = ()
    color: str = palette.INK
    width: float = 1.5  #: Of the line; 0 draws only the markers.
    dashes: Dashes = SOLID
    #: One of `MARKERS`, and its size.
    marker: str = ""
    size: float = 4.5
    #: Colours of the markers inside (None: that of the line; "none": hollow) and of their edge
    #: (None: no edge).
    face: str | None = None
    edge: str | None = None
    edge_width: float = 0.6
    alpha: float = 1.0
    #: Draw horizontal steps: from a point to the next at its height, then up or down.
    step: bool = False
    clip: bool = True  #: Whether the line is cut at the edge of the panel.
    raster: bool = False  #: Draw an image instead of vectors, for many marks.
    label: str = ""  #: Its label in a legend.


@dataclass(frozen=True, slots=True)
class Spans:
    """Line segments from `low` to `high` (n,) at the positions `at` (n,), vertical by default."""

    at: Numbers
    low: Numbers
    high: Numbers
    color: str
    width: float = 1.0
    alpha: float = 1.0
    horizontal: bool = False


@dataclass(frozen=True, slots=True)
class ReferenceLine:
    """A horizontal line at the y value `at`, or a `vertical` one at the x value.

    `span` is the share of the panel that it crosses, from the left or from below.
    """

    at: float
    color: str
    width: float = 0.8
    dashes: Dashes = SOLID
    vertical: bool = False
    span: float = 1.0


@dataclass(frozen=True, slots=True)
class Band:
    """A shaded background from `low` to `high` on the x axis."""

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
    """The area between zero and a line (n,)."""

    x: Numbers
    y: Numbers
    color: str
    alpha: float = 0.35


@dataclass(frozen=True, slots=True)
class TextLabel:
    """Text at a position, in the units of the axes.

    `anchor` is the point of the text at x: "start", "middle" or "end"; `vertical_anchor` that at y:
    "middle" or "top". `shift` moves it to the right by this number of points.
    """

    x: float
    y: float
    text: str
    color: str = palette.INK
    size: float = TEXT
    anchor: str = "start"
    vertical_anchor: str = "middle"
    shift: float = 0.0


Mark = Polyline | Spans | ReferenceLine | Band | Box | Area | TextLabel


@dataclass(frozen=True, slots=True)
class Axis:
    """A scale and its labels."""

    #: The limits; in reverse order, the axis is reversed.
    low: float
    high: float
    label: str = ""  #: Its label, with the unit.
    log: bool = False  #: Whether it is logarithmic.
    #: Positions and their labels; None for round numbers.
    ticks: Sequence[tuple[float, str]] | None = None
    grid: bool = True  #: Whether grid lines cross the panel at its ticks.
    hide_line: bool = False  #: Show labels without the axis line.
    bold: bool = False  #: Whether tick labels are bold.
    label_rotation: int = 0  #: Rotation of the tick labels in degrees.


@dataclass(frozen=True, slots=True)
class Panel:
    """Axes and their marks; `right_marks` use a second y axis at the right."""

    x: Axis
    y: Axis
    marks: Sequence[Mark]
    title: str = ""
    right: Axis | None = None
    right_marks: Sequence[Mark] = ()


@dataclass(frozen=True, slots=True)
class Chart:
    """A figure."""

    panels: Sequence[Panel]  #: Row by row, `columns` in each.
    height: float  #: [points]
    columns: int = 1
    legend: Sequence[Polyline | Box] = ()  #: Entries in a row above the panels: mark and label.
    x_label: str = ""  #: Common label of all panels.
    share_y: bool = False  #: Whether all panels share the y axis of the first.
    #: Mark the figure as simulated, since figures are used without their page.
    simulated: bool = False
    width: float = WIDTH

    @property
    def rows(self) -> int:
        """Number of rows of panels."""
        return -(-len(self.panels) // self.columns)
