"""What a series of response times says: phases, period, mean with its interval, and doubts.

The work is done by the native part (`crates/method`), with the same functions that decide in the
middle of a run when it is long enough. Here are its results as frozen values.

============  ============================================================
`analyse`     response times in, `Analysis` out
`run_length`  where the engine's stop rule would have ended a run
`files`       response times of a CSV or Parquet column, a fio latency log, a stored run
============  ============================================================
"""

from uflip.analysis.series import (
    PHASES,
    REASONS,
    Analysis,
    Percentile,
    ResponseLevel,
    RunLength,
    analyse,
    run_length,
)

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
