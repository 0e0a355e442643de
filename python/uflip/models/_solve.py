"""The numerical tools of the models: two root finders and the digamma function.

They are here so that the models need only `math`; the tests compare them with SciPy.
"""

import math
from collections.abc import Callable

from uflip.errors import UsageError

EULER_GAMMA = 0.5772156649015329
# Terms B_2k/(2k) of the asymptotic series of digamma. From x = 12 the first omitted term
# (12**-14 / 12) is below 1e-16, so the sum is exact to double precision.
_DIGAMMA_FROM = 12.0
_DIGAMMA_TERMS = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760)


def digamma(x: float) -> float:
    """Return the logarithmic derivative of the gamma function, for x > 0.

    Examples
    --------
    >>> round(digamma(1.0) + EULER_GAMMA, 12)
    0.0
    """
    total = 0.0
    while x < _DIGAMMA_FROM:
        total -= 1 / x  # digamma(x) = digamma(x + 1) - 1/x
        x += 1
    square = 1 / (x * x)
    power = 1.0
    total += math.log(x) - 0.5 / x
    for term in _DIGAMMA_TERMS:
        power *= square
        total -= term * power
    return total


def harmonic(x: float) -> float:
    """Return the harmonic number H(x) = 1 + 1/2 + ... + 1/x, continued to real x >= 0.

    Examples
    --------
    >>> round(harmonic(4), 12) == round(1 + 1 / 2 + 1 / 3 + 1 / 4, 12)
    True
    """
    return digamma(x + 1) + EULER_GAMMA


def bisect(function: Callable[[float], float], low: float, high: float) -> float:
    """Return the root of a decreasing function in [low, high], to the last bit or so.

    A value that is positive all the way gives `high`, one that is never positive gives `low`:
    the callers choose brackets at which that is the right answer.
    """
    while True:
        middle = 0.5 * (low + high)
        if middle in (low, high):
            return middle
        if function(middle) > 0:
            low = middle
        else:
            high = middle


def invalid_share(*, turnover: float, head_start: float = 0.0) -> float:
    """Return the share y of invalid pages in the oldest block of a log: y = 1 - exp(h - t y).

    A page written `t y` mean update intervals ago is still valid with probability exp(-t y). What
    is written during one turn of the log is its size t less the pages that were only moved, so the
    share y of invalid pages stands on both sides. Newton's method starts at y = 1; the residual is
    convex there, so every step goes down and none passes the largest root, which is the physical
    one (y = 0, all pages valid, always solves the equation at h = 0).

    Parameters
    ----------
    turnover : float
        Size of the log t in mean update intervals, more than 1 (physical over logical pages).
    head_start : float
        Exponent h >= 0 of what shortens the time in the log (OFC's equation (1)).

    Raises
    ------
    UsageError
        No steady state exists: the blocks held back use up the spare capacity.

    Examples
    --------
    >>> round(invalid_share(turnover=2.0), 4)
    0.7968
    """
    # The residual is lowest at y = (ln t + h)/t; without a root it is positive even there.
    if turnover <= 1 or (math.log(turnover) + head_start + 1) / turnover > 1:
        raise UsageError(
            what="no steady state: the blocks held back use up the spare capacity",
            where="spare_factor",
            got=f"a log of {turnover:.6g} update intervals, shortened by {head_start:.6g}",
            allowed="more physical than logical pages after the reserved blocks are taken off",
            action="raise spare_factor, or lower reserved_blocks or dies",
        )
    share = 1.0
    while True:
        decay = math.expm1(head_start - turnover * share)
        lower = share - (share + decay) / (1 - turnover * (decay + 1))
        if not lower < share:  # at the root rounding alone decides the last step
            return share
        share = lower
