"""Ratios of two means that were estimated: intervals, and which of many are beyond a limit.

**Source** E. C. Fieller, "Some Problems in Interval Estimation", J. R. Stat. Soc. B 16 (1954): the
interval of a ratio. S. Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scand. J.
Stat. 6 (1979): of many questions that are asked together.
**Faithful** Both. Holm's procedure holds however the questions depend on each other.
**Simplified** Of few repetitions what is less probable lies further out than of a normal
distribution, of which each half width is taken to be 95 %.
**Ambiguous** Nothing.
"""

from collections.abc import Sequence
from math import sqrt
from statistics import NormalDist

from uflip.results.agreement import CONFIDENCE

CHANCE = (1 - CONFIDENCE) / 2
"""That an interval lies above what it should hold."""
WIDTH = NormalDist().inv_cdf(1 - CHANCE)
"""Half the width of an interval over the standard error."""


def ratio_interval(
    first: float, first_half: float | None, second: float, second_half: float | None
) -> tuple[float, float] | None:
    """Return the interval of second / first, from the half widths of theirs (Fieller 1954).

    What is compared is no less than 0, nor is a ratio of it, however wide the intervals are.

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


def chance_of(
    first: float, first_half: float, second: float, second_half: float, limit: float
) -> float:
    """How probable so large a ratio of second to first is, where in truth it is the limit.

    It is `CHANCE` where the interval of the ratio begins at the limit.

    Examples
    --------
    >>> round(chance_of(100.0, 0.0, 150.0, 15.0, 1.35), 3), chance_of(1.0, 0.0, 2.0, 0.0, 1.5)
    (0.025, 0.0)
    """
    beyond, width = second - limit * first, sqrt(second_half**2 + (limit * first_half) ** 2)
    if width == 0:
        return 0.0 if beyond > 0 else 1.0
    return NormalDist().cdf(-WIDTH * beyond / width)


def holm(chances: Sequence[float], level: float = CHANCE) -> list[bool]:
    """Which of many questions are answered, where any is wrongly with at most this chance.

    Examples
    --------
    >>> holm([0.02, 0.001, 0.012]), holm([0.02])
    ([True, True, True], [True])
    >>> holm([0.02, 0.001, 0.013])
    [False, True, False]
    """
    answered = [False] * len(chances)
    for place, chosen in enumerate(sorted(range(len(chances)), key=chances.__getitem__)):
        if chances[chosen] > level / (len(chances) - place):
            break
        answered[chosen] = True
    return answered
