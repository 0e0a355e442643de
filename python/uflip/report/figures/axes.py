"""Scales and ticks shared by the figures.

Response times span microseconds to seconds: an axis with a wide range is logarithmic, any other
starts at zero. Values of a parameter usually double from one to the next; they are placed at their
logarithm, and values without one (Incr = −1 and 0) one step to the left.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from uflip.report.figures.chart import Axis

# A range below this ratio fits a linear axis that starts at zero.
LOG_FROM = 6.0
# A logarithmic axis covers at least this ratio, so that noise is not magnified.
MIN_LOG_SPAN = 10.0
# Letters that fit along an axis of the page's width, and the minimum width of a label, which may be
# turned.
LETTERS, MIN_LETTERS = 96, 4
# Maximum number of round ticks of an axis.
MAX_ROUND_TICKS = 7
RESPONSE_TIME = "response time [ms]"


def positions_of(values: Iterable[float]) -> dict[float, float]:
    """Return the positions of parameter values on the x axis: log2, with the others to the left.

    The positions depend on all values, so one dictionary serves everything on an axis.

    Examples
    --------
    >>> positions_of([8, -1, 0, 1, 2])
    {-1: -2.0, 0: -1.0, 1: 0.0, 2: 1.0, 8: 3.0}
    >>> positions_of([512, 1024])
    {512: 9.0, 1024: 10.0}
    """
    ordered = sorted(set(values))
    others = [value for value in ordered if value <= 0]
    positive = ordered[len(others) :]
    left = math.log2(positive[0]) if positive else 0.0
    positions = {value: left - len(others) + index for index, value in enumerate(others)}
    return positions | {value: math.log2(value) for value in positive}


def parameter_axis(values: Sequence[float], names: Sequence[str], label: str = "") -> Axis:
    """Return an axis for values of a parameter, labelled where labels fit."""
    name_of = dict(zip(values, names, strict=True))
    position_of = positions_of(values)
    positions = list(position_of.values())
    labelled = _without_overlap({at: len(name_of[value]) for value, at in position_of.items()})
    ticks = [(at, name_of[value] if at in labelled else "") for value, at in position_of.items()]
    margin = max(0.04 * (positions[-1] - positions[0]), 0.35)
    return Axis(positions[0] - margin, positions[-1] + margin, label, ticks=ticks, grid=False)


def _without_overlap(letters: Mapping[float, int]) -> list[float]:
    """Return the positions whose labels, of these lengths, do not overlap."""
    span = max(letters) - min(letters)
    labelled: list[float] = []
    # Powers of two come first: values between them would displace them.
    for position in sorted(letters, key=lambda position: not _is_power(position)):
        distances = [
            max((letters[position] + letters[other]) / 2 + 1, MIN_LETTERS) / LETTERS * span
            for other in labelled
        ]
        if all(
            abs(position - one) >= least for one, least in zip(labelled, distances, strict=True)
        ):
            labelled.append(position)
    return labelled


def _is_power(position: float) -> bool:
    return abs(position - round(position)) < 1e-9


def response_time_axis(low_ms: float, high_ms: float, label: str = RESPONSE_TIME) -> Axis:
    """Return an axis for a range of response times [ms], logarithmic if the range is wide."""
    if not (high_ms > 0 and np.isfinite(high_ms)):
        return Axis(0, 1, label)
    if low_ms <= 0 or high_ms / low_ms < LOG_FROM:
        return Axis(0, high_ms * 1.08, label)
    return log_axis(low_ms, high_ms, label)


def times_axis(times_ms: NDArray[np.float64], label: str = RESPONSE_TIME) -> Axis:
    """Return a logarithmic axis for all response times [ms] of an array, zeros left out."""
    positive = times_ms[times_ms > 0]
    if len(positive) == 0:
        return Axis(0, 1, label)
    return log_axis(float(positive.min()), float(positive.max()), label)


def log_axis(low: float, high: float, label: str) -> Axis:
    """Return a logarithmic axis with plain numbers at its ticks."""
    low, high = low / 1.25, high * 1.25
    if high / low < MIN_LOG_SPAN:
        middle = float(np.sqrt(low * high))
        low, high = middle / np.sqrt(MIN_LOG_SPAN), middle * np.sqrt(MIN_LOG_SPAN)
    ticks = [(tick, plain(tick)) for tick in log_ticks(low, high)]
    return Axis(float(low), float(high), label, log=True, ticks=ticks)


def log_ticks(low: float, high: float) -> list[float]:
    """Return round numbers between two limits: decades, with 1 3 or 1 2 5 if those are few.

    Examples
    --------
    >>> log_ticks(0.3, 4)
    [0.5, 1.0, 2.0]
    >>> log_ticks(0.03, 4)
    [0.03, 0.1, 0.3, 1.0, 3.0]
    >>> log_ticks(0.005, 400)
    [0.01, 0.1, 1.0, 10.0, 100.0]
    """
    decades = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    span = np.log10(high / low)
    steps = (1, 2, 5) if span < 1.9 else (1, 3) if span < 3.3 else (1,)
    ticks = [float(f"{step}e{decade}") for decade in decades for step in steps]
    return [tick for tick in ticks if low <= tick <= high]


def round_ticks(low: float, high: float, most: int = MAX_ROUND_TICKS) -> list[float]:
    """Return multiples of 1, 2 or 5 times a power of ten between two limits, at most `most`.

    Examples
    --------
    >>> round_ticks(0, 1)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    >>> round_ticks(0.5, 400.5)
    [100.0, 200.0, 300.0, 400.0]
    >>> round_ticks(3, 3)
    [3.0]
    """
    low, high = min(low, high), max(low, high)
    if not high > low:
        return [float(low)]
    decade = int(np.floor(np.log10((high - low) / most)))
    for step in (float(f"{digit}e{decade + power}") for power in (0, 1) for digit in (1, 2, 5)):
        first, last = int(np.ceil(low / step - 1e-9)), int(np.floor(high / step + 1e-9))
        if last - first < most:
            break
    return sorted({float(f"{number * step:.12g}") for number in range(first, last + 1)})


def ticks_of(axis: Axis) -> list[tuple[float, str]]:
    """Return positions and labels of the ticks of an axis; round numbers if it has none."""
    if axis.ticks is not None:
        return list(axis.ticks)
    return [(tick, number(tick)) for tick in round_ticks(axis.low, axis.high)]


def number(value: float) -> str:
    """Return a round number as a tick label.

    Examples
    --------
    >>> number(2.5), number(10_000.0), number(0.30000000000000004)
    ('2.5', '10,000', '0.3')
    """
    return f"{value:,.10g}"


def plain(value: float) -> str:
    """Return a number without exponent and trailing zeros.

    Examples
    --------
    >>> plain(0.01), plain(20.0), plain(1000.0)
    ('0.01', '20', '1,000')
    """
    return f"{value:,.7f}".rstrip("0").rstrip(".") if value < 1 else f"{value:,.0f}"
