"""A chart drawn with matplotlib: for files, and on axes of the caller."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from uflip.report.figures.axes import number as written
from uflip.report.figures.canvas import (
    INCH,
    Dashes,
    LineLook,
    mark_simulated,
    new_figure,
    outside_legend,
)
from uflip.report.figures.chart import (
    Area,
    Axis,
    Band,
    Box,
    Chart,
    Mark,
    Panel,
    Polyline,
    ReferenceLine,
    Spans,
    TextLabel,
)
from uflip.report.figures.svg import legend_columns

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Drawing order: lines are above the grid, in their own order.
LINES, TEXTS, STEP = 2.0, 3.0, 1e-3
# Gaps between panels within axes, as shares of these: without and with tick labels; distance of the
# legend below them; distance of their label below them [points].
GAP, GAP_WITH_NAMES, BELOW = 0.03, 0.15, -0.13
LABEL_BELOW = 18
LEGEND_COLUMNS = 3
_VERTICAL_ANCHORS = {"middle": "center", "top": "top"}
_ANCHORS = {"start": "left", "middle": "center", "end": "right"}


def figure_of(chart: Chart) -> "Figure":
    """Return a chart as a matplotlib figure of its width."""
    figure, axes = new_figure(
        chart.rows, chart.columns, height=chart.height / INCH, share_y=chart.share_y
    )
    figure.set_size_inches(chart.width / INCH, chart.height / INCH)
    for number, (axis, panel) in enumerate(zip(axes, chart.panels, strict=False)):
        draw_panel(axis, panel)
        if chart.share_y and number % chart.columns:
            axis.set_ylabel("")
    for axis in axes[len(chart.panels) :]:
        axis.set_visible(False)
    if chart.legend:
        outside_legend(figure, handles(chart.legend), columns=legend_columns(chart))
    if chart.x_label:
        figure.supxlabel(chart.x_label, size=8.5)
    mark_simulated(figure, chart.simulated)
    return figure


def draw_chart(axis: "Axes", chart: Chart) -> None:
    """Draw a chart on axes: its panel on them, or several panels within them."""
    if len(chart.panels) == 1:
        draw_panel(axis, chart.panels[0])
        axis.legend(handles=handles(chart.legend))
        return
    axis.set_axis_off()
    gap = GAP if chart.share_y else GAP_WITH_NAMES
    width = (1 - gap * (chart.columns - 1)) / chart.columns
    height = (1 - GAP_WITH_NAMES * (chart.rows - 1)) / chart.rows
    for number, panel in enumerate(chart.panels):
        row, column = divmod(number, chart.columns)
        left, bottom = column * (width + gap), (chart.rows - 1 - row) * (height + GAP_WITH_NAMES)
        panel_axes = axis.inset_axes((left, bottom, width, height))
        draw_panel(panel_axes, panel)
        if chart.share_y and column:
            panel_axes.tick_params(labelleft=False)
            panel_axes.set_ylabel("")
    if chart.x_label:
        axis.annotate(
            chart.x_label, (0.5, 0), xytext=(0, -LABEL_BELOW), xycoords="axes fraction",
            textcoords="offset points", ha="center", va="top",
        )  # fmt: skip
    axis.legend(
        handles=handles(chart.legend), ncols=LEGEND_COLUMNS, loc="upper center",
        bbox_to_anchor=(0.5, BELOW),
    )  # fmt: skip


def draw_panel(axis: "Axes", panel: Panel) -> None:
    """Draw a panel on axes."""
    _scale(axis, panel)
    for order, mark in enumerate(panel.marks):
        _draw(axis, mark, LINES + STEP * order)
    if panel.right is not None:
        right = axis.twinx()
        for order, mark in enumerate(panel.right_marks):
            _draw(right, mark, LINES + STEP * order)
        right.set_ylim(panel.right.low, panel.right.high)
        right.set_ylabel(panel.right.label)
        right.grid(visible=False)
        right.spines["right"].set_visible(True)
    if panel.title:
        axis.set_title(panel.title)


def handles(entries: "Sequence[Polyline | Box]") -> "list[Artist]":
    """Return the artists of a legend."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    return [
        Line2D([], [], **_look(each))
        if isinstance(each, Polyline)
        else Patch(facecolor=each.color, edgecolor=each.edge, label=each.label)
        for each in entries
    ]


