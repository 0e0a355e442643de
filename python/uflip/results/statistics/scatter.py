"""Scatter of repetitions, estimated from all experiments of a sort: three repetitions are too few.

    experiment   three repetitions each      its scatter, of two degrees of freedom
        1            ·   · ·                     known to a factor of three
        2          ·   ·      ·                   …
       16             ·· ·                        …
                         together: how much experiments of this sort scatter, and how much that
                         differs between them

Three repetitions may lie together by chance, or may all have met the device in a state that it is
in two times of three. Their own interval cannot show that; the other experiments of the same sort,
on the same device at the same time, can. A claim rests on the weighted mean of an experiment's own
variance and theirs. They count as peers unless there is evidence that the experiment is unlike
them. An experiment that scatters more, or whose neighbours are more correlated, uses its own
variance alone (`is_outlier`). One that scatters less than its peers must be repeated so often that
it would have shown their scatter (`least_repetitions`).

**Source** H. Robbins (1956), empirical Bayes; G. K. Smyth, "Linear models and empirical Bayes
methods for assessing differential expression in microarray experiments" (2004): the same question,
thousands of means of three each. M. S. Bartlett (1937): the test whether two variances are equal.
B. Phipson et al., "Robust hyperparameter estimation protects against hypervariable genes" (2016):
an outlier gets no support from the others. W. Edwards, H. Lindman, L. J. Savage (1963): a posterior
does not depend on the stopping rule, so that it may be evaluated after every round.
**Faithful** A scaled inverse χ² for the variances of a sort; degrees of freedom of both added,
never more than all of them have together.
**Simplified** The correlation of neighbours is that of an AR(1) process (`sort_correlation`), the
same in all experiments of a sort but odd ones. The two numbers of the distribution are the most
likely ones (Smyth takes moments of logarithms; repetitions that went on until they agreed would
bias these).
**Ambiguous** (1) The unit in which scatters are comparable: the allowed half width, to which claims
are compared. A tenth of that or less counts as none. (2) Peers: experiments of the same
micro-benchmark and pattern, which differ in the value of one parameter only. Fewer than `MIN_PEERS`
are not used. (3) What an experiment with little scatter may hide: a state of the device that makes
its peers scatter as much as the largest of them, and that fewer than a third of repetitions meet.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, lgamma, log, sqrt

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

MIN_PEERS = 5
"""Least number of experiments with repetitions that are used as peers."""
NEGLIGIBLE_SCATTER = 0.1
"""A scatter, relative to the allowed half width, that counts as none."""
MISS_CHANCE = 0.02
"""The accepted chance of missing a state of the device."""
MAX_NEEDED = 12
"""Most repetitions required: with this number, one in 130 misses a state of a third of the time."""
RATIO_LIMIT_5_PERCENT = 1.645**2
"""Twice the logarithm of a likelihood ratio that chance exceeds once in 20 times."""
PRIOR_DEGREES = tuple(2.0**power for power in range(-1, 9))
"""Degrees of freedom that peers may be worth."""
CENTRE_PRECISION = 1.001


@dataclass(frozen=True)
class Peers:
    """The pooled scatter of the repetitions of a sort's experiments."""

    variance: float  #: Of one repetition, in units of the allowed half width, squared.
    #: Degrees of freedom added to an experiment's own; many where all scatter equally.
    degrees: float
    total_degrees: int  #: Degrees of freedom of all.
    correlation: float  #: Correlation of consecutive repetitions.
    pooled: float  #: Mean of all variances, weighted by degrees of freedom.
    max_variance: float  #: The largest of them, each combined with that of all.
    variances_differ: bool  #: Whether their scatters differ beyond chance.
    #: Whether the correlations of neighbours differ beyond chance.
    correlations_differ: bool = False


@dataclass(frozen=True)
class Scatter:
    """The means of an experiment's two or more repetitions, in the order of measurement, and half
    the width of an interval that is narrow enough [ns].
    """

    means: Sequence[float]
    allowed: float


