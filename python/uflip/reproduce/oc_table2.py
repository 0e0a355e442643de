"""uFLIP-OC's Table 2: throughput over the LUNs of one channel.

**Source**: uFLIP-OC (2017) §5.2.1, Table 2.
**Faithful**: µOC2 on 64 blocks, constants of the profile `dfc`; every value of the table.
**Simplified**: nothing.
**Ambiguous**: "with one thread (not shown) the throughput is not affected by the number of LUNs":
reads by one thread are compared with the printed 37.09 MB/s of one LUN.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from uflip.executors import OnStep
from uflip.microbench.open_channel import oc2
from uflip.microbench.open_channel.scaling import Scaling
from uflip.oc import figures
from uflip.report.figures.matplotlib_chart import figure_of
from uflip.reproduce import oc
from uflip.reproduce.published import FACTORS_2, TABLE_2
from uflip.reproduce.reproduction import Reproduction, ReproductionRow

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class LunScaling:
    """The results of µOC2."""

    scaling: dict[str, Scaling]


def measure_table_2(on_step: OnStep) -> LunScaling:
    """Run µOC2."""
    return LunScaling(oc2.measure(oc.session(on_step)))


def rows_table_2(data: LunScaling) -> list[ReproductionRow]:
    """Compare every rate of the table, then its scaling factors."""
    return oc.table_rows("table2", data.scaling, TABLE_2, FACTORS_2)


def draw_table_2(data: LunScaling) -> "Figure":
    """Draw throughput over LUNs."""
    kinds = list(TABLE_2)
    panels = [("writes over LUNs", kinds[:2]), ("reads over LUNs", kinds[2:])]
    return figure_of(
        figures.scalings(data.scaling, oc.numbers(TABLE_2), panels=panels, simulated=True)
    )


OC_TABLE_2 = Reproduction(
    id="oc-table2",
    title="throughput over the LUNs of one channel, and its scaling factors",
    source="uFLIP-OC (2017) Table 2",
    steps=12,
    measure=measure_table_2,
    rows=rows_table_2,
    draw=draw_table_2,
)
