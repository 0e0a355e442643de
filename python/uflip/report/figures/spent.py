"""What the time was spent on: only a simulated device can tell.

Every I/O of a simulated device carries its parts (waiting, flash operations, relocation, …), which
sum to the response time. Two bars per baseline: all I/Os, and the slowest hundredth, because what
makes I/Os slow on average and what makes a few of them very slow are different questions.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from uflip.report.blocks import Figure
from uflip.report.data import BaselineTrace, Document, Traces, is_simulated
from uflip.report.figures import palette
from uflip.report.figures.canvas import (
    Drawing,
    legend_above,
    mark_simulated,
    new_figure,
    styled,
    to_drawing,
)
from uflip.report.tables import causes_tables
from uflip.report.words import cause_name, format_ms

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BAR = 0.72
# A segment narrower than this has no room for its own percentage.
LABEL_FROM = 0.07
# To the right of a bar stands the mean; it takes this part of the bar's length.
MEAN_ROOM = 0.2
# Causes that never reach this share of any bar are left out of the figure (the table has them).
NEGLIGIBLE = 0.001


@styled
def draw(baselines: Sequence[BaselineTrace], *, simulated: bool = True) -> Drawing | None:
    """Draw shares of the mean response time by cause, for all I/Os and for the slowest 1 %.

    Returns
    -------
    Drawing or None
        None if the device does not tell.
    """
    told = [trace for trace in baselines if trace.causes_ms and len(trace.measured_ms)]
    if not told:
        return None
    both = [[trace.mean_by_cause_ms(), trace.mean_by_cause_ms(slowest=0.01)] for trace in told]
    causes = _causes(both)
    if not causes:
        return None
    figure, panels = new_figure(1, 2, height=0.95 + 0.4 * len(told), share_y=True)
    for column, (axis, name) in enumerate(zip(panels, ("all I/Os", "slowest 1 %"), strict=True)):
        for row, bars in enumerate(both):
            _bar(axis, row, bars[column], causes)
        axis.set_title(name)
        axis.set_xlim(0, 1 + MEAN_ROOM)
        axis.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25 %", "50 %", "75 %", "100 %"])
        axis.grid(visible=False)
        axis.spines[["left", "bottom"]].set_visible(False)
        axis.tick_params(length=0)
    panels[0].set_yticks(range(len(told)), [trace.pattern for trace in told], weight="bold")
    panels[0].invert_yaxis()
    legend_above(figure, _legend(causes), columns=5)
    mark_simulated(figure, simulated)
    description = _describe(told, [bars[0] for bars in both])
    return to_drawing(figure, "spent", "What the time was spent on", description)


def figure(document: Document, baselines: Traces) -> Figure | None:
    """The causes, with the counters of the device."""
    drawing = draw(baselines, simulated=is_simulated(document))
    if drawing is None:
        return None
    return Figure(
        "spent",
        "What the time was spent on",
        drawing,
        "Why does it take so long? The parts of the response time as the simulator charged "
        "them, for all I/Os and for the slowest hundredth; the number beside a bar is the mean "
        "response time. A cause that grows from left to right is what makes slow I/Os slow.",
        data=causes_tables(document),
    )


def _causes(bars: Sequence[Sequence[Mapping[str, float]]]) -> dict[str, str]:
    """Causes worth drawing and their colours: a cause keeps its colour whatever others appear."""
    every = list(bars[0][0])
    seen = {cause: max(_share(bar, cause) for pair in bars for bar in pair) for cause in every}
    return {
        cause: palette.CAUSES[index % len(palette.CAUSES)]
        for index, cause in enumerate(every)
        if seen[cause] >= NEGLIGIBLE
    }


def _share(mean_ms: Mapping[str, float], cause: str) -> float:
    total = sum(mean_ms.values())
    return mean_ms[cause] / total if total else 0.0


def _bar(axis: "Axes", row: int, mean_ms: Mapping[str, float], causes: Mapping[str, str]) -> None:
    left = 0.0
    for cause, color in causes.items():
        share = _share(mean_ms, cause)
        axis.barh(row, share, left=left, height=BAR, color=color, ec=palette.CARD, lw=0.8)
        if share >= LABEL_FROM:
            ink = palette.readable_on(color)
            axis.text(
                left + share / 2, row, f"{share:.0%}", ha="center", va="center", color=ink, size=7.5
            )
        left += share
    axis.text(1.02, row, f"{format_ms(sum(mean_ms.values()) * 1e6)} ms", va="center", size=8)


def _legend(causes: Mapping[str, str]) -> list[object]:
    from matplotlib.patches import Patch

    return [Patch(facecolor=color, label=cause_name(cause)) for cause, color in causes.items()]


def _describe(told: Sequence[BaselineTrace], bars: Sequence[Mapping[str, float]]) -> str:
    parts = []
    for trace, bar in zip(told, bars, strict=True):
        total = sum(bar.values()) or 1.0
        largest = sorted(bar.items(), key=lambda item: -item[1])[:3]
        shares = ", ".join(f"{cause_name(cause)} {ms / total:.0%}" for cause, ms in largest)
        parts.append(f"{trace.pattern}: {shares}")
    return "Largest parts of the mean response time. " + "; ".join(parts) + "."
