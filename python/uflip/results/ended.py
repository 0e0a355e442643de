"""How a run came to its length, and how well its mean is known: what follows from one trace."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from uflip import _native
from uflip.analysis import analyse
from uflip.data.run import Series, ended_of
from uflip.errors import UsageError
from uflip.results.columns import as_array

Document = dict[str, Any]
KEYS = ("converged", "reasons", "half_width_ns", "startup_ios", "period_ios")


def how_it_ended(trace: _native.Trace, path: Path = Path()) -> Document:
    """How well the mean of a run is known: `KEYS`.

    Of a run with a stop rule as the engine saw it; of one of fixed length by the same analysis
    afterwards. All null where it cannot be told (processes without a common pace, zeros).
    """
    unknown: Document = dict.fromkeys(KEYS)
    ended = ended_of(path, trace.ended_json)
    if ended is not None:
        return {
            "converged": ended.converged,
            "reasons": sorted({reason for one in ended.series for reason in one.reasons}),
            "half_width_ns": _half_width(ended.series, trace),
            "startup_ios": ended.startup_ios,
            "period_ios": max(one.period_ios for one in ended.series),
        }
    times = _one_series(trace)
    if times is None:
        return unknown
    try:
        seen = analyse(times)
    except UsageError:
        return unknown
    found = {name: getattr(seen, name) for name in unknown}
    return found | {"reasons": sorted(seen.reasons)}


def _half_width(series: Sequence[Series], trace: _native.Trace) -> float | None:
    """Half the width of the interval of a run's mean [ns], of a mix from those of its two patterns.

    What one pattern of a mix does by chance is taken not to depend on what the other does.
    """
    widths = [one.half_width_ns for one in series if one.half_width_ns is not None]
    if len(widths) < len(series):
        return None
    if len(series) == 1:
        return widths[0]
    if json.loads(trace.spec_json)["kind"] == "parallel":
        return None  # patterns side by side have a mean each, and none together
    second = float(as_array(trace, "component").mean())
    each = zip((1 - second, second), widths, strict=True)
    return float(np.hypot.reduce([share * width for share, width in each]))


def _one_series(trace: _native.Trace) -> np.ndarray | None:
    """The response times of a run, of several processes in step their means."""
    times, stream = as_array(trace, "response_time_ns"), as_array(trace, "stream")
    degree = int(stream.max()) + 1 if len(stream) else 0
    if degree == 0 or len(times) % degree:
        return None
    lengths = np.bincount(stream, minlength=degree)
    if not (lengths == lengths[0]).all():
        return None
    series: np.ndarray = times.reshape(degree, -1).mean(axis=0)
    return series
