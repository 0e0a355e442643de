"""How repetitions scatter, by all experiments of a sort: three of one hardly say it.

    experiment   three repetitions each      its scatter, of two degrees of freedom
        1            ·   · ·                     known to a factor of three
        2          ·   ·      ·                   …
       16             ·· ·                        …
                         together: how much experiments of this sort scatter, and how much that
                         differs between them

Three repetitions that lie together by chance, or that all found the device in the state that it is
in two times of three, claim what is not so, and an interval of their own cannot tell. What the
others of the same sort did, on the same device and at the same time, can. The variance that a claim
rests on is the weighted mean of an experiment's own and of theirs. They speak for it as far as
nothing shows that it is not like them: one that scatters more, or whose neighbours are more alike,
stands for itself (`is_odd`), and one that is quiet where others are not is believed when it has
been repeated so often that it would have shown what they show (`fewest`).

**Source** H. Robbins (1956), empirical Bayes; G. K. Smyth, "Linear models and empirical Bayes
methods for assessing differential expression in microarray experiments" (2004): the same question,
thousands of means of three each. M. S. Bartlett (1937): whether two variances are one. B. Phipson
et al., "Robust hyperparameter estimation protects against hypervariable genes" (2016): who is not
like the others gets no support from them. W. Edwards, H. Lindman, L. J. Savage (1963): what a
posterior says does not depend on when one stops looking, so that rounds may ask again.
**Faithful** A scaled inverse χ² for the variances of a sort; degrees of freedom of both added,
never more than all of them have together.
**Simplified** Neighbours that resemble each other do so like an AR(1) process (`neighbours`), in
all experiments of a sort alike but for odd ones. The two numbers of the distribution are the most
likely ones (Smyth takes moments of logarithms, which repetitions that went on until they agreed
would move).
**Ambiguous** (1) In what unit scatters are comparable: in what is allowed, which is what claims are
held against. A tenth of that or less is as good as none. (2) Who is a peer: experiments of the same
micro-benchmark and pattern, which differ in the value of one parameter only. Fewer than `FEWEST`
say nothing. (3) What a quiet one may hide: a state of the device that makes its peers scatter as
much as the loudest of them do, and that less than a third of repetitions need not meet.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, lgamma, log, sqrt

from uflip import _native
from uflip.results import autocorrelation
from uflip.results.autocorrelation import common, kept

FEWEST = 5
"""So many experiments with repetitions are peers."""
LEAST = 0.1
"""A scatter, in what is allowed, that is as good as none."""
MISSED = 0.02
"""The chance at which a state of the device may be missed."""
ENOUGH = 12
"""More are not asked for: of so many one in 130 misses a state in which a third find the device."""
BEYOND_CHANCE = 1.645**2
"""Twice the logarithm of a ratio of likelihoods, beyond which chance gets once in 20 times."""
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
    pooled : float
        Mean of the variances of all, each by its degrees of freedom.
    loudest : float
        The largest of them, each weighed with that of all.
    mixed : bool
        Whether they scatter otherwise than each other beyond chance.
    unlike : bool
        Whether neighbours of some are more alike than those of others, beyond chance.
    """

    variance: float
    degrees: float
    together: int
    correlation: float
    pooled: float
    loudest: float
    mixed: bool
    unlike: bool = False


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
    correlation, unlike = autocorrelation.of_sort([one.means for one in known])
    scatters = [(_variance(one, correlation, LEAST), len(one.means) - 1) for one in known]
    variance, degrees = _fitted(scatters)
    together = sum(own for _, own in scatters)
    pooled = sum(each * own for each, own in scatters) / together
    alike = _likelihood(scatters, _middle(scatters, WORTH[-1]), WORTH[-1])
    gained = 2 * (_likelihood(scatters, variance, degrees) - alike)
    loudest = max((degrees * variance + own * each) / (degrees + own) for each, own in scatters)
    mixed = gained > autocorrelation.BEYOND_CHANCE
    return Peers(variance, degrees, together, correlation, pooled, loudest, mixed, unlike)


