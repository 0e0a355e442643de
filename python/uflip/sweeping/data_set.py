"""The rows of a sweep on disk: a Parquet data set with a manifest.

::

    FOLDER/
      sweep.json          the design, and every point (`uflip.data.sweep`)
      parts/000000-DIGEST.parquet, …   rows as they were measured, each with the index of its point
      points.parquet      all rows in the order of the points, when complete; the parts are then
                          removed

A part is renamed to its final name when it is complete and synced, so a kill loses only the rows of
the last few seconds. `points.parquet` depends only on the rows, bit for bit, on any executor, and
its digest is in the manifest. Files with a wrong digest are ignored: their points are measured
again. One process at a time works on a folder.

The columns of a row: first the varied values, under their names, then the measurements. Names of
statistics begin with `all_`, `read_` or `write_`, or another mode that occurs in the rows. Counters
come last, those of all rows: each FTL has its own counters.
"""

import io
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, Self, cast

from msgspec.structs import replace

from uflip import _native
from uflip.data import sweep as document
from uflip.data.document import DocumentKind, Table, read_document
from uflip.data.spec import MODES
from uflip.data.summary import StatisticsSummary
from uflip.data.sweep import Design, Range, SweepManifest, Value
from uflip.errors import ResultsError
from uflip.extras import missing_extra
from uflip.results import outputs, result_dir
from uflip.safe_files import write_file
from uflip.spec import Functions
from uflip.stats import STATISTICS
from uflip.sweeping.measure_point import SweepRow
from uflip.sweeping.points import SweepPoint

_NOT_SCALAR = ("values", "reads", "writes", "counters", "statistics", "others")
MEASURED = tuple(each.name for each in fields(SweepRow) if each.name not in _NOT_SCALAR)
ALL_MODES = "all"
"""Prefix of statistics of all modes together."""
PARTS, ALL = "parts", "points.parquet"
POINT = "point"
OPTION = "--data"
# A part is written after this number of rows, or this time [s] since the last one.
PART_ROWS, PART_S = 1024, 1.0
# Maximum uncompressed size: a hundred thousand rows take some ten megabytes.
MAX_BYTES = 1 << 30
ROWS = DocumentKind(
    "rows of the sweep", MAX_BYTES, "measure them again: uflip sweep --resume FOLDER"
)
_TEXTS = {"device", "durability"}


def check_new(folder: Path) -> None:
    """Check that rows can be stored in a folder, before any work is done."""
    arrow()
    outputs.check_new_folder(folder, "sweep", OPTION)


def read_data_set(folder: Path) -> tuple[SweepManifest, dict[int, SweepRow]]:
    """Read the rows of a sweep, finished or not: index of the point -> row."""
    manifest = document.read(folder)
    names, rows_by_index = [*manifest.design.vary], {}
    spec = cast("Functions", manifest.design.spec)  # checked by `read`
    rows = DataSet(folder, manifest)
    rows.check()
    for content in rows.contents():
        index = content.pop(POINT)
        if 0 <= index < len(manifest.points):
            values = dict(zip(names, manifest.points[index], strict=True))
            durability, url = content["durability"], content["device"]
            rows_by_index[index] = row_from_columns(
                SweepPoint(values, url, spec, durability), content
            )
    return manifest, rows_by_index


