"""Response times from files: a run of ours, a column of CSV or Parquet, a fio latency log.

What a file is follows from what is in it, not from its name. Response times come back in
nanoseconds and in the order of the file.
"""

import csv
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from uflip import _native
from uflip.errors import ResultsError, UflipError, UnavailableError, UsageError, native_errors

Times = NDArray[np.float64]

PARQUET_MAGIC = b"PAR1"
COLUMN = "response_time_ns"
UNITS_NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
# fio's lines: time [ms], value [ns], direction, block size, offset, and in newer versions more.
FIO_FEWEST = 4
# What our own tables hold beside response times.
RUN_COLUMN, STREAM_COLUMN = "run", "stream"


def read_times(path: Path, column: str | None = None, unit: str | None = None) -> Times:
    """Read the response times in a file.

    Parameters
    ----------
    path : Path
        A run file of a result folder, a Parquet or CSV table, or a fio latency log
        (`--write_lat_log`).
    column : str, optional
        The column of a table; without it `response_time_ns`, or the only column there is.
    unit : str, optional
        Of the column, one of `UNITS_NS`; without it what its name ends with, else ns.

    Returns
    -------
    ndarray
        Response times (n,) [ns].

    Raises
    ------
    UsageError
        No such file, column or unit; a value that is not a number; several runs in one table; all
        response times equal.
    UnavailableError
        A Parquet table that is not ours, without pyarrow.
    """
    if not path.is_file():
        raise UsageError(
            "There is no such file",
            where=str(path),
            got="a folder" if path.is_dir() else "nothing",
            allowed="a run file (runs/*.parquet), CSV, Parquet, a fio latency log",
            action="name a file; `uflip show` lists the runs of a result folder",
        )
    with path.open("rb") as file:
        start = file.read(4)
    times = (
        _of_parquet(path, column, unit) if start == PARQUET_MAGIC else _of_text(path, column, unit)
    )
    if len(times) > 1 and (times == times[0]).all():
        raise UsageError(
            "All response times are equal",
            where=str(path),
            got=f"{len(times)} times {times[0]:g} ns",
            allowed="response times that a clock has measured",
            action="take another column with --column, or look at how it was measured",
        )
    return times


def _of_parquet(path: Path, column: str | None, unit: str | None) -> Times:
    if column is None or column == COLUMN:
        try:
            with native_errors():
                trace = _native.read_trace(str(path))
        except UflipError:
            pass  # a table of somebody else's
        else:
            return _of_trace(path, trace)
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise UnavailableError(
            "A Parquet table that is not a run of uflip needs pyarrow",
            where=str(path),
            action="pip install pyarrow, or write the column as CSV",
        ) from error
    try:
        names = parquet.read_schema(path).names
        name = _choose(path, names, column)
        values = parquet.read_table(path, columns=[name])[name].to_numpy()
        if name == COLUMN and STREAM_COLUMN in names:
            streams = parquet.read_table(path, columns=[STREAM_COLUMN])[STREAM_COLUMN].to_numpy()
            values = _in_step(path, values, streams)
    except (ArrowException, OSError) as error:
        raise ResultsError(
            "The Parquet file cannot be read",
            where=str(path),
            got=str(error).splitlines()[0],
            action="check that it was written to its end",
        ) from error
    return _in_ns(path, name, unit, values)


def _of_trace(path: Path, trace: _native.Trace) -> Times:
    """Take the I/Os of a run of ours."""
    return _in_step(path, trace.column(COLUMN), trace.column(STREAM_COLUMN))


def _in_step(path: Path, values: ArrayLike, streams: ArrayLike) -> Times:
    """Take the I/Os of one process; of several the mean of those of the same number.

    The I/Os of a process stand together, as a trace and its tables hold them.
    """
    times = np.asarray(values).astype(np.float64)
    counts = np.bincount(np.asarray(streams).astype(np.int64))
    counts = counts[counts > 0]
    if (counts != counts[0]).any():
        raise UsageError(
            "The processes of this run made different numbers of I/Os",
            where=str(path),
            got=", ".join(map(str, counts)),
            allowed="one process, or several of one length",
            action="export the run, and analyse the I/Os of one stream",
        )
    mean: Times = times.reshape(len(counts), -1).mean(axis=0)
    return mean


def _of_text(path: Path, column: str | None, unit: str | None) -> Times:
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        first = next(csv.reader(file, skipinitialspace=True), [])
    if _are_numbers(first):
        if len(first) >= FIO_FEWEST and column is None:
            return _in_ns(path, "value", unit or "ns", _load(path, 1, 0))
        if len(first) == 1 and column is None:
            return _in_ns(path, "value", unit or "ns", _load(path, 0, 0))
        raise UsageError(
            "The file has no names of columns, and is no fio latency log",
            where=str(path),
            got=", ".join(first[:6]),
            allowed="a line with names first; or time, value, direction, block size, offset",
            action="add a first line with names",
        )
    name = _choose(path, first, column)
    if RUN_COLUMN in first and name != RUN_COLUMN:
        _check_one_run(path, first.index(RUN_COLUMN))
    values = _load(path, first.index(name), 1)
    if name == COLUMN and STREAM_COLUMN in first:
        values = _in_step(path, values, _load(path, first.index(STREAM_COLUMN), 1))
    return _in_ns(path, name, unit, values)


def _are_numbers(cells: list[str]) -> bool:
    try:
        # fio's last columns may be hexadecimal; the first two tell.
        return bool([float(cell) for cell in cells[:2]])
    except ValueError:
        return False


def _load(path: Path, index: int, skip: int) -> Times:
    try:
        values: Times = np.loadtxt(
            path, delimiter=",", usecols=index, skiprows=skip, ndmin=1, comments=None, quotechar='"'
        )
    except (ValueError, IndexError) as error:
        raise UsageError(
            "A value is not a number",
            where=str(path),
            got=str(error).splitlines()[0].rstrip("."),
            allowed="one number in every line",
            action="take another column with --column, or mend the line",
        ) from None
    return values


def _check_one_run(path: Path, index: int) -> None:
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        next(rows)
        runs = {row[index] for row in rows if len(row) > index}
    if len(runs) > 1:
        raise UsageError(
            "The table holds several runs, which are no one series",
            where=str(path),
            got=f"{len(runs)} runs",
            allowed="one run",
            action="analyse a run file of the result folder (runs/*.parquet)",
        )


def _choose(path: Path, names: list[str], column: str | None) -> str:
    if column is None and len(names) == 1:
        return names[0]
    wanted = COLUMN if column is None else column
    if wanted in names:
        return wanted
    raise UsageError(
        "The file has no such column",
        where=f"{path}, --column",
        got=wanted,
        allowed=", ".join(name or "(empty)" for name in names),
        action="name one of these with --column",
    )


def _in_ns(path: Path, name: str, unit: str | None, values: Any) -> Times:
    if unit is None:
        ending = name.rsplit("_", 1)[-1]
        unit = ending if ending in UNITS_NS else "ns"
    try:
        times: Times = np.asarray(values, dtype=np.float64) * UNITS_NS[unit]
    except (TypeError, ValueError):
        raise UsageError(
            "The column does not hold numbers",
            where=f"{path}, column {name}",
            got=str(values[0]) if len(values) else "nothing",
            action="take another column with --column",
        ) from None
    return times
