"""Style, panels and texts of matplotlib figures, for files and for axes of the caller.

Figures are made with the object interface, never pyplot: no global state, no windows. Figures of a
page are drawn by `svg`.
"""

import warnings
from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypedDict, TypeVar

from uflip.errors import UnavailableError
from uflip.report import labels
from uflip.report.figures import palette

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Arguments = ParamSpec("Arguments")
Drawn = TypeVar("Drawn")

Dashes = Any
"""A line style of matplotlib: "-", ":", or an offset with the lengths of a pattern."""


class LineLook(TypedDict, total=False):
    """Keyword arguments of a matplotlib line."""

    color: str
    linewidth: float
    linestyle: Dashes
    marker: str
    markersize: float
    markerfacecolor: str
    markeredgecolor: str
    markeredgewidth: float
    alpha: float | None
    label: str
    zorder: float


# Default width of a figure in inches.
WIDTH = 8.6
# Points in an inch.
INCH = 72

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib: the same layout everywhere
    "font.size": 8.5,
    "axes.titlesize": 9.0,
    "axes.labelsize": 8.5,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.titley": 1.0,  # skips the search for free space above the axes
    "axes.edgecolor": palette.MUTED,
    "axes.labelcolor": palette.INK,
    "axes.titlecolor": palette.INK,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": palette.GRID,
    "grid.linewidth": 0.6,
    "text.color": palette.INK,
    "text.parse_math": False,  # a "$" in the name of a device is a "$"
    "xtick.color": palette.MUTED,
    "ytick.color": palette.MUTED,
    "xtick.labelcolor": palette.INK,
    "ytick.labelcolor": palette.INK,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "xtick.major.size": 3,
    "ytick.major.size": 3,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "figure.facecolor": "none",
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "legend.handlelength": 1.6,
    "lines.linewidth": 1.5,
    "lines.markersize": 4.5,
}


def styled(draw: Callable[Arguments, Drawn]) -> Callable[Arguments, Drawn]:
    """Return a function that draws in our style, without changing matplotlib's global settings.

    The decorated function raises `UnavailableError` if matplotlib is not installed.
    """

    @wraps(draw)
    def in_style(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Drawn:
        try:
            import matplotlib as mpl
        except ImportError as error:
            raise UnavailableError(
                what="Figures need matplotlib",
                got="a Python environment without matplotlib",
                allowed="matplotlib 3.9 or later",
                action="pip install 'uflip[report]'; `uflip report` does not need matplotlib",
            ) from error
        with mpl.rc_context(_STYLE), warnings.catch_warnings():
            # A page uses the reader's font; names may be in any script.
            warnings.filterwarnings("ignore", message="Glyph .* missing from font")
            # Ignore names that are too long for the layout.
            warnings.filterwarnings("ignore", message="constrained_layout not applied")
            return draw(*args, **kwargs)

    return in_style


def new_figure(
    rows: int = 1,
    columns: int = 1,
    *,
    height: float,
    share_y: bool = False,
    share_x: bool = False,
) -> tuple["Figure", list["Axes"]]:
    """Make a figure of the page's width.

    Parameters
    ----------
    rows, columns
        Panels.
    height
        Height [inches at 72 units].
    share_y, share_x
        Whether panels share their scales.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharey=share_y, sharex=share_x)
    return figure, list(axes.flat)


def escape_texts(figure: "Figure") -> None:
    """Escape a figure's texts for XML, and shorten overlong ones."""
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        written = text.get_text()
        if (clean := labels.safe_text(written)) != written:
            text.set_text(clean)


def mark_simulated(figure: "Figure", simulated: bool) -> None:
    """Mark a figure of simulated results, since figures are used without their page."""
    if simulated:
        figure.text(
            0.995, 0.995, "simulated device", ha="right", va="top", color=palette.MUTED, size=8
        )


def outside_legend(figure: "Figure", handles: "Sequence[Artist]", *, columns: int) -> None:
    """Place a legend in rows above the panels."""
    figure.legend(handles=handles, loc="outside upper left", ncols=columns, borderaxespad=0.2)
