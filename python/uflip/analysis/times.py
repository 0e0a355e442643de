"""Response times as whoever measured them has them: numbers of nanoseconds, or durations."""

import datetime
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

# What NumPy makes into numbers, and what is none: text, dates, complex numbers, truth values.
_NONE = (str, bytes, complex, datetime.date, datetime.time, bool, np.bool_, np.datetime64)
_KINDS = {
    "M": "dates", "U": "text", "S": "text", "T": "text", "c": "complex numbers",
    "b": "truth values", "V": "records",
}  # fmt: skip


def in_ns(values: ArrayLike) -> NDArray[np.float64]:
    """Take numbers as nanoseconds, and durations in their unit.

    Parameters
    ----------
    values : array_like
        Numbers [ns], or durations: `timedelta64` of any unit, `datetime.timedelta`, a column of
        durations of polars, pandas or pyarrow.

    Returns
    -------
    ndarray
        The same [ns], as floating-point numbers. A duration that is none (NaT) is NaN.

    Raises
    ------
    TypeError
        If they are anything else, or some are masked; its text says what they are.

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
        found = np.asarray(values)
    except ValueError as error:
        raise TypeError(next(iter(str(error).splitlines()), "no numbers")) from error
    if found.dtype.kind == "O":
        found = _of_objects(found)
    if found.dtype.kind in _KINDS:
        raise TypeError(f"{_KINDS[found.dtype.kind]} ({found.dtype})")
    if found.dtype.kind != "m":
        return np.ascontiguousarray(found, dtype=np.float64)
    if np.datetime_data(found.dtype)[0] == "generic":
        raise TypeError("durations without a unit (timedelta64)")
    return np.ascontiguousarray(found / np.timedelta64(1, "ns"), dtype=np.float64)


def _of_objects(values: NDArray[np.object_]) -> NDArray[np.generic]:
    """Take durations, or numbers of any kind, out of an array of objects; not both."""
    durations = sum(isinstance(each, datetime.timedelta | np.timedelta64) for each in values.flat)
    if durations:
        if durations < values.size:
            raise TypeError(f"{durations} durations among {values.size} values")
        return np.array([_ns(each) for each in values.flat], np.float64).reshape(values.shape)
    for each in values.flat:
        if isinstance(each, _NONE):
            raise TypeError(f"{type(each).__name__} {each!r}")
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError(str(error)) from error


def _ns(duration: Any) -> float:
    """Return a duration in nanoseconds; those of pandas are those of Python, and know them too."""
    if hasattr(duration, "to_timedelta64"):
        duration = duration.to_timedelta64()
    if isinstance(duration, datetime.timedelta):
        return duration / datetime.timedelta(microseconds=1) * 1000
    return float(duration / np.timedelta64(1, "ns"))
