"""Write amplification of page-mapped devices where some pages are written more often than others.

Two classes of pages, hot and cold, mixed in one cyclic buffer or kept apart in two pools; the
symbols are those of `uflip.models.write_amplification`. Class i gets a share r_i of the host's
writes and has a share f_i of the logical pages.

**Source**: Desnoyers (SYSTOR 2012), Stoica & Ailamaki (VLDB 2013).
**Faithful**: `mixed_fifo` and `separated` are the published equations, solved to double precision;
each has been derived anew in its notes.
**Simplified**: two classes, uniform random single-page writes inside each, infinitely many blocks,
one open block a pool for host and relocated pages, no TRIM. The device knows which class a page
belongs to.
**Ambiguous**: how the spare capacity is divided between the pools is a choice, `hot_spare`;
`best_separation` finds the division that amplifies least.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from uflip.models import _checks, _solve
from uflip.models.write_amplification import fifo


def mixed_fifo(*, spare_factor: float, hot_writes: float, hot_pages: float) -> float:
    """Return the write amplification of a cyclic buffer that mixes hot and cold pages.

    Parameters
    ----------
    spare_factor : float
        S_f = 1 - U/T, between 0 and 1.
    hot_writes : float
        Share r of the host writes that goes to hot pages, between 0 and 1.
    hot_pages : float
        Share f of the logical pages that is hot, between 0 and 1.

    Returns
    -------
    float
        A, at least 1; `fifo` where r = f.

    Raises
    ------
    UsageError
        A value out of range.

    Notes
    -----
    After the T B/A host writes of one turn a page of class i is valid with probability
    p_i = exp(-r_i alpha/(A f_i)). Each class writes r_i/(1 - p_i) pages a host write, because what
    comes round valid is written again: A = sum r_i/(1 - exp(-r_i alpha/(A f_i))). Divided by A both
    terms fall as A grows, so there is one root. Any block size.

    Examples
    --------
    >>> round(mixed_fifo(spare_factor=0.125, hot_writes=0.8, hot_pages=0.2), 3)
    4.537
    """
    _checks.spare_factor(spare_factor)
    _checks.open_fraction("hot_writes", hot_writes)
    _checks.open_fraction("hot_pages", hot_pages)
    alpha = 1 / (1 - spare_factor)
    classes = ((hot_writes, hot_pages), (1 - hot_writes, 1 - hot_pages))

    def surplus(amplification: float) -> float:
        total = 0.0
        for writes, pages in classes:
            updates = writes * alpha / (amplification * pages)  # updates a page sees in one turn
            total += pages / alpha * updates / -math.expm1(-updates)
        return total - 1

    high = 1 / spare_factor
    while surplus(high) > 0:
        high *= 2
    return _solve.bisect(surplus, 1.0, high)


@dataclass(frozen=True, kw_only=True)
class Separation:
    """Hot and cold pages in pools of their own: the write amplification of each, and of both.

    Attributes
    ----------
    write_amplification : float
        Of the device: pages programmed / host pages written.
    hot_spare : float
        Share of the spare capacity that the hot pool has, between 0 and 1.
    hot_write_amplification, cold_write_amplification : float
        Of each pool alone.
    """

    write_amplification: float
    hot_spare: float
    hot_write_amplification: float
    cold_write_amplification: float


def separated(
    *,
    spare_factor: float,
    hot_writes: float,
    hot_pages: float,
    hot_spare: float,
    pool: Callable[..., float] = fifo,
) -> Separation:
    """Return the write amplification with hot and cold pages in two pools.

    Parameters
    ----------
    spare_factor : float
        S_f = 1 - U/T of the device, between 0 and 1.
    hot_writes : float
        Share r of the host writes that goes to hot pages, between 0 and 1.
    hot_pages : float
        Share f of the logical pages that is hot, between 0 and 1.
    hot_spare : float
        Share of the spare capacity given to the hot pool, between 0 and 1.
    pool : callable, optional
        The model inside a pool, called with `spare_factor`: `fifo`, `random`, or one of the others
        with its other arguments bound by `functools.partial`.

    Returns
    -------
    Separation
        Both pools and the device.

    Raises
    ------
    UsageError
        A value out of range.

    Notes
    -----
    A = sum r_i A_i(alpha_i), alpha_i = 1 + s_i/f_i, with s_i the spare of pool i over U. Inside a
    pool writes are uniform, so that the uniform formulas hold.

    Examples
    --------
    >>> half = separated(spare_factor=0.125, hot_writes=0.8, hot_pages=0.2, hot_spare=0.5)
    >>> round(half.write_amplification, 3), round(half.cold_write_amplification, 3)
    (2.938, 6.276)
    """
    _checks.spare_factor(spare_factor)
    _checks.open_fraction("hot_writes", hot_writes)
    _checks.open_fraction("hot_pages", hot_pages)
    _checks.open_fraction("hot_spare", hot_spare)
    spare = spare_factor / (1 - spare_factor)  # in units of the logical capacity
    hot = pool(spare_factor=_share(hot_spare * spare, hot_pages))
    cold = pool(spare_factor=_share((1 - hot_spare) * spare, 1 - hot_pages))
    return Separation(
        write_amplification=hot_writes * hot + (1 - hot_writes) * cold,
        hot_spare=hot_spare,
        hot_write_amplification=hot,
        cold_write_amplification=cold,
    )


def best_separation(
    *,
    spare_factor: float,
    hot_writes: float,
    hot_pages: float,
    pool: Callable[..., float] = fifo,
) -> Separation:
    """Return the split of the spare capacity between two pools that amplifies writes least.

    Parameters
    ----------
    spare_factor, hot_writes, hot_pages, pool
        As in `separated`.

    Returns
    -------
    Separation
        The best split, found to about 1e-7 of the spare capacity where there is one optimum
        (with `greedy` pools, whose curve has corners, a range of splits can be equally good).

    Raises
    ------
    UsageError
        A value out of range.

    Notes
    -----
    Golden-section search. The amplification of a pool falls ever more slowly as its spare grows, so
    the sum over both has one minimum. Where r = f it is the proportional split, and equal to one
    uniform pool: separation gains nothing then.

    Examples
    --------
    >>> best = best_separation(spare_factor=0.125, hot_writes=0.8, hot_pages=0.2)
    >>> round(best.write_amplification, 3), round(best.hot_spare, 2)
    (2.938, 0.5)
    """

    def split(hot_spare: float) -> Separation:
        return separated(
            spare_factor=spare_factor,
            hot_writes=hot_writes,
            hot_pages=hot_pages,
            hot_spare=hot_spare,
            pool=pool,
        )

    golden = (math.sqrt(5) - 1) / 2
    low, high = 0.0, 1.0
    left, right = split(1 - golden), split(golden)
    while high - low > 1e-7:
        if left.write_amplification <= right.write_amplification:
            high, right = right.hot_spare, left
            left = split(high - golden * (high - low))
        else:
            low, left = left.hot_spare, right
            right = split(low + golden * (high - low))
    return left


def _share(spare: float, pages: float) -> float:
    """Return the spare factor of a pool of `pages` logical and `spare` extra capacity."""
    return spare / (spare + pages)
