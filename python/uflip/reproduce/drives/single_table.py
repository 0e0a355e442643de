"""All measurements of a drive in a single table, CSV or JSON: `uflip infer --observations`.

A row has any of the columns of the three tables of a folder (`tables`): a rate, a write
amplification, or both, of a phase; or percentiles of response times at an offered load. The table
is written by a user, so that a wrong name or a row that contradicts another one is an error.
"""

import csv
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import msgspec

from uflip.data.document import DocumentKind, decode_text, read_document
from uflip.errors import ResultsError, UsageError, unknown_name
from uflip.reproduce.drives.tables import (
    LAST_FIFTH,
    PERCENTS,
    SHAPE_PERCENTS,
    Drive,
    Row,
    column_of,
    drives_of,
)

PERCENTILES = tuple(column_of(one) for one in sorted((*PERCENTS, *SHAPE_PERCENTS)))
MEASURED = ("write_mib_s", "write_amplification", "what")
"""Columns of which a row has at least one: a rate, a write amplification, a response time."""
COLUMNS = ("study", "drive", "capacity_gib", "pattern", "details", "rate", "write_share",
           "written_gib", "part", "host_written_capacities", *MEASURED, *PERCENTILES)  # fmt: skip
DEFAULTS = {"details": "", "rate": "0", "write_share": "1", "part": f"{LAST_FIFTH[1]}"}
EXTRA = "cells without a column"
POSITIVE = ("capacity_gib", "written_gib", "write_mib_s", *PERCENTILES)
LEAST_AMPLIFICATION = 0.95
"""Less is not rounding: the drive compresses, or the count is not that of the phase. SSD-iq has 0
for a part without a count."""
LARGEST_SCATTER = 1.5
"""Repetitions of a phase that differ by a larger factor are not of the same drive or phase; those
of SSD-iq differ by 1.28 at most."""
KIND = DocumentKind("table", 64 << 20, "name a CSV or JSON file", UsageError)


def read_table(path: Path) -> Drive:
    """Read the drive of a table; its capacity is the largest that a row has.

    Raises UsageError if it cannot be read or has an unknown column, and ResultsError if a value is
    no number, is missing, or contradicts others, or if there are several drives.
    """
    rows = [_completed(row, path.stem) for row in _rows(path)]
    rates, worn, loaded = ([row for row in rows if row.has(column)] for column in MEASURED)
    _check_repetitions(rates)
    drives = drives_of(rates, worn, loaded)
    if not drives:
        raise ResultsError(
            "The table has no rate of a phase that is long enough",
            where=str(path),
            got=f"{len(rows)} rows",
            allowed="rows with write_mib_s and with a written_gib of half of capacity_gib or more",
            action="add the rates of sequential and of random writes",
        )
    if len(drives) > 1:
        raise ResultsError(
            "The table has several drives",
            where=str(path),
            got=", ".join(drive.name for drive in drives),
            allowed="one drive",
            action="move the rows of each drive to a table of its own",
        )
    largest = max(row.phase.capacity_gib for row in drives[0].observations)
    return replace(drives[0], capacity_gib=largest)


def _rows(path: Path) -> list[Row]:
    content = read_document(path, KIND)
    if path.suffix.lower() == ".json":
        try:
            tables = msgspec.json.decode(content, type=list[dict[str, str | float | None]])
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            allowed = "a list of rows, each an object of columns"
            raise KIND.unreadable(path, str(error), allowed) from error
        cells = [{name: None if cell is None else str(cell) for name, cell in table.items()}
                 for table in tables]  # fmt: skip
        return [Row(f"{path}, row {n}", row) for n, row in enumerate(cells, start=1)]
    reader = csv.DictReader(decode_text(path, KIND, content).splitlines(), restkey=EXTRA)
    try:
        return [Row(f"{path}, line {n}", row) for n, row in enumerate(reader, start=2)]
    except csv.Error as error:
        raise KIND.unreadable(path, str(error), "comma-separated values") from error


def _completed(row: Row, drive: str) -> Row:
    """Return the row with the values of columns that it lacks."""
    _check(row)
    cells: dict[str, str | None] = {
        "drive": drive,
        **DEFAULTS,
        **{name: row.text(name) for name in row.cells if row.has(name)},
    }
    if "write_amplification" in cells and "host_written_capacities" not in cells:
        written = row.number("written_gib") / row.number("capacity_gib")
        cells["host_written_capacities"] = f"{written}"
    return Row(row.where, cells)


def _check_columns(row: Row) -> None:
    for name in row.cells.keys() - set(COLUMNS):
        with_unit = [each for each in COLUMNS if each.startswith(f"{name}_")]
        if with_unit:
            raise UsageError(
                "The name of a column lacks its unit",
                where=row.where,
                got=name,
                allowed=", ".join(with_unit),
                action="convert the values to this unit, and rename the column",
            )
        raise unknown_name("column", name, COLUMNS, where=row.where)


def _check(row: Row) -> None:
    """Refuse a row that measures nothing, or contradicts itself."""
    _check_columns(row)
    if not any(row.has(column) for column in (*MEASURED, *PERCENTILES)):
        raise row.wrong(MEASURED[0], "no measurement", f"a value of {', '.join(MEASURED)}")
    for column in POSITIVE:
        if row.has(column) and not row.number(column) > 0:
            raise row.wrong(column, row.text(column), "a number above 0")
    percentiles = [column for column in PERCENTILES if row.has(column)]
    if percentiles or row.has("what"):
        if row.text("what") not in ("read", "write"):
            raise row.wrong("what", row.text("what"), "read or write")
        if not row.number("rate") > 0:
            raise row.wrong("rate", row.text("rate"), "the offered I/Os a second, above 0")
    amplification = "write_amplification"
    if row.has(amplification) and not (
        row.number(amplification) == 0 or row.number(amplification) >= LEAST_AMPLIFICATION
    ):
        allowed = f"{LEAST_AMPLIFICATION} or more: the flash writes what the host writes, at least"
        raise row.wrong(amplification, row.text(amplification), allowed)
    for lower, higher in pairwise(percentiles):
        if row.number(lower) > row.number(higher):
            raise row.wrong(higher, row.text(higher), f"at least the {row.text(lower)} of {lower}")


def _check_repetitions(rates: Iterable[Row]) -> None:
    """Refuse rates of a phase that no scatter explains."""
    phases = defaultdict[tuple[str, ...], list[Row]](list)
    names = ("drive", "pattern", "details", "rate", "capacity_gib")
    for row in rates:
        phases[tuple(row.text(name) for name in names)].append(row)
    for rows in phases.values():
        rows.sort(key=lambda row: row.number("write_mib_s"))
        low, high = rows[0], rows[-1]
        slow, fast = low.number("write_mib_s"), high.number("write_mib_s")
        if fast > LARGEST_SCATTER * slow:
            raise ResultsError(
                "Two rows of the same phase contradict each other",
                where=f"{low.where}; {high.where}",
                got=f"write_mib_s of {slow:g} and {fast:g}",
                allowed=f"repetitions that differ by a factor of {LARGEST_SCATTER:g} or less",
                action="remove the wrong row, or describe the difference in pattern or details",
            )
