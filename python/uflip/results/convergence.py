"""How a run or a job came to its length, and how well its mean is known: from one trace or log."""

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

import numpy as np

from uflip import _native
from uflip.analysis import Analysis, analyse
from uflip.data.run import SeriesRecord, ended_of
from uflip.data.summary import MeanSummary, StopSummary
from uflip.errors import UsageError
from uflip.footprint import reads_few_places
from uflip.results.columns import as_array
from uflip.spec import read_spec

# With fewer rows a tenth of them is one or none.
FEWEST_ROWS = 20
FEW_PLACES = "few_places"
"""The reason against a run that says nothing of places but its own."""
STARTUP_IN_MEAN: Final = "startup_in_mean"
"""The reason against a run whose own analysis finds that start-up changes its mean too much."""
INSIDE_STARTUP: Final = "inside_startup"
NEVER_LEFT_CACHE: Final = "never_left_write_cache"
Mark = Literal["inside_startup", "never_left_write_cache"]
MARKS: tuple[Mark, ...] = (NEVER_LEFT_CACHE, INSIDE_STARTUP)
"""Reasons against a run whose mean is that of the start-up (`uflip.results.startup_check`)."""
HALF_WIDTH = 0.05
"""So wide may half an interval be, relative to the mean, where nobody said otherwise."""


class RunConvergence(MeanSummary):
    """What a run says of its mean, and of how many I/Os."""

    io_count: int


def how_it_ended(trace: _native.Trace, path: Path = Path()) -> StopSummary:
    """How well the mean of a run is known.

    Of a run with a stop rule as the engine saw it; of one of fixed length by the same analysis
    afterwards: of what was measured, and where what was ignored ends before the start-up does, of
    the running phase, and wider by what the mean is off that of this (`STARTUP_IN_MEAN`). All null
    where it cannot be told (processes without a common pace, zeros). Of reads of few places there
    is no interval: what these cost says nothing of others (`FEW_PLACES`).
    """
    found = _by_its_times(trace, path)
    if not reads_few_places(read_spec(trace.spec_json)):
        return found
    reasons = sorted({*(found["reasons"] or ()), FEW_PLACES})
    return {**found, "converged": False, "half_width_ns": None, "reasons": reasons}


def _by_its_times(trace: _native.Trace, path: Path) -> StopSummary:
    opening = _opening_ns(trace)
    ended = ended_of(path, trace.ended_json)
    if ended is not None:
        return {
            "converged": ended.converged,
            "reasons": sorted({reason for one in ended.series for reason in one.reasons}),
            "half_width_ns": _half_width(ended.series, trace),
            "startup_ios": ended.startup_ios,
            "period_ios": max(one.period_ios for one in ended.series),
            "slow_episodes": min(one.slow_episodes for one in ended.series),
            "opening_ns": opening,
        }
    times = _one_series(trace)
    return _of_fixed_length(
        times, 0 if times is None else _ignored_rows(trace, len(times)), opening
    )


def how_jobs_end(times: np.ndarray, thread: np.ndarray) -> StopSummary:
    """How well the mean of a job over physical addresses is known, as of a run of fixed length.

    Parameters
    ----------
    times : ndarray
        Response times (n,) [ns] of the commands that the mean is of, in the order of submission.
    thread : ndarray
        Who submitted each (n,). Of several the mean of those of the same number is looked at.
    """
    order = np.argsort(thread, kind="stable")
    series = _in_step(times[order], np.unique(thread[order], return_inverse=True)[1])
    return _of_fixed_length(series, 0, None if series is None else opening_ns(series))


def _of_fixed_length(times: np.ndarray | None, ignored: int, opening: float | None) -> StopSummary:
    """Analyse the rows (n,) [ns] of a run, of which so many are not in its mean."""
    if times is not None:
        with suppress(UsageError):
            seen, measured = analyse(times), times[ignored:]
            startup = seen.startup_ios
            if startup < ignored:
                seen = analyse(measured)
            width, inside = _of_what_was_measured(seen, measured)
            return {
                "converged": seen.converged and not inside,
                "reasons": sorted({*seen.reasons, *([STARTUP_IN_MEAN] if inside else ())}),
                "half_width_ns": width,
                "startup_ios": startup,
                "period_ios": seen.period_ios,
                "slow_episodes": seen.slow_episodes,
                "opening_ns": opening,
            }
    return {
        "converged": None,
        "reasons": None,
        "half_width_ns": None,
        "startup_ios": None,
        "period_ios": None,
        "slow_episodes": None,
        "opening_ns": opening,
    }


def _of_what_was_measured(seen: Analysis, measured: np.ndarray) -> tuple[float | None, bool]:
    """Half the width of the interval around the mean of what was measured (n,) [ns].

    And whether what the mean is off the one of the running phase makes it wider than is allowed.
    """
    if seen.half_width_ns is None or not len(measured):
        return None, False
    mean = float(measured.mean())
    off, allowed = abs(mean - seen.mean_ns), HALF_WIDTH * mean
    width = seen.half_width_ns + off
    return round(width, 3), off > allowed or seen.half_width_ns <= allowed < width


def _ignored_rows(trace: _native.Trace, rows: int) -> int:
    """How many of the rows of `_one_series` are left out of the mean."""
    ignored = as_array(trace, "ignored")
    return rows * int(np.count_nonzero(ignored)) // len(ignored)


def _opening_ns(trace: _native.Trace) -> float | None:
    """How much slower the first tenth of what was measured is than its last half [ns].

    One run says little by that, as its level may move; many repetitions that all begin lower than
    they end are start-up (P. D. Welch's way to see it: across replications). Of a mix whole rounds.
    """
    times = _one_series(trace)
    if times is None:
        return None
    kept = len(times) - _ignored_rows(trace, len(times))
    row = int(json.loads(trace.spec_json).get("ratio", 0)) + 1
    rows = kept // row
    return opening_ns(times[len(times) - rows * row :].reshape(rows, row).mean(axis=1))


def opening_ns(times: np.ndarray) -> float | None:
    """How much slower the first tenth of rows (n,) [ns] is than their last half; None of few."""
    if len(times) < FEWEST_ROWS:
        return None
    return round(float(times[: len(times) // 10].mean() - times[len(times) // 2 :].mean()), 3)


def repetition(trace: _native.Trace, times: np.ndarray, path: Path = Path()) -> RunConvergence:
    """What a run says, of whose I/Os `times` (n,) [ns] were measured."""
    mean_ns = float(times.mean()) if len(times) else None
    return {"io_count": len(trace), "mean_ns": mean_ns, **how_it_ended(trace, path)}


def _half_width(series: Sequence[SeriesRecord], trace: _native.Trace) -> float | None:
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
    return _in_step(as_array(trace, "response_time_ns"), as_array(trace, "stream"))


def _in_step(times: np.ndarray, stream: np.ndarray) -> np.ndarray | None:
    """The times (n,) of streams 0, 1, … that stand together; of several in step their means."""
    degree = int(stream.max()) + 1 if len(stream) else 0
    if degree == 0 or len(times) % degree:
        return None
    lengths = np.bincount(stream, minlength=degree)
    if not (lengths == lengths[0]).all():
        return None
    series: np.ndarray = times.reshape(degree, -1).mean(axis=0)
    return series
