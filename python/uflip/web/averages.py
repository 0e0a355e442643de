"""Running averages of a run, as in uFLIP: with the start-up, and without it.

**Source** uFLIP (CIDR 2009) §5.1, Figure 3: dashed with the start-up phase, solid without.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uflip.web.open_run import OpenRun


def averages(
    run: OpenRun, io_ranges: Sequence[tuple[int, int]], step: int, times: NDArray[np.int64]
) -> dict[str, NDArray[Any]]:
    """Return the averages at the end of every row of `step` I/Os, for a single stream."""
    grid = run.grid()
    if grid is None or len(grid.streams) != 2 or len(io_ranges) != 1 or not len(times):
        return {}
    start, stop = io_ranges[0]
    ends = np.minimum(np.arange(start, stop, step) + step, stop)
    total = run.sum_before(start) + np.cumsum(times)[ends - start - 1]
    return averaged(run, ends, total)


def averaged(run: OpenRun, ends: NDArray[Any], total_ns: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Return averages over all I/Os before each end (n,), with and without the start-up.

    Those without it are NaN inside the start-up.
    """
    ignored = min(run.io_ignore, run.io_count)
    measured = np.where(ends > ignored, ends - ignored, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        without = np.where(measured > 0, (total_ns - run.ignored_ns) / measured, np.nan)
    columns = {"average_ns": without}
    return columns | ({"average_with_ns": total_ns / ends} if ignored else {})
