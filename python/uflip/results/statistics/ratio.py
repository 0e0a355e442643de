"""Two means: the interval of their ratio, the verdict whether they differ, and many such tests.

**Source** E. C. Fieller, "Some Problems in Interval Estimation", J. R. Stat. Soc. B 16 (1954): the
interval of a ratio of independent estimates. uFLIP (CIDR 2009) §5.1: the same runs repeat
"typically within 5%".
**Faithful** Fieller's interval, from the half widths of both means.
**Simplified** Means decide, not distributions.
**Ambiguous** When two means differ. Here: the interval of their ratio does not hold 1, and the
ratio is beyond the factor by which the same pattern differs when it is measured again (`verdict`).
They are the same where the whole interval is within `AGREEMENT`. Whether a ratio exceeds a limit
that its interval includes is undecided (`Factor.exceeds`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import exp, hypot, lgamma, log, log1p, sqrt
from statistics import NormalDist, median

from uflip import _native
from uflip.results.statistics.experiment import AGREEMENT, CONFIDENCE, Mark

CHANCE = (1 - CONFIDENCE) / 2
"""The chance that an interval lies above the true value."""
ROUNDING = 1e-9
"""A mean that differs from the limit by less than this share equals it."""
NORMAL = 1e5
"""Student's distribution counts as normal from this number of degrees of freedom."""

VERDICTS = {
    "slower": "the second takes longer, by more than chance",
    "faster": "the second takes less time, by more than chance",
    "same": f"the second takes as long, within {AGREEMENT:.0%}",
    "not_apart": "undecided: the interval is too wide, or repetitions differ too much",
    "unknown": "no verdict: unknown_because contains the reason",
}
"""Verdict on two means -> its explanation."""


@dataclass(frozen=True)
class Mean:
    """A mean response time, and half the width of its interval of 95 %, None if unknown [ns].

    `mark` is that of its runs, if they measured the start-up of the device or its write cache.
    `degrees` are the degrees of freedom of the interval.
    """

    ns: float
    half_width_ns: float | None = None
    mark: Mark | None = None
    degrees: float = field(default=NORMAL, repr=False)

    @property
    def error(self) -> float:
        """The standard error of the mean; 0 where the interval is unknown."""
        return (self.half_width_ns or 0.0) / float(
            _native.student_quantile(2 * CHANCE, self.degrees)
        )

    def times(self, factor: float) -> "Mean":
        """Return a multiple of the mean.

        >>> Mean(10.0, 1.0).times(2)
        Mean(ns=20.0, half_width_ns=2.0, mark=None)
        """
        half = self.half_width_ns
        return Mean(self.ns * factor, None if half is None else half * abs(factor), self.mark)

    def plus(self, ns: float) -> "Mean":
        """Return the mean plus a duration [ns]."""
        return Mean(self.ns + ns, self.half_width_ns, self.mark)


@dataclass(frozen=True)
class Factor:
    """A ratio of two means, and its interval; None if the interval is unknown.

    A factor with a `mark` decides nothing: one of its means includes the start-up or the cache.
    """

    value: float
    low: float | None = None
    high: float | None = None
    mark: Mark | None = None

    def exceeds(self, limit: float) -> bool | None:
        """Return whether the factor is above a limit; None if its interval includes the limit.

        Also None without an interval, and for a marked factor.

        >>> Factor(1.5, 1.4, 1.6).exceeds(1.2), Factor(1.5, 1.1, 1.9).exceeds(1.2)
        (True, None)
        >>> Factor(1.7).exceeds(1.2) is None, Factor(1.7, 1.7, 1.7).exceeds(1.2)
        (True, True)
        """
        if self.mark or self.low is None or self.high is None:
            return None
        if self.low <= limit <= self.high:
            return None
        return self.value > limit


def mean_ratio(first: Mean, second: Mean) -> Factor:
    """Return the ratio of the first to the second mean.

    It has no interval if one of the means has none, or if that of the second includes zero.

    >>> mean_ratio(Mean(150.0, 15.0), Mean(100.0, 0.0))
    Factor(value=1.5, low=1.35, high=1.65, mark=None)
    >>> mean_ratio(Mean(22.1, 16.2), Mean(17.7, 27.9)).exceeds(1.2) is None
    True
    """
    bounds = ratio_interval(second.ns, second.half_width_ns, first.ns, first.half_width_ns)
    low, high = bounds or (None, None)
    return Factor(first.ns / second.ns, low, high, first_mark((first, second)))


