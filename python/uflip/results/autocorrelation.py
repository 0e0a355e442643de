"""What repetitions that follow each other have in common, and what that does to their mean.

    level  ··              ···
             ···  ·     ··          neighbours alike: twelve say what five say that are not
                   ·  ·

Likelihoods are looked at for each correlation of an AR(1) process that neighbours may have. Those
of a sort's experiments are multiplied, as they lie in one plan, and a share of them may have any
correlation; what one alone says of its own is little, so that its interval takes in all that it may
be, each by how likely it makes what was seen. A test of one alone would not do: of twelve
repetitions whose neighbours are correlated by 0.5 Student's interval of 98 % holds 84 means in a
hundred, and one in five is noticed at one in a hundred. Where some of a sort are alike, beyond
chance, by all that these show together, none of it is taken to be unlike them.

**Source** H. D. Patterson, R. Thompson (1971): the likelihood of what does not depend on the mean,
which does not take short series for less correlated than they are. H. Jeffreys (1961), G. E. P.
Box, G. C. Tiao (1973): a quantity that nobody asks for is averaged over. T. A. Bancroft (1944), T.
B. Fomby, D. K. Guilkey (1978): what a test of its own correlation chooses is wrong more often than
it says. H. Robbins (1956): the share that others show. M. S. Bartlett (1946): the variance of the
mean of neighbours that are alike.
**Faithful** The exact likelihood of a stationary AR(1) process of any mean and variance.
**Simplified** Correlations are looked at in steps of a twentieth, and are not below zero:
repetitions that avoid each other would be known better than is said.
**Ambiguous** Fewer than `MANY` say nothing: by three of each of twenty experiments neighbours were
correlated by 0.91 in one plan in ten where they were not.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from uflip import _native

MANY = 5
"""So many repetitions of an experiment show what neighbours have in common."""
CORRELATIONS: NDArray[np.float64] = np.arange(0.0, 0.96, 0.05)
SHARES: NDArray[np.float64] = np.arange(0.0, 0.51, 0.05)
"""Of a sort's experiments, whose neighbours are not like those of the others: the fewer ones."""
BEYOND_CHANCE = 2.326**2
"""Twice the logarithm of a ratio of likelihoods, beyond which chance gets once in 100 times."""
LEAST = np.finfo(float).tiny
SQUARES: NDArray[np.float64] = CORRELATIONS**2


def of_sort(every: Sequence[Sequence[float]]) -> tuple[float, bool]:
    """The correlation of neighbours of a sort's experiments, and whether some have another.

    The most likely one, and 0 where that is within chance; how large the variance of any experiment
    is does not matter. Some have another if a share of them that may have any is more likely than
    none, beyond chance.
    """
    known = [found[0] for means in every if len(means) >= MANY and (found := _seen(means))]
    if not known:
        return 0.0, False
    likely = np.exp(np.array(known) - np.max(known, axis=1, keepdims=True))
    any_other, share = likely.mean(axis=1, keepdims=True), SHARES[:, None, None]
    each = np.log(np.maximum((1 - share) * likely + share * any_other, LEAST))
    by_share = each.sum(axis=1)
    most = by_share.max(axis=0)
    best = int(most.argmax())
    if 2 * (most[best] - most[0]) <= BEYOND_CHANCE:
        best = 0
    return float(CORRELATIONS[best]), bool(2 * (most[best] - by_share[0, best]) > BEYOND_CHANCE)


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
    variance = float((weights * variances * _inflated(n)).sum() / weights.sum()) / n
    return float(_native.student_quantile(1 - confidence, n - 1)) * sqrt(variance)


@lru_cache(maxsize=1024)
def _inflated(n: int) -> NDArray[np.float64]:
    """By how much more the mean of n repetitions scatters, for each correlation."""
    return np.array([1 + 2 * common(each, n) for each in CORRELATIONS.tolist()])


@lru_cache(maxsize=1024)
def common(rho: float, n: int) -> float:
    """What n repetitions have in common by their correlation: Σ (1 − k/n) ρᵏ over distances k."""
    return sum((1 - k / n) * rho**k for k in range(1, n)) if rho else 0.0


def kept(rho: float, n: int) -> float:
    """The share of the variance that n repetitions show, whose own mean takes the rest."""
    return 1 - 2 * common(rho, n) / (n - 1)


def _seen(means: Sequence[float]) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """For each correlation the logarithm of its likelihood, and the variance; None of equal ones.

    Of the same repetitions it is asked several times in a row, for intervals of several widths.
    """
    return _looked_at(tuple(means))


@lru_cache(maxsize=64)
def _looked_at(
    means: tuple[float, ...],
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Look at repetitions that are not all equal.

    The inverse of the matrix of correlations has three diagonals, so that sums are enough.
    """
    x, rho = np.asarray(means, dtype=float), CORRELATIONS
    n, x = len(x), x - x.mean()
    if not np.any(np.abs(x) > 1e-9 * np.abs(means)):
        return None
    ends, squares, products = x[0] ** 2 + x[-1] ** 2, (x * x).sum(), (x[1:] * x[:-1]).sum()
    about_own = (squares + SQUARES * (squares - ends) - 2 * rho * products) / (1 - SQUARES)
    information = (2 + (n - 2) * (1 - rho)) / (1 + rho)
    weighted = (x[0] + x[-1]) * rho / (1 + rho)
    rest = about_own - weighted**2 / information
    likely = -0.5 * ((n - 1) * np.log((1 - SQUARES) * rest) + np.log(information))
    return likely, rest / (n - 1)
