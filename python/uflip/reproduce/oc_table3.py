"""uFLIP-OC's Table 3: throughput over channels, by vectors and by threads; and 32 threads.

**Source**: uFLIP-OC (2017) §5.2.2, Table 3.
**Faithful**: µOC3 on 64 blocks, constants of the profile `dfc`; every value of the table, and the
two rates of 32 threads from the text.
**Simplified**: nothing.
**Ambiguous**: which channels a thread goes over where there are fewer threads than channels. "The
experiment targets each channel in turn in round-robin fashion": here each thread has an equal share
of the channels, and takes them in turn.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from uflip.oc import figures, oc3
from uflip.oc.scaling import Scaling
from uflip.parallel import OnStep
from uflip.reproduce import oc
from uflip.reproduce.reproduction import Reproduction
from uflip.reproduce.row import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PUBLISHED: dict[str, dict[int, float]] = {
    "writes, vectors": {1: 44.37, 2: 80.35, 4: 117.84, 8: 128.59},
    "writes, threads": {1: 45.86, 2: 94.37, 4: 119.90, 8: 127.23},
}
"""Table 3 [MB/s]."""

FACTORS: dict[str, dict[int, float]] = {
    "writes, vectors": {2: 1.81, 4: 2.66, 8: 2.90},
    "writes, threads": {2: 2.06, 4: 2.61, 8: 2.77},
}
"""Table 3, scaling factors."""

ALL_LUNS = {"writes": 300.0, "reads": 400.0}
"""With 32 threads [MB/s], in the text."""


@dataclass(frozen=True)
class Data:
    """What µOC3 gave."""

    scaling: dict[str, Scaling]
    all_luns: dict[str, float]


def measure(on_step: OnStep) -> Data:
    """Run the part of µOC3 that is about throughput."""
    session = oc.session(on_step)
    return Data(oc3.measure_scaling(session), oc3.measure_all_luns(session))


def rows(data: Data) -> list[Row]:
    """Every value of the table, its scaling factors, and the rates of 32 threads."""
    found = [
        oc.joint(
            f"{kind}, {degree} {data.scaling[kind].over[: None if degree > 1 else -1]}",
            "MB/s",
            value,
            data.scaling[kind].mb_per_s[degree],
        )
        for kind, published in PUBLISHED.items()
        for degree, value in published.items()
    ]
    found += oc.factor_rows(data.scaling, FACTORS)
    return found + [
        oc.joint(f"{word}, 32 threads", "MB/s", value, data.all_luns[word])
        for word, value in ALL_LUNS.items()
    ]


def draw(data: Data) -> "Figure":
    """Draw throughput over channels."""
    panels = [("writes over channels", list(PUBLISHED))]
    return figures.scalings(data.scaling, PUBLISHED, panels=panels, simulated=True)


REPRODUCTION = Reproduction(
    id="oc-table3",
    title="throughput over channels by vectors and by threads, and of 32 threads",
    source="uFLIP-OC (2017) Table 3, §5.2.2",
    steps=18,
    measure=measure,
    rows=rows,
    draw=draw,
)
