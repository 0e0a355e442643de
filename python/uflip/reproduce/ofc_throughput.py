"""OFC's headline rates, 115 and 72 MB/s sequential, 24 and 8.5 kIOPS random; and all fits.

**Source**: OFC (2011) abstract, §III, §V.D and §V.F; Table II.
**Faithful**: the profile `ofc`, six outstanding requests, each rate in the state that the report
names; every constant that was fitted is shown with its number.
**Simplified**: nothing.
**Ambiguous**: rates in MB/s count pages of 4320 bytes, see `uflip.reproduce.ofc`. The report gives
two limits of its buses that exclude each other: 100 MB/s each, and 30 kIOPS.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from uflip.executors import OnStep, on_all
from uflip.models.channel import channel_rate
from uflip.reproduce import figure, fits, ofc
from uflip.reproduce.reproduction import (
    Reproduction,
    ReproductionRow,
    WiderTolerance,
    compare_printed,
    equation,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

THROUGHPUT_IOS = 300_000
PRINTED_BUS_BYTES_PER_S = 100_000_000
ROUNDED = WiderTolerance(0.03, "26.6 and 16.7 kIOPS are printed as 27 and 17")


def random_writes() -> float:
    """Return random writes in their steady state [kIOPS]."""
    device = ofc.device(state="sequential")
    ofc.steady_random_writes(device)
    return ofc.random(device, "write", THROUGHPUT_IOS, seed=41).kiops


def raw_writes() -> float:
    """Return sequential writes on a clean device without any processing [kIOPS]."""
    device = ofc.device(state="empty", command_write_ns=0)
    return ofc.sequential(device, "write", THROUGHPUT_IOS, fits.RAW_OUTSTANDING).kiops


def raw_reads_by_printed_bus() -> float:
    """Return raw reads if each bus had the rate that the report prints [kIOPS]."""
    return fits.raw_reads(bus_bytes_per_s=PRINTED_BUS_BYTES_PER_S)


def random_reads_by_printed_bus() -> float:
    """Return random reads if each bus had the rate that the report prints [kIOPS]."""
    return fits.random_reads(bus_bytes_per_s=PRINTED_BUS_BYTES_PER_S)


MEASUREMENTS: "dict[str, Callable[[], float]]" = {
    **{fit.constant: fit.measure for fit in fits.FITS},
    "random writes": random_writes,
    "raw writes": raw_writes,
    "raw reads, printed bus": raw_reads_by_printed_bus,
    "random reads, printed bus": random_reads_by_printed_bus,
}
# Constants were fitted to the headline rates as well.
PUBLISHED_SEQUENTIAL_READS, RANDOM_READS = "command_read_ns", "outstanding requests"
SEQUENTIAL_WRITES = "collect_ns"


@dataclass(frozen=True)
class HeadlineRates:
    """The results of `MEASUREMENTS`, by name, and the bytes that a page counts for."""

    measured: dict[str, float]
    page_bytes_with_spare: int

    def mb_per_s(self, name: str) -> float:
        """Convert a rate in kIOPS to MB/s as the report counts them."""
        return self.measured[name] * self.page_bytes_with_spare / 1e3


def _measure_rate(name: str) -> float:
    return MEASUREMENTS[name]()


def measure_throughput(on_step: OnStep) -> HeadlineRates:
    """Measure all rates, each on a new device."""
    names = list(MEASUREMENTS)
    values = on_all(_measure_rate, names, on_step)
    page_bytes = ofc.device(state="empty").page_bytes_with_spare
    return HeadlineRates(dict(zip(names, values, strict=True)), page_bytes)


def rows_throughput(data: HeadlineRates) -> list[ReproductionRow]:
    """Compare the headline rates, then the fits, then the limits that contradict each other."""
    by_name = data.measured
    return [
        compare_printed("ofc/reads_mb", data.mb_per_s(PUBLISHED_SEQUENTIAL_READS), wider=ROUNDED),
        compare_printed("ofc/writes_mb", data.mb_per_s(SEQUENTIAL_WRITES), wider=ROUNDED),
        compare_printed("ofc/random_writes_45", by_name["random writes"]),
        *(fits.fit_row(fit, by_name[fit.constant]) for fit in fits.FITS),
        *_limits(data),
    ]


def _limits(data: HeadlineRates) -> list[ReproductionRow]:
    by_name = data.measured
    one_die_rate = 4 * channel_rate(interface_bytes_per_s=166e6, page_bytes=4320, cell_ns=200_000)
    own_bus = f"ofc?bus_bytes_per_s={PRINTED_BUS_BYTES_PER_S}"
    return [
        compare_printed(
            "ofc/raw_writes",
            by_name["raw writes"],
            note="a bus has one rate here, fitted to reads; writes at 20 kIOPS would take 43 MB/s "
            "a bus, and neither follows from the 100 MB/s that are printed",
        ),
        compare_printed(
            "ofc/raw_reads",
            by_name["raw reads, printed bus"],
            what="raw reads if a bus carried the printed 100 MB/s",
            device=own_bus,
            note="the report contradicts itself: 2 x 100 MB/s are 46 kIOPS of 4320 bytes",
        ),
        compare_printed(
            "ofc/random_reads",
            by_name["random reads, printed bus"],
            what="random reads if a bus carried the printed 100 MB/s",
            device=own_bus,
            note="then the processor alone is the limit, and reads do not notice where pages are: "
            "what slows random reads down in the report must be on the side of the channels",
        ),
        equation(
            "4 channels of one die each, RB/(B + RT), 4096 of 4320 bytes",
            "MB/s",
            72.0,
            one_die_rate * 4096 / 4320 / 1e6,
            note="the printed 72 MB/s is also what writes would give without interleaving dies",
        ),
    ]


def draw_throughput(data: HeadlineRates) -> "Figure":
    """Draw the headline rates and the raw ones as bars, the printed values as rings."""
    bars = [
        ("sequential\nreads", PUBLISHED_SEQUENTIAL_READS, 115 / 4.32, figure.SEQUENTIAL_READS),
        ("random\nreads", RANDOM_READS, 24.0, figure.READS),
        ("sequential\nwrites", SEQUENTIAL_WRITES, 72 / 4.32, figure.SEQUENTIAL_WRITES),
        ("random\nwrites", "random writes", 8.5, figure.WRITES),
        ("raw reads", "bus_bytes_per_s", 30.0, figure.SEQUENTIAL_READS),
        ("raw reads,\nbus as printed", "raw reads, printed bus", 30.0, figure.SEQUENTIAL_READS),
        ("raw writes", "raw writes", 20.0, figure.SEQUENTIAL_WRITES),
    ]
    sheet, [axis] = figure.panels(height=4.2)
    positions = np.arange(len(bars))
    ours = [data.measured[name] for _, name, _, _ in bars]
    axis.bar(positions, ours, width=0.62, color=[color for *_, color in bars], alpha=0.55)
    for position, value in enumerate(ours):
        axis.text(position, 0.7, f"{value:.1f}", ha="center", fontsize=8.5)
    figure.mark_printed(
        axis, positions.tolist(), [compare_printed for _, _, compare_printed, _ in bars]
    )
    axis.set_xticks(positions, [label for label, *_ in bars])
    axis.tick_params(axis="x", length=0)
    axis.grid(visible=False, axis="x")
    figure.title(
        axis, "Rates of the OFC device", "Bars: simulated, 4 KiB requests. 1 kIOPS is 4.32 MB/s."
    )
    figure.from_zero(axis, "kIOPS", 52, 10)
    axis.legend(loc="upper left")
    return sheet


OFC_THROUGHPUT = Reproduction(
    id="ofc-throughput",
    title="sequential and random rates, and every constant that was fitted",
    source="OFC (2011) abstract, §III, §V.D, §V.F",
    steps=len(MEASUREMENTS),
    measure=measure_throughput,
    rows=rows_throughput,
    draw=draw_throughput,
)
