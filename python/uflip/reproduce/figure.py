"""Figures of reproductions: in the style of the report, with the paper's numbers in ink.

Simulated values are lines or bars in the pattern's colour, as everywhere in uflip. Values that the
paper prints are rings in ink, and results of equations thin lines in ink.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from uflip.report.figures.matplotlib_chart import LineLook, mark_simulated, new_figure, save, styled
from uflip.report.figures.palette import INK, MUTED, look
from uflip.reproduce.reproduction import ReproductionOutcome
from uflip.units import format_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FAINT = MUTED
READS, SEQUENTIAL_READS = look("RR").color, look("SR").color
WRITES, SEQUENTIAL_WRITES = look("RW").color, look("SW").color

# A printed value: a ring through which a line is visible.
PRINTED: LineLook = {
    "linestyle": "none",
    "marker": "o",
    "markersize": 9,
    "markerfacecolor": "none",
    "markeredgecolor": INK,
    "markeredgewidth": 1.4,
}
# A printed level.
PRINTED_LEVEL: LineLook = {"color": INK, "linewidth": 1.6, "linestyle": (0, (1, 2))}
# The result of an equation.
EQUATION: LineLook = {"color": INK, "linewidth": 1.0, "linestyle": (0, (5, 2))}


@styled
def write(outcome: ReproductionOutcome, path: Path, *, force: bool = False) -> str:
    """Draw a reproduction into a file; an older figure of this name is replaced."""
    drawn = outcome.reproduction.draw(outcome.data)
    return save(drawn, path, outcome.reproduction.id, force=force)


def panels(rows: int = 1, columns: int = 1, *, height: float) -> "tuple[Figure, list[Axes]]":
    """Return a figure with a grid of panels."""
    sheet, axes = new_figure(rows, columns, height=height)
    mark_simulated(sheet, True)
    return sheet, axes


def title(axis: "Axes", text: str, below: str = "") -> None:
    """Put a title over a panel, and a line of explanation under it."""
    axis.set_title(text, pad=18 if below else 6)
    if below:
        axis.text(0, 1.02, below, transform=axis.transAxes, color=MUTED, fontsize=8)


def from_zero(axis: "Axes", label: str, top: float, step: float = 5) -> None:
    """Begin the y axis at zero: these figures are about ratios."""
    axis.set_ylabel(label)
    axis.set_yticks(np.arange(0, top, step))
    axis.set_ylim(0, top)


def logarithmic(axis: "Axes", label: str) -> None:
    """Make the y axis logarithmic, with plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_yscale("log")
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _position: f"{value:g}"))
    axis.yaxis.set_minor_formatter(NullFormatter())
    axis.set_ylabel(label)


def sizes(axis: "Axes", label: str) -> None:
    """Label the x axis with sizes [bytes], every fourth power of two with its unit."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    axis.set_xscale("log", base=2)
    axis.xaxis.set_major_locator(LogLocator(base=4, numticks=20))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _position: format_size(int(value))))
    axis.set_xlabel(label)


def mark_printed(
    axis: "Axes", x: Sequence[float], y: Sequence[float], label: str = "printed in the report"
) -> None:
    """Mark the values that the paper prints."""
    axis.plot(x, y, label=label, zorder=4, **PRINTED)
