"""Response times from files: a run file, a column of CSV or Parquet, a fio latency log.

The format is detected from the content, not from the name. Response times are returned in
nanoseconds and in the order of the file.
"""

import codecs
import csv
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from uflip import _native
from uflip.analysis.fio_output import is_fio_output
from uflip.analysis.series import in_ns
from uflip.data.document import DocumentKind, read_start
from uflip.errors import ResultsError, UflipError, UsageError, native_errors
from uflip.extras import missing_extra

KIND = DocumentKind("series", 1 << 40, "name a file with response times", UsageError)
# Upper bound of the line length of our tables, and of fio logs.
MAX_LINE_BYTES = 1 << 20
# A gigabyte of response times.
MAX_TIMES = 1 << 27

Times = NDArray[np.float64]

PARQUET_MAGIC = b"PAR1"
COLUMN = "response_time_ns"
UNITS_NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
# fio's lines: time [ms], value [ns], direction, block size, offset, and more in newer versions.
MIN_FIO_FIELDS = 4
# Block traces in the MSR Cambridge format, as from `uflip serve --record`; most have no header.
MSR_COLUMNS = ("Timestamp", "Hostname", "DiskNumber", "Type", "Offset", "Size", "ResponseTime")
MSR_TICK_NS = 100.0
# Further columns of our own tables.
RUN_COLUMN, STREAM_COLUMN = "run", "stream"


def read_times(path: Path, column: str | None = None, unit: str | None = None) -> Times:
    """Read the response times in a file.

    Parameters
    ----------
    path : Path
        A run file of a result folder, a Parquet or CSV table, a fio latency log
        (`--write_lat_log`), or a trace in the MSR Cambridge format.
    column : str, optional
        The column of a table; by default `response_time_ns`, or the only column.
    unit : str, optional
        Unit of the column, one of `UNITS_NS`; by default the ending of its name, else ns, and for
        an MSR Cambridge trace its ticks of 100 ns. A run file contains its unit.

    Returns
    -------
    ndarray
        Response times (n,) [ns].
    """
    start = read_start(path, KIND, MAX_LINE_BYTES)
    check_series(path)
    times = (
        _read_parquet(path, column, unit)
        if start.startswith(PARQUET_MAGIC)
        else _read_text(path, start, column, unit)
    )
    if len(times) > 1 and (times == times[0]).all():
        raise UsageError(
            "All response times are equal",
            where=str(path),
            got=f"{len(times)} times {times[0]:g} ns",
            allowed="response times with more than one value",
            action="select another column with --column, or check how the times were measured",
        )
    return times


def check_series(path: Path) -> None:
    """Refuse the output of fio, which has no single I/Os."""
    if is_fio_output(path):
        raise UsageError(
            "The file contains results of fio, not its I/Os",
            where=str(path),
            got="percentiles and rates (JSON or terse)",
            allowed="a log of each I/O (write_lat_log)",
            action=f"print them: uflip show {path}",
        )


def _read_parquet(path: Path, column: str | None, unit: str | None) -> Times:
    if column is None or column == COLUMN:
        try:
            with native_errors():
                trace = _native.read_trace(str(path))
        except UflipError:
            pass  # a table of another program
        else:
            _check_unit(path, unit, "The times of a run are in nanoseconds")
            return _in_step(path, trace.column(COLUMN), trace.column(STREAM_COLUMN))
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise missing_extra(
            "sweep",
            "A Parquet table that is not a run of uflip needs pyarrow",
            where=str(path),
            instead="a column in a CSV file needs no library",
        ) from error
    try:
        _check_count(path, parquet.read_metadata(path).num_rows)
        names = parquet.read_schema(path).names
        name = _choose_column(path, names, column)
        values = parquet.read_table(path, columns=[name])[name].to_numpy()
        if name == COLUMN and STREAM_COLUMN in names:
            streams = parquet.read_table(path, columns=[STREAM_COLUMN])[STREAM_COLUMN].to_numpy()
            values = _in_step(path, values, streams)
    except (ArrowException, OSError, ValueError, TypeError, OverflowError) as error:
        raise ResultsError(
            "The Parquet file cannot be read",
            where=str(path),
            got=next(iter(str(error).splitlines()), type(error).__name__),
            action="check that it was written to its end",
        ) from error
    return _in_ns(path, name, unit, values)


def _check_unit(path: Path, unit: str | None, message: str) -> None:
    if unit not in (None, "ns"):
        raise UsageError(
            message,
            where="--unit",
            got=f"{unit} for {path}",
            allowed="ns",
            action="omit --unit",
        )


def _in_step(path: Path, values: ArrayLike, streams: ArrayLike) -> Times:
    """Return the times of one process; of several, the means of I/Os with the same number.

    The I/Os of a process are consecutive, as in a trace and its tables.
    """
    times = np.asarray(values).astype(np.float64)
    counts = np.unique(np.asarray(streams), return_counts=True)[1]
    if (counts != counts[:1]).any():
        raise UsageError(
            "The processes of this run made different numbers of I/Os",
            where=str(path),
            got=", ".join(map(str, counts[:6])) + (", ..." if len(counts) > 6 else ""),
            allowed="one process, or several of one length",
            action="export the run, and analyse the I/Os of one stream",
        )
    mean: Times = times.reshape(max(1, len(counts)), -1).mean(axis=0)
    return mean


