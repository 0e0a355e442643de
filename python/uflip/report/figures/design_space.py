"""Figures of a sweep over simulated devices: its rows, one varied name, a sample of a design space.

A row figure has rate, response time and write amplification. The first varied name is the x axis,
to scale if its values are numbers; every combination of the others is a line. A sample is drawn in
parallel coordinates, and its objectives against each other.

**Source** Inselberg (The Visual Computer 1985).
**Faithful** One axis for each varied name and one for each measure; a line is a point.
**Simplified** Every axis ranges from its minimum to its maximum; words are placed in their order.
**Ambiguous** The meaning of the colour: the last measure, dark at its minimum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from uflip.data.spec import MODES, PLURALS
from uflip.data.summary import ResponseTime, StatisticsSummary
from uflip.report.figures import palette
from uflip.report.figures.matplotlib_chart import (
    WIDTH,
    Dashes,
    mark_simulated,
    new_figure,
    nothing_to_draw,
    save,
    styled,
)
from uflip.report.figures.palette import CARD, INK, MANY, MUTED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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

    `columns`: varied values and measures; the last gives the colours. Points with a missing value
    are left out. `title`: the swept device. `path`: as `check_name` takes it. `front`: indices of
    points that are highlighted above the others. `force`: replace any regular file of this name.
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
        axis.plot(*zip(*best, strict=True), "D", color=MANY[4], zorder=FRONT_ZORDER, label="front")
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


def _label(axis: Axes, x: int, values: Sequence[Any]) -> None:
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


VARIED_HEIGHT = 3.4
DASHES: tuple[Dashes, ...] = ("-", (0, (5, 1.5)), (0, (5, 1, 1, 1)), ":")
VARIED_MARKERS = "oDsv^<>"
MAX_LINES = len(DASHES) * len(VARIED_MARKERS)
"""Maximum number of lines that differ without colour: each has its own dashes and markers."""
LINE_OF_LEGEND = 0.13
"""Height of a legend line [inches]."""
AXES = {"spare_factor": ("spare factor [%]", 100.0)}


@dataclass(frozen=True)
class VariedPoint:
    """One row of a sweep."""

    values: Mapping[str, str | int | float]  #: The varied values.
    iops: float | None  #: Rate of the I/Os that are not ignored [IOPS]; None in functional mode.
    write_amplification: float | None  #: Bytes programmed over bytes written; None without writes.


def names_of(points: Sequence[VariedPoint]) -> list[str]:
    """Return the names that can be an axis: numbers, with at least two values."""
    names = []
    for name in points[0].values if points else ():
        values = {point.values[name] for point in points}
        if len(values) > 1 and all(_is_number(value) for value in values):
            names.append(name)
    return names


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def lines_of(points: Sequence[VariedPoint], name: str) -> dict[str, list[VariedPoint]]:
    """Return the points of each combination of the other names, in the order of the axis."""
    lines: dict[str, list[VariedPoint]] = {}
    for point in points:
        label = ", ".join(f"{key}={value}" for key, value in point.values.items() if key != name)
        lines.setdefault(label, []).append(point)
    return {
        line_label: sorted(points_of_line, key=lambda one: float(one.values[name]))
        for line_label, points_of_line in lines.items()
    }


def varied_figure(points: Sequence[VariedPoint], name: str, width: float) -> Figure:
    """Draw rate and write amplification, one above the other, over the same axis."""
    lines = lines_of(points, name)
    drawn = list(lines.items())[:MAX_LINES]
    height = VARIED_HEIGHT + LINE_OF_LEGEND * (len(drawn) - 1)
    figure, axes = new_figure(2, 1, height=height)
    figure.set_size_inches(width, height)
    label, scale = AXES.get(name, (name, 1.0))
    measures: tuple[tuple[str, Callable[[VariedPoint], float | None]], ...] = (
        ("kIOPS", lambda point: None if point.iops is None else point.iops / 1e3),
        ("write amplification", lambda point: point.write_amplification),
    )
    for axis, (measure, value_of) in zip(axes, measures, strict=True):
        for number, (line_label, points_of_line) in enumerate(drawn):
            pairs = [
                (scale * float(point.values[name]), value_of(point)) for point in points_of_line
            ]
            measured = [(x, y) for x, y in pairs if y is not None]
            axis.plot(
                [x for x, _ in measured],
                [y for _, y in measured],
                color=palette.INK,
                linestyle=DASHES[number % len(DASHES)],
                marker=VARIED_MARKERS[number % len(VARIED_MARKERS)],
                markersize=3.5,
                label=line_label,
            )
        axis.set_ylabel(measure)
        axis.set_ylim(0, axis.get_ylim()[1] * 1.05)
    axes[1].set_xlabel(label)
    axes[0].tick_params(labelbottom=False)
    if len(lines) > 1:
        more = omitted_lines(points, name)
        heading = f"the first {MAX_LINES}, without {more} more" if more else None
        axes[0].legend(loc="lower left", bbox_to_anchor=(0, 1), title=heading)
    return figure


def omitted_lines(points: Sequence[VariedPoint], name: str) -> int:
    """Return the number of lines that do not fit the figure."""
    return max(len(lines_of(points, name)) - MAX_LINES, 0)


POINTS_HEIGHT = 3.2
# Estimated width of a legend letter, and of the mark before a label [in].
LETTER, HANDLE = 0.085, 0.5
POINTS_MARKERS = "osD^vPX"


class SweepPointLike(Protocol):
    """The part of a row that is drawn; `uflip.sweeping.SweepRow` is one."""

    @property
    def values(self) -> Mapping[str, str | int | float]:
        """The varied values."""

    @property
    def ios_per_s(self) -> float | None:
        """Rate of the I/Os that are not ignored."""

    @property
    def times(self) -> Mapping[str, StatisticsSummary]:
        """Response times by mode [ns], for modes with I/Os."""

    @property
    def write_amplification(self) -> float | None:
        """Bytes programmed over bytes written."""


ValueOf = Callable[[SweepPointLike], float | None]


@styled
def draw_points(
    rows: Sequence[SweepPointLike], title: str, path: Path, *, force: bool = False
) -> str:
    """Draw the rows of a sweep into a file; an older figure of this name is replaced."""
    panels = [panel for panel in _panels(rows) if any(panel[1](row) is not None for row in rows)]
    if not panels:
        raise nothing_to_draw("no point has times, or a write amplification", path)
    figure, axes = new_figure(1, len(panels), height=POINTS_HEIGHT)
    (first, *others) = rows[0].values
    lines: dict[str, list[SweepPointLike]] = {}
    for row in rows:
        label = ", ".join(f"{name} {row.values[name]}" for name in others)
        lines.setdefault(label, []).append(row)
    places = list(dict.fromkeys(row.values[first] for row in rows))
    handles: list[Any] = []
    for axis, (name, value_of) in zip(axes, panels, strict=True):
        handles = [
            axis.plot(
                *_line(of_line, first, places, value_of),
                label=label,
                color=MANY[number % len(MANY)],
                marker=POINTS_MARKERS[number % len(POINTS_MARKERS)],
            )[0]
            for number, (label, of_line) in enumerate(lines.items())
        ]
        if not _to_scale(places):
            axis.set_xticks(range(len(places)), [str(value) for value in places])
        axis.set_title(name)
        axis.set_xlabel(first)
        axis.margins(y=0.08)
        axis.set_ylim(bottom=0)
    figure.suptitle(title, x=0.01, ha="left", size=9)
    mark_simulated(figure, True)
    if others:
        figure.legend(handles=handles, loc="outside lower left", ncols=_columns(list(lines)))
    return save(figure, path, title, force=force)


def _line(
    rows: Sequence[SweepPointLike], first: str, places: list[Any], value_of: ValueOf
) -> tuple[list[Any], list[float]]:
    """Return x and y of the rows that have a value."""
    pairs = [(row.values[first], y) for row in rows if (y := value_of(row)) is not None]
    x = [value for value, _ in pairs]
    if not _to_scale(places):
        x = [places.index(value) for value in x]
    return x, [y for _, y in pairs]


def _to_scale(places: list[Any]) -> bool:
    return all(isinstance(value, int | float) for value in places)


def _columns(labels: list[str]) -> int:
    """Return the maximum number of columns of a legend with these labels."""
    width = max(map(len, labels)) * LETTER + HANDLE
    return max(1, min(len(labels), int(WIDTH / width)))


def _panels(rows: Sequence[SweepPointLike]) -> list[tuple[str, ValueOf]]:
    """Return the panels: title, and function of a row's value (None for a missing one)."""

    def response_ms(mode: str, name: ResponseTime) -> ValueOf:
        def of_row(row: SweepPointLike) -> float | None:
            ns = row.times[mode][name] if mode in row.times else None
            return None if ns is None else ns / 1e6

        return of_row

    measured = {mode for row in rows for mode in row.times}
    modes = [mode for mode in MODES if mode in measured]
    titles: list[tuple[str, ResponseTime]] = [("mean", "mean_ns"), ("p99", "p99_ns")]
    times = [
        (
            f"{title} of {PLURALS[mode]} [ms]" if len(modes) > 1 else f"{title} [ms]",
            response_ms(mode, name),
        )
        for mode in modes
        for title, name in titles
    ]
    return [
        ("IOPS", lambda row: row.ios_per_s),
        *times,
        ("write amplification", lambda row: row.write_amplification),
    ]