class DataSet:
    """The rows of one sweep; returned by `create` and `resume`."""

    def __init__(self, folder: Path, manifest: SweepManifest) -> None:
        self.folder = folder
        self.manifest = manifest
        self._new: dict[int, SweepRow] = {}
        self._written_s = time.monotonic()
        numbers = (int(path.stem.partition("-")[0]) for path in self._parts())
        self._next = max(numbers, default=-1) + 1

    @classmethod
    @contextmanager
    def create(
        cls, folder: Path, design: Design, points: Sequence[Sequence[Value]]
    ) -> Iterator[Self]:
        """Create a new folder; added rows are stored when the block is left, in any way."""
        manifest = SweepManifest(
            uflip_version=_native.__version__,
            simulator=_native.SIMULATOR_VERSION,
            created_utc=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            design=design,
            points=[[*values] for values in points],
        )
        with outputs.new_folder(folder, "sweep", OPTION) as temporary:
            (temporary / PARTS).mkdir()
            write_file(temporary / document.FILE_NAME, document.encode(manifest))
        with cls.resume(folder) as data_set:
            yield data_set

    @classmethod
    @contextmanager
    def resume(cls, folder: Path) -> Iterator[Self]:
        """Resume a folder; added rows are stored when the block is left, in any way."""
        arrow()
        manifest = document.read(folder)
        if manifest.simulator != _native.SIMULATOR_VERSION:
            raise ResultsError(
                "This sweep was started by another version of the simulator",
                where=str(folder),
                got=manifest.simulator,
                allowed=_native.SIMULATOR_VERSION,
                action=f"resume it with uflip {manifest.uflip_version}, or use another folder",
            )
        folder_lock = result_dir.acquire_exclusive_lock(folder)
        try:
            data_set = cls(folder, manifest)
            try:
                yield data_set
            finally:
                data_set._write()
        finally:
            result_dir.release_lock(folder_lock)

    def rows(self, points: Sequence[SweepPoint]) -> dict[int, SweepRow]:
        """Read the stored rows: index of the point -> row."""
        rows_by_index: dict[int, SweepRow] = {}
        for content in self.contents():
            index = content.pop(POINT)
            if 0 <= index < len(points) and content["device"] == points[index].url:
                rows_by_index[index] = row_from_columns(points[index], content)
        return rows_by_index

    def contents(self) -> Iterator[Table]:
        """Read the stored rows, in the order in which they were measured."""
        for path in self._parts():
            yield from self._read(path, path.stem.partition("-")[2])
        if self.manifest.rows is not None:
            yield from self._read(self.folder / ALL, self.manifest.rows)

    def check(self) -> None:
        """Reject damaged rows: for readers, which cannot measure them again."""
        whole = self.folder / ALL
        if self.manifest.rows is not None and not _bytes(whole, self.manifest.rows):
            raise ResultsError(
                "The rows of the sweep are damaged",
                where=str(whole),
                got="another digest",
                allowed=f"{self.manifest.rows}, as in {document.FILE_NAME}",
                action=f"measure them again: uflip sweep --resume {self.folder}",
            )

    def add(self, index: int, row: SweepRow) -> None:
        """Add a row."""
        self._new[index] = row
        late = time.monotonic() - self._written_s >= PART_S
        if late or len(self._new) >= PART_ROWS:
            self._write()

    def finish(self, rows: Sequence[SweepRow]) -> None:
        """Write all rows to one file, in order, and remove the parts."""
        self._write()
        content = _parquet(self.manifest, dict(enumerate(rows)))
        write_file(self.folder / ALL, content)
        self.manifest = replace(self.manifest, rows=_native.digest(content))
        write_file(self.folder / document.FILE_NAME, document.encode(self.manifest))
        for path in self._parts():
            path.unlink()

    def _parts(self) -> list[Path]:
        return sorted((self.folder / PARTS).glob("[0-9]*.parquet"))

    def _write(self) -> None:
        if self._new:
            content = _parquet(self.manifest, self._new)
            name = f"{self._next:06}-{_native.digest(content)}.parquet"
            write_file(self.folder / PARTS / name, content)
            self._next += 1
            self._new = {}
        self._written_s = time.monotonic()

    def _read(self, path: Path, digest: str) -> list[Table]:
        """Read the rows of a file; none if it is damaged or of another sweep."""
        content = _bytes(path, digest)
        if content is None:
            return []
        with suppress(arrow().ArrowException, OSError):
            from pyarrow import parquet

            metadata = parquet.read_metadata(io.BytesIO(content))
            groups = [
                metadata.row_group(number).total_byte_size
                for number in range(metadata.num_row_groups)
            ]
            if metadata.num_rows > len(self.manifest.points) or sum(groups) > MAX_BYTES:
                return []
            rows: list[Table] = parquet.read_table(io.BytesIO(content)).to_pylist()
            if all(content.keys() >= {POINT, *MEASURED, *READ_WRITE_COLUMNS} for content in rows):
                return rows
        return []


def _names_of_mode(mode: str) -> list[str]:
    return [f"{mode}_{name}" for name in STATISTICS]


READ_WRITE_COLUMNS = tuple(column for mode in ("read", "write") for column in _names_of_mode(mode))
TIME_COLUMNS = frozenset(column for mode in (ALL_MODES, *MODES) for column in _names_of_mode(mode))
"""Every column of response times that a row may have."""


