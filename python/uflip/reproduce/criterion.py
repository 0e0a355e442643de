"""What a statement in words asks of a number: the same object is checked and printed."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Criterion:
    """A condition, in the words in which it is printed.

    Attributes
    ----------
    text : str
        What is asked for.
    holds : callable
        Whether a number satisfies it.
    """

    text: str
    holds: Callable[[float], bool]


def below(limit: float) -> Criterion:
    """Less than a limit.

    Examples
    --------
    >>> below(1.5).text, below(1.5).holds(1.5)
    ('below 1.5', False)
    """
    return Criterion(f"below {limit:g}", lambda value: value < limit)


def above(limit: float) -> Criterion:
    """More than a limit."""
    return Criterion(f"above {limit:g}", lambda value: value > limit)


def at_least(limit: float) -> Criterion:
    """A limit or more."""
    return Criterion(f"at least {limit:g}", lambda value: value >= limit)


def between(low: float, high: float) -> Criterion:
    """From one value to another, both included."""
    return Criterion(f"{low:g} to {high:g}", lambda value: low <= value <= high)


def same(share: float) -> Criterion:
    """A ratio of one, but for a share."""
    return Criterion(f"1 ±{100 * share:g} %", lambda value: abs(value - 1) <= share)
