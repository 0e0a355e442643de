"""The slow I/Os of a series: beyond what their mode and size explain."""

import numpy as np

from uflip.explain.io_log import Flags, Floats, Integers, IoLog

MIN_GROUP = 30
SLOW_SHARE = 0.01
"""Without a gap between fast and slow I/Os, the slowest of this share are slow."""
MAX_SLOW_SHARE = 0.5
MIN_SLOW = 20
QUANTILES = 80
MIN_EXCESS = 1.2
"""A slow I/O takes at least this multiple of the median of its mode and size."""


def excess_of(log: IoLog, rows: Integers, *, by_size: bool = True) -> Floats:
    """Return the response time of each I/O over the median of I/Os of its mode and size."""
    took = log.took[rows]
    groups = np.zeros(len(rows), np.int64)
    if log.mode is not None:
        groups = log.mode[rows].copy()
    if by_size and log.size is not None:
        groups = groups * 64 + np.log2(np.maximum(log.size[rows], 1)).astype(np.int64)
    excess = took / np.median(took)
    for group in np.unique(groups):
        members = groups == group
        if members.sum() >= MIN_GROUP:
            excess[members] = took[members] / np.median(took[members])
    return excess


def slow_from(excess: Floats) -> float | None:
    """Return the excess from which an I/O is slow; None if no I/O is.

    The widest gap between neighbouring quantiles of the upper half, or the slowest hundredth.

    >>> slow_from(np.r_[np.full(900, 1.0), np.full(100, 50.0)]) > 1.2
    True
    >>> slow_from(np.ones(1000)) is None
    True
    """
    fewest = min(max(MIN_SLOW / len(excess), 1e-9), SLOW_SHARE)
    shares = 1 - np.geomspace(MAX_SLOW_SHARE, fewest, QUANTILES)
    values = np.quantile(excess, shares)
    steps = np.diff(np.log(np.maximum(values, 1e-12)))
    widest = int(np.argmax(steps))
    if steps[widest] > np.log(2):
        return float(np.sqrt(values[widest] * values[widest + 1]))
    bound = float(np.quantile(excess, 1 - SLOW_SHARE))
    bound = max(bound, MIN_EXCESS)
    return bound if (excess > bound).any() else None


def slow_flags(log: IoLog, rows: Integers, *, by_size: bool = True) -> tuple[Flags, float] | None:
    """Return which I/Os are slow, and from which excess on; None if none is."""
    excess = excess_of(log, rows, by_size=by_size)
    bound = slow_from(excess)
    return None if bound is None else (excess > bound, bound)