def pool_scatter(experiments: Sequence[Scatter]) -> Peers | None:
    """Return the pooled scatter of experiments of one sort; None for fewer than `MIN_PEERS`.

    >>> some = [Scatter([100.0, 100 - x, 100 + x], 5.0) for x in (1, 1.5, 2, 2.5, 3)]
    >>> peers = pool_scatter(some)
    >>> round(peers.variance, 2), peers.degrees, peers.correlation
    (0.18, 256.0, 0.0)
    """
    repeated = [
        experiment
        for experiment in experiments
        if len(experiment.means) > 1 and experiment.allowed > 0
    ]
    if len(repeated) < MIN_PEERS:
        return None
    correlation, correlations_differ = sort_correlation(
        [experiment.means for experiment in repeated]
    )
    scatters = [
        (_variance(experiment, correlation, NEGLIGIBLE_SCATTER), len(experiment.means) - 1)
        for experiment in repeated
    ]
    variance, degrees = _fit_prior(scatters)
    total_degrees = sum(own for _, own in scatters)
    pooled = sum(each * own for each, own in scatters) / total_degrees
    alike = _variance_likelihood(
        scatters, _prior_centre(scatters, PRIOR_DEGREES[-1]), PRIOR_DEGREES[-1]
    )
    gained = 2 * (_variance_likelihood(scatters, variance, degrees) - alike)
    largest = max((degrees * variance + own * each) / (degrees + own) for each, own in scatters)
    variances_differ = gained > RATIO_LIMIT_1_PERCENT
    return Peers(
        variance,
        degrees,
        total_degrees,
        correlation,
        pooled,
        largest,
        variances_differ,
        correlations_differ,
    )


def pooled_half_width(peers: Peers, one: Scatter, confidence: float) -> tuple[float, float]:
    """Return half the width of the interval of the mean [ns], and its degrees of freedom.

    >>> alike = Peers(1.0, 256.0, 100, 0.0, 1.0, max_variance=1.0, variances_differ=False)
    >>> width, degrees = pooled_half_width(alike, Scatter([100.0, 100.0, 100.0], 5.0), 0.98)
    >>> round(width / 5.0 * 3**0.5, 2), degrees
    (2.36, 100)
    """
    n = len(one.means)
    own = _variance(one, peers.correlation)
    degrees = peers.degrees + n - 1
    variance = (peers.degrees * peers.variance + (n - 1) * own) / degrees
    degrees = min(degrees, max(peers.total_degrees, n - 1))
    standard_error = sqrt(variance * (1 + 2 * correlation_sum(peers.correlation, n)) / n)
    student: float = _native.student_quantile(1 - confidence, degrees)
    return student * standard_error * one.allowed, degrees


def is_outlier(peers: Peers, one: Scatter) -> bool:
    """Return whether an experiment is unlike its peers and uses its own variance alone.

    Beyond chance, it scatters more than the others, or its neighbours are more correlated; or those
    of some peers are, and few repetitions do not show which.

    >>> some = [Scatter([100.0, 100 - x, 100 + x], 5.0) for x in (1, 1.5, 2, 2.5, 20)]
    >>> [is_outlier(pool_scatter(some), one) for one in some]
    [False, False, False, False, True]
    """
    scatters_more = _variance_ratio(peers, one) > RATIO_LIMIT_5_PERCENT
    return (
        scatters_more
        or peers.correlations_differ
        or is_more_correlated(one.means, peers.correlation)
    )


def least_repetitions(peers: Peers, one: Scatter) -> int:
    """Return the least number of repetitions that an experiment with peers needs.

    One with less scatter than its peers may hide their states. A state that a share p of
    repetitions meet makes them scatter by s, and their mean wrong by s √(p/(1 − p)) if none has met
    it. That exceeds the allowed half width from p = 1/(1 + s²) on; n repetitions miss it with the
    chance (1 − p)ⁿ.

    >>> some = [Scatter([100.0, 100 - x, 100 + x], 5.0) for x in (0.1, 0.1, 0.2, 0.2, 0.3, 5.0)]
    >>> least_repetitions(pool_scatter(some), some[0])
    4
    >>> least_repetitions(pool_scatter(some), some[-1])
    2
    """
    if not peers.variances_differ or _variance_ratio(peers, one) > -RATIO_LIMIT_5_PERCENT:
        return 2
    not_met = peers.max_variance / (1 + peers.max_variance)
    return max(2, min(MAX_NEEDED, ceil(log(MISS_CHANCE) / log(not_met))))


