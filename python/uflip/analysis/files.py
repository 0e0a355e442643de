"""Response times from files: a run file, a column of CSV or Parquet, a log or trace.

The format is recognised from the content by `crates/foreign`, as for `uflip replay` and `import`.
Response times are returned in nanoseconds and in the order of the file, with a description of the
way the file was understood.
"""

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
from msgspec import Struct, structs
from numpy.typing import ArrayLike, NDArray

from uflip import _native
from uflip.analysis.fio_output import is_fio_output
from uflip.analysis.series import in_ns
from uflip.data.document import DocumentKind, read_start
from uflip.errors import ResultsError, UflipError, UsageError, native_errors
from uflip.extras import missing_extra
from uflip.stats import Distribution
from uflip.units import format_count, format_duration_ns

KIND = DocumentKind("series", 1 << 40, "name a file with response times", UsageError)
# A gigabyte of response times in a Parquet table, which are in memory.
MAX_TIMES = 1 << 27

Times = NDArray[np.float64]

PARQUET_MAGIC = b"PAR1"
COLUMN = "response_time_ns"
UNITS_NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
# The column of response times in the head of a known format.
RESPONSE_COLUMNS = {"msr": "ResponseTime", "systor17": "Response", "biosnoop": "LAT(ms)"}
UFLIP_TABLE = "uflip-table"
# Further columns of our own tables.
RUN_COLUMN, STREAM_COLUMN = "run", "stream"


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """Choices of the user, where the file does not suffice.

    Attributes
    ----------
    column : str or None
        The column of a table, by name or number from 1; None: `response_time_ns`, or the only one.
    unit : str or None
        Unit of the response times, one of `UNITS_NS`; None: that of the format, or of the name.
    format : str or None
        The format of a trace; None: recognise it.
    columns : str or None
        A map of the columns, as `end_s=1,response_us=3`.
    """

    column: str | None = None
    unit: str | None = None
    format: str | None = None
    columns: str | None = None


