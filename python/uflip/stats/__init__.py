"""Statistics of response times: arrays in, frozen results out. This package knows no run.

======================  ======================================================================
`latency_classes`       bins of 300 µs below 1.5 ms and peaks above, as Myers & Sinclair have them
`summary.summarise`     the paper's four (min, max, mean, standard deviation) and percentiles
`summary.Distribution`  the same of series that do not fit into memory, a piece at a time
`running.running_mean`  mean of the first n I/Os, for every n: the lines of the paper's figure 3
`steady.drift`          is the second half of a run still different from the first
======================  ======================================================================
"""

from uflip.stats.latency_classes import LatencyClass, LatencyClasses, latency_classes
from uflip.stats.running import running_mean
from uflip.stats.steady import Drift, drift
from uflip.stats.summary import PERCENTILES, Distribution, RunStatistics, summarise, supports

__all__ = [
    "PERCENTILES",
    "Distribution",
    "Drift",
    "LatencyClass",
    "LatencyClasses",
    "RunStatistics",
    "drift",
    "latency_classes",
    "running_mean",
    "summarise",
    "supports",
]
