"""Figure of the rows of a sweep: rate, response time and write amplification over a parameter.

The first varied name is the x axis, to scale if its values are numbers; every combination of the
others is a line.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from uflip.data.spec import MODES, PLURALS
from uflip.report.figures.matplotlib_chart import (
    WIDTH,
    mark_simulated,
    new_figure,
    nothing_to_draw,
    save,
    styled,
)
from uflip.report.figures.palette import CAUSES

POINTS_HEIGHT = 3.2
# Estimated width of a legend letter, and of the mark before a label [in].
LETTER, HANDLE = 0.085, 0.5
POINTS_MARKERS = "osD^vPX"
Times = Mapping[str, int | float | None]


class SweepPointLike(Protocol):
    """The part of a row that is drawn; `uflip.sweeping.SweepRow` is one."""

    @property
    def values(self) -> Mapping[str, str | int | float]:
        """The varied values."""

    @property
    def ios_per_s(self) -> float | None:
        """Rate of the I/Os that are not ignored."""

    @property
    def times(self) -> Mapping[str, Times]:
        """Response times by mode [ns], for modes with I/Os."""

    @property
    def write_amplification(self) -> float | None:
        """Bytes programmed over bytes written."""


ValueOf = Callable[[SweepPointLike], float | None]


@styled
def draw_points(
    rows: Sequence[SweepPointLike], title: str, path: Path, *, force: bool = False
) -> str:
    """Draw the rows of a sweep into a file; an older figure of this name is replaced.

    Parameters
    ----------
    rows : sequence of Point
        As `uflip.sweeping.sweep` returns them.
    title : str
        The swept device.
    path : Path
        As `check_name` takes it.
    force : bool
        Replace any regular file of this name.

    Returns
    -------
    str
        The path.

    Raises
    ------
    UsageError
        If no row has anything that is drawn.
    """
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
                color=CAUSES[number % len(CAUSES)],
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

    def response_ms(mode: str, name: str) -> ValueOf:
        def of_row(row: SweepPointLike) -> float | None:
            ns = row.times.get(mode, {}).get(name)
            return None if ns is None else ns / 1e6

        return of_row

    measured = {mode for row in rows for mode in row.times}
    modes = [mode for mode in MODES if mode in measured]
    titles = [("mean", "mean_ns"), ("p99", "p99_ns")]
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
