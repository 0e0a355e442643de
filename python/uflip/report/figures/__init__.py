"""Static figures as SVG text, made by matplotlib and coloured by the page they stand in.

=================  ==========================================================================
`sweep`            response time against the varying parameter (the paper's figures 6–8)
`mix`              the six mixes, each against what its baselines would cost
`traces`           every I/O of the baselines, with running averages (figure 3)
`distribution`     the share of I/Os slower than a given time: the whole distribution
`phases`           start-up and levels of the baselines, as they were found
`lingering`        what random writes leave behind (figure 5)
`convergence`      how well each mean is known
`places`           where the plan writes sequentially
`spent`            what the time was spent on, for simulated devices
`points`           the rows of a sweep over simulated devices, as a file of its own
`axes`             scales and ticks that they share
`files`            names and formats of figures that are files
`canvas`           matplotlib's side: style, SVG, theme colours
`palette`          colours and markers, the same for a pattern everywhere
=================  ==========================================================================
"""

from uflip.report.figures.convergence import convergence
from uflip.report.figures.distribution import distribution
from uflip.report.figures.lingering import lingering
from uflip.report.figures.mix import mix
from uflip.report.figures.phases import phases
from uflip.report.figures.places import places
from uflip.report.figures.spent import spent
from uflip.report.figures.sweep import sweep
from uflip.report.figures.traces import traces

__all__ = [
    "convergence",
    "distribution",
    "lingering",
    "mix",
    "phases",
    "places",
    "spent",
    "sweep",
    "traces",
]