def _look(line: Polyline) -> LineLook:
    """Return the matplotlib arguments of a line."""
    is_dash = line.marker == "_"
    return {
        "color": line.color,
        "linewidth": line.width,
        "linestyle": _dashes(line.dashes) if line.width else "none",
        "marker": line.marker,
        "markersize": line.size,
        "markerfacecolor": line.face or line.color,
        "markeredgecolor": line.color if is_dash else line.edge or "none",
        "markeredgewidth": line.edge_width if is_dash or line.edge else 0,
        "alpha": None if line.alpha == 1 else line.alpha,
        "label": line.label or "_nolegend_",
    }


def _dashes(dashes: Sequence[float]) -> Dashes:
    return (0, tuple(dashes)) if dashes else "-"


def _draw(axis: "Axes", mark: Mark, order: float) -> None:
    match mark:
        case Polyline():
            style = "steps-post" if mark.step else "default"
            axis.plot(
                mark.x, mark.y, drawstyle=style, clip_on=mark.clip, zorder=order,
                rasterized=mark.raster, **_look(mark),
            )  # fmt: skip
        case Spans():
            draw = axis.hlines if mark.horizontal else axis.vlines
            draw(
                mark.at, mark.low, mark.high,
                color=mark.color, lw=mark.width, alpha=mark.alpha, zorder=order,
            )  # fmt: skip
        case ReferenceLine():
            look: LineLook = {
                "color": mark.color,
                "linewidth": mark.width,
                "linestyle": _dashes(mark.dashes),
                "zorder": order,
            }  # fmt: skip
            if mark.vertical:
                axis.axvline(mark.at, ymax=mark.span, **look)
            else:
                axis.axhline(mark.at, xmax=mark.span, **look)
        case Band():
            axis.axvspan(mark.low, mark.high, color=mark.color, lw=0, zorder=0)
        case Box():
            (left, right), (begin, end) = mark.x, mark.y
            axis.barh(
                begin, right - left, left=left, height=end - begin, align="edge",
                color=mark.color, ec=mark.edge, lw=mark.edge_width if mark.edge else 0,
                zorder=order,
            )  # fmt: skip
        case Area():
            axis.fill_between(
                mark.x, mark.y, color=mark.color, alpha=mark.alpha, linewidth=0, zorder=order
            )
        case TextLabel():
            axis.annotate(
                mark.text, (mark.x, mark.y), xytext=(mark.shift, 0), textcoords="offset points",
                ha=_ANCHORS[mark.anchor], va=_VERTICAL_ANCHORS[mark.vertical_anchor],
                color=mark.color, fontsize=mark.size, zorder=TEXTS,
            )  # fmt: skip


def _scale(axis: "Axes", panel: Panel) -> None:
    """Set the scales first: lines do not determine them."""
    x, y = panel.x, panel.y
    for scaled, one in (("x", x), ("y", y)):
        if one.log:
            getattr(axis, f"set_{scaled}scale")("log")
    axis.set_xlim(x.low, x.high)
    axis.set_ylim(y.low, y.high)
    _ticks(axis.xaxis, x)
    _ticks(axis.yaxis, y)
    axis.set_xlabel(x.label)
    axis.set_ylabel(y.label)
    for scaled, one, spine in (("x", x, "bottom"), ("y", y, "left")):
        if not one.grid:  # otherwise the style draws it
            axis.grid(visible=False, axis=scaled)  # type: ignore[arg-type]
        if one.hide_line:
            axis.spines[spine].set_visible(False)
            axis.tick_params(axis=scaled, length=0)  # type: ignore[arg-type]
        if one.label_rotation:
            for text in axis.get_xticklabels():
                text.set(rotation=one.label_rotation, ha="right", rotation_mode="anchor")


def _ticks(axis: Any, source: Axis) -> None:
    if source.ticks is None:
        axis.set_major_formatter(lambda position, _: written(position))
        return
    weight = {"weight": "bold"} if source.bold else {}
    positions, names = (
        [position for position, _ in source.ticks],
        [name for _, name in source.ticks],
    )
    axis.set_ticks(positions, names, **weight)
    axis.set_ticks([], minor=True)
