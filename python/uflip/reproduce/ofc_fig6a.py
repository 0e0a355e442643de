"""OFC figure 6(a): random writes over a long time.

**Source**: OFC (2011) §V.D, figure 6(a).
**Faithful**: uniform random writes on a clean device, values for each second of (virtual) time, all
of it in the timed mode.
**Simplified**: nothing.
**Ambiguous**: the length of "longer periods of time"; here ten million writes, some 20 minutes,
which is ten times the physical capacity.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from uflip.executors import OnStep
from uflip.models.relocation import PRINTED_RELOCATED_PAGES, relocated_pages_simplified
from uflip.reproduce import figure, ofc, simulated_device
from uflip.reproduce.reproduction import (
    AS_PRINTED,
    Reproduction,
    ReproductionRow,
    below,
    between,
    compare_printed,
    compare_stated,
    equation,
)
from uflip.reproduce.simulated_device import concatenate_windows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LONG_IOS = 10_000_000
PRINTED_KIOPS = 8.5
PRINTED_PAGES = PRINTED_RELOCATED_PAGES[0.45]
# The last part of the run, which is in the steady state.
STEADY_SHARE = 0.5
# A minute is "at the level" of the steady state within this share.
STEADY_TOLERANCE = 0.03
# "A few minutes" until that level is reached.
FEW_MINUTES = 5


@dataclass(frozen=True)
class LongRandomWrites:
    """The rate in each second, and relocated pages in each run of the window."""

    kiops: tuple[float, ...]
    minute: tuple[float, ...]
    """The middle of each run [minutes]."""
    relocated_pages: tuple[float, ...]

    @property
    def steady_kiops(self) -> float:
        """Mean rate of the steady part."""
        return float(np.mean(self.kiops[int(len(self.kiops) * (1 - STEADY_SHARE)) :]))

    @property
    def steady_pages(self) -> float:
        """Mean number of relocated pages in the steady part."""
        return float(
            np.mean(self.relocated_pages[int(len(self.relocated_pages) * (1 - STEADY_SHARE)) :])
        )

    @property
    def kiops_by_minute(self) -> tuple[float, ...]:
        """Mean rate of each whole minute."""
        whole = len(self.kiops) // 60 * 60
        return tuple(np.reshape(self.kiops[:whole], (-1, 60)).mean(axis=1).tolist())

    @property
    def minutes_until_steady(self) -> int:
        """Return the number of minutes until the rate stays at its steady level."""
        level = self.steady_kiops
        off = [abs(kiops / level - 1) > STEADY_TOLERANCE for kiops in self.kiops_by_minute]
        return max((minute + 1 for minute, is_off in enumerate(off) if is_off), default=0)


def measure_figure_6a(on_step: OnStep) -> LongRandomWrites:
    """Write at random on a clean device for a long time."""
    device = ofc.ofc_device(state="empty")
    runs = list(
        simulated_device.random_requests(
            "write",
            page_bytes=device.page_bytes,
            outstanding=ofc.OUTSTANDING,
            ios=LONG_IOS,
            seed=21,
        )
    )
    windows = []
    for done, run in enumerate(runs, start=1):
        windows.append(device.run(run))
        on_step(done, f"{done * simulated_device.RUN_IOS / 1e6:.1f} million random writes")
    ends = np.cumsum([window.elapsed_ns for window in windows])
    middles = ends - np.array([window.elapsed_ns for window in windows]) / 2
    return LongRandomWrites(
        kiops=tuple(concatenate_windows(windows).kiops_each_second().tolist()),
        minute=tuple((middles / 60e9).tolist()),
        relocated_pages=tuple(window.relocated_pages for window in windows),
    )


def rows_figure_6a(data: LongRandomWrites) -> list[ReproductionRow]:
    """Compare the steady values, and the time until they are reached."""
    late = data.kiops_by_minute[data.minutes_until_steady :]
    spread = 100 * (max(late) / min(late) - 1)
    calculated = relocated_pages_simplified(
        spare_factor=ofc.SPARE_FACTOR, pages_per_block=ofc.PAGES_PER_BLOCK
    )
    return [
        compare_printed("ofc/random_writes_45", data.steady_kiops, what="random writes, steady"),
        compare_printed(
            "ofc/pages_45",
            data.steady_pages,
            what="relocated pages, steady: text",
            note="the text does not follow from the report's own equation (2): see ofc-fig5b",
        ),
        equation(
            "relocated pages, steady: equation (2)",
            "pages",
            calculated,
            data.steady_pages,
            wider=AS_PRINTED,
        ),
        compare_stated(
            "ofc/level_after",
            data.minutes_until_steady,
            between(1, FEW_MINUTES),
            note=f"at its level: within {100 * STEADY_TOLERANCE:.0f} % of it, for good",
        ),
        compare_stated("ofc/stable", spread, below(3)),
    ]


def draw_figure_6a(data: LongRandomWrites) -> "Figure":
    """Draw rate and page numbers against time."""
    sheet, [rate, pages] = figure.panels(2, 1, height=5.0)
    seconds = np.arange(len(data.kiops)) / 60
    rate.plot(
        seconds, data.kiops, color=figure.WRITES, linewidth=0.8, label="simulated, each second"
    )
    rate.axhline(PRINTED_KIOPS, label="printed in the report", **figure.PRINTED_LEVEL)
    figure.title(
        rate, "Random writes over a long time", "OFC figure 6(a): from a clean device, 45 % spare"
    )
    figure.from_zero(rate, "kIOPS", 21)
    pages.plot(
        data.minute,
        data.relocated_pages,
        color=figure.WRITES,
        marker="D",
        markersize=3,
        label="simulated",
    )
    pages.axhline(PRINTED_PAGES, label="printed in the report", **figure.PRINTED_LEVEL)
    calculated = relocated_pages_simplified(
        spare_factor=ofc.SPARE_FACTOR, pages_per_block=ofc.PAGES_PER_BLOCK
    )
    pages.axhline(calculated, label="equation (2) as printed", **figure.EQUATION)
    figure.title(pages, "Relocated pages a collected block")
    figure.from_zero(pages, "pages", 45, 10)
    for axis in (rate, pages):
        axis.set_xlim(0, len(data.kiops) / 60)
        axis.set_xticks(np.arange(0, len(data.kiops) / 60, 2))
        axis.legend(loc="upper right" if axis is rate else "lower right", ncols=3)
    pages.set_xlabel("virtual time [minutes]")
    return sheet


OFC_FIGURE_6A = Reproduction(
    id="ofc-fig6a",
    title="random writes over a long time",
    source="OFC (2011) §V.D, figure 6(a)",
    steps=LONG_IOS // simulated_device.RUN_IOS,
    measure=measure_figure_6a,
    rows=rows_figure_6a,
    draw=draw_figure_6a,
)
