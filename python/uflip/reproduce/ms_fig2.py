"""Myers & Sinclair's figure 2: the Kingston SNV125 in its steady state.

**Source**: Myers & Sinclair (2010) §5.1, figure 2.
**Faithful**: their micro-benchmark and classes, after enough writes to fill the log several times.
**Simplified**: a model of the mechanism: FAST with a log on each of 8 dies, whose constants were
set with these values in view.
**Ambiguous**: the device's FTL is unknown. Its peaks at 400, 800 and 1,200 ms are read as one, two
or three log blocks reclaimed by one write. "Mostly around" is read as the median.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from uflip.executors import OnStep
from uflip.reproduce import figure, ms
from uflip.reproduce.reproduction import (
    Reproduction,
    ReproductionRow,
    between,
    compare_printed,
    compare_stated,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

KINGSTON_IOS = 100_000
KINGSTON_SETTLE_IOS = 300_000
KINGSTON_LEVELS_MS = (15.0, 400.0, 800.0, 1200.0)
# Half-way between two printed levels.
LEVEL_BOUNDS_NS = (200_000_000, 600_000_000, 1_000_000_000)


@dataclass(frozen=True)
class KingstonSteadyState:
    """Writes in the steady state."""

    series: ms.BatchSeries


def measure_figure_2(on_step: OnStep) -> KingstonSteadyState:
    """Run a batch in the steady state."""
    data = KingstonSteadyState(
        ms.writes("kingston-snv125", settle_ios=KINGSTON_SETTLE_IOS, ios=KINGSTON_IOS)
    )
    on_step(1, "100,000 writes in the steady state")
    return data


def rows_figure_2(data: KingstonSteadyState) -> list[ReproductionRow]:
    """Compare classes and mean."""
    classes, times = data.series.classes, data.series.times_ns
    small = ms.nearest(classes, KINGSTON_LEVELS_MS[0] * 1e6)
    middle = times[(times >= LEVEL_BOUNDS_NS[0]) & (times < LEVEL_BOUNDS_NS[1])]
    highest = times[times >= LEVEL_BOUNDS_NS[1]]
    longest = highest[highest >= LEVEL_BOUNDS_NS[2]]
    rarely = len(longest) / len(highest) if len(highest) else 0.0
    return [
        compare_printed("ms/fig2/below_300us", 100 * classes.bins[0].share),
        compare_printed("ms/fig2/small", (small.mean_ns or 0) / 1e6 if small else 0.0),
        compare_printed("ms/fig2/middle", _median_ms(middle)),
        compare_printed("ms/fig2/highest", _median_ms(highest)),
        compare_printed("ms/fig2/longest", _median_ms(longest)),
        compare_stated("ms/fig2/rarely", 100 * rarely, between(0.1, 20)),
        compare_printed("ms/fig2/mean", classes.mean_ns / 1e6),
    ]


def _median_ms(times: "NDArray[np.uint64]") -> float:
    return float(np.median(times)) / 1e6 if len(times) else 0.0


def draw_figure_2(data: KingstonSteadyState) -> "Figure":
    """Draw 5,000 writes."""
    sheet, [axis] = figure.panels(height=4.2)
    ms.draw_writes(axis, data.series.times_ns[: ms.SHOWN_IOS], KINGSTON_LEVELS_MS)
    figure.title(axis, "Kingston SNV125, steady state", "a model of its mechanism")
    ms.legend_above(axis)
    return sheet


MS_FIGURE_2 = Reproduction(
    id="ms-fig2",
    title="the Kingston SNV125 in its steady state: four classes of latencies",
    source="Myers & Sinclair (2010) §5.1, figure 2",
    steps=1,
    measure=measure_figure_2,
    rows=rows_figure_2,
    draw=draw_figure_2,
)