class SeriesSource(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a file was understood.

    Attributes
    ----------
    format, version, quantity, unit, columns : str
        Empty where the format does not leave them open.
    left_out : dict of str to int
        Rows that are not in the series, by reason.
    odd_lines, zero_times : int
        Lines that do not belong to the format, and times of 0, which count as one clock tick.
    averaged_ns : int or None
        Each value is the average of all I/Os in this time [ns].
    notes : tuple of str
        Further remarks.
    """

    format: str
    version: str = ""
    quantity: str = ""
    unit: str = ""
    columns: str = ""
    left_out: dict[str, int] = {}
    odd_lines: int = 0
    first_odd_line: tuple[int, str] | None = None
    zero_times: int = 0
    averaged_ns: int | None = None
    notes: tuple[str, ...] = ()
    head: tuple[str, ...] = ()
    ios: int = 0

    @classmethod
    def parse(cls, text: str) -> "SeriesSource":
        """Read the description that the native part returns (JSON)."""
        source = msgspec.json.decode(text, type=cls)
        left_out = {name: count for name, count in source.left_out.items() if count}
        return structs.replace(source, left_out=left_out)

    def describe(self) -> str:
        """Return one line for the user."""
        name = " ".join(filter(None, (self.format, self.version, self.quantity)))
        parts = [name, f"times in {self.unit}" if self.unit else "", self.columns]
        parts += [f"left out: {format_count(n)} {why}" for why, n in self.left_out.items()]
        if self.odd_lines and self.first_odd_line:
            line, text = self.first_odd_line
            parts.append(
                f"left out: {format_count(self.odd_lines)} odd lines, the first {line}: {text}"
            )
        if self.zero_times:
            parts.append(f"{format_count(self.zero_times)} times of 0 count as one clock tick")
        if self.averaged_ns:
            parts.append(f"averages of {format_duration_ns(self.averaged_ns)}, not single I/Os")
        return "; ".join(filter(None, [*parts, *self.notes]))


@dataclass(frozen=True)
class Series:
    """Response times (n,) [ns] of a file, and how it was understood."""

    times: Times
    source: SeriesSource


def read_times(path: Path, column: str | None = None, unit: str | None = None) -> Times:
    """Read the response times in a file, as `read_series` does."""
    return read_series(path, ReadOptions(column=column, unit=unit)).times


def read_series(path: Path, options: ReadOptions) -> Series:
    """Read the response times in a file.

    Parameters
    ----------
    path : Path
        A run file of a result folder, a Parquet or CSV table, a fio latency log
        (`--write_lat_log`), or a trace with response times (docs/reference/formats.md).
    options : ReadOptions
        The column, unit, format or columns.

    Returns
    -------
    Series
        Response times (n,) [ns], and how the file was understood.
    """
    start = read_start(path, KIND, len(PARQUET_MAGIC))
    check_series(path)
    if start == PARQUET_MAGIC:
        series = Series(
            _read_parquet(path, options.column, options.unit), SeriesSource(format="uflip")
        )
    else:
        series = _read_text(path, options)
    times = series.times
    if len(times) > 1 and times.min() == times.max():
        raise UsageError(
            "All response times are equal",
            where=str(path),
            got=f"{len(times)} times {times[0]:g} ns",
            allowed="response times with more than one value",
            action="select another column with --column, or check how the times were measured",
        )
    return series


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


def _read_text(path: Path, options: ReadOptions) -> Series:
    """Return the response times of a text or binary trace, or of a column of a table."""
    with native_errors():
        known = _native.recognised_format(str(path))
        is_recorded = options.column in (None, RESPONSE_COLUMNS.get(known or ""))
        if options.columns or options.format or (is_recorded and known not in (None, UFLIP_TABLE)):
            return read_recorded_times(path, options)
        values, about = _native.read_series(str(path), options.column, options.unit)
    times = np.asarray(values)
    source = SeriesSource.parse(about)
    if options.column in (None, COLUMN):
        times = _of_one_run(path, times, source)
    return Series(times, source)


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


def read_recorded_times(path: Path, options: ReadOptions) -> Series:
    """Read the response times of a trace or log, in the order of the file."""
    with native_errors():
        recording = _native.read_recording(
            [str(path)], options.format, columns=options.columns, unit=options.unit
        )
    source = SeriesSource.parse(recording.summary_json())
    times = np.asarray(recording.response_times())
    if not len(times):
        raise no_response_times(path, source)
    return Series(times, source)


def no_response_times(path: Path, source: SeriesSource) -> UsageError:
    """Return the error of a trace that contains I/Os, and not how long they took."""
    return UsageError(
        "The trace contains no response times",
        where=str(path),
        got=f"{source.ios} I/Os, format {source.format}",
        allowed="a trace whose tool recorded how long each I/O took",
        action=f"measure them: uflip replay {path} DEVICE",
    )


def _of_one_run(path: Path, times: Times, source: SeriesSource) -> Times:
    """Return the times of one run of our own table; of several processes, their means."""
    if RUN_COLUMN in source.head:
        _check_one_run(path, source.head.index(RUN_COLUMN))
    if STREAM_COLUMN not in source.head or source.odd_lines or source.left_out:
        return times
    with native_errors():
        return _in_step(path, times, _native.read_numbers(str(path), STREAM_COLUMN))


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
    scaled: Times = times * (UNITS_NS[unit] if unit else _unit_of_name(path, name))
    return scaled


def _unit_of_name(path: Path, name: str) -> float:
    """Return the unit [ns] in the name of a column."""
    with native_errors():
        unit_ns = _native.unit_of_name(name)
    if unit_ns is None:
        raise UsageError(
            "The unit of the column is unknown",
            where=f"{path}, column {name}",
            allowed="a name such as latency_us or LAT(ms), or --unit " + "|".join(UNITS_NS),
            action="give the unit with --unit",
        )
    return float(unit_ns)


def statistics_of(times: _native.Column) -> dict[str, float] | None:
    """Return the mean and percentiles of response times (float64 [ns]); None without any."""
    values = np.asarray(times)
    if not len(values):
        return None
    mean, step = float(values.mean()), Distribution.FEW
    if len(values) <= step:
        p50, p99 = np.percentile(values, [50, 99]).tolist()
        return {"mean": mean, "p50": p50, "p99": p99}
    distribution = Distribution()
    for start in range(0, len(values), step):
        distribution.add(values[start : start + step].astype(np.uint64))
    summary = cast("dict[str, float]", distribution.summary())
    return {"mean": mean, "p50": summary["p50_ns"], "p99": summary["p99_ns"]}
