"""A table of text that a terminal and a report show.

On a terminal it becomes aligned lines (`lines`), in a report the template `blocks/table.html`.
The package has no other printer of tables.
"""

import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass

COLUMN_SEPARATOR = "  "
TEXT_WIDTH = 100


def text_width(most: int = TEXT_WIDTH) -> int:
    """Return the columns of the terminal, but at most `most`; without a terminal it is `most`."""
    return min(most, shutil.get_terminal_size().columns) if sys.stdout.isatty() else most


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a head; every cell is formatted text."""

    #: Cells; each row has as many as the head, and its first cell is its heading.
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    #: A letter per column, "l" for text and "r" for numbers; the last one applies to the rest.
    align: str = "l"
    #: The caption of the table in a report; a terminal prints its own heading instead.
    caption: str = ""

    @property
    def sides(self) -> str:
        """A letter for each column."""
        return self.align.ljust(len(self.head), self.align[-1])

    def lines(self, indent: str = "") -> list[str]:
        """Return the lines, with columns as wide as needed; the first line is the head.

        >>> Table(["", "SR", "RW"], [["mtron", "0.4", "9"]], align="lr").lines()
        ['        SR  RW', 'mtron  0.4   9']
        """
        every = [self.head, *self.rows]
        widths = [max(map(len, column)) for column in zip(*every, strict=True)]
        return [
            (indent + COLUMN_SEPARATOR.join(map(_aligned, cells, widths, self.sides))).rstrip()
            for cells in every
        ]

    def text(self, indent: str = "") -> str:
        """Return the lines as one text."""
        return "\n".join(self.lines(indent))


def pairs(values: Sequence[tuple[str, str]], indent: str = "") -> list[str]:
    """Return the lines of names and their values in two columns, without a head.

    >>> pairs([("device", "sim:demo"), ("size", "1 GiB")])
    ['device  sim:demo', 'size    1 GiB']
    """
    return Table(["", ""], values).lines(indent)[1:]


def _aligned(cell: str, width: int, side: str) -> str:
    return cell.rjust(width) if side == "r" else cell.ljust(width)
