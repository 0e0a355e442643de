"""uFLIP's Table 3: seven simulated devices through the whole benchmark, beside the printed table.

**Source**: uFLIP (CIDR 2009), Table 3; §4.1 for the state, §5.1 for IOIgnore, IOCount and pauses.
**Faithful**: every cell comes from stored runs of the micro-benchmarks, by the rules that
`uflip show` applies to any result (`uflip.results.characteristics`).
**Simplified**: one run where the paper has three.
**Ambiguous**: what the words of the columns mean in numbers; see the rules.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from uflip.parallel import OnStep, on_all_cores
from uflip.reproduce import figure, table3
from uflip.reproduce.benchmarked import Stop, benchmark
from uflip.reproduce.reproduction import Reproduction
from uflip.reproduce.row import Row, cell

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MISSES = {
    ("kingston-dthx", "Reverse"): (
        "writes downwards go to the log, whose units are merged, some of them twice; in a plan of "
        "fewer micro-benchmarks, whose target lies elsewhere, it is x7.8"
    ),
}
"""(profile, column) -> why it does not come out."""


@dataclass(frozen=True)
class Data:
    """Key characteristics by profile, in the order of the table."""

    characteristics: dict[str, dict[str, Any]]


def measure(on_step: OnStep) -> Data:
    """Run the whole benchmark on all seven, several at a time."""
    profiles = [published.profile for published in table3.TABLE]
    with Stop() as stopped:
        documents = on_all_cores(lambda name: benchmark(name, stopped=stopped), profiles, on_step)
    return Data(
        {
            name: document["key_characteristics"]
            for name, document in zip(profiles, documents, strict=True)
        }
    )


def rows(data: Data) -> list[Row]:
    """Compare cell by cell."""
    found = []
    for published in table3.TABLE:
        for one in table3.compare(published, data.characteristics[published.profile]):
            note = "" if one.within else MISSES.get((published.profile, one.column), UNEXPLAINED)
            what = f"{published.name}: {one.column}"
            found.append(
                cell(
                    what,
                    one.published,
                    one.ours,
                    deviation=one.deviation,
                    within=one.within,
                    note=note,
                )
            )
    return found


UNEXPLAINED = "not understood"


def text(data: Data) -> str:
    """Lay both tables out together: printed above, ours below; a cell that misses has a "!"."""
    lines: list[tuple[str, ...]] = [("", *table3.COLUMNS)]
    held = 0
    for published in table3.TABLE:
        cells = table3.compare(published, data.characteristics[published.profile])
        lines.append((published.name, *(one.published for one in cells)))
        lines.append(
            (f"  sim:{published.profile}", *(one.ours + "!" * (not one.within) for one in cells))
        )
        held += sum(one.within for one in cells)
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    table = "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
    return f"{table}\n\n{held} of {len(table3.TABLE) * len(table3.COLUMNS)} cells agree."


def draw(data: Data) -> "Figure":
    """Draw the table: green where a cell agrees, with the printed value above ours."""
    sheet, [axis] = figure.panels(height=4.8)
    axis.axis("off")
    body, colors = [], []
    for published in table3.TABLE:
        cells = table3.compare(published, data.characteristics[published.profile])
        body.append([f"{one.published}\n{one.ours}" for one in cells])
        colors.append(["#e8f3ea" if one.within else "#f9dcd6" for one in cells])
    drawn = axis.table(
        cellText=body,
        cellColours=colors,
        rowLabels=[published.name for published in table3.TABLE],
        colLabels=[column if column not in MS else f"{column} [ms]" for column in table3.COLUMNS],
        loc="center",
        cellLoc="center",
    )
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(7.5)
    drawn.scale(1, 2.6)
    for place in drawn.get_celld().values():
        place.set_edgecolor("#d0d4d8")
    figure.title(axis, "uFLIP Table 3", "above as printed, below ours; red where they disagree")
    return sheet


MS = ("SR", "RR", "SW", "RW")

REPRODUCTION = Reproduction(
    id="uflip-table3",
    title="key characteristics of seven devices, through the whole benchmark",
    source="uFLIP (2009) §5, Table 3",
    steps=len(table3.TABLE),
    measure=measure,
    rows=rows,
    draw=draw,
    text=text,
)
