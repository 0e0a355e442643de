"""uFLIP-OC's Table 3: throughput over channels, by vectors and by threads; and 32 threads.

**Source**: uFLIP-OC (2017) §5.2.2, Table 3.
**Faithful**: µOC3 on 64 blocks, constants of the profile `dfc`; every value of the table, and the
two rates of 32 threads from the text.
**Simplified**: nothing.
**Ambiguous**: the channels of a thread if there are fewer threads than channels. "The experiment
targets each channel in turn in round-robin fashion": here each thread has an equal share of the
channels, and uses them in turn.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from uflip.executors import OnStep
from uflip.microbench.open_channel import oc3
from uflip.microbench.open_channel.scaling import Scaling
from uflip.oc import figures
from uflip.report.figures.matplotlib_chart import figure_of
from uflip.reproduce import oc
from uflip.reproduce.published import ALL_LUNS, FACTORS_3, TABLE_3
from uflip.reproduce.reproduction import Reproduction, ReproductionRow

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class ChannelScaling:
    """The results of µOC3."""

    scaling: dict[str, Scaling]
    all_luns: dict[str, float]


def measure_table_3(on_step: OnStep) -> ChannelScaling:
    """Run the throughput part of µOC3."""
    session = oc.session(on_step)
    return ChannelScaling(oc3.measure_scaling(session), oc3.measure_all_luns(session))


def rows_table_3(data: ChannelScaling) -> list[ReproductionRow]:
    """Compare every value of the table, its scaling factors, and the rates of 32 threads."""
    return [
        *oc.table_rows("table3", data.scaling, TABLE_3, FACTORS_3),
        *(oc.joint(f"table3/32_threads/{word}", data.all_luns[word]) for word in ALL_LUNS),
    ]


def draw_table_3(data: ChannelScaling) -> "Figure":
    """Draw throughput over channels."""
    panels = [("writes over channels", list(TABLE_3))]
    return figure_of(
        figures.scalings(data.scaling, oc.numbers(TABLE_3), panels=panels, simulated=True)
    )


OC_TABLE_3 = Reproduction(
    id="oc-table3",
    title="throughput over channels by vectors and by threads, and of 32 threads",
    source="uFLIP-OC (2017) Table 3, §5.2.2",
    steps=18,
    measure=measure_table_3,
    rows=rows_table_3,
    draw=draw_table_3,
)
