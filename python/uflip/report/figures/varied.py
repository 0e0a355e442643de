"""Figure of a sweep over one varied name: rate, and write amplification.

**Source** OFC (2011) §V.C, Figure 5(b): random writes and relocated pages over the spare factor.
**Faithful** One point per value, rate and cost of collection over the same axis.
**Simplified** The cost is write amplification, bytes programmed over bytes that the host wrote,
where the report counts relocated pages per collected block.
**Ambiguous** Other varied names: a line for each combination of their values.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from uflip.report.figures import palette
from uflip.report.figures.matplotlib_chart import Dashes, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    """One row of a sweep.

    Attributes
    ----------
    values : dict
        The varied values.
    iops : float or None
        Rate of the I/Os that are not ignored [IOPS]; None in functional mode.
    write_amplification : float or None
        Bytes programmed over bytes written; None without writes.
    """

    values: Mapping[str, str | int | float]
    iops: float | None
    write_amplification: float | None


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


def varied_figure(points: Sequence[VariedPoint], name: str, width: float) -> "Figure":
    """Draw rate and write amplification, one above the other, over the same axis."""
    lines = lines_of(points, name)
    drawn = list(lines.items())[:MAX_LINES]
    height = VARIED_HEIGHT + LINE_OF_LEGEND * (len(drawn) - 1)
    figure, axes = new_figure(2, 1, height=height)
    figure.set_size_inches(width, height)
    label, scale = AXES.get(name, (name, 1.0))
    measures = ("kIOPS", _kiops), ("write amplification", _amplification)
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


def _kiops(point: VariedPoint) -> float | None:
    return None if point.iops is None else point.iops / 1e3


def _amplification(point: VariedPoint) -> float | None:
    return point.write_amplification
