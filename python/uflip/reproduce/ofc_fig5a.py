"""OFC figure 5(a): random writes against the number of relocated pages per collected block.

**Source**: OFC (2011) §V.B, figure 5(a).
**Faithful**: the oldest block is collected, and a fixed number of its pages is relocated whatever
is still valid.
**Simplified**: no data is lost: writes go to a tenth of an empty device, where a collected block
holds nothing valid, so that every relocated page is one of the fixed number. On a full device the
same number costs data; `relocate_exactly` of a profile does that.
**Ambiguous**: the range of the figure's axis is not given; 0 to 60 pages here.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from uflip.executors import OnStep, on_all
from uflip.reproduce import figure, ofc
from uflip.reproduce.published import PUBLISHED
from uflip.reproduce.reproduction import (
    Reproduction,
    ReproductionRow,
    WiderTolerance,
    compare_printed,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAGES = tuple(sorted({*range(0, 61, 5), 27}))
# Printed elsewhere in the report, each with a number of relocated pages: §V.C, §V.D, §V.C.
KIOPS_BY_PAGES = {
    15: "ofc/random_writes_60", 27: "ofc/relocating_27", 45: "ofc/random_writes_30",
}  # fmt: skip
INTERPOLATED = WiderTolerance(
    0.10, "what was fitted lies at 0 and at 30 pages: between them any falling, convex curve agrees"
)
NO_VALID_PAGES = "printed for sequential writes (§V.F), whose blocks hold nothing valid either"


@dataclass(frozen=True)
class RelocationCurve:
    """Random writes [kIOPS] for each number of relocated pages."""

    relocated_pages: tuple[int, ...]
    kiops: tuple[float, ...]

    def kiops_at(self, pages: float) -> float:
        """Return the value at a number of pages, by linear interpolation."""
        return float(np.interp(pages, self.relocated_pages, self.kiops))


def measure_figure_5a(on_step: OnStep) -> RelocationCurve:
    """Measure all numbers of pages."""
    kiops = on_all(ofc.fixed_relocation, PAGES, on_step, "{} relocated pages".format)
    return RelocationCurve(PAGES, tuple(kiops))


def rows_figure_5a(data: RelocationCurve) -> list[ReproductionRow]:
    """Compare with the drop in the text, and with rates that are printed with page numbers."""
    drop = 100 * (1 - data.kiops_at(30) / data.kiops_at(0))
    return [
        compare_printed("ofc/drop_30_pages", drop),
        compare_printed(
            "ofc/erasing_writes",
            data.kiops_at(0),
            what="random writes at 0 relocated pages",
            note=NO_VALID_PAGES,
        ),
        *(
            compare_printed(
                value_id,
                data.kiops_at(pages),
                what=f"random writes at {pages} relocated pages",
                wider=INTERPOLATED if pages == 27 else None,
                note=f"{'§V.D' if pages == 27 else '§V.C'} prints both for one spare factor",
            )
            for pages, value_id in KIOPS_BY_PAGES.items()
        ),
    ]


def draw_figure_5a(data: RelocationCurve) -> "Figure":
    """Draw the rate against the number of pages."""
    sheet, [axis] = figure.panels(height=4.2)
    axis.plot(data.relocated_pages, data.kiops, color=figure.WRITES, marker="D", label="simulated")
    ids = ["ofc/erasing_writes", *KIOPS_BY_PAGES.values()]
    figure.mark_printed(
        axis, [0, *KIOPS_BY_PAGES], [PUBLISHED[value_id].number or 0 for value_id in ids]
    )
    half = data.kiops_at(0) / 2
    axis.plot([0, 30, 30], [half, half, 0], color=figure.FAINT, linewidth=0.8, linestyle=":")
    axis.annotate(
        "half of the rate at 30 pages: relocate_ns is fitted to this",
        (30, half),
        (8, 6),
        textcoords="offset points",
        color=figure.FAINT,
        fontsize=8,
    )
    figure.title(
        axis,
        "Random writes against relocated pages",
        "OFC figure 5(a): a fixed number of pages of the oldest block is relocated",
    )
    axis.set_xlabel("relocated pages a collected block")
    axis.set_xlim(-1.5, PAGES[-1] + 1.5)
    figure.from_zero(axis, "kIOPS", 21)
    axis.legend(loc="upper right")
    return sheet


OFC_FIGURE_5A = Reproduction(
    id="ofc-fig5a",
    title="random writes against the number of relocated pages",
    source="OFC (2011) §V.B, figure 5(a)",
    steps=len(PAGES),
    measure=measure_figure_5a,
    rows=rows_figure_5a,
    draw=draw_figure_5a,
)
