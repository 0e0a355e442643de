"""Distribution of the response times of an experiment: all its runs together, without start-up."""

import numpy as np

from uflip.web.api_io_types import Spread
from uflip.web.open_results import OpenResults
from uflip.web.open_run import CLASSES, PIECE_IOS, classes_of, edges_ns
from uflip.web.query import Query, text


def distribution(opened: OpenResults, query: Query) -> Spread:
    """Return the number of I/Os of the requested runs in each class of response time.

    Raises
    ------
    UsageError
        If the run does not exist.
    """
    key, names = text(query, "key"), text(query, "runs").split(",")
    counts, longest = np.zeros(CLASSES, np.int64), 0
    for run in [opened.run(key, name) for name in names]:
        for low in range(0, run.io_count, PIECE_IOS):
            high = min(low + PIECE_IOS, run.io_count)
            times = run.column("response_time_ns", low, high)
            if run.has("ignored"):
                times = times[run.column("ignored", low, high) == 0]
            counts += np.bincount(classes_of(times), minlength=CLASSES)
            longest = max(longest, int(times.max(initial=0)))
    used = np.flatnonzero(counts)
    first, stop = (int(used[0]), int(used[-1]) + 1) if len(used) else (0, 0)
    return {
        "runs": len(names),
        "count": int(counts.sum()),
        "counts": counts[first:stop].tolist(),
        "edges_ns": edges_ns()[first : stop + 1].tolist(),
        "longest_ns": longest,
    }
