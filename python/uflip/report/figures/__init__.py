"""Static figures: described once as data, drawn as SVG by a page, and by matplotlib for files.

Each module has `draw`, which makes a drawing of plain data, and `figure`, which gives it its
caption and its numbers. A figure is a module and a line in one of the lists here; the page numbers
what it finds.

=================  ==========================================================================
`sweep`            response time against the varying parameter (the paper's figures 6–8)
`mix`              the six mixes, each against what its baselines would cost
`rounds`           rate, write amplification and p99 over the bytes written, towards a steady state
`queue`            throughput and response time against the depth of a queue
`traces`           every I/O of the baselines, with running averages (figure 3)
`distribution`     the share of I/Os slower than a given time: the whole distribution
`phases`           start-up and levels of the baselines, as they were found
`interference`     what random writes leave behind (figure 5)
`convergence`      how well each mean is known
`target_spaces`    where the plan writes sequentially
`causes`           what the time was spent on, for simulated devices
`ratios`           two results side by side, the largest differences first
`points`           the rows of a sweep over simulated devices, as a file of its own
`single_benchmark` one micro-benchmark, on axes of somebody else as well
`paper`            one figure of a result as a file, for a paper
`chart`            what a figure shows, as data
`axes`             scales and ticks that they share
`svg`              a chart for a page: `layout` says where things stand, `marks` and `elements`
                   what is drawn, `dots` makes an image of very many
`matplotlib_chart` a chart drawn with matplotlib
`canvas`           matplotlib's side of files: style, panels
`files`            names and formats of figures that are files
`palette`          colours and markers, the same for a pattern everywhere
=================  ==========================================================================
"""

from collections.abc import Callable
from typing import NamedTuple

from uflip.microbench import MICRO_BENCHMARKS as MEASURED
from uflip.report.blocks import Figure
from uflip.report.data import Document, Traces
from uflip.report.figures import (
    causes,
    convergence,
    distribution,
    interference,
    mix,
    phases,
    queue,
    rounds,
    sweep,
    target_spaces,
    traces,
)
from uflip.report.figures.chart import Chart

__all__ = [
    "BASELINES",
    "MICRO_BENCHMARKS",
    "causes",
    "convergence",
    "distribution",
    "interference",
    "kind_of",
    "mix",
    "phases",
    "queue",
    "rounds",
    "sweep",
    "target_spaces",
    "traces",
]

BASELINES: list[Callable[[Document, Traces], Figure | None]] = [
    traces.figure,
    distribution.figure,
    causes.figure,
]
"""What is drawn of the baselines, in the order of the page."""


class FigureKind(NamedTuple):
    """How a micro-benchmark is drawn: on a page, and as a figure of its own."""

    figure: Callable[[Document, str], Figure | None]
    chart: Callable[[Document, str], Chart]


MICRO_BENCHMARKS: dict[str, FigureKind] = {
    "sweep": FigureKind(sweep.figure, sweep.chart),
    "mix": FigureKind(mix.figure, mix.chart),
    "queue": FigureKind(queue.figure, queue.chart),
    "rounds": FigureKind(rounds.figure, rounds.chart),
}
"""How a micro-benchmark can be drawn."""


def kind_of(micro_benchmark: str) -> FigureKind:
    """Return how a micro-benchmark is drawn; one that is not known, as a sweep."""
    about = MEASURED.get(micro_benchmark)
    return MICRO_BENCHMARKS[about.figure if about else "sweep"]
