"""Analysis of a series of response times: phases, period, mean with its interval, and doubts.

The native part (`crates/method`) does the work, with the same functions that decide during a run
whether it is long enough. This package returns its results as frozen values.

============== ============================================================
`series`       response times in, `Analysis` out; the length at which a stop rule would end a run
`files`        response times of a CSV or Parquet column, a log or trace, a stored run
`fio_output`   percentiles and rates that fio computed (JSON, terse)
`rate_logs`    logs of rates and histograms of fio, over time
`tool_results` results of diskspd, elbencho and iostat; SMART logs
============== ============================================================
"""

from uflip.analysis.series import PHASES, REASONS, RunLength, analyse, run_length
from uflip.data.manifest import Analysis, Percentile, ResponseLevel

__all__ = [
    "PHASES",
    "REASONS",
    "Analysis",
    "Percentile",
    "ResponseLevel",
    "RunLength",
    "analyse",
    "run_length",
]
