"""Rows as a table that pandas, polars, DuckDB and pyarrow read as it is: Arrow's C data interface.

The values are converted once, into Arrow's own layout; whoever reads the table takes that memory.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from arro3.core import DataType, Table

Row = Mapping[str, Any]


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
    from arro3.core import Array, Table

    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: [row.get(name) for row in rows] for name in names}
    return Table.from_pydict(
        {name: Array(_alike(values), type=_type_of(values)) for name, values in columns.items()}
    )


def _kinds(values: Sequence[Any]) -> set[type]:
    return {type(value) for value in values if value is not None}


def _alike(values: Sequence[Any]) -> Sequence[Any]:
    """Make texts of values of several kinds."""
    kinds = _kinds(values)
    if len(kinds) < 2 or kinds == {int, float}:
        return [float(value) if value is not None and float in kinds else value for value in values]
    return [None if value is None else str(value) for value in values]


def _type_of(values: Sequence[Any]) -> "DataType":
    from arro3.core import DataType

    kinds = _kinds(values)
    if kinds == {bool}:
        return DataType.bool()
    if kinds == {int}:
        return DataType.int64()
    if kinds <= {int, float} and kinds:
        return DataType.float64()
    return DataType.utf8()
