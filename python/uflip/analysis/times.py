"""Response times of any source: numbers of nanoseconds, or durations."""

import datetime
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Values that NumPy would convert but that are not times: text, dates, complex numbers, booleans.
_NOT_TIMES = (str, bytes, complex, datetime.date, datetime.time, bool, np.bool_, np.datetime64)
_KINDS = {
    "M": "dates", "U": "text", "S": "text", "T": "text", "c": "complex numbers",
    "b": "truth values", "V": "records",
}  # fmt: skip


def in_ns(values: ArrayLike) -> NDArray[np.float64]:
    """Return times in nanoseconds from numbers [ns] or durations of any unit.

    Parameters
    ----------
    values : array_like
        Numbers [ns], or durations: `timedelta64` of any unit, `datetime.timedelta`, a column of
        durations of polars, pandas or pyarrow.

    Returns
    -------
    ndarray
        The same [ns], as floating-point numbers. A missing duration (NaT) is NaN.

    Raises
    ------
    TypeError
        If they are anything else, or some are masked; its text names their type.

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
