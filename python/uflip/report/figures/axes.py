"""Scales and ticks that the figures share.

Response times span microseconds to seconds: an axis is logarithmic where the range asks for it, and
starts at zero where it does not. Values of a parameter double from one to the next; they stand at
their logarithm, and values that have none (Incr = −1 and 0) one step to the left.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# A range of less than this fits a linear axis that starts at zero without squeezing anything.
LOG_FROM = 6.0
# A logarithmic axis covers at least this range, so that noise is not blown up to a mountain range.
LEAST_LOG_SPAN = 10.0
# More labels than this run into one another at the width of the page.
MOST_LABELS = 12


def positions(values: Sequence[float]) -> NDArray[np.float64]:
    """Where values of a parameter stand on the x axis: log2, with the others to the left.

    Examples
    --------
    >>> positions([-1, 0, 1, 2, 8]).tolist()
    [-2.0, -1.0, 0.0, 1.0, 3.0]
    >>> positions([512, 1024]).tolist()
    [9.0, 10.0]
    """
    array = np.asarray(values, dtype=np.float64)
    positive = array[array > 0]
    left = np.log2(positive.min()) if len(positive) else 0.0
    others = np.unique(array[array <= 0])
    place = {value: left - len(others) + index for index, value in enumerate(others)}
    return np.array([np.log2(v) if v > 0 else place[v] for v in array], dtype=np.float64)


def label_values(axis: "Axes", values: Sequence[float], labels: Sequence[str]) -> None:
    """Ticks at the values of a parameter; where there are many, every other one is named."""
    order = np.argsort(positions(values))
    places = positions(values)[order]
    names = [labels[index] for index in order]
    step = -(-len(names) // MOST_LABELS)
    # Values between powers of two crowd the axis: the powers keep their names.
    shown = [i for i, place in enumerate(places) if _is_power(place) or len(names) <= MOST_LABELS]
    step = -(-len(shown) // MOST_LABELS)
    kept = set(shown[:: max(step, 1)])
    axis.set_xticks(places, [name if i in kept else "" for i, name in enumerate(names)])
    margin = max(0.04 * float(np.ptp(places)), 0.35)
    axis.set_xlim(places[0] - margin, places[-1] + margin)


def _is_power(place: float) -> bool:
    return abs(place - round(place)) < 1e-9


def response_time_scale(axis: "Axes", low_ms: float, high_ms: float) -> bool:
    """Set the y axis to a range of response times [ms]; returns whether it is logarithmic."""
    if not (high_ms > 0 and np.isfinite(high_ms)):
        axis.set_ylim(0, 1)
        return False
    if low_ms <= 0 or high_ms / low_ms < LOG_FROM:
        axis.set_ylim(0, high_ms * 1.08)
        return False
    log_scale(axis, low_ms, high_ms)
    return True


def log_scale(axis: "Axes", low_ms: float, high_ms: float) -> None:
    """A logarithmic y axis [ms] with plain numbers as labels."""
    low, high = low_ms / 1.25, high_ms * 1.25
    if high / low < LEAST_LOG_SPAN:
        middle = np.sqrt(low * high)
        low, high = middle / np.sqrt(LEAST_LOG_SPAN), middle * np.sqrt(LEAST_LOG_SPAN)
    axis.set_yscale("log")
    axis.set_ylim(low, high)
    ticks = log_ticks(low, high)
    axis.set_yticks(ticks, [plain(tick) for tick in ticks])
    axis.set_yticks([], minor=True)


def log_ticks(low: float, high: float) -> list[float]:
    """Round numbers between two limits: decades, with 1 3 or 1 2 5 where there are few of them.

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


def plain(value: float) -> str:
    """A number without exponent and without needless zeros.

    Examples
    --------
    >>> plain(0.01), plain(20.0), plain(1000.0)
    ('0.01', '20', '1,000')
    """
    return f"{value:,.7f}".rstrip("0").rstrip(".") if value < 1 else f"{value:,.0f}"
