"""Steadiness check: compare the two halves of a run.

A mean describes a running phase only if it is the same in every part of it. A flash device that
has not reached its steady state (free blocks still left, a buffer still filling) has a second half
that differs from the first. This check raises a doubt; it does not detect phases.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

# Response times of neighbouring I/Os depend on one another (garbage collection comes in periods),
# so the scatter of single I/Os understates the error of a mean. Means of batches longer than a
# period do not: ten batches for each half.
BATCHES_PER_HALF = 10

# Shorter batches would be shorter than the periods of the devices in the paper (tens of I/Os).
MIN_BATCH = 16


@dataclass(frozen=True, slots=True)
class Drift:
    """Difference between the second and the first half of a run.

    Attributes
    ----------
    first_half_ns, second_half_ns : float
        Means of the halves [ns].
    change : float
        (second − first) / first.
    z : float
        The difference in units of its standard error.
    """

    first_half_ns: float
    second_half_ns: float
    change: float
    z: float


def drift(response_time_ns: ArrayLike) -> Drift | None:
    """Compare the halves of a run by means of batches.

    Parameters
    ----------
    response_time_ns
        Response times (n,) [ns] in the order of submission, start-up left out.

    Returns
    -------
    Drift or None
        None if the run is too short for `2 * BATCHES_PER_HALF` batches of `MIN_BATCH` I/Os.

    Examples
    --------
    >>> drift([100] * 160 + [150] * 160).change
    0.5
    >>> drift([100] * 10) is None
    True
    """
    x = np.asarray(response_time_ns, dtype=np.float64)
    batch = len(x) // (2 * BATCHES_PER_HALF)
    if batch < MIN_BATCH:
        return None
    means = x[: batch * 2 * BATCHES_PER_HALF].reshape(-1, batch).mean(axis=1)
    first, second = means[:BATCHES_PER_HALF], means[BATCHES_PER_HALF:]
    difference = float(second.mean() - first.mean())
    error = float(np.sqrt((first.var(ddof=1) + second.var(ddof=1)) / BATCHES_PER_HALF))
    return Drift(
        first_half_ns=float(first.mean()),
        second_half_ns=float(second.mean()),
        change=difference / float(first.mean()) if first.mean() > 0 else 0.0,
        z=_ratio(difference, error),
    )


def _ratio(difference: float, error: float) -> float:
    """Return a difference in standard errors; constant halves give 0 or infinity."""
    if error > 0:
        return difference / error
    return 0.0 if difference == 0 else float(np.copysign(np.inf, difference))
