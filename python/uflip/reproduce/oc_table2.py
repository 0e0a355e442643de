"""uFLIP-OC's Table 2: throughput over the LUNs of one channel.

**Source**: uFLIP-OC (2017) §5.2.1, Table 2.
**Faithful**: µOC2 on 64 blocks, constants of the profile `dfc`; every value of the table.
**Simplified**: nothing.
**Ambiguous**: "with one thread (not shown) the throughput is not affected by the number of LUNs":
reads by one thread are compared with the printed 37.09 MB/s of one LUN.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from uflip.oc import figures, oc2
from uflip.oc.scaling import Scaling
from uflip.parallel import OnStep
from uflip.reproduce import oc
from uflip.reproduce.reproduction import Reproduction
from uflip.reproduce.row import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PUBLISHED: dict[str, dict[int, float]] = {
    "writes, a thread a LUN": {1: 16.81, 2: 27.22, 4: 37.85},
    "writes, one thread": {1: 16.81, 2: 23.47, 4: 33.45},
    "reads, a thread a LUN": {1: 37.09, 2: 49.77, 4: 49.73},
    "reads, one thread": {1: 37.09, 2: 37.09, 4: 37.09},
}
"""Table 2 [MB/s]; the last row from the text."""

FACTORS: dict[str, dict[int, float]] = {
    "writes, a thread a LUN": {2: 1.62, 4: 2.25},
    "writes, one thread": {2: 1.40, 4: 1.99},
    "reads, a thread a LUN": {2: 1.34, 4: 1.34},
}
"""Table 2, scaling factors."""


@dataclass(frozen=True)
class Data:
    """What µOC2 gave."""

    scaling: dict[str, Scaling]


def measure(on_step: OnStep) -> Data:
    """Run µOC2."""
    return Data(oc2.measure(oc.session(on_step)))


def rows(data: Data) -> list[Row]:
    """Every rate of the table, then its scaling factors."""
    found = [
        oc.joint(
            f"{kind}, {luns} LUN{'s' if luns > 1 else ''}",
            "MB/s",
            value,
            data.scaling[kind].mb_per_s[luns],
        )
        for kind, published in PUBLISHED.items()
        for luns, value in published.items()
    ]
    return found + oc.factor_rows(data.scaling, FACTORS)


def draw(data: Data) -> "Figure":
    """Draw throughput over LUNs."""
    kinds = list(PUBLISHED)
    panels = [("writes over LUNs", kinds[:2]), ("reads over LUNs", kinds[2:])]
    return figures.scalings(data.scaling, PUBLISHED, panels=panels, simulated=True)


REPRODUCTION = Reproduction(
    id="oc-table2",
    title="throughput over the LUNs of one channel, and its scaling factors",
    source="uFLIP-OC (2017) Table 2",
    steps=12,
    measure=measure,
    rows=rows,
    draw=draw,
)
