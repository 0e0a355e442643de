"""Where the plan writes sequentially: the map of target spaces, run after run, with the resets.

**Source** uFLIP (CIDR 2009) §4.2: target spaces that do not overlap, a reset when they are used up.

**Faithful** One line for each target space, from its first byte to its last.

**Simplified** Nothing.

**Ambiguous** Nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from uflip.report.figures import palette
from uflip.report.figures.canvas import mark_simulated, new_figure, styled, to_svg

HEIGHT = 2.6
GIB = 1 << 30


@styled
def places(spaces: Sequence[Mapping[str, Any]], target_size_bytes: int, *, simulated: bool) -> str:
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
    str
        SVG; empty if nothing is written sequentially.
    """
    if not spaces:
        return ""
    figure, (axis,) = new_figure(height=HEIGHT)
    color = palette.look("SW").color
    for number, space in enumerate(spaces, start=1):
        begin, end = space["begin_bytes"] / GIB, space["end_bytes"] / GIB
        axis.plot([number, number], [begin, end], color=color, lw=1.6, solid_capstyle="butt")
        if space["reset_before"]:
            axis.axvline(number - 0.5, color=palette.MUTED, lw=0.7, ls="--")
    axis.set_xlim(0.5, len(spaces) + 0.5)
    axis.set_ylim(0, target_size_bytes / GIB)
    axis.set_xlabel("run with sequential writes, in the order of the plan")
    axis.set_ylabel("place on the device [GiB]")
    axis.grid(visible=False, axis="x")
    mark_simulated(figure, simulated)
    resets = sum(space["reset_before"] for space in spaces)
    told = f"{len(spaces)} target spaces of sequential writes, {resets} resets of the state."
    return to_svg(figure, "fig-places", "Target spaces of sequential writes", told)
