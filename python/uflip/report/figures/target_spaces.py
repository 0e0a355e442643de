"""Map of the target spaces of sequential writes, run after run, with the resets.

**Source** uFLIP (CIDR 2009) §4.2: target spaces that do not overlap, a reset when they are used up.

**Faithful** One line for each target space, from its first byte to its last.

**Simplified** Nothing.

**Ambiguous** Nothing.
"""

from collections.abc import Sequence

from uflip.data.summary import TargetSpace
from uflip.report.blocks import Figure
from uflip.report.data import Document, is_simulated
from uflip.report.figures import palette
from uflip.report.figures.chart import DASHED, Axis, Chart, Panel, ReferenceLine, Spans
from uflip.report.figures.svg import Drawing
from uflip.report.figures.svg import draw as drawn
from uflip.report.tables import target_spaces_table

HEIGHT = 188.0
GIB = 1 << 30


def draw(
    spaces: Sequence[TargetSpace], target_size_bytes: int, *, simulated: bool
) -> Drawing | None:
    """Draw the target spaces of the sequential writes of a plan.

    `spaces`: `target_spaces` of a summary, in the order of the plan. `target_size_bytes`: the part
    of the device that is used. `simulated`: whether to mark the figure as simulated.
    """
    if not spaces:
        return None
    begins, ends = (
        [space[name] / GIB for space in spaces] for name in ("begin_bytes", "end_bytes")
    )
    written = Spans(range(1, len(spaces) + 1), begins, ends, palette.look("SW").color, width=1.6)
    resets = [
        ReferenceLine(number - 0.5, palette.MUTED, width=0.7, dashes=DASHED, vertical=True)
        for number, space in enumerate(spaces, 1)
        if space["reset_before"]
    ]
    x = Axis(
        0.5, len(spaces) + 0.5, "run with sequential writes, in the order of the plan", grid=False
    )
    y = Axis(0, target_size_bytes / GIB, "offset [GiB]")
    description = (
        f"{len(spaces)} target spaces of sequential writes, {len(resets)} resets of the state."
    )
    chart = Chart([Panel(x, y, [written, *resets])], HEIGHT, simulated=simulated)
    return drawn(chart, "places", "Target spaces of sequential writes", description)


def figure(document: Document) -> Figure | None:
    """Return the figure of the target spaces of the plan."""
    target = document["target_size_bytes"] or document["device"].capacity_bytes
    drawing = draw(document["target_spaces"], target, simulated=is_simulated(document))
    if drawing is None:
        return None
    return Figure(
        "places",
        "Target spaces",
        drawing,
        "Which target space did each run write sequentially? The state was enforced again at the "
        "dashed lines. Between two of them no run touches the sequential data of an earlier one; "
        "patterns with gaps may interleave.",
        data=[target_spaces_table(document["target_spaces"])],
    )
