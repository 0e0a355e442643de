"""Myers & Sinclair's figure 3: the Intel X25-M in its steady state.

**Source**: Myers & Sinclair (2010) §5.2, figure 3.
**Faithful**: their micro-benchmark and classes on a full drive that was written at random.
**Simplified**: a page map on 10 channels of 2 dies with low and high pages, an eighth of the blocks
of the drive; nothing is fitted.
**Ambiguous**: nothing is known of the device's FTL. The peaks of 150 and 200 ms are housekeeping of
a kind that this model does not have: its dies collect page by page beside the host.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from uflip.parallel import OnStep
from uflip.reproduce import figure, ms
from uflip.reproduce.reproduction import Reproduction
from uflip.reproduce.row import Row, prediction

if TYPE_CHECKING:
    from matplotlib.figure import Figure

IOS = 100_000
# An eighth of the drive, in the same proportions: the same collection, sooner in its steady state.
BLOCKS_PER_DIE = 1024
LONG_NS, PEAK_NS = 1_500_000, 100_000_000
MAP = "a low page with its transfer takes 0.36 ms; what answers sooner in the drive is not known"
HOUSEKEEPING = "the model has no stop for housekeeping: its dies collect page by page"


@dataclass(frozen=True)
class Data:
    """Writes in the steady state."""

    series: ms.Series


def measure(on_step: OnStep) -> Data:
    """Run a batch in the steady state."""
    data = Data(ms.writes("intel-x25m", settle_ios=0, ios=IOS, blocks_per_die=BLOCKS_PER_DIE))
    on_step(1, "100,000 writes in the steady state")
    return data


def rows(data: Data) -> list[Row]:
    """Compare shares, peaks and mean."""
    times = data.series.times_ns
    peaks = np.flatnonzero(times >= PEAK_NS)
    every = float(np.diff(peaks).mean()) if len(peaks) > 1 else 0.0
    return [
        prediction(
            "writes below 0.3 ms",
            "%",
            15.0,
            100 * float((times < 300_000).mean()),
            note=MAP,
        ),
        prediction(
            "writes above 1.5 ms",
            "%",
            33.0,
            100 * float((times > LONG_NS).mean()),
            note="half of all pages are high ones, and take 1.8 ms by the data sheets",
        ),
        prediction("writes between peaks of 150 ms", "", 529, every, note=HOUSEKEEPING),
        prediction(
            "mean write",
            "ms",
            1.5,
            float(times.mean()) / 1e6,
            note="without peaks, which are 0.4 ms of it",
        ),
    ]


def draw(data: Data) -> "Figure":
    """Draw 5,000 writes."""
    sheet, [axis] = figure.panels(height=4.2)
    ms.draw_writes(axis, data.series.times_ns[: ms.SHOWN_IOS], [150.0, 200.0])
    figure.title(axis, "Intel X25-M, steady state", "a model of its mechanism")
    ms.legend_above(axis)
    return sheet


REPRODUCTION = Reproduction(
    id="ms-fig3",
    title="the Intel X25-M in its steady state",
    source="Myers & Sinclair (2010) §5.2, figure 3",
    steps=1,
    measure=measure,
    rows=rows,
    draw=draw,
)
