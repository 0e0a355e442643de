"""OFC figure 6(b): mixed random reads and writes.

**Source**: OFC (2011) §V.E, figure 6(b).
**Faithful**: a device "that initially was completely written using sequential writes"; the upper
curve while collected blocks hold nothing valid, the lower one in the steady state of random writes.
**Simplified**: the lower curve starts from the steady state of writes alone, which reads do not
change.
**Ambiguous**: the text prints no value of the curves. Their ends are printed elsewhere: random
reads and random writes in §V.D and §V.F, writes that only erase in §V.F.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from uflip.executors import OnStep, on_all
from uflip.reproduce import figure, ofc, simulated_device
from uflip.reproduce.reproduction import (
    Reproduction,
    ReproductionRow,
    above,
    below,
    compare_printed,
    compare_stated,
)
from uflip.reproduce.simulated_device import SimulatedDevice, Window

if TYPE_CHECKING:
    from matplotlib.figure import Figure

READ_PERCENT = (100, 90, 80, 70, 60, 50, 40, 30, 20, 10, 0)
MIX_IOS = 300_000
PRINTED_READS = 24.0
PRINTED_WRITES_THAT_ERASE = 17.0
PRINTED_WRITES = 8.5


@dataclass(frozen=True)
class ReadWriteMixCurves:
    """Rates of reads and writes together [kIOPS] for each share of writes."""

    write_share: tuple[float, ...]
    erases_only: tuple[float, ...]
    with_relocation: tuple[float, ...]


def measure_figure_6b(on_step: OnStep) -> ReadWriteMixCurves:
    """Measure both curves; every point has a copy of its state."""
    fresh = ofc.ofc_device(state="empty")
    # Twice the flash capacity: blocks collected from now on hold only overwritten pages.
    ofc.write_untimed(fresh, "sequential", 2 * ofc.BLOCKS * ofc.PAGES_PER_BLOCK)
    steady = fresh.clone()
    ofc.steady_random_writes(steady)
    points = [(state, percent) for state in (fresh, steady) for percent in READ_PERCENT]
    windows = on_all(_measure_mix_point, points, on_step, _name)
    kiops = [window.kiops for window in windows]
    return ReadWriteMixCurves(
        write_share=tuple(1 - percent / 100 for percent in READ_PERCENT),
        erases_only=tuple(kiops[: len(READ_PERCENT)]),
        with_relocation=tuple(kiops[len(READ_PERCENT) :]),
    )


def _name(point: tuple[SimulatedDevice, int]) -> str:
    return f"{point[1]} % reads"


def _measure_mix_point(point: tuple[SimulatedDevice, int]) -> Window:
    state, read_percent = point
    device = state.clone()
    if read_percent in (0, 100):
        return ofc.random(device, "read" if read_percent else "write", MIX_IOS, seed=31)
    return device.run(
        simulated_device.mixed_requests(
            read_percent,
            page_bytes=device.page_bytes,
            outstanding=ofc.OUTSTANDING,
            ios=MIX_IOS,
            seed=31,
        )
    )


def rows_figure_6b(data: ReadWriteMixCurves) -> list[ReproductionRow]:
    """Compare the ends of the curves, and their shape."""
    falls = [float(np.diff(curve).max()) for curve in (data.erases_only, data.with_relocation)]
    drops = [curve[0] - curve[-1] for curve in (data.erases_only, data.with_relocation)]
    share = [low / high for low, high in zip(data.with_relocation, data.erases_only, strict=True)]
    return [
        compare_printed(
            "ofc/random_reads",
            data.erases_only[0],
            what="random reads alone",
            wider=ofc.WHOLE_REQUESTS,
        ),
        compare_printed(
            "ofc/erasing_writes", data.erases_only[-1], what="writes alone, erases only"
        ),
        compare_printed(
            "ofc/random_writes_45", data.with_relocation[-1], what="writes alone, with relocation"
        ),
        compare_stated(
            "ofc/mix_falls",
            max(falls),
            below(0),
            note="the upper curve falls least from 3 writes in 4 on: writes alone keep six "
            "requests on six dies in turn, while a few reads among them wait for dies that program",
        ),
        compare_stated("ofc/mix_below", max(share[1:]), below(1)),
        compare_stated("ofc/mix_drop", drops[1] / drops[0], above(1)),
    ]


def draw_figure_6b(data: ReadWriteMixCurves) -> "Figure":
    """Draw both curves against the share of writes."""
    sheet, [axis] = figure.panels(height=4.2)
    share = [100 * value for value in data.write_share]
    axis.plot(
        share,
        data.erases_only,
        color=figure.SEQUENTIAL_WRITES,
        marker="^",
        label="simulated, blocks only erased",
    )
    axis.plot(
        share,
        data.with_relocation,
        color=figure.WRITES,
        marker="D",
        label="simulated, pages relocated (steady state)",
    )
    figure.mark_printed(
        axis,
        [0, 100, 100],
        [PRINTED_READS, PRINTED_WRITES_THAT_ERASE, PRINTED_WRITES],
        "printed in the report for pure loads",
    )
    figure.title(
        axis, "Mixed random reads and writes", "OFC figure 6(b): reads and writes together"
    )
    axis.set_xlabel("share of writes [%]")
    axis.set_xlim(-3, 103)
    figure.from_zero(axis, "kIOPS", 30)
    axis.legend(loc="lower left")
    return sheet


OFC_FIGURE_6B = Reproduction(
    id="ofc-fig6b",
    title="mixed random reads and writes",
    source="OFC (2011) §V.E, figure 6(b)",
    steps=2 * len(READ_PERCENT),
    measure=measure_figure_6b,
    rows=rows_figure_6b,
    draw=draw_figure_6b,
)
