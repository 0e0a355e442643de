"""A table: what stands in it, once for every place where it is shown.

Whoever has something to tell in rows makes a `Table` of text. On a terminal it becomes aligned
lines (`lines`), in a report the template `blocks/table.html`, and there is no other printer of
tables in the package.
"""

from collections.abc import Sequence
from dataclasses import dataclass

BETWEEN = "  "


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a head; every cell is text as people read it.

    Attributes
    ----------
    head, rows
        Cells, in every row as many as in the head; the first of a row is its heading.
    align
        A letter per column, "l" for words and "r" for numbers; the last one stands for the rest.
    caption
        What the table is; a terminal has its own heading above it.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    align: str = "l"
    caption: str = ""

    @property
    def sides(self) -> str:
        """A letter for each column."""
        return self.align.ljust(len(self.head), self.align[-1])

    def lines(self, indent: str = "") -> list[str]:
        """Lay the table out in columns as wide as they need to be; the first line is the head.

        Examples
        --------
        >>> Table(["", "SR", "RW"], [["mtron", "0.4", "9"]], align="lr").lines()
        ['        SR  RW', 'mtron  0.4   9']
        """
        every = [self.head, *self.rows]
        widths = [max(map(len, column)) for column in zip(*every, strict=True)]
        return [
            (indent + BETWEEN.join(map(_aligned, cells, widths, self.sides))).rstrip()
            for cells in every
        ]

    def text(self, indent: str = "") -> str:
        """Lay the table out as one text."""
        return "\n".join(self.lines(indent))


def pairs(values: Sequence[tuple[str, str]], indent: str = "") -> list[str]:
    """Lay names and their values out in two columns, without a head.

    Examples
    --------
    >>> pairs([("device", "sim:demo"), ("size", "1 GiB")])
    ['device  sim:demo', 'size    1 GiB']
    """
    return Table(["", ""], values).lines(indent)[1:]


def _aligned(cell: str, width: int, side: str) -> str:
    return cell.rjust(width) if side == "r" else cell.ljust(width)
