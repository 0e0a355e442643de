"""Myers & Sinclair's figure 1: the Kingston SNV125 in its start-up.

**Source**: Myers & Sinclair (2010) §5.1, figure 1.
**Faithful**: their micro-benchmark from a device that is full and whose log is empty.
**Simplified**: a model of the mechanism, whose log size is fitted to the start-up.
**Ambiguous**: the writes before; their text describes "a small initial grace period where
latencies are low and all writes are fast".
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from uflip.executors import OnStep
from uflip.reproduce import figure, ms
from uflip.reproduce.reproduction import (
    Reproduction,
    ReproductionRow,
    above,
    compare_printed,
    compare_stated,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURE_1_IOS = 100_000
# The "great failure": the first write that takes as long as their middle peaks.
FAILURE_NS = 200_000_000


@dataclass(frozen=True)
class StartupSeries:
    """The first writes."""

    series: ms.BatchSeries

    @property
    def failure(self) -> int:
        """Number of the first write of the steady state."""
        return int(np.argmax(self.series.times_ns >= FAILURE_NS))


def measure_figure_1(on_step: OnStep) -> StartupSeries:
    """Run the first batch."""
    data = StartupSeries(ms.writes("kingston-snv125", settle_ios=0, ios=FIGURE_1_IOS))
    on_step(1, "the first 100,000 writes")
    return data


def rows_figure_1(data: StartupSeries) -> list[ReproductionRow]:
    """Compare the end of the start-up, and its speed."""
    before = data.series.times_ns[: data.failure]
    fast = float((before < 300_000).mean())
    return [
        compare_printed("ms/fig1/start_up", data.failure),
        compare_stated(
            "ms/fig1/all_fast",
            100 * fast,
            above(99),
            note="the model merges its sequential log in the start-up too, in 15 ms, with one "
            "write in 256; on the scale of their figure that cannot be seen",
        ),
    ]


def draw_figure_1(data: StartupSeries) -> "Figure":
    """Draw all writes."""
    sheet, [axis] = figure.panels(height=4.2)
    ms.draw_writes(axis, data.series.times_ns, [])
    axis.axvline(45_000, **figure.PRINTED_LEVEL, label="printed in the report")
    figure.title(axis, "Kingston SNV125, the first writes", "a model of its mechanism")
    ms.legend_above(axis)
    return sheet


MS_FIGURE_1 = Reproduction(
    id="ms-fig1",
    title="the Kingston SNV125 in its start-up",
    source="Myers & Sinclair (2010) §5.1, figure 1",
    steps=1,
    measure=measure_figure_1,
    rows=rows_figure_1,
    draw=draw_figure_1,
)
