"""Correlation of consecutive repetitions, and its effect on the interval of their mean.

    level  ··              ···
             ···  ·     ··          correlated: twelve repetitions are worth five independent ones
                   ·  ·

The likelihood is computed for each correlation of an AR(1) process that neighbours may have. The
likelihoods of a sort's experiments are multiplied, as they lie in one plan; a share of them may
have any correlation. A single experiment shows little of its own correlation, so its interval
averages over all correlations, weighted by likelihood. A test on a single experiment is not enough:
of twelve repetitions whose neighbours are correlated by 0.5, Student's interval of 98 % holds 84
means in a hundred, and a test at one in a hundred notices one in five. Where experiments of a sort
are correlated beyond chance, taken together, none of them counts as uncorrelated.

**Source** H. D. Patterson, R. Thompson (1971): the restricted likelihood, which does not depend on
the mean and does not underestimate the correlation of short series. H. Jeffreys (1961), G. E. P.
Box, G. C. Tiao (1973): average over a nuisance parameter. T. A. Bancroft (1944), T. B. Fomby, D. K.
Guilkey (1978): an estimator chosen by a preliminary test has a higher error rate than its nominal
one. H. Robbins (1956): estimate the share from the other experiments. M. S. Bartlett (1946): the
variance of the mean of correlated neighbours.
**Faithful** The exact likelihood of a stationary AR(1) process of any mean and variance.
**Simplified** Correlations go in steps of a twentieth and are not negative: intervals of
negatively correlated repetitions are wider than needed.
**Ambiguous** Fewer than `MIN_REPETITIONS` repetitions are not used: with three of each of twenty
experiments, one plan in ten of uncorrelated neighbours had an estimate of 0.91.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from uflip import _native

MIN_REPETITIONS = 5
"""Number of repetitions from which an experiment shows the correlation of its neighbours."""
CORRELATIONS: NDArray[np.float64] = np.arange(0.0, 0.96, 0.05)
SHARES: NDArray[np.float64] = np.arange(0.0, 0.51, 0.05)
"""Possible shares of a sort's experiments with another correlation than the rest: the minority."""
RATIO_LIMIT_1_PERCENT = 2.326**2
"""Twice the logarithm of a likelihood ratio that chance exceeds once in 100 times."""
MIN_POSITIVE = np.finfo(float).tiny
SQUARES: NDArray[np.float64] = CORRELATIONS**2


def sort_correlation(every: Sequence[Sequence[float]]) -> tuple[float, bool]:
    """Return the correlation of neighbours in a sort's experiments, and whether some differ.

    The most likely correlation, or 0 where 0 is within chance; the variances of the experiments do
    not matter. Some differ if a share above zero with any correlation is more likely, beyond
    chance.
    """
    log_likelihoods = [
        result[0]
        for means in every
        if len(means) >= MIN_REPETITIONS and (result := _correlation_likelihoods(means))
    ]
    if not log_likelihoods:
        return 0.0, False
    likely = np.exp(np.array(log_likelihoods) - np.max(log_likelihoods, axis=1, keepdims=True))
    any_other, share = likely.mean(axis=1, keepdims=True), SHARES[:, None, None]
    each = np.log(np.maximum((1 - share) * likely + share * any_other, MIN_POSITIVE))
    by_share = each.sum(axis=1)
    most = by_share.max(axis=0)
    best = int(most.argmax())
    if 2 * (most[best] - most[0]) <= RATIO_LIMIT_1_PERCENT:
        best = 0
    return float(CORRELATIONS[best]), bool(
        2 * (most[best] - by_share[0, best]) > RATIO_LIMIT_1_PERCENT
    )


def is_more_correlated(means: Sequence[float], as_others: float) -> bool:
    """Return whether neighbours are correlated beyond chance, and more than those of others."""
    if len(means) < MIN_REPETITIONS or (result := _correlation_likelihoods(means)) is None:
        return False
    likely = result[0]
    best, theirs = int(likely.argmax()), int(np.abs(CORRELATIONS - as_others).argmin())
    return best > theirs and bool(2 * (likely[best] - likely[theirs]) > RATIO_LIMIT_1_PERCENT)


def averaged_half_width(means: Sequence[float], confidence: float) -> float:
    """Return half the width of the interval of the mean from these repetitions alone.

    Student's, with a variance of the mean averaged over all correlations of neighbours.
    """
    n, result = len(means), _correlation_likelihoods(means)
    if result is None:
        return 0.0
    likely, variances = result
    weights = np.exp(likely - likely.max())
    variance = float((weights * variances * _variance_factors(n)).sum() / weights.sum()) / n
    return float(_native.student_quantile(1 - confidence, n - 1)) * sqrt(variance)


@lru_cache(maxsize=1024)
def _variance_factors(n: int) -> NDArray[np.float64]:
    """Return the factor on the variance of the mean of n repetitions, for each correlation."""
    return np.array([1 + 2 * correlation_sum(each, n) for each in CORRELATIONS.tolist()])


@lru_cache(maxsize=1024)
def correlation_sum(rho: float, n: int) -> float:
    """Return the correlation term of the variance of a mean: Σ (1 − k/n) ρᵏ over distances k."""
    return sum((1 - k / n) * rho**k for k in range(1, n)) if rho else 0.0


def shown_variance_share(rho: float, n: int) -> float:
    """Return the share of the variance that n repetitions show; their own mean takes the rest."""
    return 1 - 2 * correlation_sum(rho, n) / (n - 1)


def _correlation_likelihoods(
    means: Sequence[float],
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return per correlation the log likelihood and the variance; None if all means are equal.

    Cached: intervals of several widths need it for the same repetitions several times in a row.
    """
    return _compute_correlation_likelihoods(tuple(means))


@lru_cache(maxsize=64)
def _compute_correlation_likelihoods(
    means: tuple[float, ...],
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Compute the likelihoods for repetitions that are not all equal.

    The inverse of the correlation matrix is tridiagonal, so that sums are enough.
    """
    x, rho = np.asarray(means, dtype=float), CORRELATIONS
    n, x = len(x), x - x.mean()
    if not np.any(np.abs(x) > 1e-9 * np.abs(means)):
        return None
    ends, squares, products = x[0] ** 2 + x[-1] ** 2, (x * x).sum(), (x[1:] * x[:-1]).sum()
    about_own = (squares + SQUARES * (squares - ends) - 2 * rho * products) / (1 - SQUARES)
    information = (2 + (n - 2) * (1 - rho)) / (1 + rho)
    weighted = (x[0] + x[-1]) * rho / (1 + rho)
    residual = about_own - weighted**2 / information
    likely = -0.5 * ((n - 1) * np.log((1 - SQUARES) * residual) + np.log(information))
    return likely, residual / (n - 1)