def _variance_ratio(peers: Peers, one: Scatter) -> float:
    """Return Bartlett's ratio of an experiment's variance and its peers'; negative if lower."""
    own, others = len(one.means) - 1, peers.total_degrees - len(one.means) + 1
    if others < 1 or own < 1:
        return 0.0
    variance = _variance(one, peers.correlation, NEGLIGIBLE_SCATTER)
    theirs = max(
        (peers.pooled * peers.total_degrees - own * variance) / others, NEGLIGIBLE_SCATTER**2
    )
    both = (own * variance + others * theirs) / (own + others)
    ratio = own * log(both / variance) + others * log(both / theirs)
    ratio /= 1 + (1 / own + 1 / others - 1 / (own + others)) / 3
    return ratio if variance > theirs else -ratio


def _variance(one: Scatter, correlation: float, least: float = 0.0) -> float:
    """Return the variance in units of the allowed half width, corrected for correlation."""
    n, middle = len(one.means), sum(one.means) / len(one.means)
    variance = sum((each - middle) ** 2 for each in one.means) / (n - 1)
    return max(variance / one.allowed**2 / shown_variance_share(correlation, n), least**2)


def _fit_prior(scatters: Sequence[tuple[float, int]]) -> tuple[float, float]:
    """Return the most likely prior of some variances with their degrees of freedom: its centre and
    its degrees of freedom.
    """
    priors = ((_prior_centre(scatters, degrees), degrees) for degrees in PRIOR_DEGREES)
    variance, degrees = max(priors, key=lambda prior: _variance_likelihood(scatters, *prior))
    return variance, degrees


def _prior_centre(scatters: Sequence[tuple[float, int]], degrees: float) -> float:
    """Return the most likely centre of the prior for given degrees of freedom."""
    low = min(variance for variance, _ in scatters)
    high = max(variance for variance, _ in scatters)

    def is_too_low(middle: float) -> bool:
        parts = ((degrees + own) * middle / (degrees * middle + own * s) for s, own in scatters)
        return sum(parts) < len(scatters)

    while high > low * CENTRE_PRECISION:
        between = sqrt(low * high)
        low, high = (between, high) if is_too_low(between) else (low, between)
    return sqrt(low * high)


def _variance_likelihood(
    scatters: Sequence[tuple[float, int]], middle: float, degrees: float
) -> float:
    """Return the log likelihood of all variances; it does not depend on the stopping rule."""
    half = degrees / 2
    one = half * log(degrees * middle) - lgamma(half)
    parts = (
        lgamma(half + own / 2) - (half + own / 2) * log(degrees * middle + own * variance)
        for variance, own in scatters
    )
    return len(scatters) * one + sum(parts)


def sort_correlation(every: Sequence[Sequence[float]]) -> tuple[float, bool]:
    """Return the correlation of neighbours in a sort's experiments, and whether some differ.

    ::

        level  ··              ···
                 ···  ·     ··        correlated: twelve repetitions are worth five independent ones
                       ·  ·

    The likelihood is computed for each correlation of an AR(1) process that neighbours may have.
    The likelihoods of a sort's experiments are multiplied, as they lie in one plan; a share of them
    may have any correlation. A single experiment shows little of its own correlation, so its
    interval averages over all correlations, weighted by likelihood. A test on a single experiment
    is not enough: of twelve repetitions whose neighbours are correlated by 0.5, Student's interval
    of 98 % holds 84 means in a hundred, and a test at one in a hundred notices one in five. Where
    experiments of a sort are correlated beyond chance, taken together, none of them counts as
    uncorrelated.

    **Source** H. D. Patterson, R. Thompson (1971): the restricted likelihood, which does not depend
    on the mean and does not underestimate the correlation of short series. H. Jeffreys (1961), G.
    E. P. Box, G. C. Tiao (1973): average over a nuisance parameter. T. A. Bancroft (1944), T. B.
    Fomby, D. K. Guilkey (1978): an estimator chosen by a preliminary test has a higher error rate
    than its nominal one. H. Robbins (1956): estimate the share from the other experiments. M. S.
    Bartlett (1946): the variance of the mean of correlated neighbours.
    **Faithful** The exact likelihood of a stationary AR(1) process of any mean and variance.
    **Simplified** Correlations go in steps of a twentieth and are not negative: intervals of
    negatively correlated repetitions are wider than needed.
    **Ambiguous** Fewer than `MIN_REPETITIONS` repetitions are not used: with three of each of
    twenty experiments, one plan in ten of uncorrelated neighbours had an estimate of 0.91.

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
