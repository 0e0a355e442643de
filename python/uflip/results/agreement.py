"""What the repetitions of an experiment say together: how far apart, how well the mean is known.

A run knows its own mean, and what it says is true of the time and the place at which it was made.
How much that differs from another time and another place, only repetitions tell.

**Source** uFLIP (CIDR 2009) §5.1: "differences ... were typically within 5%". Student's interval
for the mean of a few independent repetitions.
**Faithful** Each experiment is run three times; their range is reported.
**Simplified** A repetition counts as much as any other, however long it was.
**Ambiguous** When an experiment has converged. Here: the interval of each of its runs can be
believed, however wide it is, and the wider of two intervals for the mean of all is narrow enough,
that which follows from those of the runs and that which follows from how the repetitions scatter.
Few repetitions that scatter know little: for three, half the width is 2.5 times their standard
deviation. A single one is what it says itself. What is narrow enough: 5 % of the mean, or 2 % of
the slowest baseline. What a device does in 0.2 ms need not be known to 10 µs where another pattern
takes it 20 ms; what all findings compare is responses of one device.
"""

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any

from uflip import _native

AGREEMENT = 0.05
CONFIDENCE = 0.95
SHARE_OF_SLOWEST = 0.02
# The one doubt that others can make up for.
WIDE = "interval_too_wide"


def disagreement(means: Sequence[float | None]) -> float | None:
    """The range of several means relative to its middle; None for fewer than two.

    Examples
    --------
    >>> disagreement([0.95, 1.0, 1.05])
    0.1
    """
    known = [mean for mean in means if mean is not None]
    if len(known) < 2:
        return None
    low, high = min(known), max(known)
    return round(2 * (high - low) / (high + low), 6) if high > 0 else 0.0


def together(
    repetitions: Sequence[Mapping[str, Any]], slowest_ns: float | None = None
) -> dict[str, Any]:
    """What the repetitions of an experiment say together.

    Parameters
    ----------
    repetitions
        `mean_ns`, `half_width_ns`, `converged` and `reasons` of each.
    slowest_ns
        Mean of the slowest baseline of the device, where it is known [ns].

    Returns
    -------
    dict
        `mean_ns` and `half_width_ns` [ns], of all repetitions with a mean; `converged`. Null where
        a repetition does not know it.

    Examples
    --------
    >>> run = {"half_width_ns": 3.0, "converged": True}
    >>> together([run | {"mean_ns": 100.0}, run | {"mean_ns": 102.0}, run | {"mean_ns": 98.0}])
    {'mean_ns': 100.0, 'half_width_ns': 4.968, 'converged': True}
    >>> together([run | {"mean_ns": 100.0}, run | {"mean_ns": 110.0}])["converged"]
    False
    """
    means = [each["mean_ns"] for each in repetitions if each["mean_ns"] is not None]
    if not means:
        return {"mean_ns": None, "half_width_ns": None, "converged": None}
    mean = sum(means) / len(means)
    said = [each["half_width_ns"] for each in repetitions]
    known = [each["converged"] for each in repetitions]
    if None in said or None in known:
        return {
            "mean_ns": mean,
            "half_width_ns": None,
            "converged": False if False in known else None,
        }
    half_width = max(sqrt(sum(each * each for each in said)) / len(said), _scatter(means, mean))
    allowed = max(AGREEMENT * mean, SHARE_OF_SLOWEST * (slowest_ns or 0.0))
    converged = all(map(_is_believable, repetitions)) and half_width <= allowed
    return {"mean_ns": mean, "half_width_ns": round(half_width, 3), "converged": converged}


def _is_believable(run: Mapping[str, Any]) -> bool:
    """Whether nothing speaks against the interval of a run but that it is wide."""
    return bool(run["converged"]) or list(run.get("reasons") or ()) == [WIDE]


def _scatter(means: Sequence[float], mean: float) -> float:
    """Half the width of Student's interval for the mean of several means; 0 of one."""
    n = len(means)
    if n < 2:
        return 0.0
    variance = sum((each - mean) ** 2 for each in means) / (n - 1)
    return float(_native.student_quantile(1 - CONFIDENCE, n - 1)) * sqrt(variance / n)
