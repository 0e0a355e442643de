"""Do the repetitions of a run agree? uFLIP §5.1: "differences ... were typically within 5%"."""

from collections.abc import Sequence

AGREEMENT = 0.05


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
