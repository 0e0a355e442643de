"""Tables as files: CSV or Parquet, written in batches of rows, so that memory is bounded."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from tempfile import SpooledTemporaryFile
from typing import IO, get_args

from fastapi import Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from uflip.errors import UnavailableError, unknown_name
from uflip.results.outputs import cell

Rows = Iterable[BaseModel]
ROW_GROUP_ROWS = 10_000
"""Rows of a row group."""
IN_MEMORY_BYTES = 4 << 20
PART_BYTES = 1 << 20


def as_table(rows: Rows, model: type[BaseModel], ending: str) -> Response:
    """Return a response with a table.

    Parameters
    ----------
    rows : iterable of model
        Read before the answer begins.
    model : type
        Its fields are the columns.
    ending : str
        Name from `TABLE_KINDS`.

    Raises
    ------
    UsageError
        For an unknown kind of table.
    UnavailableError
        If pyarrow is not installed, for Parquet.
    """
    if ending not in TABLE_KINDS:
        raise unknown_name(
            "kind of table", ending[:20], TABLE_KINDS, where="the end of the address"
        )
    write, media_type = TABLE_KINDS[ending]
    with ExitStack() as stack:
        file = stack.enter_context(SpooledTemporaryFile(IN_MEMORY_BYTES))
        write(file, rows, model)
        file.seek(0)
        stack.pop_all()  # the response closes the file
    return StreamingResponse(_table_parts(file), media_type=media_type)


def _table_parts(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while part := file.read(PART_BYTES):
            yield part


def _csv(file: IO[bytes], rows: Rows, model: type[BaseModel]) -> None:
    text = io.TextIOWrapper(file, "utf-8", errors="backslashreplace", newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(model.model_fields)
    for row in rows:
        writer.writerow([cell(getattr(row, name)) for name in model.model_fields])
    text.flush()
    text.detach()


def _parquet(file: IO[bytes], rows: Rows, model: type[BaseModel]) -> None:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise UnavailableError(
            "Tables as Parquet need pyarrow",
            where="parquet",
            got="no pyarrow",
            allowed="csv, or pyarrow installed",
            action="request csv, or ask the operator of the site to install pyarrow",
        ) from error
    kinds: dict[object, object] = {
        str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64(),
    }  # fmt: skip
    fields = model.model_fields.items()
    schema = pyarrow.schema(
        [(name, kinds[_column_type(field.annotation)]) for name, field in fields]
    )
    remaining = iter(rows)
    with parquet.ParquetWriter(file, schema) as writer:
        while some := [each.model_dump() for each in islice(remaining, ROW_GROUP_ROWS)]:
            writer.write_table(pyarrow.Table.from_pylist(some, schema))


def _column_type(annotation: object) -> object:
    """Return the type of an optional annotation, as `float` of `float | None`."""
    return (get_args(annotation) or (annotation,))[0]


TABLE_KINDS: dict[str, tuple[Callable[[IO[bytes], Rows, type[BaseModel]], None], str]] = {
    "csv": (_csv, "text/csv; charset=utf-8"),
    "parquet": (_parquet, "application/vnd.apache.parquet"),
}
