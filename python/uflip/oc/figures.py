"""Figures of uFLIP-OC in the manner of the paper; reads blue and writes orange as everywhere.

Each function describes a figure, for a page or for a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from uflip.microbench.open_channel.oc1 import Oc1
from uflip.microbench.open_channel.oc2 import KINDS
from uflip.microbench.open_channel.scaling import Scaling
from uflip.microbench.open_channel.series import READ, WRITE, ResponseSeries
from uflip.oc.result_dir import OpenChannelResult
from uflip.report.figures import axes as scales
from uflip.report.figures.chart import (
    DASHED,
    SOLID,
    Area,
    Axis,
    Box,
    Chart,
    Mark,
    Panel,
    Polyline,
    ReferenceLine,
    TextLabel,
)
from uflip.report.figures.matplotlib_chart import figure_of
from uflip.report.figures.palette import INK, MUTED, look, readable_on
from uflip.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure


READS, WRITES = look("RR").color, look("RW").color
FAILING, FAILING_AREA = "#a3417c", "#cc79a7"
# More dots add no information.
MAX_DOTS = 12_000
# The y axis ends above nearly all I/Os; a text counts those beyond.
TOP_PERCENTILE = 99.95
# Factor from the largest value to the end of the map's scale.
SCALE_HEADROOM = 2.2
# Number of points of a line over cycles; each point is a mean.
LINE_POINTS = 400
# Shades for least to most: ColorBrewer's Oranges and Blues, of nine classes (Brewer, 2003).
ORANGES = ("fff5eb", "fee6ce", "fdd0a2", "fdae6b", "fd8d3c", "f16913", "d94801", "a63603", "7f2704")
BLUES = ("f7fbff", "deebf7", "c6dbef", "9ecae1", "6baed6", "4292c6", "2171b5", "08519c", "08306b")
CELL = 0.47
"""Half the side of a cell of the map, with gaps between cells: the map is a list of LUNs."""
LEGEND = tuple(
    Polyline(color=color, width=0, marker="o", size=5, label=label)
    for label, color in (("writes", WRITES), ("reads", READS))
)


def bands(
    mixes: Mapping[str, ResponseSeries], titles: Mapping[str, str], *, simulated: bool
) -> Chart:
    """Return the chart of response times by I/O number, a panel for each mix (Figures 2 and 5)."""
    top = max(float(np.percentile(s.response_time_ms, TOP_PERCENTILE)) for s in mixes.values())
    y = Axis(0, top * 1.08, scales.RESPONSE_TIME)
    panels = []
    for mix, series in mixes.items():
        count = len(series.op)
        ends = ((0.0, "1"), (float(count), f"{count:,}"))
        x = Axis(-0.04 * count, 1.04 * count, "I/O number", ticks=ends, grid=False)
        panels.append(Panel(x, y, _dots(series), titles[mix]))
    return Chart(panels, 238, columns=len(panels), legend=LEGEND, share_y=True, simulated=simulated)


def _dots(series: ResponseSeries) -> list[Mark]:
    """Return a dot for each I/O, reads over writes; both are thinned evenly over the run."""
    # An odd step: an even one would pick the same position of every mix.
    step = max(1, len(series.op) // MAX_DOTS) | 1
    numbers = np.arange(0, len(series.op), step)
    marks: list[Mark] = []
    for op, color in ((WRITE, WRITES), (READ, READS)):
        of_op = numbers[series.op[numbers] == op]
        times = series.response_time_ms[of_op]
        marks.append(
            Polyline(of_op, times, color, width=0, marker="o", size=0.9, alpha=0.5, raster=True)
        )
    return marks


def heat_map(
    write_mb_per_s: NDArray[np.float64], read_mb_per_s: NDArray[np.float64], *, simulated: bool
) -> Chart:
    """Return the chart of the throughput of every LUN, writes and reads (Figure 3)."""
    channels, luns = write_mb_per_s.shape
    # From zero, and far from the darkest shade: a scale around the mean would exaggerate small
    # differences, and the numbers must be readable.
    top = float(max(write_mb_per_s.max(), read_mb_per_s.max())) * SCALE_HEADROOM
    x = Axis(-0.5, luns - 0.5, "LUN", ticks=_numbers(luns), grid=False)
    y = Axis(channels - 0.5, -0.5, "channel", ticks=_numbers(channels), grid=False)
    panels = [
        Panel(x, y, list(_cells(values, top, shades)), f"{name} [MB/s]")
        for name, values, shades in (
            ("100 % writes", write_mb_per_s, ORANGES),
            ("100 % reads", read_mb_per_s, BLUES),
        )
    ]
    return Chart(panels, 115 + 23.0 * channels, columns=2, simulated=simulated)


def _numbers(count: int) -> list[tuple[float, str]]:
    return [(float(number), str(number)) for number in range(count)]


def _cells(values: NDArray[np.float64], top: float, shades: Sequence[str]) -> Iterator[Mark]:
    for (channel, lun), value in np.ndenumerate(values):
        color = _shade(value / top if top else 0.0, shades)
        x_range, y_range = (lun - CELL, lun + CELL), (channel - CELL, channel + CELL)
        yield Box(x_range, y_range, color)
        ink = readable_on(color)
        yield TextLabel(lun, channel, f"{value:.1f}", color=ink, size=8, anchor="middle")


def _shade(share: float, shades: Sequence[str]) -> str:
    """Return a colour between the shades: 0 is the first, 1 the last."""
    anchors = np.array([[int(each[i : i + 2], 16) for i in (0, 2, 4)] for each in shades])
    at = np.linspace(0, 1, len(shades))
    red, green, blue = (round(float(np.interp(share, at, anchor))) for anchor in anchors.T)
    return f"#{red:02x}{green:02x}{blue:02x}"


def wear(worn: Oc1, *, simulated: bool) -> Chart:
    """Return the chart of erase, write and read times, and failing reads (Figure 4)."""
    # A last cycle whose erase failed has no pages.
    cycles = worn.cycles - worn.erase_failed
    at = np.unique(np.linspace(0, cycles - 1, LINE_POINTS).astype(np.int64))
    lines = [
        Polyline(at + 1, values[at], color, label=f"{name} (left)")
        for name, values, color in (
            ("erase", worn.erase_ms, INK),
            ("write", worn.write_ms, WRITES),
            ("read", worn.read_ms, READS),
        )
    ]
    share = 100 * worn.failing_share()[:cycles]
    failing = Polyline(at + 1, share[at], FAILING, width=1.0, label="failing reads (right)")
    right_top = max(12.0, float(share.max()) * 1.15) if len(share) else 12.0
    top = float(worn.erase_ms.max()) * 1.15
    marks: list[Mark] = [*lines]
    first = worn.first_failure()
    if first is not None:
        marks.append(ReferenceLine(first, MUTED, width=0.9, dashes=DASHED, vertical=True))
        label = f"first failing read:\n{first:,} erases"
        marks.append(
            TextLabel(
                first,
                top * 0.96,
                label,
                color=MUTED,
                size=8,
                anchor="end",
                vertical_anchor="top",
                shift=-6.0,
            )
        )
    panel = Panel(
        Axis(0, cycles, "erases of the block"),
        Axis(0, top, scales.RESPONSE_TIME),
        marks,
        right=Axis(0, right_top, "reads that fail [%]"),
        right_marks=[Area(at + 1, share[at], FAILING_AREA), failing],
    )
    return Chart([panel], 274, legend=[*lines, failing], simulated=simulated)


def scalings(
    measured: Mapping[str, Scaling],
    published: Mapping[str, Mapping[int, float]] | None = None,
    *,
    panels: Sequence[tuple[str, Sequence[str]]],
    simulated: bool,
) -> Chart:
    """Return the chart of throughput by degree of parallelism, with published values as rings."""
    drawn = [
        _scaling_panel(
            title, {name: measured[name] for name in names if name in measured}, published
        )
        for title, names in panels
    ]
    legend = [mark for panel in drawn for mark in panel.marks if isinstance(mark, Polyline)]
    return Chart(drawn, 245, columns=len(drawn), legend=legend, simulated=simulated)


def _scaling_panel(
    title: str,
    measured: Mapping[str, Scaling],
    published: Mapping[str, Mapping[int, float]] | None,
) -> Panel:
    lines: list[Polyline] = []
    for index, (name, scaling) in enumerate(measured.items()):
        values, even = scaling.mb_per_s, index % 2 == 0
        color = READS if name.startswith("reads") else WRITES
        lines.append(
            Polyline(
                list(values), list(values.values()), color, dashes=SOLID if even else DASHED,
                marker="o", size=4, label=name,
            )
        )  # fmt: skip
        if published and name in published:
            printed = published[name]
            lines.append(
                Polyline(
                    list(printed), list(printed.values()), INK, width=0,
                    marker="o" if even else "s", size=9, face="none", edge=INK, edge_width=1.3,
                    label=f"{name}, published",
                )
            )  # fmt: skip
    tested = {degree for scaling in measured.values() for degree in scaling.mb_per_s}
    degrees = sorted(tested) or [1]
    highest = max((max(line.y, default=0.0) for line in lines), default=0.0)
    over = " or ".join(dict.fromkeys(scaling.over for scaling in measured.values()))
    ticks = [(float(degree), str(degree)) for degree in degrees]
    x = Axis(degrees[0] / 1.15, degrees[-1] * 1.15, over, log=True, ticks=ticks)
    return Panel(x, Axis(0, 1.08 * highest or 1.0, "MB/s"), lines, title)


Draw = Callable[[], "Figure"]


def kinds_of(results: Results) -> dict[str, Draw]:
    """Return the figures of a result: kind -> a function that draws it."""
    findings, simulated = OpenChannelResult(results).measured, results.manifest.device.simulated
    charts: dict[str, Callable[[], Chart]] = {}
    if (single_lun := findings.oc0) is not None:
        titles = {mix: mix for mix in single_lun.mixes}
        charts["bands"] = lambda: bands(single_lun.mixes, titles, simulated=simulated)
        charts["luns"] = lambda: heat_map(
            single_lun.write_mb_per_s, single_lun.read_mb_per_s, simulated=simulated
        )
    if (worn := findings.oc1) is not None:
        charts["wear"] = lambda: wear(worn, simulated=simulated)
    if (scaled := findings.oc2) is not None:
        panels = [("writes", list(KINDS)[:2]), ("reads", list(KINDS)[2:])]
        charts["channel"] = lambda: scalings(scaled, panels=panels, simulated=simulated)
    if (channels := findings.oc3) is not None:
        panels_by_channel = [
            (word, [f"{word}, vectors", f"{word}, threads"]) for word in ("writes", "reads")
        ]
        charts["channels"] = lambda: scalings(
            channels.scaling, panels=panels_by_channel, simulated=simulated
        )
        shares = {share: share for share in channels.mixes}
        charts["writers"] = lambda: bands(channels.mixes, shares, simulated=simulated)
    return {kind: partial(_draw_chart, chart) for kind, chart in charts.items()}


def _draw_chart(chart: Callable[[], Chart]) -> Figure:
    return figure_of(chart())
