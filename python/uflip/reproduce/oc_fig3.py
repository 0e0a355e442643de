"""uFLIP-OC's Figure 3: throughput of every LUN, one at a time.

**Source**: uFLIP-OC (2017) §5.1.2, Figure 3; its values are in the text.
**Faithful**: µOC0 with 100 % writes and 100 % reads on each of the 32 LUNs, 64 blocks each.
**Simplified**: LUNs of the simulated device are alike, so that the map has no texture: its spread
is nil by construction.
**Ambiguous**: the text has 16 and 38 MB/s here, and 16.81 and 37.09 in Table 2 for the same.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from uflip.executors import OnStep
from uflip.microbench.open_channel import oc0
from uflip.oc import figures
from uflip.report.figures.matplotlib_chart import figure_of
from uflip.reproduce import oc
from uflip.reproduce.reproduction import (
    Reproduction,
    ReproductionRow,
    below,
    compare_printed,
    compare_stated,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# "Little variance across LUNs".
LITTLE_VARIANCE = 0.05


@dataclass(frozen=True)
class LunThroughput:
    """Throughput [MB/s] by channel, then LUN."""

    write_mb_per_s: list[list[float]]
    read_mb_per_s: list[list[float]]


def measure_figure_3(on_step: OnStep) -> LunThroughput:
    """Measure every LUN."""
    session = oc.session(on_step)
    write, read = oc0.measure_luns(session, "W"), oc0.measure_luns(session, "R")
    return LunThroughput(write.tolist(), read.tolist())


def rows_figure_3(data: LunThroughput) -> list[ReproductionRow]:
    """Compare slowest and fastest LUN with the text, and their spread."""
    lun_rows = []
    for word, values in (
        ("writes", np.array(data.write_mb_per_s)),
        ("reads", np.array(data.read_mb_per_s)),
    ):
        for name, value in (("slowest", values.min()), ("fastest", values.max())):
            what = f"{word}, {name} of {values.size} LUNs"
            lun_rows.append(
                compare_printed(f"oc/fig3/{word}", float(value), what=what, wider=oc.JOINTLY)
            )
        spread = float((values.max() - values.min()) / values.mean())
        lun_rows.append(compare_stated(f"oc/fig3/{word}_spread", spread, below(LITTLE_VARIANCE)))
    return lun_rows


def draw_figure_3(data: LunThroughput) -> "Figure":
    """Draw both maps."""
    return figure_of(
        figures.heat_map(
            np.array(data.write_mb_per_s), np.array(data.read_mb_per_s), simulated=True
        )
    )


OC_FIGURE_3 = Reproduction(
    id="oc-fig3",
    title="throughput of every LUN alone",
    source="uFLIP-OC (2017) Figure 3, §5.1.2",
    steps=64,
    measure=measure_figure_3,
    rows=rows_figure_3,
    draw=draw_figure_3,
)
