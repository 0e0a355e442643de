"""Tables in Arrow's C data interface, which pandas, polars, DuckDB and pyarrow read directly.

The values are converted once, into Arrow's own layout; readers share that memory.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from uflip.errors import ResultsError

if TYPE_CHECKING:
    from arro3.core import Array, Table

Row = Mapping[str, object]
Columns = Mapping[str, type]
"""Columns of a table in order, each with its type: str, int, float or bool."""


def frame(rows: Sequence[Row], columns: Columns) -> "Table":
    """Make a table of rows; a missing value, or None, becomes null.

    The type of a column does not depend on its values, so that tables of several results can be
    concatenated: a percentile is a number even if no sample was large enough for one.

    >>> rows = [{"pattern": "SR", "mean_ns": 1.5}, {"pattern": "RW", "mean_ns": None}]
    >>> frame(rows, {"pattern": str, "mean_ns": float}).shape
    (2, 2)
    """
    from arro3.core import Table

    return Table.from_pydict(
        {name: _column(name, [row.get(name) for row in rows], columns[name]) for name in columns}
    )


def _column(name: str, values: Sequence[Any], kind: type) -> "Array":
    from arro3.core import Array, DataType

    if kind is int and (parts := [v for v in values if v is not None and v != int(v)]):
        raise ResultsError(
            "A column of integers contains another value",
            where=name,
            got=str(parts[0]),
            action="look at it in `summary`; no version of uflip wrote it",
        )
    types = {
        bool: DataType.bool(), int: DataType.int64(), float: DataType.float64(),
        str: DataType.utf8(),
    }  # fmt: skip
    return Array([None if each is None else kind(each) for each in values], type=types[kind])
