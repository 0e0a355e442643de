"""Does the one printer of tables lay out every table so that its cells can be read back?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uflip.table import Table, pairs

# Words without the two spaces that separate columns.
CELL = st.text(st.sampled_from("abc µ×–0.1"), max_size=8).map(lambda text: " ".join(text.split()))


@st.composite
def tables(draw: st.DrawFn) -> Table:
    columns = draw(st.integers(1, 5))
    row = st.lists(CELL, min_size=columns, max_size=columns)
    align = draw(st.text(st.sampled_from("lr"), min_size=1, max_size=columns))
    return Table(draw(row), draw(st.lists(row, max_size=5)), align)


@given(tables(), st.sampled_from(["", "  "]))
def test_cells_are_aligned_in_columns(table: Table, indent: str) -> None:
    every = [list(table.head), *map(list, table.rows)]
    widths = [max(len(cells[column]) for cells in every) for column in range(len(table.head))]
    lines = table.lines(indent)
    assert len(lines) == len(every)
    for line, cells in zip(lines, every, strict=True):
        assert line == line.rstrip()
        padded = line.ljust(len(indent) + sum(widths) + 2 * (len(widths) - 1))
        at = len(indent)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True)):
            text = padded[at : at + width]
            side = table.align[min(column, len(table.align) - 1)]
            assert text == (cell.rjust(width) if side == "r" else cell.ljust(width))
            at += width + 2


def test_row_of_wrong_length_is_an_error() -> None:
    with pytest.raises(ValueError, match="argument"):
        Table(["a", "b"], [["1"]]).lines()


def test_pairs_are_two_columns_without_head() -> None:
    assert pairs([("a", "1"), ("name", "2")], "  ") == ["  a     1", "  name  2"]
    assert pairs([]) == []
