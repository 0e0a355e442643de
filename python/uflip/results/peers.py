"""How repetitions scatter, by all experiments of a sort: three of one hardly say it.

    experiment   three repetitions each      its scatter, of two degrees of freedom
        1            ·   · ·                     known to a factor of three
        2          ·   ·      ·                   …
       16             ·· ·                        …
                         together: how much experiments of this sort scatter, and how much that
                         differs between them

Three repetitions that lie together by chance, or that all found the device in the state that it is
in two times of three, claim what is not so, and an interval of their own cannot tell. What the
others of the same sort did, on the same device and at the same time, can. The variance that a
claim rests on is the weighted mean of an experiment's own and of theirs.

**Source** H. Robbins (1956), empirical Bayes; G. K. Smyth, "Linear models and empirical Bayes
methods for assessing differential expression in microarray experiments" (2004): the same question,
thousands of means of three each. J. von Neumann (1941): what neighbours differ by, over the
variance. W. Edwards, H. Lindman, L. J. Savage (1963): what a posterior says does not depend on when
one stops looking, so that rounds may ask again.
**Faithful** A scaled inverse χ² for the variances of a sort; degrees of freedom of both added,
never more than all of them have together.
**Simplified** Neighbours that resemble each other do so like an AR(1) process, in all experiments
of a sort alike. The mean of the ratios of short series shows less than there is (of 0.5 three
repetitions show 0.2, twelve 0.4), and what chance shows counts for nothing. The two numbers of the
distribution are the most likely ones (Smyth takes moments of logarithms, which repetitions that
went on until they agreed would move).
**Ambiguous** (1) In what unit scatters are comparable: in what is allowed, which is what claims are
held against. A tenth of that or less is as good as none. (2) Who is a peer: experiments of the same
micro-benchmark and pattern, which differ in the value of one parameter only. Fewer than `FEWEST`
say nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import lgamma, log, sqrt

from uflip import _native

FEWEST = 5
"""So many experiments with repetitions are peers."""
LEAST = 0.1
"""A scatter, in what is allowed, that is as good as none."""
MOST_CORRELATED = 0.95
BEYOND_CHANCE = 1.645
"""Standard errors, of what is so once in twenty times where there is nothing."""
WORTH = tuple(2.0**power for power in range(-1, 9))
"""Degrees of freedom that others may be worth."""
CLOSE = 1.001


@dataclass(frozen=True)
class Peers:
    """How the repetitions of a sort's experiments scatter.

    Attributes
    ----------
    variance : float
        Of one repetition, in the square of what is allowed.
    degrees : float
        Of freedom that this is worth, beside an experiment's own; many where all are alike.
    together : int
        Degrees of freedom of all.
    correlation : float
        Of repetitions that follow each other.
    """

    variance: float
    degrees: float
    together: int
    correlation: float


@dataclass(frozen=True)
class Scatter:
    """The means of an experiment's repetitions, two or more, in the order in which they were made,
    and half the width of an interval that is narrow enough [ns].
    """

    means: Sequence[float]
    allowed: float


def peers_of(experiments: Sequence[Scatter]) -> Peers | None:
    """What experiments of one sort say together; None of fewer than `FEWEST`.

    Examples
    --------
    >>> some = [Scatter([100.0, 100 - x, 100 + x], 5.0) for x in (1, 1.5, 2, 2.5, 3)]
    >>> found = peers_of(some)
    >>> round(found.variance, 2), found.degrees, found.correlation
    (0.18, 256.0, 0.0)
    """
    known = [one for one in experiments if len(one.means) > 1 and one.allowed > 0]
    if len(known) < FEWEST:
        return None
    correlation = _correlation([one.means for one in known])
    scatters = [(_variance(one, correlation, LEAST), len(one.means) - 1) for one in known]
    variance, degrees = _fitted(scatters)
    return Peers(variance, degrees, sum(own for _, own in scatters), correlation)


def supported(peers: Peers, one: Scatter, confidence: float) -> tuple[float, float]:
    """Half the width of the interval of the mean [ns], and the degrees of freedom it rests on.

    Examples
    --------
    >>> alike = Peers(variance=1.0, degrees=256.0, together=100, correlation=0.0)
    >>> width, degrees = supported(alike, Scatter([100.0, 100.0, 100.0], 5.0), 0.98)
    >>> round(width / 5.0 * 3**0.5, 2), degrees
    (2.36, 100)
    """
    n = len(one.means)
    own = _variance(one, peers.correlation)
    degrees = peers.degrees + n - 1
    variance = (peers.degrees * peers.variance + (n - 1) * own) / degrees
    degrees = min(degrees, max(peers.together, n - 1))
    standard_error = sqrt(variance * (1 + 2 * _common(peers.correlation, n)) / n)
    student: float = _native.student_quantile(1 - confidence, degrees)
    return student * standard_error * one.allowed, degrees


def _variance(one: Scatter, correlation: float, least: float = 0.0) -> float:
    """Variance of repetitions in the square of what is allowed, with what they have in common."""
    n, middle = len(one.means), sum(one.means) / len(one.means)
    variance = sum((each - middle) ** 2 for each in one.means) / (n - 1)
    return max(variance / one.allowed**2 / _kept(correlation, n), least**2)


def _fitted(scatters: Sequence[tuple[float, int]]) -> tuple[float, float]:
    """The middle of what variances, with degrees of freedom of their own each, come from, and its
    degrees of freedom: those that are most likely.
    """
    tried = ((_middle(scatters, degrees), degrees) for degrees in WORTH)
    variance, degrees = max(tried, key=lambda prior: _likelihood(scatters, *prior))
    return variance, degrees


def _middle(scatters: Sequence[tuple[float, int]], degrees: float) -> float:
    """The most likely middle, if it is worth so many degrees of freedom."""
    low = min(variance for variance, _ in scatters)
    high = max(variance for variance, _ in scatters)

    def is_too_low(middle: float) -> bool:
        parts = ((degrees + own) * middle / (degrees * middle + own * s) for s, own in scatters)
        return sum(parts) < len(scatters)

    while high > low * CLOSE:
        between = sqrt(low * high)
        low, high = (between, high) if is_too_low(between) else (low, between)
    return sqrt(low * high)


def _likelihood(scatters: Sequence[tuple[float, int]], middle: float, degrees: float) -> float:
    """Logarithm of that of all variances, whatever the stopping of any of them rested on."""
    half = degrees / 2
    one = half * log(degrees * middle) - lgamma(half)
    parts = (
        lgamma(half + own / 2) - (half + own / 2) * log(degrees * middle + own * variance)
        for variance, own in scatters
    )
    return len(scatters) * one + sum(parts)


def _correlation(every: Sequence[Sequence[float]]) -> float:
    """The correlation of neighbours that the ratios of all experiments ask for; 0 within chance.

    Of n independent values the mean square of what neighbours differ by is on average twice their
    variance; how far it stays below says how much they resemble each other. That ratio does not
    depend on how large the variance is, so that who is repeated further does not matter.
    """
    ratios = [(ratio, len(means)) for means in every if (ratio := _ratio(means)) is not None]
    if not ratios:
        return 0.0

    def more(correlation: float) -> bool:
        """Whether neighbours resemble each other more than that."""
        expected = ((1 - correlation) / _kept(correlation, n) * (n - 1) for _, n in ratios)
        return sum(ratio * (n - 1) for ratio, n in ratios) < sum(expected)

    # Of normal values such a ratio has this variance (von Neumann 1941).
    chance = sqrt(sum((n - 1) ** 2 * (n - 2) / (n * n - 1) for _, n in ratios))
    if sum((1 - ratio) * (n - 1) for ratio, n in ratios) <= BEYOND_CHANCE * chance:
        return 0.0
    low, high = 0.0, MOST_CORRELATED
    for _ in range(30):
        between = (low + high) / 2
        low, high = (between, high) if more(between) else (low, between)
    return low


def _ratio(means: Sequence[float]) -> float | None:
    """Half the mean square of what neighbours differ by, over the variance; None of equal ones."""
    middle = sum(means) / len(means)
    squares = sum((each - middle) ** 2 for each in means)
    if len(means) < 3 or squares <= (1e-9 * middle) ** 2:
        return None
    return sum((b - a) ** 2 for a, b in pairwise(means)) / 2 / squares


def _common(correlation: float, n: int) -> float:
    """What n repetitions have in common by their correlation: Σ (1 − k/n) ρᵏ over distances k."""
    return sum((1 - k / n) * correlation**k for k in range(1, n)) if correlation else 0.0


def _kept(correlation: float, n: int) -> float:
    """The share of the variance that n repetitions show, whose own mean takes the rest."""
    return 1 - 2 * _common(correlation, n) / (n - 1)
