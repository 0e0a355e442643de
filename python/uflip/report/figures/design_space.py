"""Figures of a sample of a design space: parallel coordinates, and objectives against each other.

**Source** Inselberg (The Visual Computer 1985).
**Faithful** One axis for each varied name and one for each measure; a line is a point.
**Simplified** Every axis ranges from its minimum to its maximum; words are placed in their order.
**Ambiguous** The meaning of the colour: the last measure, dark at its minimum.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from uflip.report.figures.matplotlib_chart import (
    mark_simulated,
    new_figure,
    nothing_to_draw,
    save,
    styled,
)
from uflip.report.figures.palette import CARD, CAUSES, INK, MUTED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PARALLEL_HEIGHT = 3.6
# Opacity of lines, so that overlapping lines remain distinguishable.
MIN_ALPHA, MAX_ALPHA = 0.15, 0.9
COLOURS = "viridis"
# The front is drawn above the other points.
FRONT_ZORDER = 3

Column = tuple[str, Sequence[Any]]
"""A name, and its value at every point, or None."""


@styled
def draw_parallel(
    columns: Sequence[Column], title: str, path: Path, *, front: Sequence[int] = (), force: bool
) -> str:
    """Draw a line for each point across an axis for each column; return the path.

    Parameters
    ----------
    columns : sequence
        Varied values and measures; the last gives the colours. Points with a missing value are left
        out.
    title : str
        The swept device.
    path : Path
        As `check_name` takes it.
    front : sequence of int
        Indices of points that are highlighted above the others.
    force : bool
        Replace any regular file of this name.

    Raises
    ------
    UsageError
        If no point has a value in all.
    """
    from matplotlib import colormaps
    from matplotlib.collections import LineCollection

    count = len(columns[0][1])
    complete = [
        index for index in range(count) if all(each[index] is not None for _, each in columns)
    ]
    if not complete:
        lacking = [name for name, each in columns if None in each]
        raise nothing_to_draw(f"no point has all of {', '.join(lacking)}", path)
    figure, (axis,) = new_figure(height=PARALLEL_HEIGHT)
    scaled = np.array([_scaled([each[index] for index in complete]) for _, each in columns])
    colours = colormaps[COLOURS](scaled[-1])
    strong = np.isin(complete, front)
    colours[:, 3] = np.where(strong, MAX_ALPHA, _alpha(len(complete), bool(front)))
    places = np.arange(len(columns))
    lines = [np.column_stack([places, line]) for line in scaled.T]
    order = np.argsort(strong, kind="stable")
    widths = np.where(strong, 1.8, 0.9)
    axis.add_collection(
        LineCollection([lines[i] for i in order], colors=colours[order], linewidths=widths[order])
    )
    axis.set_xlim(-0.2, len(columns) - 0.8)
    axis.set_ylim(-0.06, 1.06)
    axis.set_xticks(places, [name for name, _ in columns])
    axis.set_yticks([])
    axis.grid(visible=False)
    for x, (_, values) in enumerate(columns):
        axis.axvline(x, color=MUTED, lw=0.7)
        _label(axis, x, [value for value in values if value is not None])
    figure.suptitle(title, x=0.01, ha="left", size=9)
    mark_simulated(figure, True)
    return save(figure, path, title, force=force)


@styled
def draw_front(
    x_column: Column, y_column: Column, front: Sequence[int], title: str, path: Path, *, force: bool
) -> str:
    """Draw two objectives against each other, with the points of a front; return the path."""
    figure, (axis,) = new_figure(height=PARALLEL_HEIGHT)
    pairs = [
        (index, x, y)
        for index, (x, y) in enumerate(zip(x_column[1], y_column[1], strict=True))
        if x is not None and y is not None
    ]
    if not pairs:
        raise nothing_to_draw(f"no point has both {x_column[0]} and {y_column[0]}", path)
    beaten = [(x, y) for index, x, y in pairs if index not in set(front)]
    best = sorted((x, y) for index, x, y in pairs if index in set(front))
    if beaten:
        axis.plot(*zip(*beaten, strict=True), "o", color=MUTED, alpha=0.45, label="beaten")
    if best:
        axis.plot(
            *zip(*best, strict=True), "D", color=CAUSES[4], zorder=FRONT_ZORDER, label="front"
        )
    axis.set_xlabel(x_column[0])
    axis.set_ylabel(y_column[0])
    axis.margins(0.06)
    axis.set_ylim(bottom=0)
    axis.legend(loc="best")
    figure.suptitle(title, x=0.01, ha="left", size=9)
    mark_simulated(figure, True)
    return save(figure, path, title, force=force)


def _scaled(values: Sequence[Any]) -> np.ndarray:
    """Return values scaled to 0 to 1; words are spaced evenly."""
    if not _numbers(values):
        names = sorted(set(map(str, values)))
        values = [names.index(str(value)) for value in values]
    scaled = np.array(values, dtype=float)
    span = np.ptp(scaled)
    return (scaled - scaled.min()) / span if span else np.full(len(scaled), 0.5)


def _numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(each, int | float) and not isinstance(each, bool) for each in values)


def _alpha(count: int, fainter: bool) -> float:
    return max(MIN_ALPHA, min(MAX_ALPHA, 20 / count)) * (0.5 if fainter else 1.0)


def _label(axis: "Axes", x: int, values: Sequence[Any]) -> None:
    """Write the ends of an axis, or every word on it, next to it."""
    if _numbers(values):
        low, high = min(values), max(values)
        marks = [(0.0, f"{low:.4g}"), (1.0, f"{high:.4g}")] if high > low else [(0.5, f"{low:.4g}")]
    else:
        names = sorted(set(map(str, values)))
        heights = np.linspace(0, 1, len(names)) if len(names) > 1 else [0.5]
        marks = [*zip(heights, names, strict=True)]
    for height, text in marks:
        axis.annotate(
            text,
            (x, height),
            xytext=(3, 2),
            textcoords="offset points",
            size=7,
            color=INK,
            bbox={"facecolor": CARD, "edgecolor": "none", "alpha": 0.75, "pad": 0.4},
        )
