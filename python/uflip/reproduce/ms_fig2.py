"""Myers & Sinclair's figure 2: the Kingston SNV125 in its steady state.

**Source**: Myers & Sinclair (2010) §5.1, figure 2.
**Faithful**: their micro-benchmark and classes, after as many writes as fill the log several times.
**Simplified**: a model of the mechanism: FAST on 4 channels of 2 dies, two of its constants fitted.
**Ambiguous**: nothing is known of the device's FTL. Where FAST cannot be what it has, rows say so.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from uflip.parallel import OnStep
from uflip.reproduce import figure, ms
from uflip.reproduce.reproduction import Reproduction
from uflip.reproduce.row import Row, fitted, prediction

if TYPE_CHECKING:
    from matplotlib.figure import Figure

IOS = 100_000
SETTLE_IOS = 300_000
LEVELS_MS = (15.0, 400.0, 800.0)


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
    classes = data.series.classes
    small, middle, high = (ms.nearest(classes, level * 1e6) for level in LEVELS_MS)
    ours = [((peak.mean_ns or 0) / 1e6 if peak else 0.0) for peak in (small, middle, high)]
    return [
        prediction("writes below 0.3 ms", "%", 97.0, 100 * classes.bins[0].share),
        fitted("small peaks", "ms", 15.0, ours[0], constant="read_ns", tolerance=0.10),
        prediction("middle peaks", "ms", 400.0, ours[1]),
        prediction(
            "highest peaks",
            "ms",
            800.0,
            ours[2],
            note="the device reclaims two log blocks at once now and then, or three; FAST one",
        ),
        prediction("mean write", "ms", 13.0, classes.mean_ns / 1e6),
    ]


def draw(data: Data) -> "Figure":
    """Draw 5,000 writes."""
    sheet, [axis] = figure.panels(height=4.2)
    ms.draw_writes(axis, data.series.times_ns[: ms.SHOWN_IOS], LEVELS_MS)
    figure.title(axis, "Kingston SNV125, steady state", "a model of its mechanism")
    axis.legend(loc="upper right")
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
