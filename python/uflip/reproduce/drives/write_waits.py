"""Waits of writes for space in the write buffer, by a closed form.

::

    a turn of collection lasts up to `longest`; meanwhile the drive frees buffer space more slowly
    wait at its end    longest x (1 - onset / rate), since the buffer absorbs the first writes
    share that waits   ((rate - onset) / (sustained rate - onset))^growth: all writes at saturation
    P(wait > x)        share that waits x (1 - x / wait at its end)^shape

**Source**: ours. Onset and longest wait are those of a fluid queue: a buffer that writes fill at
one rate, and the drive empties at a lower one.
**Faithful**: waits begin at a load, and grow with it.
**Simplified**: the share that waits grows from the onset in proportion, or faster (growth above 1).
Turns last equally long (shape 1), or any time up to the longest (shape 2). While a drive collects,
it serves a constant share `pace` of the rate of arrival: so the time of a stream of limited depth
is at most depth / (pace x rate).
**Ambiguous**: why a drive collects in turns. Four of the seven drives do, far below saturation.
"""

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from math import inf
from typing import Any

import numpy as np

MICROSECONDS = 1e6


@dataclass(frozen=True)
class WriteWaits:
    """The constants of waits for buffer space."""

    #: Writes per second at which waits begin; None for a drive without them.
    onset_per_s: float | None = None
    longest_us: float = 0.0  #: The longest wait, if writes arrive infinitely fast [µs].
    growth: float = 1.0  #: Exponent of the share of writes that wait.
    shape: int = 1  #: 1: turns of equal length; 2: of any length.
    pace: float = 1.0  #: Rate of service in a turn, relative to the rate of arrival.

    def wait_us(
        self, percent: float, writes_per_s: float, sustained_per_s: float, depth: float
    ) -> float:
        """Return a percentile of the waits [µs]; at most `depth` writes wait at a time."""
        if self.onset_per_s is None or writes_per_s <= self.onset_per_s:
            return 0.0
        load = writes_per_s / sustained_per_s
        limit_us = depth / writes_per_s * MICROSECONDS
        onset = self.onset_per_s / sustained_per_s
        constants = onset, self.longest_us, self.growth, self.shape, self.pace
        return float(_waits(1 - percent / 100, load, limit_us, *constants))


def _waits(beyond: Any, load: Any, limit_us: Any, *constants: Any) -> Any:
    """Return the waits that a share `beyond` of the writes exceeds; arrays are allowed [µs]."""
    onset, longest_us, growth, shape, pace = constants
    above = np.maximum(load - onset, 0.0)
    waiting = np.minimum(above / np.maximum(1 - onset, 1e-9), 1.0) ** growth
    within = 1 - (beyond / np.maximum(waiting, beyond)) ** (1 / shape)
    return np.minimum(longest_us * above / load * within, limit_us / pace)


@dataclass(frozen=True)
class MeasuredWrite:
    """A percentile of writes, to which waits are fitted."""

    percent: float  #: The percentile.
    writes_per_s: float  #: All writes that arrive in a second.
    buffered_us: float  #: The same percentile of a write that does not wait [µs].
    response_us: float  #: The measured percentile [µs].


ONSETS = tuple(float(share) for share in np.geomspace(0.03, 0.95, 30))
"""Onsets that are tried, relative to the sustained rate."""
LONGEST_US = tuple(float(time_us) for time_us in np.geomspace(500, 64_000, 36))
GROWTHS = tuple(float(growth) for growth in np.geomspace(1, 2.5, 5))
SHAPES = (1, 2)
PACES = (1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)
REFINEMENTS = (1.04, 1.015)
"""Ratios of neighbours in the finer grids around the best constants."""
Axes = tuple[Sequence[float], Sequence[float], Sequence[float], Sequence[float], Sequence[float]]
LARGEST_ERROR = 1.5
"""Log ratios beyond it count no more: a row near an onset is no reason to miss all others."""
LEAST_GAIN = 0.02
"""Decrease of the mean squared log ratio that waits must bring to be assumed."""


def fit_waits(rows: Sequence[MeasuredWrite], sustained_per_s: float, depth: float) -> WriteWaits:
    """Fit the waits of a drive to percentiles of its writes.

    Examples
    --------
    >>> fit_waits([MeasuredWrite(99, 20_000.0, 14.0, 14.0)], 50_000.0, 384) == WriteWaits()
    True
    """
    if not rows:
        return WriteWaits()
    percent, rate, buffered, measured = np.array([astuple(row) for row in rows]).T
    beyond, load, limit_us = 1 - percent / 100, rate / sustained_per_s, depth / rate * MICROSECONDS
    logs = np.log(measured)

    def errors(*constants: Any) -> Any:
        deviations = np.abs(np.log(buffered + _waits(beyond, load, limit_us, *constants)) - logs)
        return (np.minimum(deviations, LARGEST_ERROR) ** 2).mean(axis=-1)

    without = float(errors(1.0, 0.0, 1.0, 1, 1.0))
    axes: Axes = (ONSETS, LONGEST_US, GROWTHS, SHAPES, PACES)
    for step in (*REFINEMENTS, None):
        least, best = _least(errors, axes)
        if step is not None:
            near = [tuple(value * step**power for power in range(-3, 4)) for value in best[:3]]
            axes = (near[0], near[1], near[2], best[3:4], best[4:])
    if least > without - LEAST_GAIN:
        return WriteWaits()
    return WriteWaits(best[0] * sustained_per_s, best[1], best[2], int(best[3]), best[4])


def _least(errors: Callable[..., Any], axes: Axes) -> tuple[float, tuple[float, ...]]:
    """Return the least error on a grid, and the constants that have it."""
    grid = np.meshgrid(*axes[1:], indexing="ij")
    constants = [axis[..., np.newaxis] for axis in grid]
    least, best = inf, tuple[float, ...]()
    for onset in axes[0]:
        found = errors(onset, *constants)
        index = np.unravel_index(int(found.argmin()), found.shape)
        if found[index] < least:
            least, best = float(found[index]), (onset, *(float(axis[index]) for axis in grid))
    return least, best
