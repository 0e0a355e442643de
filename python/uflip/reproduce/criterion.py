"""Numeric criteria for statements in words: the same object is checked and printed."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Criterion:
    """A condition and its printed text.

    Attributes
    ----------
    text : str
        The printed text.
    holds : callable
        Returns whether a number satisfies it.
    """

    text: str
    holds: Callable[[float], bool]


def below(limit: float) -> Criterion:
    """Return the criterion: less than a limit.

    Examples
    --------
    >>> below(1.5).text, below(1.5).holds(1.5)
    ('below 1.5', False)
    """
    return Criterion(f"below {limit:g}", lambda value: value < limit)


def above(limit: float) -> Criterion:
    """Return the criterion: more than a limit."""
    return Criterion(f"above {limit:g}", lambda value: value > limit)


def at_least(limit: float) -> Criterion:
    """Return the criterion: a limit or more."""
    return Criterion(f"at least {limit:g}", lambda value: value >= limit)


def between(low: float, high: float) -> Criterion:
    """Return the criterion: within a range, ends included."""
    return Criterion(f"{low:g} to {high:g}", lambda value: low <= value <= high)


def same(share: float) -> Criterion:
    """Return the criterion: a ratio of one within a tolerance."""
    return Criterion(f"1 ±{100 * share:g} %", lambda value: abs(value - 1) <= share)
