"""Where the plan writes sequentially: the map of target spaces, run after run, with the resets.

**Source** uFLIP (CIDR 2009) §4.2: target spaces that do not overlap, a reset when they are used up.

**Faithful** One line for each target space, from its first byte to its last.

**Simplified** Nothing.

**Ambiguous** Nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from uflip.report.blocks import Figure
from uflip.report.data import Document, is_simulated
from uflip.report.figures import palette
from uflip.report.figures.canvas import Drawing, mark_simulated, new_figure, styled, to_drawing

HEIGHT = 2.6
GIB = 1 << 30


@styled
def draw(
    spaces: Sequence[Mapping[str, Any]], target_size_bytes: int, *, simulated: bool
) -> Drawing | None:
    """Draw the target spaces of the sequential writes of a plan.

    Parameters
    ----------
    spaces
        `target_spaces` of a summary, in the order of the plan.
    target_size_bytes
        The part of the device that is used.
    simulated
        Whether to mark the figure as simulated.

    Returns
    -------
    Drawing or None
        None if nothing is written sequentially.
    """
    if not spaces:
        return None
    figure, (axis,) = new_figure(height=HEIGHT)
    begins, ends = (
        [space[name] / GIB for space in spaces] for name in ("begin_bytes", "end_bytes")
    )
    numbers = range(1, len(spaces) + 1)
    axis.vlines(numbers, begins, ends, color=palette.look("SW").color, lw=1.6)
    reset = [number - 0.5 for number in numbers if spaces[number - 1]["reset_before"]]
    whole = axis.get_xaxis_transform()
    axis.vlines(reset, 0, 1, transform=whole, color=palette.MUTED, lw=0.7, ls="--")
    axis.set_xlim(0.5, len(spaces) + 0.5)
    axis.set_ylim(0, target_size_bytes / GIB)
    axis.set_xlabel("run with sequential writes, in the order of the plan")
    axis.set_ylabel("place on the device [GiB]")
    axis.grid(visible=False, axis="x")
    mark_simulated(figure, simulated)
    resets = sum(space["reset_before"] for space in spaces)
    told = f"{len(spaces)} target spaces of sequential writes, {resets} resets of the state."
    return to_drawing(figure, "places", "Target spaces of sequential writes", told)


def figure(document: Document) -> Figure | None:
    """The target spaces of the plan."""
    target = document["target_size_bytes"] or document["device"].capacity_bytes
    drawing = draw(document["target_spaces"], target, simulated=is_simulated(document))
    if drawing is None:
        return None
    return Figure(
        "places",
        "Target spaces",
        drawing,
        "Where was written sequentially, run after run? Between two dashed lines, at which the "
        "state was enforced again, no run touches what an earlier one wrote sequentially; patterns "
        "with gaps may lie between each other.",
    )
