"""A row as flat columns of a table, and back.

The varied values come first, under their names; then the measurements. Names of statistics begin
with `all_`, `read_` or `write_`, or another mode that occurs in the rows. Counters come last, those
of all rows: each FTL has its own counters.
"""

from collections.abc import Sequence
from dataclasses import fields

from uflip.data.document import Table
from uflip.data.spec import MODES
from uflip.stats.summary import STATISTICS
from uflip.sweeping.measure_point import Statistics, SweepRow
from uflip.sweeping.points import SweepPoint

_NOT_SCALAR = ("values", "reads", "writes", "counters", "statistics", "others")
MEASURED = tuple(each.name for each in fields(SweepRow) if each.name not in _NOT_SCALAR)
ALL_MODES = "all"
"""Prefix of statistics of all modes together."""


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
        column: (times or {}).get(name)
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


def _statistics(content: Table, mode: str) -> Statistics | None:
    if content.get(f"{mode}_count") is None:
        return None
    return {name: content[f"{mode}_{name}"] for name in STATISTICS}