def columns(rows: Sequence[SweepRow]) -> list[str]:
    """Return the columns of rows."""
    # A counter may have the name of a varied parameter; columns are unique.
    counters = dict.fromkeys(name for row in rows for name in row.counters)
    names = [*rows[0].values] if rows else []
    modes = {mode for row in rows for mode in row.others}
    others = [column for mode in MODES if mode in modes for column in _names_of_mode(mode)]
    return [
        *dict.fromkeys(
            [*names, *MEASURED, *_names_of_mode(ALL_MODES), *READ_WRITE_COLUMNS, *others, *counters]
        )
    ]


def flatten(row: SweepRow) -> Table:
    """Return a row by its columns; missing values are None."""
    measured = {name: getattr(row, name) for name in MEASURED}
    every = {ALL_MODES: row.statistics, "read": row.reads, "write": row.writes, **row.others}
    of_modes = {
        column: None if times is None else times[name]
        for mode, times in every.items()
        for column, name in zip(_names_of_mode(mode), STATISTICS, strict=True)
    }
    return row.counters | of_modes | measured | row.values


def row_from_columns(point: SweepPoint, content: Table) -> SweepRow:
    """Return the row of the columns that `flatten` made."""
    fixed_columns = {*MEASURED, *TIME_COLUMNS, *point.values}
    measured = {name: content[name] for name in MEASURED if name not in ("device", "durability")}
    counters = {n: v for n, v in content.items() if n not in fixed_columns and v is not None}
    of_modes = {mode: _statistics(content, mode) for mode in MODES}
    times = {mode: each for mode, each in of_modes.items() if each is not None}
    return SweepRow(
        values=point.values,
        device=point.url,
        durability=point.durability,
        reads=times.pop("read", None),
        writes=times.pop("write", None),
        counters=counters,
        statistics=_statistics(content, ALL_MODES),
        others=times,
        **measured,
    )


def _statistics(content: Table, mode: str) -> StatisticsSummary | None:
    if content.get(f"{mode}_count") is None:
        return None
    numbers = {name: content[f"{mode}_{name}"] for name in STATISTICS}
    return cast("StatisticsSummary", numbers)


_FLOATS = {"ios_per_s", "bytes_per_s", "write_amplification", "relocated_pages_per_block"} | {
    column for column in TIME_COLUMNS if column.endswith(("mean_ns", "std_ns"))
}


def _bytes(path: Path, digest: str) -> bytes | None:
    """Read a file of rows; None if it is missing, or has another digest."""
    with suppress(ResultsError):
        content = read_document(path, ROWS)
        if digest == _native.digest(content):
            return content
    return None


def _parquet(manifest: SweepManifest, rows: Mapping[int, SweepRow]) -> bytes:
    """Return rows by index as a Parquet file; equal rows give equal bytes."""
    pyarrow = arrow()
    from pyarrow import parquet

    names = columns([*rows.values()])
    content = [{POINT: index} | flatten(row) for index, row in sorted(rows.items())]
    table = pyarrow.table(
        [
            pyarrow.array([_cell(row.get(name), kind) for row in content], kind)
            for name in (POINT, *names)
            for kind in [_kind(name, manifest.design.vary.get(name))]
        ],
        names=[POINT, *names],
    )
    sink = io.BytesIO()
    parquet.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def _kind(name: str, varied: list[Value] | Range | None) -> Any:
    """Return the type of a column; values of several types are stored as text."""
    pyarrow = arrow()
    if isinstance(varied, Range):
        varied = [varied.low, varied.high]
    if varied is not None:
        kinds = {type(value) for value in varied}
        if kinds == {int, float}:
            kinds = {float}
        by_kind = {bool: pyarrow.bool_(), int: pyarrow.int64(), float: pyarrow.float64()}
        return by_kind.get(kinds.pop(), pyarrow.string()) if len(kinds) == 1 else pyarrow.string()
    if name in _TEXTS:
        return pyarrow.string()
    return pyarrow.float64() if name in _FLOATS else pyarrow.int64()


def _cell(value: Any, kind: Any) -> Any:
    return str(value) if value is not None and kind == arrow().string() else value


def arrow() -> Any:
    """Import pyarrow."""
    try:
        import pyarrow
    except ImportError as error:
        raise missing_extra(
            "sweep", "`--data` needs pyarrow", where=OPTION, instead="--csv needs no library"
        ) from error
    return pyarrow
