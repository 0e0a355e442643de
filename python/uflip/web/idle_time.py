"""Idle time of a device before each I/O: since the end of all I/Os submitted before it.

::

    stream 0   ├── 1 ──┤             ├── 3 ──┤
    stream 1       ├────── 2 ──────┤
                                   ├─┤           idle before 3: 2 ended after 1
"""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from uflip.web.open_run import OpenRun

NO_EARLIER_IO = -1
"""Value of an I/O without earlier I/Os."""
Whole = NDArray[np.int64]


def idle_before(run: OpenRun, low: int, high: int) -> Whole:
    """Return the idle time before I/Os `low` to `high` (n,) [ns]; or `NO_EARLIER_IO`.

    It is 0 while an I/O that was submitted before is in flight, in any stream.
    """
    run.wait()
    grid = run.grid()
    assert grid is not None, "wait() makes it"
    submitted = run.column("submit_ns", low, high).astype(np.int64)
    completed = np.full(len(submitted), NO_EARLIER_IO)
    for first, last in pairwise(np.searchsorted(grid.starts, grid.streams).tolist()):
        from_block = first + int(np.searchsorted(grid.last_ns[first:last], submitted.min()))
        to_block = first + int(np.searchsorted(grid.first_ns[first:last], submitted.max(), "right"))
        to_block = max(to_block, from_block)
        before = int(grid.ended_ns[first:from_block].max(initial=NO_EARLIER_IO))
        begin, end = int(grid.starts[from_block]), int(grid.starts[to_block])
        begins = run.column("submit_ns", begin, end).astype(np.int64)
        ends = begins + run.column("response_time_ns", begin, end).astype(np.int64)
        latest = np.maximum.accumulate(np.concatenate([[before], ends]))
        # I/Os of its own stream with equal submission times count in their order.
        own = np.arange(low, high) - begin
        is_own = (own >= grid.starts[first] - begin) & (own < grid.starts[last] - begin)
        index = np.where(is_own, own, np.searchsorted(begins, submitted))
        completed = np.maximum(completed, latest[index])
    return np.where(completed == NO_EARLIER_IO, NO_EARLIER_IO, np.maximum(submitted - completed, 0))
