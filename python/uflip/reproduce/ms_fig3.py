"""Myers & Sinclair's figure 3: the Intel X25-M in its steady state.

**Source**: Myers & Sinclair (2010) §5.2, figure 3.
**Faithful**: their micro-benchmark and classes on a drive with as many random writes before as
theirs, 150 GB.
**Simplified**: a model of the mechanism: a page map over stripes of 10 dies with a part of the map
in memory, whose constants were set with these values in view.
**Ambiguous**: the device's FTL and most of the writes before are unknown. Whether the peaks above
200 ms count among those "near 150 ms" as well: here they do not.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from uflip.executors import OnStep
from uflip.reproduce import figure, ms
from uflip.reproduce.reproduction import (
    Reproduction,
    ReproductionRow,
    compare_printed,
    compare_stated,
)
from uflip.reproduce.reproduction import above as above_number

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

# Their micro-benchmark writes five batches of 100,000: the rarest peaks need many writes.
INTEL_IOS = 500_000
LONG_NS, PEAK_NS, LONGEST_NS = 1_500_000, 100_000_000, 200_000_000
INTEL_LEVELS_MS = (0.3, 1.5, 150.0, 200.0)


@dataclass(frozen=True)
class IntelSteadyState:
    """Writes in the steady state."""

    series: ms.BatchSeries


def measure_figure_3(on_step: OnStep) -> IntelSteadyState:
    """Run a batch in the steady state."""
    data = IntelSteadyState(ms.writes("intel-x25m", settle_ios=0, ios=INTEL_IOS))
    on_step(1, f"{INTEL_IOS:,} writes in the steady state")
    return data


MAP_MEMORY = "a memory size on the market, 24 MiB of 32; it was not tuned until 15.0 came out"
HALVES = "with the row above half of all writes: those to high pages, and the two misses add up"
BLOCKS = "blocks of 128 pages are the candidate that comes near; with 256 it is 310 ms every 1,040"
POWER_OF_TWO = (
    "the nearest power of two of changed map entries, some of which a collection writes back before"
)
MIDDLE = "between 0.3 and 1.5 ms the model has two times only, where a drive has many"


def rows_figure_3(data: IntelSteadyState) -> list[ReproductionRow]:
    """Compare shares, peaks and mean."""
    times = data.series.times_ns
    peaks = (times >= PEAK_NS) & (times < LONGEST_NS)
    longest = times >= LONGEST_NS
    below, above = float((times < 300_000).mean()), float((times > LONG_NS).mean())
    return [
        compare_printed("ms/fig3/below_300us", 100 * below, note=MAP_MEMORY),
        compare_printed("ms/fig3/above_1500us", 100 * above, note=HALVES),
        compare_printed("ms/fig3/peaks", _mean_ms(times[peaks]), note=BLOCKS),
        compare_printed("ms/fig3/between", _spacing(peaks)),
        compare_stated("ms/fig3/longest", _mean_ms(times[longest]), above_number(200)),
        compare_printed("ms/fig3/between_longest", _spacing(longest), note=POWER_OF_TWO),
        compare_printed("ms/fig3/mean", float(times.mean()) / 1e6, note=MIDDLE),
    ]


def _spacing(members: "NDArray[np.bool_]") -> float:
    positions = np.flatnonzero(members)
    return float(np.diff(positions).mean()) if len(positions) > 1 else 0.0


def _mean_ms(times: "NDArray[np.uint64]") -> float:
    return float(times.mean()) / 1e6 if len(times) else 0.0


def draw_figure_3(data: IntelSteadyState) -> "Figure":
    """Draw 5,000 writes."""
    sheet, [axis] = figure.panels(height=4.2)
    ms.draw_writes(axis, data.series.times_ns[: ms.SHOWN_IOS], INTEL_LEVELS_MS)
    figure.title(axis, "Intel X25-M, steady state", "a model of its mechanism")
    ms.legend_above(axis)
    return sheet


MS_FIGURE_3 = Reproduction(
    id="ms-fig3",
    title="the Intel X25-M in its steady state",
    source="Myers & Sinclair (2010) §5.2, figure 3",
    steps=1,
    measure=measure_figure_3,
    rows=rows_figure_3,
    draw=draw_figure_3,
)