def _read_text(path: Path, start: bytes, column: str | None, unit: str | None) -> Times:
    first = _first_line(path, start)
    if column in (None, MSR_COLUMNS[-1]) and _is_msr(first):
        has_names = tuple(first) == MSR_COLUMNS
        ticks = _load(path, len(MSR_COLUMNS) - 1, int(has_names))
        return ticks * (MSR_TICK_NS if unit is None else UNITS_NS[unit])
    if _are_numbers(first):
        if len(first) >= MIN_FIO_FIELDS and column is None:
            return _in_ns(path, "value", unit or "ns", _load(path, 1, 0))
        if len(first) == 1 and column is None:
            return _in_ns(path, "value", unit or "ns", _load(path, 0, 0))
        raise UsageError(
            "The file has no column names and is not a fio latency log",
            where=str(path),
            got=", ".join(first[:6]),
            allowed="a line with names first; or time, value, direction, block size, offset",
            action="add a first line with names",
        )
    name = _choose_column(path, first, column)
    if RUN_COLUMN in first and name != RUN_COLUMN:
        _check_one_run(path, first.index(RUN_COLUMN))
    values = _load(path, first.index(name), 1)
    if name == COLUMN and STREAM_COLUMN in first:
        values = _in_step(path, values, _load(path, first.index(STREAM_COLUMN), 1))
    return _in_ns(path, name, unit, values)


def _first_line(path: Path, start: bytes) -> list[str]:
    """Return the cells of the first line of a table."""
    line, *more = re.split(rb"\r\n|\n|\r", start.removeprefix(codecs.BOM_UTF8), maxsplit=1)
    if not more and len(start) >= MAX_LINE_BYTES:
        raise _not_a_table_error(path, f"no end of a line in the first {MAX_LINE_BYTES} bytes")
    if b"\0" in start:
        raise _not_a_table_error(path, "bytes that are not text")
    try:
        text = line.decode("utf-8", "replace")
        return next(csv.reader([text], skipinitialspace=True), [])
    except csv.Error as error:
        raise _csv_error(path, error) from error


def _not_a_table_error(path: Path, got: str) -> UsageError:
    return UsageError(
        "The file is neither a table nor a log",
        where=str(path),
        got=got,
        allowed="a run file (runs/*.parquet), CSV, Parquet, a fio latency log",
        action="name another file",
    )


def _csv_error(path: Path, error: csv.Error) -> UsageError:
    return UsageError(
        "The file is not valid CSV",
        where=str(path),
        got=str(error),
        allowed="fields separated by commas, one row a line",
        action="correct the file, or name another one",
    )


def _check_count(path: Path, count: int) -> None:
    if count > MAX_TIMES:
        raise UsageError(
            "There are too many response times",
            where=str(path),
            got=f"more than {MAX_TIMES}",
            allowed=f"at most {MAX_TIMES}",
            action="analyse a part of them",
        )


def _is_msr(cells: list[str]) -> bool:
    if tuple(cells) == MSR_COLUMNS:
        return True
    if len(cells) != len(MSR_COLUMNS) or cells[3].strip() not in ("Read", "Write", "read", "write"):
        return False
    return all(cells[index].strip().isdecimal() for index in (0, 4, 5, 6))


def _are_numbers(cells: list[str]) -> bool:
    try:
        # fio's last columns may be hexadecimal; the first two decide.
        return bool([float(cell) for cell in cells[:2]])
    except ValueError:
        return False


def _load(path: Path, index: int, skip: int) -> Times:
    try:
        # A row has at least two bytes. NumPy allocates memory for all rows that it may read.
        rows = min(MAX_TIMES, path.stat().st_size // 2 + 1) + 1
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)  # raised if there is no data
            values: Times = np.loadtxt(
                path,
                delimiter=",",
                usecols=index,
                skiprows=skip,
                ndmin=1,
                comments=None,
                quotechar='"',
                encoding="utf-8-sig",
                max_rows=rows,
            )
    except UserWarning:
        return np.empty(0)
    except (ValueError, IndexError, OSError) as error:
        raise UsageError(
            "A value is not a number",
            where=str(path),
            got=next(iter(str(error).splitlines()), "").rstrip("."),
            allowed="one number in every line",
            action="select another column with --column, or correct the line",
        ) from None
    _check_count(path, len(values))
    return values


def _check_one_run(path: Path, index: int) -> None:
    runs: set[str] = set()
    try:
        with path.open(encoding="utf-8", errors="replace", newline="") as file:
            rows = csv.reader(file)
            next(rows)
            for row in rows:
                runs.update(row[index : index + 1])
                if len(runs) > 1:
                    break
    except csv.Error as error:
        raise _csv_error(path, error) from error
    if len(runs) > 1:
        raise UsageError(
            "The table contains several runs, not one series",
            where=str(path),
            got=f"{len(runs)} runs or more: {', '.join(sorted(runs))}",
            allowed="one run",
            action="analyse a run file of the result folder (runs/*.parquet)",
        )


def _choose_column(path: Path, names: list[str], column: str | None) -> str:
    if column is None and len(names) == 1:
        return names[0]
    name = COLUMN if column is None else column
    if name in names:
        return name
    if not any(names):
        raise UsageError("The file has no columns", where=str(path), action="name another file")
    raise UsageError(
        "The file has no such column",
        where=f"{path}, --column",
        got=name,
        allowed=", ".join(each or "(empty)" for each in names),
        action="name one of these with --column",
    )


def _in_ns(path: Path, name: str, unit: str | None, values: Any) -> Times:
    try:
        times = in_ns(values)
    except TypeError:
        raise UsageError(
            "The column does not hold numbers",
            where=f"{path}, column {name}",
            got=str(values[0]) if len(values) else "nothing",
            allowed="numbers, or durations",
            action="select another column with --column",
        ) from None
    if np.asarray(values).dtype.kind == "m":
        _check_unit(path, unit, "Durations have a unit of their own")
        return times
    if unit is None:
        ending = name.rsplit("_", 1)[-1]
        unit = ending if ending in UNITS_NS else "ns"
    scaled: Times = times * UNITS_NS[unit]
    return scaled
