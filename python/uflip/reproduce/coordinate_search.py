"""Coordinate search: constants are changed one by one, by ever smaller factors."""

from collections.abc import Callable, Mapping, Sequence

Number = int | float
Constants = Mapping[str, Number]

FACTORS = (4.0, 2.0, 1.4, 1.15)
BUDGET = 40
"""Number of evaluations of one search."""


def minimise(
    start: Constants,
    free: Sequence[str],
    loss: Callable[[Constants], float],
    factors: Sequence[float] = FACTORS,
    budget: int = BUDGET,
) -> tuple[dict[str, Number], int]:
    """Search the free constants, one by one, by ever smaller factors, for the least loss.

    Returns the constants, and the number of evaluations.
    """
    best, devices, least = dict(start), 1, loss(start)
    for factor in factors:
        improved = True
        while improved:
            improved = False
            for key in free:
                for value in _steps(key, best[key], factor):
                    if devices >= budget or least == 0:
                        return best, devices
                    tried, devices = best | {key: value}, devices + 1
                    if (missed := loss(tried)) < least:
                        best, least, improved = tried, missed, True
                        break
    return best, devices


def _steps(key: str, value: Number, factor: float) -> tuple[Number, ...]:
    """Return a step up and one down; integers stay integers, and leave zero by 1, or by 100 µs."""
    if value == 0:
        return (100_000 if key.endswith("_ns") else 1,)
    up, down = value * factor, value / factor
    if isinstance(value, int):
        return (max(round(up), value + 1), min(round(down), value - 1))
    return (up, down)


def short(value: Number) -> str:
    """Format a constant."""
    return f"{value:_}" if isinstance(value, int) else f"{value:g}"
