"""Rows as a table that pandas, polars, DuckDB and pyarrow read as it is: Arrow's C data interface.

The values are converted once, into Arrow's own layout; whoever reads the table takes that memory.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from arro3.core import Array, Table

Row = Mapping[str, object]


def frame(rows: Sequence[Row]) -> "Table":
    """Make a table of rows; a value that a row does not have, or None, is null.

    Parameters
    ----------
    rows : sequence of mapping
        Plain values by name: texts, numbers, booleans. The columns are all names, in the order in
        which they appear.

    Returns
    -------
    arro3.core.Table
        An object with `__arrow_c_stream__`: `pandas.DataFrame.from_arrow`, `polars.DataFrame`,
        `pyarrow.table` and `duckdb.sql` take it.

    Examples
    --------
    >>> frame([{"pattern": "SR", "mean_ns": 1.5}, {"pattern": "RW", "mean_ns": None}]).shape
    (2, 2)
    """
    from arro3.core import Table

    names = list(dict.fromkeys(name for row in rows for name in row))
    return Table.from_pydict({name: _column([row.get(name) for row in rows]) for name in names})


def _column(values: Sequence[Any]) -> "Array":
    """Give values of one kind that type, whole and real numbers real, anything else text."""
    from arro3.core import Array, DataType

    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return Array(values, type=DataType.bool())
    if kinds == {int}:
        return Array(values, type=DataType.int64())
    if kinds in ({float}, {int, float}):
        real = [None if value is None else float(value) for value in values]
        return Array(real, type=DataType.float64())
    texts = [None if value is None else str(value) for value in values]
    return Array(texts, type=DataType.utf8())
