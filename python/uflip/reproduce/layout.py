"""Tables of text, for reproductions that are laid out as their papers are."""

from collections.abc import Sequence


def table(lines: Sequence[Sequence[str]]) -> str:
    """Lay lines out in columns.

    Examples
    --------
    >>> print(table([("", "SR", "RW"), ("mtron", "0.4", "9")]))
           SR   RW
    mtron  0.4  9
    """
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join(
        "  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
