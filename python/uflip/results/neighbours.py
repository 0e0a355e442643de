"""What repetitions that follow each other have in common, and what that does to their mean.

    level  ··              ···
             ···  ·     ··          neighbours alike: twelve say what five say that are not
                   ·  ·

Likelihoods are looked at for each correlation of an AR(1) process that neighbours may have. Those
of a sort's experiments are multiplied, as they lie in one plan; what one alone says of its own is
little, so that its interval takes in all that it may be, each by how likely it makes what was seen.

**Source** H. D. Patterson, R. Thompson (1971): the likelihood of what does not depend on the mean,
which does not take short series for less correlated than they are. H. Jeffreys (1961), G. E. P.
Box, G. C. Tiao (1973): a quantity that nobody asks for is averaged over. M. S. Bartlett (1946): the
variance of the mean of neighbours that are alike.
**Faithful** The exact likelihood of a stationary AR(1) process of any mean and variance.
**Simplified** Correlations are looked at in steps of a twentieth, and are not below zero:
repetitions that avoid each other would be known better than is said.
**Ambiguous** Fewer than `MANY` say nothing: by three of each of twenty experiments neighbours were
correlated by 0.91 in one plan in ten where they were not.
"""

from collections.abc import Sequence
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from uflip import _native

MANY = 5
"""So many repetitions of an experiment show what neighbours have in common."""
ODD = 0.02
"""So often an experiment is not like the others of its sort."""
CORRELATIONS: NDArray[np.float64] = np.arange(0.0, 0.96, 0.05)
BEYOND_CHANCE = 2.326**2
"""Twice the logarithm of a ratio of likelihoods, beyond which chance gets once in 100 times."""


def correlation(every: Sequence[Sequence[float]]) -> float:
    """The most likely correlation of neighbours of all experiments; 0 where it is within chance.

    How large the variance of any of them is does not matter, and one that is not like the others,
    whose correlation may be any, says little of theirs.
    """
    likely = np.zeros_like(CORRELATIONS)
    for means in every:
        if len(means) >= MANY and (seen := _seen(means)) is not None:
            share = np.exp(seen[0] - seen[0].max())
            likely += np.log((1 - ODD) * share + ODD * share.mean())
    best = int(likely.argmax())
    return float(CORRELATIONS[best]) if 2 * (likely[best] - likely[0]) > BEYOND_CHANCE else 0.0


def resemble(means: Sequence[float], as_others: float) -> bool:
    """Whether neighbours are alike beyond chance, and more than those of others."""
    if len(means) < MANY or (seen := _seen(means)) is None:
        return False
    likely = seen[0]
    best, theirs = int(likely.argmax()), int(np.abs(CORRELATIONS - as_others).argmin())
    return best > theirs and bool(2 * (likely[best] - likely[theirs]) > BEYOND_CHANCE)


def alone(means: Sequence[float], confidence: float) -> float:
    """Half the width of the interval of the mean by what these repetitions say of themselves.

    Student's, of a variance of the mean that is the average over all correlations of neighbours.
    """
    n, seen = len(means), _seen(means)
    if seen is None:
        return 0.0
    likely, variances = seen
    weights = np.exp(likely - likely.max())
    inflated = np.array([1 + 2 * common(each, n) for each in CORRELATIONS.tolist()])
    variance = float((weights * variances * inflated).sum() / weights.sum()) / n
    return float(_native.student_quantile(1 - confidence, n - 1)) * sqrt(variance)


def common(rho: float, n: int) -> float:
    """What n repetitions have in common by their correlation: Σ (1 − k/n) ρᵏ over distances k."""
    return sum((1 - k / n) * rho**k for k in range(1, n)) if rho else 0.0


def kept(rho: float, n: int) -> float:
    """The share of the variance that n repetitions show, whose own mean takes the rest."""
    return 1 - 2 * common(rho, n) / (n - 1)


def _seen(means: Sequence[float]) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """For each correlation the logarithm of its likelihood, and the variance; None of equal ones.

    The inverse of the matrix of correlations has three diagonals, so that sums are enough.
    """
    x, rho = np.asarray(means, dtype=float), CORRELATIONS
    n, x = len(x), x - x.mean()
    if not np.any(np.abs(x) > 1e-9 * np.abs(means)):
        return None
    ends, squares, products = x[0] ** 2 + x[-1] ** 2, (x * x).sum(), (x[1:] * x[:-1]).sum()
    about_own = (squares + rho**2 * (squares - ends) - 2 * rho * products) / (1 - rho**2)
    information = (2 + (n - 2) * (1 - rho)) / (1 + rho)
    weighted = (x[0] + x[-1]) * rho / (1 + rho)
    rest = about_own - weighted**2 / information
    likely = -0.5 * ((n - 1) * np.log((1 - rho**2) * rest) + np.log(information))
    return likely, rest / (n - 1)
