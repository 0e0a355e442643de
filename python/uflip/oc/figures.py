"""Figures of uFLIP-OC in the manner of the paper; reads blue and writes orange as everywhere.

Each function returns a matplotlib figure, for a page or for a file.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from uflip.microbench.open_channel.oc1 import Oc1
from uflip.microbench.open_channel.scaling import Scaling
from uflip.microbench.open_channel.series import READ, WRITE, Series
from uflip.report.figures.canvas import mark_simulated, new_figure
from uflip.report.figures.palette import INK, MUTED, look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

READS, WRITES = look("RR").color, look("RW").color
# More dots than this say no more.
MOST_DOTS = 12_000
# The y axis ends where nearly all I/Os are; what lies above is said in words.
TOP_PERCENTILE = 99.95
# How far the scale of the map goes beyond its largest value.
PALE = 2.2
# A line over cycles has a point for each mean of so many of them.
LINE_POINTS = 400


def bands(mixes: Mapping[str, Series], titles: Mapping[str, str], *, simulated: bool) -> "Figure":
    """Response time over the number of the I/O, a panel a mix (Figures 2 and 5)."""
    figure, axes = new_figure(1, len(mixes), height=3.3, share_y=True)
    mark_simulated(figure, simulated)
    top = max(float(np.percentile(s.response_time_ms, TOP_PERCENTILE)) for s in mixes.values())
    for axis, (mix, series) in zip(axes, mixes.items(), strict=True):
        _dots(axis, series)
        axis.set_title(titles[mix], fontsize=8.5)
        axis.set_xlabel("I/O number")
        axis.set_xticks([0, len(series.op)], ["1", f"{len(series.op):,}"])
        axis.set_ylim(0, top * 1.08)
    axes[0].set_ylabel("response time [ms]")
    _read_write_legend(figure)
    return figure


def _dots(axis: "Axes", series: Series) -> None:
    """Draw a dot an I/O; reads and writes are thinned alike, evenly over the run."""
    # A prime step: an even one would pick the same place of every mix.
    step = max(1, len(series.op) // MOST_DOTS) | 1
    numbers = np.arange(0, len(series.op), step)
    for op, color, order in ((WRITE, WRITES, 1), (READ, READS, 2)):
        of_op = numbers[series.op[numbers] == op]
        axis.plot(
            of_op,
            series.response_time_ms[of_op],
            linestyle="none",
            marker=".",
            markersize=1.6,
            markeredgewidth=0,
            color=color,
            alpha=0.5,
            zorder=order,
            rasterized=True,
        )


def _read_write_legend(figure: "Figure") -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], linestyle="none", marker="o", markersize=5, color=color, label=label)
        for label, color in (("writes", WRITES), ("reads", READS))
    ]
    figure.legend(handles=handles, loc="outside upper left", ncols=2, borderaxespad=0.2)


def heat_map(
    write_mb_per_s: NDArray[np.float64], read_mb_per_s: NDArray[np.float64], *, simulated: bool
) -> "Figure":
    """Throughput of every LUN, writes and reads (Figure 3)."""
    channels, luns = write_mb_per_s.shape
    figure, axes = new_figure(1, 2, height=1.6 + 0.32 * channels)
    mark_simulated(figure, simulated)
    for axis, name, values, shade in (
        (axes[0], "100 % writes", write_mb_per_s, "Oranges"),
        (axes[1], "100 % reads", read_mb_per_s, "Blues"),
    ):
        # From zero, and far from the darkest shade: a scale around the mean would make a landscape
        # of nothing, and numbers must be read on it.
        top = float(max(write_mb_per_s.max(), read_mb_per_s.max())) * PALE
        # Cells with gaps: the map is a list of LUNs, not a picture.
        edges = np.arange(luns + 1) - 0.5, np.arange(channels + 1) - 0.5
        axis.pcolormesh(
            *edges, values, cmap=shade, vmin=0, vmax=top, edgecolors="white", linewidth=2
        )
        axis.invert_yaxis()
        for (channel, lun), value in np.ndenumerate(values):
            axis.text(lun, channel, f"{value:.1f}", ha="center", va="center", color=INK, fontsize=8)
        axis.set_title(f"{name} [MB/s]")
        axis.set_xticks(range(luns))
        axis.set_yticks(range(channels))
        axis.set_xlabel("LUN")
        axis.set_ylabel("channel")
        axis.grid(visible=False)
    return figure


def wear(worn: Oc1, *, simulated: bool) -> "Figure":
    """Times of erases, writes and reads on the left, failing reads on the right (Figure 4)."""
    figure, [axis] = new_figure(1, 1, height=3.8)
    mark_simulated(figure, simulated)
    # A last cycle whose erase failed has no pages.
    cycles = worn.cycles - worn.erase_failed
    at = np.unique(np.linspace(0, cycles - 1, LINE_POINTS).astype(np.int64))
    for name, values, color in (
        ("erase", worn.erase_ms, INK),
        ("write", worn.write_ms, WRITES),
        ("read", worn.read_ms, READS),
    ):
        axis.plot(at + 1, values[at], color=color, label=f"{name} (left)")
    axis.set_xlabel("erases of the block")
    axis.set_ylabel("response time [ms]")
    axis.set_ylim(0, float(worn.erase_ms.max()) * 1.15)
    axis.set_xlim(0, cycles)
    right = axis.twinx()
    share = 100 * worn.failing_share()[:cycles]
    right.fill_between(at + 1, share[at], color="#cc79a7", alpha=0.35, linewidth=0)
    right.plot(at + 1, share[at], color="#a3417c", linewidth=1.0, label="failing reads (right)")
    right.set_ylabel("reads that fail [%]")
    right.set_ylim(0, max(12.0, float(share.max()) * 1.15) if len(share) else 12.0)
    right.grid(visible=False)
    right.spines["right"].set_visible(True)
    first = worn.first_failure()
    if first is not None:
        axis.axvline(first, color=MUTED, linewidth=0.9, linestyle=(0, (4, 2)))
        axis.annotate(
            f"first failing read:\n{first:,} erases",
            (first, axis.get_ylim()[1] * 0.96),
            xytext=(-6, 0),
            textcoords="offset points",
            ha="right",
            va="top",
            color=MUTED,
            fontsize=8,
        )
    figure.legend(loc="outside upper left", ncols=4, borderaxespad=0.2)
    return figure


def scalings(
    found: Mapping[str, Scaling],
    published: Mapping[str, Mapping[int, float]] | None = None,
    *,
    panels: Sequence[tuple[str, Sequence[str]]],
    simulated: bool,
) -> "Figure":
    """Throughput by degree of parallelism, the published values as rings (Tables 2 and 3).

    Parameters
    ----------
    found : mapping
        By name of the line.
    published : mapping, optional
        The paper's values by the same names.
    panels : sequence of (title, names)
        Which lines stand together.
    simulated : bool
        Whether the device is.
    """
    figure, axes = new_figure(1, len(panels), height=3.4)
    mark_simulated(figure, simulated)
    for axis, (title, names) in zip(axes, panels, strict=True):
        shown = [name for name in names if name in found]
        for index, name in enumerate(shown):
            values = found[name].mb_per_s
            color = READS if name.startswith("reads") else WRITES
            dashes = "-" if index % 2 == 0 else (0, (4, 2))
            axis.plot(
                list(values), list(values.values()), color=color, linestyle=dashes, marker=".",
                markersize=7, label=name,
            )  # fmt: skip
            if published and name in published:
                axis.plot(
                    list(published[name]), list(published[name].values()), linestyle="none",
                    marker="o" if index % 2 == 0 else "s", markersize=9, markerfacecolor="none",
                    markeredgecolor=INK, markeredgewidth=1.3, label=f"{name}, published",
                )  # fmt: skip
        degrees = sorted({degree for name in shown for degree in found[name].mb_per_s})
        axis.set_xscale("log", base=2)
        axis.set_xticks(degrees, [str(degree) for degree in degrees])
        axis.set_xlabel(" or ".join(dict.fromkeys(found[name].over for name in shown)))
        axis.set_title(title)
        axis.set_ylim(0, None)
        axis.legend(loc="best", fontsize=7.5)
    axes[0].set_ylabel("MB/s")
    return figure
