"""Myers & Sinclair's figure 2: the Kingston SNV125 in its steady state.

**Source**: Myers & Sinclair (2010) §5.1, figure 2.
**Faithful**: their micro-benchmark and classes, after as many writes as fill the log several times.
**Simplified**: a model of the mechanism: FAST with a log on each of 8 dies, two constants fitted.
**Ambiguous**: nothing is known of the device's FTL. That its peaks lie at 400, 800 and 1,200 ms is
read as one, two or three log blocks reclaimed by one write. "Mostly around" is read as the median.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from uflip.parallel import OnStep
from uflip.reproduce import figure, ms
from uflip.reproduce.reproduction import Reproduction
from uflip.reproduce.row import Row, fitted, prediction, statement

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

IOS = 100_000
SETTLE_IOS = 300_000
LEVELS_MS = (15.0, 400.0, 800.0, 1200.0)
# Half-way between two printed levels.
BETWEEN_NS = (200_000_000, 600_000_000, 1_000_000_000)


@dataclass(frozen=True)
class Data:
    """Writes in the steady state."""

    series: ms.Series


def measure(on_step: OnStep) -> Data:
    """Run a batch in the steady state."""
    data = Data(ms.writes("kingston-snv125", settle_ios=SETTLE_IOS, ios=IOS))
    on_step(1, "100,000 writes in the steady state")
    return data


def rows(data: Data) -> list[Row]:
    """Compare classes and mean."""
    classes, times = data.series.classes, data.series.times_ns
    small = ms.nearest(classes, LEVELS_MS[0] * 1e6)
    middle = times[(times >= BETWEEN_NS[0]) & (times < BETWEEN_NS[1])]
    highest = times[times >= BETWEEN_NS[1]]
    longest = highest[highest >= BETWEEN_NS[2]]
    rarely = len(longest) / len(highest) if len(highest) else 0.0
    return [
        prediction("writes below 0.3 ms", "%", 97.0, 100 * classes.bins[0].share),
        fitted(
            "small peaks",
            "ms",
            15.0,
            (small.mean_ns or 0) / 1e6 if small else 0.0,
            constant="read_ns",
        ),
        prediction("middle peaks", "ms", 400.0, _median_ms(middle)),
        prediction("highest peaks, mostly", "ms", 800.0, _median_ms(highest)),
        prediction("highest peaks, rarely", "ms", 1200.0, _median_ms(longest)),
        statement(
            "share of the longest in the highest peaks",
            "%",
            "rarely",
            100 * rarely,
            holds=0 < rarely < 0.2,
        ),
        prediction("mean write", "ms", 13.0, classes.mean_ns / 1e6),
    ]


def _median_ms(times: "NDArray[np.uint64]") -> float:
    return float(np.median(times)) / 1e6 if len(times) else 0.0


def draw(data: Data) -> "Figure":
    """Draw 5,000 writes."""
    sheet, [axis] = figure.panels(height=4.2)
    ms.draw_writes(axis, data.series.times_ns[: ms.SHOWN_IOS], LEVELS_MS)
    figure.title(axis, "Kingston SNV125, steady state", "a model of its mechanism")
    ms.legend_above(axis)
    return sheet


REPRODUCTION = Reproduction(
    id="ms-fig2",
    title="the Kingston SNV125 in its steady state: four classes of latencies",
    source="Myers & Sinclair (2010) §5.1, figure 2",
    steps=1,
    measure=measure,
    rows=rows,
    draw=draw,
)
