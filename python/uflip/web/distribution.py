"""Distribution of the response times of an experiment: all its runs together, without start-up."""

from collections.abc import Sequence

import numpy as np

from uflip.web.api_io_types import Spread
from uflip.web.open_results import OpenResults
from uflip.web.open_run import CLASSES, PIECE_IOS, classes_of, edges_ns


def distribution(opened: OpenResults, key: str, names: Sequence[str]) -> Spread:
    """Return the number of I/Os of an experiment in each class of response time, without start-up.

    Parameters
    ----------
    opened : OpenResults
        The results.
    key, names
        A result, and the runs of the experiment.
    """
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
