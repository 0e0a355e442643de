"""Sources of traces for replay: formats of the native part, and tables of I/Os written by uflip.

A table (`uflip pattern --trace`, `uflip export`) is converted to the format of blkparse, which has
nanoseconds, sectors and trims, so that nothing of it is lost.
"""

import csv
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from uflip import _native
from uflip.data.bounded_read import DocumentKind, read_start
from uflip.errors import ResultsError, UflipError, UnavailableError, native_errors

COLUMNS = ("submit_ns", "offset_bytes", "io_size_bytes", "mode")
"""Columns of a table; others are ignored."""
RUN = "run"
TABLE_FORMAT = "uflip"
"""The format name of a table."""
KIND = DocumentKind("trace", 1 << 40, "name a trace: `uflip replay --help` lists the formats")
# Upper bound of the length of our own table heads.
MAX_HEAD_BYTES = 1 << 16
PARQUET_MAGIC = b"PAR1"
SECTOR_BYTES = 512
LETTERS = {"read": "R", "write": "W", "trim": "D"}

Row = tuple[object, ...]
"""An I/O: `COLUMNS`, and its run, None for a table without that column."""


def read_recording(path: Path, trace_format: str | None = None) -> _native.Recording:
    """Read a trace.

    Parameters
    ----------
    path : Path
        A file of one of `uflip._native.recording_formats`, or a table with `COLUMNS`, CSV or
        Parquet.
    trace_format : str, optional
        Its format; without it, detect it.

    Returns
    -------
    Recording
        The I/Os, in the order of their times.

    Raises
    ------
    UflipError
        If it cannot be read, or is not a trace.
    """
    try:
        with native_errors():
            return _native.read_recording(str(path), trace_format)
    except UflipError:
        rows = None if trace_format not in (None, TABLE_FORMAT) else _rows(path)
        if rows is None:
            raise
    with tempfile.TemporaryDirectory() as folder, native_errors():
        converted = Path(folder) / "trace.blkparse"
        with converted.open("w", encoding="ascii") as file:
            file.writelines(_lines(path, rows))
        return _native.read_recording(str(converted), "blkparse")


def _rows(path: Path) -> Iterable[Row] | None:
    """Return the rows of a table; None if it is not a table, or lacks the columns."""
    start = b""
    with suppress(UflipError, OSError):
        start = read_start(path, KIND, MAX_HEAD_BYTES)
    if start.startswith(PARQUET_MAGIC):
        return _rows_of_parquet(path)
    head = start.partition(b"\n")[0].decode("ascii", "replace").strip().split(",")
    return _rows_of_csv(path) if set(COLUMNS) <= set(head) else None


def _rows_of_csv(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        for row in csv.DictReader(file):
            yield tuple(row.get(name) for name in (*COLUMNS, RUN))


def _rows_of_parquet(path: Path) -> Iterator[Row] | None:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise UnavailableError(
            "A Parquet table that is not a run of a result needs pyarrow",
            where=str(path),
            got="a Python environment without it",
            action="pip install pyarrow, or write the trace as CSV",
        ) from error
    try:
        opened = parquet.ParquetFile(path)
    except (ArrowException, OSError):
        return None  # the native part has reported the error
    names = opened.schema_arrow.names
    if not set(COLUMNS) <= set(names):
        return None
    columns = [*COLUMNS, *({RUN} & set(names))]
    return (
        tuple(row.get(name) for name in (*COLUMNS, RUN))
        for batch in opened.iter_batches(columns=columns)
        for row in batch.to_pylist()
    )


def _lines(path: Path, rows: Iterable[Row]) -> Iterator[str]:
    """Yield each I/O in the format of blkparse."""
    first = None
    for number, (*numbers, mode, run) in enumerate(rows, 1):
        try:
            at, offset, size = (int(str(each)) for each in numbers)
            letter = LETTERS[str(mode)]
            if min(at, offset, size) < 0 or (offset | size) % SECTOR_BYTES:
                raise ValueError("no whole sectors")
        except (KeyError, ValueError) as error:
            got = zip(COLUMNS, (*numbers, mode), strict=True)
            raise _wrong(path, number, ", ".join(f"{name} {each}" for name, each in got)) from error
        first = run if number == 1 else first
        if run != first:
            raise _wrong(path, number, f"run {run}", f"I/Os of one run, which is {first}")
        sectors = f"{offset // SECTOR_BYTES} + {size // SECTOR_BYTES}"
        yield f"8,0 0 {number} {at // 10**9}.{at % 10**9:09} 0 Q {letter} {sectors} [uflip]\n"


def _wrong(path: Path, number: int, got: str, allowed: str = "") -> ResultsError:
    numbers = f"whole numbers, of whole sectors of {SECTOR_BYTES} bytes; {', '.join(LETTERS)}"
    return ResultsError(
        "A row of the table cannot be replayed",
        where=f"{path}, I/O {number}",
        got=got,
        allowed=allowed or numbers,
        action="replay the table as `uflip pattern --trace` wrote it",
    )
