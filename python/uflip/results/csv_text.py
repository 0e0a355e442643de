r"""CSV cells that a spreadsheet shows as text and never evaluates.

A cell that begins with `=`, `+`, `-` or `@` is a formula to a spreadsheet, and a formula can call
programs and send data away. Names of runs, parameters and profiles are untrusted. So a text that
begins like a formula gets an apostrophe in front, the way to type such a text into a spreadsheet.
Numbers, also negative ones, stay numbers.
"""

import csv
import re
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

from uflip.results import outputs

# Spreadsheets skip leading space; some take the wide forms of the four signs as well.
_FORMULA = re.compile("[\\s\ufeff]*[=+\\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n\0]")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def cell(value: Any) -> Any:
    r"""Return a cell that a spreadsheet does not take for a formula.

    Examples
    --------
    >>> [cell(each) for each in ("=1+2", "order", -5, "-5", "-5+A1", " @SUM(A1)")]
    ["'=1+2", 'order', -5, '-5', "'-5+A1", "' @SUM(A1)"]
    """
    if isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def write_table(
    output: outputs.OutputPath, head: Sequence[Any], rows: Iterable[Iterable[Any]]
) -> None:
    """Write a table to the output file of the user."""
    with (
        outputs.output_file(output) as temporary,
        temporary.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file,
    ):
        write_rows(file, head, rows)


def write_rows(file: TextIO, head: Sequence[Any], rows: Iterable[Iterable[Any]]) -> None:
    """Write a table to an open file."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(map(cell, head))
    writer.writerows(map(cell, row) for row in rows)
