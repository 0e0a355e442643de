"""Analysis results of a series of response times, as frozen values.

**Source**: uFLIP (CIDR 2009) §4.2 for the two phases; the methods are named in `crates/method`.
**Faithful**: as documented there.
**Simplified**: nothing here; this file only converts names and numbers.
**Ambiguous**: nothing.
"""

import datetime
import json
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from uflip import _native
from uflip.data.document import Table
from uflip.data.manifest import Analysis
from uflip.errors import UsageError, native_errors
from uflip.units import parse_count

# Values that NumPy would convert but that are not times: text, dates, complex numbers, booleans.
_NOT_TIMES = (str, bytes, complex, datetime.date, datetime.time, bool, np.bool_, np.datetime64)
_KINDS = {
    "M": "dates", "U": "text", "S": "text", "T": "text", "c": "complex numbers",
    "b": "truth values", "V": "records",
}  # fmt: skip


MAX_BATCHES = 32  # as `crates/method/src/batch_means.rs` divides a running phase

PHASES = {
    "flat": "one level from the first I/O on",
    "start-up": "a start-up, then a running phase",
    "oscillating": "from the first I/O on between two or more levels",
    "drifting": "the level moves slowly in one direction, to the end",
    "never-steady": "the level changes without a repeating pattern",
    "too-short": "the series is too short to classify",
}
"""Name of a phase -> its explanation."""

REASONS = {
    "start_up_not_over": "the start-up is not over where the series ends",
    "too_few_periods": "fewer than five periods were seen",
    "too_few_slow_episodes": "slow I/Os came in fewer than ten independent episodes",
    "interval_too_wide": "the interval of the mean is wider than asked for",
    "batches_correlated": "neighbouring batches resemble each other: the run is too short for them",
    "drift": "the running phase drifts",
    "not_stationary": "the beginning of the running phase differs from its end",
}
"""Reason why a mean has not converged -> its explanation."""


def analyse(
    response_time_ns: ArrayLike,
    *,
    confidence: float | None = None,
    half_width: float | None = None,
) -> Analysis:
    """Analyse the response times of one run, start-up included (uFLIP §4.2).

    Parameters
    ----------
    response_time_ns : array_like
        Response times (n,) [ns] in the order of submission, n ≥ 32, all above 0. Durations
        (`timedelta64`, a column of polars or pandas) are taken in their unit.
    confidence : float, optional
        Confidence of the intervals; by default 0.95.
    half_width : float, optional
        Half the width of the interval of the mean that is narrow enough, relative to the mean;
        by default 0.05.

    Returns
    -------
    Analysis
        Phase, start-up and period [I/Os], levels, mean and the half width of its interval [ns],
        and the reasons to doubt them.

    Raises
    ------
    UsageError
        Too few response times, one that is not a positive number, dates, text, complex numbers or
        masked ones; an option out of range.

    Examples
    --------
    >>> analysis = analyse(([1000] * 120 + [1000, 9000] * 400))
    >>> analysis.phase, analysis.startup_ios, analysis.period_ios, analysis.mean_ns
    ('start-up', 120, 2, 5000.0)
    """
    with native_errors():
        text = _native.analyse(
            _series(response_time_ns), confidence=confidence, half_width=half_width
        )
    result = json.loads(text)
    return msgspec.convert(result | {"mean_ios": _mean_ios(result)}, Analysis)


