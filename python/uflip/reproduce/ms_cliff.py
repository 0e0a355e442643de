"""Myers & Sinclair's write cliff: the end of the early performance of their two drives.

**Source**: Myers & Sinclair (2010) §2.3, §5.2 and §7, without a figure.
**Faithful**: their micro-benchmark on both drives, from the initial state of the profile and from
the factory state, until writes take as long as in the steady state.
**Simplified**: models of the mechanism. On the Kingston the cliff is the first write that merges a
log block; on the Intel the mean is compared.
**Ambiguous**: the writes before. "After fewer than 50000 writes" is compared with both states; no
"distinct start-up phase" is read as a mean within a factor of two from the beginning.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from uflip.benchmark.myers_sinclair import BATCH_IOS, IO_BYTES, batch
from uflip.device.opener import open_device
from uflip.durability import FUA
from uflip.executors import OnStep
from uflip.reproduce import figure, ms
from uflip.reproduce.ms_fig1 import FAILURE_NS
from uflip.reproduce.reproduction import (
    Reproduction,
    ReproductionRow,
    below,
    between,
    compare_stated,
)
from uflip.reproduce.simulated_device import device_url

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FRESH = "empty"
EARLY_IOS = 5_000
CLIFF_SETTLE_IOS = 300_000
# More than twice the batches that the model of a fresh Kingston takes.
BATCHES_MAX = 20


@dataclass(frozen=True)
class WriteCliff:
    """The writes of a drive up to its cliff.

    Attributes
    ----------
    ios : int
        Writes before the first one that takes as long as in the steady state.
    capacity_bytes : int
        Capacity of the drive.
    means_ns : list of float
        Means of every `EARLY_IOS` writes until then and of the rest of the batch [ns].
    """

    ios: int
    capacity_bytes: int
    means_ns: list[float]

    @property
    def share(self) -> float:
        """Return the bytes written until then, over the capacity."""
        return self.ios * IO_BYTES / self.capacity_bytes


@dataclass(frozen=True)
class WriteCliffComparison:
    """The Kingston until its cliff, full and fresh; the Intel early and late."""

    full: WriteCliff
    fresh: WriteCliff
    intel_early: ms.BatchSeries
    intel_late: ms.BatchSeries


def cliff(**overrides: str) -> WriteCliff:
    """Write to the Kingston until a write takes as long as the middle peaks of figure 2."""
    means: list[float] = []
    with open_device(device_url("kingston-snv125", **overrides), durability=FUA) as device:
        for number in range(BATCHES_MAX):
            trace = device.run(batch(number))
            times = np.asarray(trace.column("response_time_ns"))
            means += [float(part.mean()) for part in np.split(times, BATCH_IOS // EARLY_IOS)]
            slow = np.flatnonzero(times >= FAILURE_NS)
            if len(slow):
                ios = number * BATCH_IOS + int(slow[0])
                return WriteCliff(ios, device.info.capacity_bytes, means)
        return WriteCliff(BATCHES_MAX * BATCH_IOS, device.info.capacity_bytes, means)


def measure_cliff(on_step: OnStep) -> WriteCliffComparison:
    """Run both drives from both states."""
    full = cliff()
    on_step(1, "the Kingston, full")
    fresh = cliff(state=FRESH)
    on_step(2, "the Kingston, fresh from the factory")
    early = ms.writes("intel-x25m", settle_ios=0, ios=EARLY_IOS, state=FRESH)
    late = ms.writes("intel-x25m", settle_ios=CLIFF_SETTLE_IOS, ios=BATCH_IOS)
    on_step(3, "the Intel, fresh and in its steady state")
    return WriteCliffComparison(full, fresh, early, late)


def rows_cliff(data: WriteCliffComparison) -> list[ReproductionRow]:
    """Compare the positions of the cliffs, and whether there are any."""
    ratio = data.intel_early.classes.mean_ns / data.intel_late.classes.mean_ns
    return [
        compare_stated("ms/cliff/early", data.full.ios, below(50_000)),
        compare_stated(
            "ms/cliff/early_fresh",
            data.fresh.ios,
            below(50_000),
            note="on a drive of which nothing was written FAST writes to data blocks, and its log "
            "fills with writes to what is there already: after sqrt(2 x pages of the drive x pages "
            "of the log) writes; theirs must have been written to before, or does something else",
        ),
        compare_stated("ms/cliff/not_filled", 100 * data.fresh.share, below(100)),
        compare_stated("ms/cliff/intel", ratio, between(0.5, 2)),
    ]


def draw_cliff(data: WriteCliffComparison) -> "Figure":
    """Draw the mean over the number of writes."""
    sheet, [axis] = figure.panels(height=4.2)
    for one, label, color in (
        (data.full, "full", figure.WRITES),
        (data.fresh, "fresh from the factory", figure.READS),
    ):
        ios = EARLY_IOS * np.arange(1, len(one.means_ns) + 1)
        axis.plot(ios, np.asarray(one.means_ns) / 1e6, label=label, color=color)
    axis.axvline(50_000, **figure.PRINTED_LEVEL, label="printed in the report")
    figure.logarithmic(axis, f"mean of {EARLY_IOS:,} writes [ms]")
    axis.set_xscale("log")
    axis.xaxis.set_major_formatter("{x:,.0f}")
    axis.set_xlabel("number of the write")
    figure.title(axis, "Kingston SNV125, the write cliff", "a model of its mechanism")
    ms.legend_above(axis)
    return sheet


MS_CLIFF = Reproduction(
    id="ms-cliff",
    title="the write cliff of the Kingston SNV125 and the Intel X25-M",
    source="Myers & Sinclair (2010) §2.3, §5.2, §7",
    steps=3,
    measure=measure_cliff,
    rows=rows_cliff,
    draw=draw_cliff,
)
