"""The I/Os of a log, trace or run as columns, in the order of their submission.

FILE ─ run of a result folder ─▶ trace with causes
     ─ log or trace ─ recogniser ─▶ recording ─▶ measured I/Os
     ─ column of a table ─▶ response times alone
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from uflip import _native
from uflip.analysis.files import (
    KIND,
    PARQUET_MAGIC,
    UFLIP_TABLE,
    ReadOptions,
    SeriesSource,
    check_series,
    no_response_times,
    read_series,
)
from uflip.data.document import read_start
from uflip.data.spec import MODES
from uflip.errors import ResultsError, UflipError, UsageError, native_errors

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
TABLE_COLUMNS = ("submit_ns", "response_time_ns", "offset_bytes", "io_size_bytes", "mode")
_CAUSES = frozenset(
    each["column"]
    for kind, causes in json.loads(_native.causes_json()).items()
    if kind != "purposes"
    for each in causes
)
MAX_IOS = 1 << 22
"""Of a longer log only the first I/Os are explained: each takes about 130 bytes."""
READ, WRITE = MODES.index("read"), MODES.index("write")


@dataclass(frozen=True)
class IoLog:
    """I/Os (n,) in the order of submission."""

    took: Floats  #: Response times [ns].
    source: SeriesSource  #: How the file was understood.
    #: Times of submission, from the first [ns]; None if the file has none.
    submitted: Integers | None = None
    offset: Integers | None = None  #: Offsets [bytes].
    #: Sizes [bytes], and numbers of modes.
    size: Integers | None = None
    mode: Integers | None = None
    #: Parts of the response times of a simulated device [ns].
    causes: Mapping[str, Integers] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.took)

    def rows(self, mode: int) -> Integers:
        """Return the numbers of the I/Os of a mode; of all I/Os if modes are unknown."""
        if self.mode is None:
            return np.arange(len(self))
        return np.flatnonzero(self.mode == mode)

    @property
    def subjects(self) -> list[tuple[str, Integers]]:
        """The I/Os by mode: "reads" and "writes", or "I/Os" where modes are unknown."""
        if self.mode is None:
            return [("I/Os", np.arange(len(self)))]
        return [
            (name, rows)
            for name, mode in (("reads", READ), ("writes", WRITE))
            if len(rows := self.rows(mode))
        ]

    @cached_property
    def completed(self) -> Floats | None:
        """Times of completion [ns]."""
        return None if self.submitted is None else self.submitted + self.took

    @cached_property
    def idle_before(self) -> Floats | None:
        """Time in which no I/O was in flight, before each submission [ns]."""
        if self.submitted is None or self.completed is None:
            return None
        last = np.maximum.accumulate(self.completed)
        idle = np.zeros(len(self))
        idle[1:] = np.maximum(self.submitted[1:] - last[:-1], 0)
        return idle

    @cached_property
    def in_flight(self) -> Integers | None:
        """Number of earlier I/Os in flight at each submission."""
        if self.submitted is None or self.completed is None:
            return None
        ended = np.searchsorted(np.sort(self.completed), self.submitted, side="right")
        number = np.searchsorted(self.submitted, self.submitted, side="left")
        count: Integers = np.maximum(number - ended, 0)
        return count

    @property
    def busy_share(self) -> float | None:
        """Share of the time with an I/O in flight."""
        if self.submitted is None or self.completed is None or self.idle_before is None:
            return None
        span = float(self.completed.max() - self.submitted[0])
        return 1 - float(self.idle_before.sum()) / span if span > 0 else None


def read_io_log(path: Path, options: ReadOptions) -> IoLog:
    """Read the I/Os of a run, a log or a trace.

    Raises
    ------
    UsageError
        For a result folder with several runs, an output of fio without single I/Os, or a file
        without response times.
    """
    if path.is_dir():
        path = _only_run(path)
    if read_start(path, KIND, len(PARQUET_MAGIC)) == PARQUET_MAGIC and options.column is None:
        try:
            with native_errors():
                return _of_trace(_native.read_trace(str(path)), SeriesSource(format="uflip"))
        except UflipError:
            log = _of_parquet_table(path)
        if log is not None:
            return log
    check_series(path)
    if options.column is None and (log := _of_recording(path, options)) is not None:
        return log
    series = read_series(path, options)
    return _of_times(series.times, series.source)


def _only_run(folder: Path) -> Path:
    runs = sorted((folder / "runs").glob("*.parquet"))
    if len(runs) != 1:
        raise UsageError(
            "A result folder contains several runs" if runs else "The folder contains no run",
            where=str(folder),
            got=f"{len(runs)} runs",
            allowed="one run",
            action=f"name one of them, as {runs[0]}" if runs else "name a log, a trace or a run",
        )
    return runs[0]


def _of_parquet_table(path: Path) -> IoLog | None:
    """Return the I/Os of a table of `uflip pattern --trace`; None for another table."""
    from pyarrow import ArrowException, parquet

    try:
        names = parquet.read_schema(path).names
        if not set(TABLE_COLUMNS) <= set(names):
            return None
        table = parquet.read_table(path)
        columns = {name: table[name].to_numpy() for name in names if name != "mode"}
        words = table["mode"].to_numpy()
    except (ArrowException, OSError, ValueError):
        return None  # the reader of a series reports the error
    mode = np.searchsorted(sorted(MODES), words)
    numbers = np.array([MODES.index(word) for word in sorted(MODES)])
    columns["mode"] = numbers[mode]
    return _of_columns(columns, SeriesSource(format=UFLIP_TABLE))


def _of_recording(path: Path, options: ReadOptions) -> IoLog | None:
    """Return the measured I/Os of a trace; None for a file without times of submission."""
    with native_errors():
        known = _native.recognised_format(str(path))
    if known is None and options.format is None and options.columns is None:
        return None
    try:
        with native_errors():
            recording = _native.read_recording(
                [str(path)],
                options.format,
                columns=options.columns,
                unit=options.unit,
                limit=MAX_IOS,
            )
    except UflipError:
        if known == UFLIP_TABLE:
            return None  # response times alone
        raise
    summary = json.loads(recording.summary_json())
    source = SeriesSource.parse(recording.summary_json())
    if source.averaged_ns is not None:
        return _of_times(np.asarray(recording.response_times()), source)
    if not summary["response_times"]:
        raise no_response_times(path, source)
    try:
        with native_errors():
            trace, _ = recording.measured()
    except ResultsError:
        return _of_times(np.asarray(recording.response_times()), source)
    return _of_trace(trace, source, has_offsets=summary["has_offsets"])


def _of_first(source: SeriesSource, ios: int) -> SeriesSource:
    """Return the source with a note, if only its first I/Os are explained."""
    if ios <= MAX_IOS:
        return source
    return structs.replace(source, notes=(*source.notes, f"the first {MAX_IOS} I/Os only"))


def _of_times(times: Floats, source: SeriesSource) -> IoLog:
    return IoLog(times[:MAX_IOS], _of_first(source, len(times)))


def _of_trace(trace: _native.Trace, source: SeriesSource, *, has_offsets: bool = True) -> IoLog:
    ios = min(len(trace), MAX_IOS)
    columns = {
        name: np.asarray(trace.column(name, 0, ios)) for name in (*TABLE_COLUMNS, *trace.causes)
    }
    source = _of_first(source, len(trace))
    if not has_offsets:
        del columns["offset_bytes"]
    return _of_columns(columns, source)


def _of_columns(columns: Mapping[str, NDArray[Any]], source: SeriesSource) -> IoLog:
    """Return the I/Os in columns named as those of a trace, causes included."""
    order = np.argsort(columns["submit_ns"], kind="stable")
    ordered = {
        name: column[order].astype(np.int64)
        for name, column in columns.items()
        if name in (*TABLE_COLUMNS, *_CAUSES)
    }
    submitted = ordered["submit_ns"]
    return IoLog(
        np.maximum(ordered["response_time_ns"].astype(np.float64), 1.0),
        source,
        submitted - submitted[0],
        ordered.get("offset_bytes"),
        ordered["io_size_bytes"],
        ordered["mode"],
        {name: column for name, column in ordered.items() if name in _CAUSES and column.any()},
    )
