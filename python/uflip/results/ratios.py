"""Ratios of two estimated means: intervals, and tests of many ratios against a limit.

**Source** E. C. Fieller, "Some Problems in Interval Estimation", J. R. Stat. Soc. B 16 (1954): the
interval of a ratio. B. L. Welch (1947) and F. E. Satterthwaite (1946): the degrees of freedom of a
difference of two means. S. Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scand.
J. Stat. 6 (1979): many tests at once.
**Faithful** All three, with exact tails of Student's distribution. Holm's procedure holds for any
dependence between the tests.
**Simplified** Half widths are taken for those of Student's intervals of 95 %.
**Ambiguous** The chance of a difference with few repetitions. Two faults of Welch's test show far
out in the tails, where one of hundreds of tests is decided. (1) Where one side scatters more than
the other, a small scatter of that side by chance is taken for many degrees of freedom. So the
degrees of freedom are limited to those of the typical ratio of the scatters, over all experiments
of the comparison. (2) Where one side was repeated more often than the other, its smaller error by
chance does the same. So the test with one variance for both sides must agree: it has no such fault
where both scatter alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, lgamma, log, log1p, sqrt
from statistics import NormalDist, median

from uflip import _native
from uflip.results.repetitions import CONFIDENCE

CHANCE = (1 - CONFIDENCE) / 2
"""The chance that an interval lies above the true value."""
ROUNDING = 1e-9
"""A mean that differs from the limit by less than this share equals it."""
NORMAL = 1e5
"""Student's distribution counts as normal from this number of degrees of freedom."""


@dataclass(frozen=True)
class MeanEstimate:
    """A mean, half the width of its interval of 95 %, and the degrees of freedom of that."""

    mean: float
    half_width: float
    degrees: float

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        return self.half_width / float(_native.student_quantile(2 * CHANCE, self.degrees))


def ratio_interval(
    first: float, first_half: float | None, second: float, second_half: float | None
) -> tuple[float, float] | None:
    """Return the interval of second / first, from the half widths of both (Fieller 1954).

    Response times are positive, so the interval does not begin below 0.

    Examples
    --------
    >>> ratio_interval(100.0, 0.0, 150.0, 15.0)
    (1.35, 1.65)
    >>> ratio_interval(100.0, 100.0, 150.0, 1.0) is None
    True
    >>> ratio_interval(100.0, 0.0, 150.0, 200.0)
    (0.0, 3.5)
    """
    if first_half is None or second_half is None or first <= 0:
        return None
    ours, theirs, ratio = first_half / first, second_half / first, second / first
    if ours >= 1:
        return None
    middle = ratio / (1 - ours * ours)
    half = sqrt((ratio * ours) ** 2 + theirs * theirs * (1 - ours * ours)) / (1 - ours * ours)
    return max(0.0, middle - half), middle + half


def student_tail(t: float, degrees: float) -> float:
    """Return the probability that a Student variable exceeds t, by the incomplete beta function.

    Examples
    --------
    >>> round(student_tail(4.302653, 2), 6), round(student_tail(-12.7062, 1), 6)
    (0.025, 0.975)
    >>> f"{student_tail(51.0, 2):.3e}"
    '1.921e-04'
    """
    if degrees >= NORMAL:
        return NormalDist().cdf(-t)
    square = t * t
    if square == 0:
        return 0.5
    a, b = degrees / 2, 0.5
    x, y = degrees / (degrees + square), square / (degrees + square)
    log_x = -log1p(square / degrees)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log_x + b * log(y))
    if x < (a + 1) / (a + b + 2):
        both = front * _beta_fraction(a, b, x) / a
    else:
        both = 1 - front * _beta_fraction(b, a, y) / b
    return both / 2 if t > 0 else 1 - both / 2


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Evaluate the continued fraction of the incomplete beta function (Lentz's method)."""
    least = 1e-300
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1) or least)
    value = d
    for m in range(1, 10_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d, c = 1 / (1 + term * d or least), 1 + term / c or least
            value *= d * c
        if abs(d * c - 1) < 1e-14:
            break
    return value


def typical_spread(pairs: Sequence[tuple[MeanEstimate, MeanEstimate]]) -> float:
    """Return the typical ratio of the squared relative errors, second over first.

    The median over all pairs in which both have an error; 1 without such a pair.

    Examples
    --------
    >>> typical_spread([(MeanEstimate(100.0, 1.0, 2), MeanEstimate(200.0, 4.0, 2))])
    4.0
    """
    ratios = [
        (second.error / second.mean / (first.error / first.mean)) ** 2
        for first, second in pairs
        if first.half_width > 0 and second.half_width > 0
    ]
    return median(ratios) if ratios else 1.0


def difference_chance(
    first: MeanEstimate, second: MeanEstimate, limit: float, spread: float = 1.0
) -> float:
    """Return the chance of so large a ratio of second to first, if the true ratio is the limit.

    Parameters
    ----------
    first, second
        The two means.
    limit
        The ratio that is still allowed.
    spread
        From `typical_spread`.

    Examples
    --------
    >>> known = MeanEstimate(100.0, 0.0, 2)
    >>> round(difference_chance(known, MeanEstimate(150.0, 15.0, 2), 1.35), 3)
    0.025
    >>> difference_chance(known, MeanEstimate(150.0, 0.0, 2), 1.5)
    1.0
    >>> difference_chance(known, known, 0.9)
    0.0
    """
    beyond = second.mean - limit * first.mean
    if beyond <= ROUNDING * second.mean:
        return 1.0
    one, other = (limit * first.error) ** 2, second.error**2
    total = one + other
    if total == 0:
        return 0.0
    ours, theirs = first.degrees, second.degrees

    def welch(share: float) -> float:
        return 1 / (share**2 / ours + (1 - share) ** 2 / theirs)

    degrees = min(welch(one / total), welch(1 / (1 + spread)))
    chance = student_tail(beyond / sqrt(total), degrees)
    # A mean of n repetitions has n − 1 degrees of freedom, and an nth of the variance of one.
    variance = (ours * one * (ours + 1) + theirs * other * (theirs + 1)) / (ours + theirs)
    error = sqrt(variance * (1 / (ours + 1) + 1 / (theirs + 1)))
    return max(chance, student_tail(beyond / error, ours + theirs))


def holm(chances: Sequence[float], level: float = CHANCE) -> list[bool]:
    """Return which hypotheses are rejected; a false rejection has at most the chance `level`.

    Examples
    --------
    >>> holm([0.02, 0.001, 0.012]), holm([0.02])
    ([True, True, True], [True])
    >>> holm([0.02, 0.001, 0.013])
    [False, True, False]
    """
    rejected = [False] * len(chances)
    for rank, index in enumerate(sorted(range(len(chances)), key=chances.__getitem__)):
        if chances[index] > level / (len(chances) - rank):
            break
        rejected[index] = True
    return rejected
