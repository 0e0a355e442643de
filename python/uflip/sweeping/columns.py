"""A row as flat columns, as tables have them, and back.

What varied comes first, under its name; then what was measured. Statistics have `read_` or `write_`
before their name, and counters stand last, those of all rows: a device has the counters of its FTL.
"""

from collections.abc import Sequence
from dataclasses import fields

from uflip.data.document import Table
from uflip.stats.summary import STATISTICS
from uflip.sweeping.points import Point
from uflip.sweeping.row import Row, Statistics

_APART = ("values", "reads", "writes", "counters")
MEASURED = tuple(each.name for each in fields(Row) if each.name not in _APART)
MODES = {"read": "reads", "write": "writes"}
OF_MODES = tuple(f"{mode}_{name}" for mode in MODES for name in STATISTICS)


def columns(rows: Sequence[Row]) -> list[str]:
    """List the columns of rows."""
    # A counter may be called as a name that varies; no two columns are.
    counters = dict.fromkeys(name for row in rows for name in row.counters)
    names = [*rows[0].values] if rows else []
    return [*dict.fromkeys([*names, *MEASURED, *OF_MODES, *counters])]


def flat(row: Row) -> Table:
    """Return a row by its columns; what it does not have is None."""
    measured = {name: getattr(row, name) for name in MEASURED}
    of_modes = {
        f"{mode}_{name}": (getattr(row, field) or {}).get(name)
        for mode, field in MODES.items()
        for name in STATISTICS
    }
    return row.counters | of_modes | measured | row.values


def row_of(point: Point, found: Table) -> Row:
    """Return the row that `flat` made columns of."""
    known = {*MEASURED, *OF_MODES, *point.values}
    measured = {name: found[name] for name in MEASURED if name not in ("device", "durability")}
    counters = {n: v for n, v in found.items() if n not in known and v is not None}
    return Row(
        values=point.values,
        device=point.url,
        durability=point.durability,
        reads=_statistics(found, "read"),
        writes=_statistics(found, "write"),
        counters=counters,
        **measured,
    )


def _statistics(found: Table, mode: str) -> Statistics | None:
    if found[f"{mode}_count"] is None:
        return None
    return {name: found[f"{mode}_{name}"] for name in STATISTICS}
