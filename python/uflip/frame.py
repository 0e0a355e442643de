"""Rows as a table that pandas, polars, DuckDB and pyarrow read as it is: Arrow's C data interface.

The values are converted once, into Arrow's own layout; whoever reads the table takes that memory.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from arro3.core import Array, Table

Row = Mapping[str, object]
Columns = Mapping[str, type]
"""What columns a table has, in their order, and of which type: str, int, float or bool."""


def frame(rows: Sequence[Row], columns: Columns) -> "Table":
    """Make a table of rows; a value that a row does not have, or None, is null.

    What a column is does not depend on what is in it, so that tables of several results go
    together: a percentile that no sample was large enough for is a number all the same.

    Parameters
    ----------
    rows : sequence of mapping
        Plain values by name, of the types that `columns` has.
    columns : mapping
        Name -> str, int, float or bool.

    Returns
    -------
    arro3.core.Table
        An object with `__arrow_c_stream__`: `pandas.DataFrame.from_arrow`, `polars.DataFrame`,
        `pyarrow.table` and `duckdb.sql` take it.

    Examples
    --------
    >>> rows = [{"pattern": "SR", "mean_ns": 1.5}, {"pattern": "RW", "mean_ns": None}]
    >>> frame(rows, {"pattern": str, "mean_ns": float}).shape
    (2, 2)
    """
    from arro3.core import Table

    return Table.from_pydict(
        {name: _column([row.get(name) for row in rows], kind) for name, kind in columns.items()}
    )


def _column(values: Sequence[Any], kind: type) -> "Array":
    from arro3.core import Array, DataType

    types = {
        bool: DataType.bool(), int: DataType.int64(), float: DataType.float64(),
        str: DataType.utf8(),
    }  # fmt: skip
    return Array([None if each is None else kind(each) for each in values], type=types[kind])
