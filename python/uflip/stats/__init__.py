"""Statistics of response times: arrays in, frozen results out, independent of runs.

======================  ======================================================================
`latency_classes`       bins of 300 µs below 1.5 ms and peaks above, as Myers & Sinclair have them
`latency_classes`       bins of 300 µs below 1.5 ms and peaks above, as in Myers & Sinclair
`summary.Distribution`  the same of series that do not fit into memory, a piece at a time
`summary.Distribution`  the same for series that do not fit into memory, a piece at a time
`running.running_mean`  mean of the first n I/Os, for every n: the lines of the paper's figure 3
======================  ======================================================================
"""

from uflip.stats.latency_classes import LatencyClass, LatencyClasses, latency_classes
from uflip.stats.running import running_mean
from uflip.stats.steady import Drift, drift
from uflip.stats.summary import PERCENTILES, Distribution, SeriesStatistics, summarise, supports

__all__ = [
    "PERCENTILES",
    "Distribution",
    "Drift",
    "LatencyClass",
    "LatencyClasses",
    "SeriesStatistics",
    "drift",
    "latency_classes",
    "running_mean",
    "summarise",
    "supports",
]
