"""Figures of reproductions: the style of the report, the paper's numbers in ink beside ours.

What the simulator gives is drawn as a line or bar in the colour that the pattern has everywhere in
uflip; what the paper prints is a ring in ink, and what an equation gives a thin line in ink.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from uflip.errors import UsageError
from uflip.report.figures.canvas import mark_simulated, new_figure, styled
from uflip.report.figures.palette import INK, MUTED, look
from uflip.reproduce.reproduction import Outcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".pdf")
DPI = 160

FAINT = MUTED
READS, SEQUENTIAL_READS = look("RR").color, look("SR").color
WRITES, SEQUENTIAL_WRITES = look("RW").color, look("SW").color

# A printed value: a ring that a line can be seen through.
PRINTED: dict[str, Any] = {
    "linestyle": "none",
    "marker": "o",
    "markersize": 9,
    "markerfacecolor": "none",
    "markeredgecolor": INK,
    "markeredgewidth": 1.4,
}
# The same where only a level is printed.
PRINTED_LEVEL: dict[str, Any] = {"color": INK, "linewidth": 1.6, "linestyle": (0, (1, 2))}
# What an equation gives.
EQUATION: dict[str, Any] = {"color": INK, "linewidth": 1.0, "linestyle": (0, (5, 2))}


def check_name(path: Path) -> None:
    """Refuse a name that cannot become a figure, before anything is measured.

    Raises
    ------
    UsageError
        For another ending, or a folder that does not exist.
    """
    if path.suffix not in FORMATS:
        raise UsageError(
            "The name of the figure does not say its format",
            where="--out",
            got=str(path),
            allowed=", ".join(f"FILE{ending}" for ending in FORMATS),
            action="add one of these endings",
        )
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise UsageError(
            "The figure cannot be written there",
            where="--out",
            got=f"{path} (a folder)" if path.is_dir() else f"{path} (its folder does not exist)",
            allowed="a file name in a folder that exists",
            action="create the folder first, or choose another name",
        )


@styled
def check_library() -> str:
    """Raise `UnavailableError` if there is no matplotlib, before anything is measured."""
    return ""


@styled
def write(outcome: Outcome, path: Path) -> str:
    """Draw a reproduction into a file; an older figure of this name is replaced.

    Returns
    -------
    str
        The path.
    """
    import matplotlib as mpl

    figure = outcome.reproduction.draw(outcome.data)
    # The same data gives the same file: no date, and ids that do not change.
    dated = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    with mpl.rc_context({"svg.hashsalt": outcome.reproduction.id, "svg.fonttype": "path"}):
        figure.savefig(path, dpi=DPI, facecolor="white", metadata=dated[path.suffix])
    return str(path)


def panels(rows: int = 1, columns: int = 1, *, height: float) -> "tuple[Figure, list[Axes]]":
    """Make a figure of so many panels."""
    sheet, axes = new_figure(rows, columns, height=height)
    mark_simulated(sheet, True)
    return sheet, axes


def title(axis: "Axes", text: str, below: str = "") -> None:
    """Put a title over a panel, and a line of explanation under it."""
    axis.set_title(text, pad=18 if below else 6)
    if below:
        axis.text(0, 1.02, below, transform=axis.transAxes, color=MUTED, fontsize=8)


def from_zero(axis: "Axes", label: str, top: float, step: float = 5) -> None:
    """Let the y axis begin at zero: ratios are what these figures are about."""
    axis.set_ylabel(label)
    axis.set_yticks(np.arange(0, top, step))
    axis.set_ylim(0, top)


def printed(
    axis: "Axes", x: Sequence[float], y: Sequence[float], label: str = "printed in the report"
) -> None:
    """Mark what the paper prints."""
    axis.plot(x, y, label=label, zorder=4, **PRINTED)