def verdict(ratio: Factor, repeats_to: float = 1.0) -> str:
    """Return one of `VERDICTS` on a second mean over a first one.

    `ratio`: of the means. `repeats_to`: the factor by which the same pattern differs when it is
    measured again.

    >>> verdict(Factor(1.2, 1.1, 1.3)), verdict(Factor(1.2, 1.1, 1.3), repeats_to=1.25)
    ('slower', 'not_apart')
    """
    if ratio.low is None or ratio.high is None:
        return "unknown"
    if ratio.low >= 1 / (1 + AGREEMENT) and ratio.high <= 1 + AGREEMENT:
        return "same"
    exceeds = ratio.exceeds(1)
    if exceeds and ratio.value > repeats_to:
        return "slower"
    return "faster" if exceeds is False and ratio.value < 1 / repeats_to else "not_apart"


def sum_of_means(parts: Iterable[Mean]) -> Mean:
    """Return the sum of independent means, with its interval.

    >>> sum_of_means([Mean(10.0, 3.0), Mean(20.0, 4.0)])
    Mean(ns=30.0, half_width_ns=5.0, mark=None)
    """
    means = list(parts)
    halves = [part.half_width_ns for part in means]
    known_halves = [half for half in halves if half is not None]
    return Mean(
        sum(part.ns for part in means),
        hypot(*known_halves) if len(known_halves) == len(halves) else None,
        first_mark(means),
    )


def first_mark(parts: Iterable[Mean | Factor]) -> Mark | None:
    """Return the mark of the first part that has one."""
    return next((part.mark for part in parts if part.mark), None)


def ratio_interval(
    first: float, first_half: float | None, second: float, second_half: float | None
) -> tuple[float, float] | None:
    """Return the interval of second / first, from the half widths of both (Fieller 1954).

    Response times are positive, so the interval does not begin below 0.

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


def difference_chance(first: Mean, second: Mean, limit: float, spread: float = 1.0) -> float:
    """Return the chance of so large a ratio of second to first, if the true ratio is the limit.

    **Source** E. C. Fieller, "Some Problems in Interval Estimation", J. R. Stat. Soc. B 16 (1954):
    the interval of a ratio. B. L. Welch (1947) and F. E. Satterthwaite (1946): the degrees of
    freedom of a difference of two means. S. Holm, "A Simple Sequentially Rejective Multiple Test
    Procedure", Scand. J. Stat. 6 (1979): many tests at once.
    **Faithful** All three, with exact tails of Student's distribution. Holm's procedure holds for
    any dependence between the tests.
    **Simplified** Half widths are taken for those of Student's intervals of 95 %.
    **Ambiguous** The chance of a difference with few repetitions. Two faults of Welch's test show
    far out in the tails, where one of hundreds of tests is decided. (1) Where one side scatters
    more than the other, a small scatter of that side by chance is taken for many degrees of
    freedom. So the degrees of freedom are limited to those of the typical ratio of the scatters,
    over all experiments of the comparison. (2) Where one side was repeated more often than the
    other, its smaller error by chance does the same. So the test with one variance for both sides
    must agree: it has no such fault where both scatter alike.

    >>> known = Mean(100.0, 0.0, degrees=2)
    >>> round(difference_chance(known, Mean(150.0, 15.0, degrees=2), 1.35), 3)
    0.025
    >>> difference_chance(known, Mean(150.0, 0.0, degrees=2), 1.5)
    1.0
    >>> difference_chance(known, known, 0.9)
    0.0
    """
    beyond = second.ns - limit * first.ns
    if beyond <= ROUNDING * second.ns:
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


def typical_spread(pairs: Sequence[tuple[Mean, Mean]]) -> float:
    """Return the typical ratio of the squared relative errors, second over first.

    The median over all pairs in which both have an error; 1 without such a pair.

    >>> typical_spread([(Mean(100.0, 1.0, degrees=2), Mean(200.0, 4.0, degrees=2))])
    4.0
    """
    ratios = [
        (second.error / second.ns / (first.error / first.ns)) ** 2
        for first, second in pairs
        if first.error > 0 and second.error > 0
    ]
    return median(ratios) if ratios else 1.0


def holm(chances: Sequence[float]) -> list[bool]:
    """Return which hypotheses are rejected; a false rejection has at most the chance `CHANCE`.

    >>> holm([0.02, 0.001, 0.012]), holm([0.02])
    ([True, True, True], [True])
    >>> holm([0.02, 0.001, 0.013])
    [False, True, False]
    """
    rejected = [False] * len(chances)
    for rank, index in enumerate(sorted(range(len(chances)), key=chances.__getitem__)):
        if chances[index] > CHANCE / (len(chances) - rank):
            break
        rejected[index] = True
    return rejected


def student_tail(t: float, degrees: float) -> float:
    """Return the probability that a Student variable exceeds t, by the incomplete beta function.

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
