"""The building blocks of a page: paragraphs, tables, figures, as values.

A section of a report returns blocks. A block is data, and its class has the name of its template
(`templates/blocks/figure.html` for `Figure`): a new kind is a class here and a template there. No
block contains HTML.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from uflip.data import summary
from uflip.table import Table

if TYPE_CHECKING:
    from uflip.report.figures.svg import Drawing
    from uflip.report.tables import Tile

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
    """A drawing with its caption; the page numbers the figures in order.

    Attributes
    ----------
    name
        Its anchor in the page.
    title, how_to_read
        The caption.
    drawing
        From `uflip.report.figures.svg`.
    data
        The numbers behind it, as tables.
    finding
        The finding for this device.
    """

    name: str
    title: str
    drawing: "Drawing"
    how_to_read: str
    data: Sequence[Table] = ()
    finding: str = ""


@dataclass(frozen=True, slots=True)
class Collapsible:
    """A part that the reader can unfold."""

    summary: str
    body: "Sequence[Block]"


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A micro-benchmark: its question, then its figure, or why it was not measured."""

    anchor: str
    title: str
    question: str
    body: "Sequence[Block]"


@dataclass(frozen=True, slots=True)
class Tiles:
    """Key figures next to each other."""

    tiles: "Sequence[Tile]"


@dataclass(frozen=True, slots=True)
class WarningBlock:
    """A warning about the data, and the runs concerned."""

    warning: summary.WarningSummary
    runs: Sequence[str]


@dataclass(frozen=True, slots=True)
class Facts:
    """Tables of keys and values in columns."""

    tables: Sequence[Table]


Block = (
    Paragraph | Heading | Table | Figure | Collapsible | Benchmark | Tiles | WarningBlock | Facts
)
