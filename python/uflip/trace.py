"""The statistics and the plot of a `Trace`; its native methods call these functions.

They need numpy and the figures of the report, which the native module does not import.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from uflip._native import Trace

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from uflip.stats import Distribution

__all__ = ["Trace", "mean", "percentiles", "plot"]


def _response_times(trace: Trace) -> "Distribution":
    """Gather the response times without the start-up, part by part."""
    from uflip.results.columns import pieces
    from uflip.stats import Distribution

    times = Distribution()
    for response_time_ns, ignored in pieces(trace, ["response_time_ns", "ignored"]):
        times.add(response_time_ns[ignored == 0])
    return times


def mean(trace: Trace) -> float:
    """Return the mean response time without the start-up (`io_ignore`) [ns]."""
    statistics = _response_times(trace).summary()
    assert statistics is not None, "a run has I/Os behind its start-up"
    return statistics["mean_ns"]


def percentiles(trace: Trace, percent: Sequence[float]) -> "NDArray[np.float64]":
    """Return the percentiles of `Trace.percentiles` (n,) [ns].

    Examples
    --------
    >>> import uflip
    >>> trace = uflip.pattern("sim:demo", "RW", io_count=200)
    >>> trace.percentiles([50, 99])
    array([1130120.,      nan])
    """
    import numpy as np

    from uflip.units import parse_number

    shares = [parse_number(each, "percentiles", 0, 100) / 100 for each in percent]
    times = _response_times(trace)
    return np.array([times.percentile(share) for share in shares], dtype=np.float64)


def plot(trace: Trace, ax: "Axes | None" = None) -> "Axes":
    """Draw the plot of `Trace.plot`."""
    from uflip.data.spec import read_spec
    from uflip.microbench.labels import PATTERN_NAMES
    from uflip.report.data import BaselineTrace
    from uflip.report.figures.traces import draw_on
    from uflip.results.columns import as_array

    words = " / ".join(f"{part.location} {part.mode}" for part in read_spec(trace.spec_json).parts)
    labels = {name: label for label, name in PATTERN_NAMES.items()}
    response_time_ms, ignored = (
        as_array(trace, "response_time_ns") / 1e6,
        as_array(trace, "ignored"),
    )
    ios = BaselineTrace(labels.get(words, words), response_time_ms, ignored != 0)
    return draw_on(ax, ios)
