"""Static figures: described once as data, drawn as SVG for pages, and by matplotlib for files.

Each module has `draw`, which makes a drawing of plain data, and `figure`, which adds a caption and
tables. A new figure is a module and an entry in one of the lists here; the page numbers the
figures.

=================  ==========================================================================
`sweep`            response time against the varying parameter (the paper's figures 6–8)
`mix`              the six mixes, each against what its baselines would cost
`rounds`           rate, write amplification and p99 over the bytes written, towards a steady state
`queue`            throughput and response time against the depth of a queue
`traces`           every I/O of the baselines, with running averages (figure 3)
`distribution`     the share of I/Os slower than a given time: the whole distribution
`phases`           start-up and levels found in the baselines
`interference`     after-effects of random writes (figure 5)
`convergence`      confidence interval of each mean
`target_spaces`    target spaces of sequential writes in the plan
`causes`           causes of response times, for simulated devices
`ratios`           two results compared, the largest differences first
`side_by_side`     several results: a panel for each pattern, a line per result
`paper`            figures of a result for a paper, or on axes of the caller
`design_space`     the rows of a sweep over simulated devices, and samples of a design space
`chart`            the contents of a figure, as data
`axes`             shared scales and ticks
`svg`              a chart for a page
`matplotlib_chart` a chart for a file, or for axes of the caller; names and formats of files
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
"""Figures of the baselines, in the order of the page."""


class FigureKind(NamedTuple):
    """The functions that draw a micro-benchmark: on a page, and as a figure of its own."""

    figure: Callable[[Document, str], Figure | None]
    chart: Callable[[Document, str], Chart]


MICRO_BENCHMARKS: dict[str, FigureKind] = {
    "sweep": FigureKind(sweep.figure, sweep.chart),
    "mix": FigureKind(mix.figure, mix.chart),
    "queue": FigureKind(queue.figure, queue.chart),
    "rounds": FigureKind(rounds.figure, rounds.chart),
}
"""The kinds of figures of a micro-benchmark."""


def kind_of(micro_benchmark: str) -> FigureKind:
    """Return the kind of figure of a micro-benchmark; a sweep for an unknown one."""
    about = MEASURED.get(micro_benchmark)
    return MICRO_BENCHMARKS[about.figure if about else "sweep"]
