"""An estimated property: its value and interval, or the reason why it is not identified."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from uflip.inference.observations import Floats

CONFIDENCE = 0.9
# Quantile of the normal distribution for a two-sided interval of `CONFIDENCE`.
NORMAL = 1.645
# Efficiency of a median against a mean, and standard deviation of a normal sample over its MAD.
MEDIAN_FACTOR = math.sqrt(math.pi / 2)
MAD_FACTOR = 1.4826
# Traces are in whole nanoseconds.
ROUNDING_NS = 0.5


@dataclass(frozen=True)
class Estimate:
    """A property of a device, with the probe that identifies it.

    Attributes
    ----------
    key : str
        Name, that of a key of a profile where there is one.
    value : float, str or None
        The estimate; None if the property is not identified.
    low, high : float or None
        Interval of 90 %; None for a name, or without an estimate.
    probe : str
        The micro-benchmark.
    reason : str
        Why it is not identified, or how it follows.
    """

    key: str
    value: float | str | None
    low: float | None = None
    high: float | None = None
    probe: str = ""
    reason: str = ""

    @property
    def is_identified(self) -> bool:
        """Whether there is an estimate."""
        return self.value is not None

    def number(self) -> float:
        """Return the value, which must be a number."""
        assert isinstance(self.value, int | float), self.key
        return float(self.value)

    @classmethod
    def absent(cls, key: str, probe: str, reason: str) -> Self:
        """Return the abstention from a property."""
        return cls(key, None, probe=probe, reason=reason)


@dataclass(frozen=True)
class Interval:
    """A number with the half width of its interval of 90 %; sums and differences add widths."""

    value: float
    half: float

    def __add__(self, other: "Interval") -> "Interval":
        return Interval(self.value + other.value, math.hypot(self.half, other.half))

    def __sub__(self, other: "Interval") -> "Interval":
        return Interval(self.value - other.value, math.hypot(self.half, other.half))

    def __mul__(self, factor: float) -> "Interval":
        return Interval(self.value * factor, self.half * abs(factor))

    def estimate(self, key: str, probe: str, reason: str = "") -> Estimate:
        """Return the estimate of a property."""
        return Estimate(
            key, self.value, self.value - self.half, self.value + self.half, probe, reason
        )

    def inverse(self, numerator: float) -> "Interval":
        """Return a numerator over this number, such as a rate from a time."""
        value = numerator / self.value
        return Interval(value, value * min(self.half / self.value, 1.0))


def median_of(samples: Floats) -> Interval:
    """Return the median of response times [ns] with its interval."""
    middle = float(np.median(samples))
    deviation = MAD_FACTOR * float(np.median(np.abs(samples - middle)))
    error = NORMAL * MEDIAN_FACTOR * deviation / math.sqrt(len(samples))
    return Interval(middle, math.hypot(error, ROUNDING_NS))


def quickest_of(samples: Floats) -> Interval:
    """Return the response time of an I/O that the host hardly delays [ns], with its interval."""
    fastest, low, upper = np.quantile(samples, (0.0, 0.05, 0.2))
    return Interval(float(low), float(max(upper - low, low - fastest)) + ROUNDING_NS)
