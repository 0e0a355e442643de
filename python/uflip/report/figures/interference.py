"""After-effects of a batch of random writes: sequential reads before, the batch, reads after.

**Source** uFLIP (CIDR 2009) §4.3, Figure 5.

**Faithful** Time in I/O operations, response time [ms] on a logarithmic axis, the three batches.

**Simplified** A mean and a maximum for every 64 I/Os, instead of each I/O.

**Ambiguous** Nothing.
"""

from collections.abc import Iterator

import numpy as np

from uflip.data.manifest import Batches, Interference, Windows
from uflip.report.blocks import Figure
from uflip.report.data import Document, is_simulated
from uflip.report.figures import axes as scales
from uflip.report.figures import palette
from uflip.report.figures.chart import (
    DOTTED,
    Axis,
    Band,
    Chart,
    Mark,
    Panel,
    Polyline,
    ReferenceLine,
)
from uflip.report.figures.svg import Drawing
from uflip.report.figures.svg import draw as drawn
from uflip.report.labels import format_ms
from uflip.report.tables import windows_table

HEIGHT = 173.0
LEGEND = (
    Polyline(color=palette.look("SR").color, width=0, marker="o", size=3, label="SR"),
    Polyline(color=palette.look("RW").color, width=0, marker="o", size=3, label="RW"),
    Polyline(width=0, marker="_", size=4, edge_width=1, label="slowest of 64"),
    Polyline(color=palette.MUTED, width=0.8, dashes=DOTTED, label="95 % of the first reads"),
)
BATCHES = (("before", "SR"), ("writes", "RW"), ("after", "SR"))


def draw(interference: Interference, windows: Batches, *, simulated: bool) -> Drawing | None:
    """Draw the measurement of the pause."""
    description = (
        "Sequential reads, random writes, sequential reads. "
        f"{interference['reads_affected']} reads after the writes are slower than before, for "
        f"{format_ms(interference['lingering_ns'])} ms."
    )
    chart = chart_of(interference, windows, simulated=simulated)
    return drawn(chart, "lingering", "Measurement of the pause", description)


def chart_of(interference: Interference, windows: Batches, *, simulated: bool) -> Chart:
    """Return the chart of the measurement."""
    begin = 0
    marks: list[Mark] = []
    every: list[float] = []
    for (name, pattern), batch in zip(BATCHES, _batches(windows), strict=True):
        mean = np.asarray(batch["mean_ns"]) / 1e6
        maximum = np.asarray(batch["max_ns"]) / 1e6
        number = begin + windows["ios"] * (np.arange(len(mean)) + 0.5)
        color = palette.look(pattern).color
        if name == "after":
            marks.append(Band(begin, begin + interference["reads_affected"]))
        marks.append(Polyline(number, mean, color, width=0, marker="o", size=2.6))
        marks.append(
            Polyline(number, maximum, color, width=0, marker="_", size=4, edge_width=0.8, alpha=0.6)
        )
        begin += windows["ios"] * len(mean)
        every += [*mean, *maximum]
    slow = ReferenceLine(interference["slow_ns"] / 1e6, palette.MUTED, dashes=DOTTED)
    x = Axis(0, begin, "I/O number", grid=False)
    panel = Panel(x, scales.times_axis(np.array(every)), [*marks, slow])
    return Chart([panel], HEIGHT, legend=LEGEND, simulated=simulated)


def _batches(windows: Batches) -> Iterator[Windows]:
    yield windows["before"]
    yield windows["writes"]
    yield windows["after"]


def figure(document: Document) -> Figure | None:
    """Return the figure of the measurement that determines the pause between runs."""
    interference = document["interference"]
    if interference is None:
        return None
    windows = interference["windows"]
    drawing = draw(interference, windows, simulated=is_simulated(document))
    if drawing is None:
        return None
    return Figure(
        "interference",
        "Interference",
        drawing,
        "How long do the effects of a run last (uFLIP Figure 5)? Sequential reads, random writes, "
        "sequential reads again; dots are means of 64 I/Os, dashes the slowest of them. The shaded "
        "reads are affected, by a test against the reads before the writes.",
        data=[windows_table(windows)],
    )
