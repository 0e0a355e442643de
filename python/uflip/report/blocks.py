"""What a page is made of: paragraphs, tables, figures, as values.

A section of a report returns blocks. A block is data, and its class has the name of the template
that shows it (`templates/blocks/figure.html` for `Figure`): a new kind is a class here and a
template there. No block holds HTML.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from uflip.data import summary
from uflip.table import Table

if TYPE_CHECKING:
    from uflip.report.figures.svg import Drawing
    from uflip.report.tiles import Tile

__all__ = [
    "Benchmark",
    "Block",
    "Collapsible",
    "Facts",
    "Figure",
    "Heading",
    "Paragraph",
    "Table",
    "Tiles",
    "WarningBlock",
]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph; `role` is its class in the style sheet, empty for plain text."""

    text: str
    role: str = ""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading within a section."""

    text: str


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing with its caption; the page numbers it, in the order in which figures stand.

    Attributes
    ----------
    name
        Its anchor in the page.
    title, how_to_read
        The caption.
    drawing
        From `uflip.report.figures.svg`.
    data
        The numbers behind it.
    found
        What they say here.
    """

    name: str
    title: str
    drawing: "Drawing"
    how_to_read: str
    data: Sequence[Table] = ()
    found: str = ""


@dataclass(frozen=True, slots=True)
class Collapsible:
    """What is shown on request."""

    summary: str
    body: "Sequence[Block]"


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A micro-benchmark: its question, then what was measured, or why nothing was."""

    anchor: str
    title: str
    question: str
    body: "Sequence[Block]"


@dataclass(frozen=True, slots=True)
class Tiles:
    """Key figures side by side."""

    tiles: "Sequence[Tile]"


@dataclass(frozen=True, slots=True)
class WarningBlock:
    """A doubt about the data, as it is stored, and the runs that it is about."""

    warning: summary.WarningSummary
    runs: Sequence[str]


@dataclass(frozen=True, slots=True)
class Facts:
    """Tables of keys and values in columns."""

    tables: Sequence[Table]


Block = (
    Paragraph | Heading | Table | Figure | Collapsible | Benchmark | Tiles | WarningBlock | Facts
)