def _mean_ios(result: Table) -> int:
    """Return the number of I/Os in batches: all of the running phase without batches."""
    running, period = result["ios"] - result["startup_ios"], result["period_ios"]
    if result["half_width_ns"] is None:
        return int(running)
    periods = running // period
    batches = min(periods, MAX_BATCHES)
    return int(periods // batches * batches * period)


@dataclass(frozen=True, slots=True)
class RunLength:
    """The length at which the stop rule ends a run.

    Attributes
    ----------
    stopped : bool
        Whether it ended the run; else the series ended first.
    ios : int
        I/Os at the last test.
    startup_ios, period_ios, slow_episodes : int
        As in `Analysis`.
    mean_ns, half_width_ns : float
        Mean of the running phase and its half width [ns]; None with too few periods.
    reasons : tuple of str
        Reasons for doubt at the last test.
    """

    stopped: bool
    ios: int
    startup_ios: int
    period_ios: int
    slow_episodes: int
    mean_ns: float
    half_width_ns: float | None
    reasons: tuple[str, ...]


def run_length(
    response_time_ns: ArrayLike,
    *,
    confidence: float | None = None,
    half_width: float | None = None,
    min_ios: int = 32,
) -> RunLength:
    """Return the length at which the engine's stop rule would have ended a run with these times.

    Parameters
    ----------
    response_time_ns
        Response times (n,) [ns] of a run that is long enough, n ≥ 32, all above 0; as `analyse`.
    confidence, half_width
        As for `analyse`.
    min_ios : int
        The rule is not applied before this number of I/Os.

    Returns
    -------
    RunLength

    Raises
    ------
    UsageError
        For fewer than 32 response times, one that is not positive, an option out of range.

    Examples
    --------
    >>> run_length([1000] * 5000, min_ios=64).ios
    68
    """
    with native_errors():
        text = _native.run_length(
            _series(response_time_ns),
            confidence=confidence,
            half_width=half_width,
            min_ios=parse_count(min_ios, "min_ios"),
        )
    result = json.loads(text)
    (series,) = result["series"]
    series["reasons"] = tuple(series["reasons"])
    return RunLength(stopped=result["stop"], ios=result["ios"], **series)


def _series(response_time_ns: ArrayLike) -> NDArray[np.float64 | np.uint64]:
    if isinstance(response_time_ns, np.ndarray) and response_time_ns.dtype == np.uint64:
        return np.ascontiguousarray(response_time_ns)  # a column of a trace, which may be long
    try:
        return in_ns(response_time_ns)
    except TypeError as error:
        raise UsageError(
            "Response times are numbers or durations",
            where="response_time_ns",
            got=f"{type(response_time_ns).__name__}: {error}",
            allowed="a sequence or an array of nanoseconds, or of durations (timedelta64)",
            action='take the column of a trace: trace.column("response_time_ns")',
        ) from error


def in_ns(values: ArrayLike) -> NDArray[np.float64]:
    """Return times in nanoseconds from numbers [ns] or durations of any unit.

    `values`: numbers [ns], or durations: `timedelta64` of any unit, `datetime.timedelta`, a column
    of durations of polars, pandas or pyarrow. Returns the same [ns], as floating-point numbers. A
    missing duration (NaT) is NaN. Raises TypeError if they are anything else, or some are masked;
    its text names their type.

    Examples
    --------
    >>> in_ns(np.array([1, 2], "timedelta64[us]")).tolist(), in_ns([3, 4.5]).tolist()
    ([1000.0, 2000.0], [3.0, 4.5])
    """
    if isinstance(values, np.ma.MaskedArray):
        masked = int(np.ma.getmaskarray(values).sum())
        if masked:
            raise TypeError(f"{masked} of {values.size} masked")
        values = values.data
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise TypeError(next(iter(str(error).splitlines()), "no numbers")) from error
    if array.dtype.kind == "O":
        array = _from_objects(array)
    if array.dtype.kind in _KINDS:
        raise TypeError(f"{_KINDS[array.dtype.kind]} ({array.dtype})")
    if array.dtype.kind != "m":
        return np.ascontiguousarray(array, dtype=np.float64)
    if np.datetime_data(array.dtype)[0] == "generic":
        raise TypeError("durations without a unit (timedelta64)")
    return np.ascontiguousarray(array / np.timedelta64(1, "ns"), dtype=np.float64)


def _from_objects(values: NDArray[np.object_]) -> NDArray[np.generic]:
    """Convert an array of objects: either durations, or numbers of any kind."""
    durations = sum(isinstance(each, datetime.timedelta | np.timedelta64) for each in values.flat)
    if durations:
        if durations < values.size:
            raise TypeError(f"{durations} durations among {values.size} values")
        return np.array([_ns(each) for each in values.flat], np.float64).reshape(values.shape)
    for each in values.flat:
        if isinstance(each, _NOT_TIMES):
            raise TypeError(f"{type(each).__name__} {each!r}")
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError(str(error)) from error


def _ns(duration: Any) -> float:
    """Return a duration in nanoseconds; pandas durations are Python ones with nanoseconds."""
    if hasattr(duration, "to_timedelta64"):
        duration = duration.to_timedelta64()
    if isinstance(duration, datetime.timedelta):
        return duration / datetime.timedelta(microseconds=1) * 1000
    return float(duration / np.timedelta64(1, "ns"))
