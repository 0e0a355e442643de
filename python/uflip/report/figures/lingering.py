"""What a batch of random writes leaves behind: sequential reads before it, the batch, reads after.

**Source** uFLIP (CIDR 2009) §4.3, Figure 5.

**Faithful** Time in I/O operations, response time [ms] on a logarithmic axis, the three batches.

**Simplified** A mean and a maximum for every 64 I/Os in the place of each I/O.

**Ambiguous** Nothing.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from uflip.data.phases import Batches, Interference, Windows
from uflip.report.blocks import Figure
from uflip.report.data import Document, is_simulated
from uflip.report.figures import axes as scales
from uflip.report.figures import palette
from uflip.report.figures.canvas import (
    Drawing,
    legend_above,
    mark_simulated,
    new_figure,
    styled,
    to_drawing,
)
from uflip.report.words import format_ms

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

HEIGHT = 2.4
BATCHES = (("before", "SR"), ("writes", "RW"), ("after", "SR"))


@styled
def draw(found: Interference, windows: Batches, *, simulated: bool) -> Drawing | None:
    """Draw the measurement of the pause.

    Parameters
    ----------
    found
        What was found.
    windows
        Its windows.
    simulated
        Whether to mark the figure as simulated.

    Returns
    -------
    Drawing
    """
    described = (
        f"Sequential reads, random writes, sequential reads. {found['reads_affected']} reads after "
        f"the writes are slower than before, for {format_ms(found['lingering_ns'])} ms."
    )
    picture = picture_of(found, windows, simulated=simulated)
    return to_drawing(picture, "lingering", "Measurement of the pause", described)


def picture_of(found: Interference, windows: Batches, *, simulated: bool) -> "MatplotlibFigure":
    """Draw the measurement of the pause in our style."""
    from matplotlib.lines import Line2D

    figure, (axis,) = new_figure(height=HEIGHT)
    begin, end_affected, every = 0, 0, []
    for (name, pattern), batch in zip(BATCHES, _batches(windows), strict=True):
        mean = np.asarray(batch["mean_ns"]) / 1e6
        most = np.asarray(batch["max_ns"]) / 1e6
        place = begin + windows["ios"] * (np.arange(len(mean)) + 0.5)
        look = palette.look(pattern)
        axis.plot(place, mean, ls="none", marker="o", ms=2.6, mew=0, color=look.color)
        axis.plot(place, most, ls="none", marker="_", ms=4, mew=0.8, color=look.color, alpha=0.6)
        if name == "after":
            end_affected = begin + found["reads_affected"]
            axis.axvspan(begin, end_affected, color=palette.SHADE, lw=0, zorder=0)
        begin += windows["ios"] * len(mean)
        every += [*mean, *most]
    positive = [value for value in every if value > 0]
    if positive:
        scales.log_scale(axis, min(positive), max(positive))
    axis.axhline(found["slow_ns"] / 1e6, color=palette.MUTED, lw=0.8, ls=":")
    axis.set_xlim(0, begin)
    axis.xaxis.set_major_formatter(lambda place, _: f"{place:,.0f}")
    axis.set_xlabel("I/O number")
    axis.set_ylabel("response time [ms]")
    axis.grid(visible=False, axis="x")
    legend_above(
        figure,
        [
            Line2D([], [], color=palette.look("SR").color, ls="none", marker="o", ms=3, label="SR"),
            Line2D([], [], color=palette.look("RW").color, ls="none", marker="o", ms=3, label="RW"),
            Line2D([], [], color=palette.INK, ls="none", marker="_", label="slowest of 64"),
            Line2D([], [], color=palette.MUTED, lw=0.8, ls=":", label="95 % of the first reads"),
        ],
    )
    mark_simulated(figure, simulated)
    return figure


def _batches(windows: Batches) -> Iterator[Windows]:
    yield windows["before"]
    yield windows.get("writes") or {"mean_ns": [], "max_ns": []}
    yield windows["after"]


def figure(document: Document) -> Figure | None:
    """The measurement from which the pause between runs follows."""
    found = document["interference"]
    windows = found.get("windows") if found else None
    drawing = draw(found, windows, simulated=is_simulated(document)) if found and windows else None
    if drawing is None:
        return None
    return Figure(
        "interference",
        "Interference",
        drawing,
        "How long does a run linger (uFLIP Figure 5)? Sequential reads, random writes, sequential "
        "reads again; dots are means of 64 I/Os, dashes the slowest of them. The shaded reads are "
        "affected, by a test against the reads before the writes.",
    )
