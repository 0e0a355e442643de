"""The interval of the mean of one run, from its own I/Os, and its reasons for doubt.

The interval of a single run holds for the time and the target space of that run. Only repetitions
show how much the mean differs at other times and in other spaces (`experiment`).
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import numpy as np

from uflip import _native
from uflip.analysis import Analysis, analyse
from uflip.data.run import SeriesRecord, ended_of
from uflip.data.summary import MeanSummary, StopSummary
from uflip.errors import UsageError
from uflip.footprint import reads_few_addresses
from uflip.results.columns import as_array
from uflip.spec import read_spec

# A tenth of fewer rows is one or none.
FEWEST_ROWS = 20
FEW_PLACES = "few_places"
"""Reason for doubt: the run describes only the addresses that it read."""
STARTUP_IN_MEAN: Final = "startup_in_mean"
"""Reason for doubt: by its own analysis, start-up changes the mean by more than allowed."""
HALF_WIDTH = 0.05
"""Default limit of half the width of an interval, relative to the mean."""


class RunConvergence(MeanSummary):
    """The mean of a run, its convergence, and its number of I/Os."""

    io_count: int


def run_convergence(trace: _native.Trace, path: Path = Path()) -> StopSummary:
    """Return the convergence of a run and the interval of its mean.

    A run with a stop rule carries the engine's result. A run of fixed length gets the same analysis
    afterwards, over the measured I/Os. If the ignored I/Os end before the start-up does, the
    interval is that of the running phase, widened by the difference of the two means
    (`STARTUP_IN_MEAN`). All values are null where the analysis is impossible (processes without a
    common pace, zeros). Reads of few addresses have no interval: their cost does not describe other
    addresses (`FEW_PLACES`).
    """
    convergence = _convergence_from_times(trace, path)
    if not reads_few_addresses(read_spec(trace.spec_json)):
        return convergence
    reasons = sorted({*(convergence["reasons"] or ()), FEW_PLACES})
    return {**convergence, "converged": False, "half_width_ns": None, "reasons": reasons}


def _convergence_from_times(trace: _native.Trace, path: Path) -> StopSummary:
    opening = _opening_ns(trace)
    stop = ended_of(path, trace.ended_json)
    if stop is not None:
        return {
            "converged": stop.converged,
            "reasons": sorted({reason for one in stop.series for reason in one.reasons}),
            "half_width_ns": _half_width(stop.series, trace),
            "startup_ios": stop.startup_ios,
            "period_ios": max(one.period_ios for one in stop.series),
            "slow_episodes": min(one.slow_episodes for one in stop.series),
            "opening_ns": opening,
        }
    times = _one_series(trace)
    return _fixed_length_convergence(
        times, 0 if times is None else _ignored_rows(trace, len(times)), opening
    )


def job_convergence(times: np.ndarray, thread: np.ndarray) -> StopSummary:
    """Return the convergence of a job over physical addresses, as for a run of fixed length.

    `times`: response times (n,) [ns] of the commands in the mean, in the order of submission.
    `thread`: the submitting thread of each (n,). With several threads, the analysis uses the mean
    over the threads of the commands with the same number.
    """
    order = np.argsort(thread, kind="stable")
    series = _in_step(times[order], np.unique(thread[order], return_inverse=True)[1])
    return _fixed_length_convergence(series, 0, None if series is None else opening_ns(series))


def _fixed_length_convergence(
    times: np.ndarray | None, ignored: int, opening: float | None
) -> StopSummary:
    """Analyse the rows (n,) [ns] of a run; the mean leaves out the first `ignored` rows."""
    if times is not None:
        with suppress(UsageError):
            analysis, measured = analyse(times), times[ignored:]
            startup = analysis.startup_ios
            if startup < ignored:
                analysis = analyse(measured)
            width, inside = _measured_interval(analysis, measured)
            return {
                "converged": analysis.converged and not inside,
                "reasons": sorted({*analysis.reasons, *([STARTUP_IN_MEAN] if inside else ())}),
                "half_width_ns": width,
                "startup_ios": startup,
                "period_ios": analysis.period_ios,
                "slow_episodes": analysis.slow_episodes,
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


def _measured_interval(analysis: Analysis, measured: np.ndarray) -> tuple[float | None, bool]:
    """Return half the width of the interval around the mean of the measured rows (n,) [ns].

    Also return whether the distance from the mean of the running phase makes it too wide.
    """
    if analysis.half_width_ns is None or not len(measured):
        return None, False
    mean = float(measured.mean())
    deviation, allowed = abs(mean - analysis.mean_ns), HALF_WIDTH * mean
    width = analysis.half_width_ns + deviation
    return round(width, 3), deviation > allowed or analysis.half_width_ns <= allowed < width


def _ignored_rows(trace: _native.Trace, rows: int) -> int:
    """Return the number of rows of `_one_series` that the mean leaves out."""
    ignored = as_array(trace, "ignored")
    return rows * int(np.count_nonzero(ignored)) // len(ignored)


def _opening_ns(trace: _native.Trace) -> float | None:
    """Return by how much the first tenth of the measured rows is slower than the last half [ns].

    One run alone proves little, as its level may move. Start-up shows in many repetitions that all
    begin lower than they end (P. D. Welch: across replications). A mix is averaged by rounds.
    """
    times = _one_series(trace)
    if times is None:
        return None
    measured = len(times) - _ignored_rows(trace, len(times))
    row = int(json.loads(trace.spec_json).get("ratio", 0)) + 1
    rows = measured // row
    times = times[len(times) - rows * row :]
    return opening_ns(times if row == 1 else times.reshape(rows, row).mean(axis=1))


def opening_ns(times: np.ndarray) -> float | None:
    """Return by how much the first tenth of rows (n,) is slower than the last half [ns]."""
    if len(times) < FEWEST_ROWS:
        return None
    return round(float(times[: len(times) // 10].mean() - times[len(times) // 2 :].mean()), 3)


def repetition_convergence(
    trace: _native.Trace, times: np.ndarray, path: Path = Path()
) -> RunConvergence:
    """Return the convergence of a run whose measured I/Os took `times` (n,) [ns]."""
    mean_ns = float(times.mean()) if len(times) else None
    return {"io_count": len(trace), "mean_ns": mean_ns, **run_convergence(trace, path)}


def _half_width(series: Sequence[SeriesRecord], trace: _native.Trace) -> float | None:
    """Return half the width of the interval of a run's mean [ns]; a mix combines its two patterns.

    The random errors of the two patterns are taken to be independent.
    """
    widths = [one.half_width_ns for one in series if one.half_width_ns is not None]
    if len(widths) < len(series):
        return None
    if len(series) == 1:
        return widths[0]
    if json.loads(trace.spec_json)["kind"] == "parallel":
        return None  # parallel patterns have a mean each, and no common one
    second = float(as_array(trace, "component").mean())
    each = zip((1 - second, second), widths, strict=True)
    return float(np.hypot.reduce([share * width for share, width in each]))


def _one_series(trace: _native.Trace) -> np.ndarray | None:
    """Return the response times of a run; of several processes in step, their means."""
    return _in_step(as_array(trace, "response_time_ns"), as_array(trace, "stream"))


def _in_step(times: np.ndarray, stream: np.ndarray) -> np.ndarray | None:
    """Return the times (n,) of streams 0, 1, …, stored in this order; of several, the means."""
    degree = int(stream.max()) + 1 if len(stream) else 0
    if degree == 0 or len(times) % degree:
        return None
    if degree == 1:
        return times
    lengths = np.bincount(stream, minlength=degree)
    if not (lengths == lengths[0]).all():
        return None
    series: np.ndarray = times.reshape(degree, -1).mean(axis=0)
    return series