def supported(peers: Peers, one: Scatter, confidence: float) -> tuple[float, float]:
    """Half the width of the interval of the mean [ns], and the degrees of freedom it rests on.

    Examples
    --------
    >>> alike = Peers(1.0, 256.0, 100, correlation=0.0, pooled=1.0, loudest=1.0, mixed=False)
    >>> width, degrees = supported(alike, Scatter([100.0, 100.0, 100.0], 5.0), 0.98)
    >>> round(width / 5.0 * 3**0.5, 2), degrees
    (2.36, 100)
    """
    n = len(one.means)
    own = _variance(one, peers.correlation)
    degrees = peers.degrees + n - 1
    variance = (peers.degrees * peers.variance + (n - 1) * own) / degrees
    degrees = min(degrees, max(peers.together, n - 1))
    standard_error = sqrt(variance * (1 + 2 * common(peers.correlation, n)) / n)
    student: float = _native.student_quantile(1 - confidence, degrees)
    return student * standard_error * one.allowed, degrees


def is_odd(peers: Peers, one: Scatter) -> bool:
    """Whether an experiment of theirs stands for itself.

    Beyond chance it scatters more than the others, or its neighbours are more alike, or those of
    some of them are: then few repetitions do not show whose.

    Examples
    --------
    >>> some = [Scatter([100.0, 100 - x, 100 + x], 5.0) for x in (1, 1.5, 2, 2.5, 20)]
    >>> [is_odd(peers_of(some), one) for one in some]
    [False, False, False, False, True]
    """
    is_louder = _louder(peers, one) > BEYOND_CHANCE
    return is_louder or peers.unlike or autocorrelation.resemble(one.means, peers.correlation)


def fewest(peers: Peers, one: Scatter) -> int:
    """So many repetitions of an experiment of theirs are believed.

    One that is quiet where others are not may hide what they show. A state that a share p of
    repetitions meet makes them scatter by s, and their mean wrong by s √(p/(1 − p)) where none has
    met it. That is more than is allowed from p = 1/(1 + s²) on, which n miss with the chance (1 −
    p)ⁿ.

    Examples
    --------
    >>> some = [Scatter([100.0, 100 - x, 100 + x], 5.0) for x in (0.1, 0.1, 0.2, 0.2, 0.3, 5.0)]
    >>> fewest(peers_of(some), some[0]), fewest(peers_of(some), some[-1])
    (4, 2)
    """
    if not peers.mixed or _louder(peers, one) > -BEYOND_CHANCE:
        return 2
    not_met = peers.loudest / (1 + peers.loudest)
    return max(2, min(ENOUGH, ceil(log(MISSED) / log(not_met))))


def _louder(peers: Peers, one: Scatter) -> float:
    """Bartlett's ratio of an experiment's variance and its peers'; below zero if it is lower."""
    own, rest = len(one.means) - 1, peers.together - len(one.means) + 1
    if rest < 1 or own < 1:
        return 0.0
    variance = _variance(one, peers.correlation, LEAST)
    theirs = max((peers.pooled * peers.together - own * variance) / rest, LEAST**2)
    both = (own * variance + rest * theirs) / (own + rest)
    ratio = own * log(both / variance) + rest * log(both / theirs)
    ratio /= 1 + (1 / own + 1 / rest - 1 / (own + rest)) / 3
    return ratio if variance > theirs else -ratio


def _variance(one: Scatter, correlation: float, least: float = 0.0) -> float:
    """Variance of repetitions in the square of what is allowed, with what they have in common."""
    n, middle = len(one.means), sum(one.means) / len(one.means)
    variance = sum((each - middle) ** 2 for each in one.means) / (n - 1)
    return max(variance / one.allowed**2 / kept(correlation, n), least**2)


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
