"""A chart drawn with matplotlib: for files, and on axes of the caller.

Figures are made with the object interface, never pyplot: no global state, no windows. Figures of a
page are drawn by `svg`. The extension of a file selects its format, and equal data gives equal
bytes.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypedDict, TypeVar

from uflip.errors import UsageError
from uflip.extras import missing_extra
from uflip.report import labels
from uflip.report.figures import palette
from uflip.report.figures.axes import number as written
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
from uflip.results import outputs
from uflip.results.outputs import OutputPath

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


Arguments = ParamSpec("Arguments")
Drawn = TypeVar("Drawn")

Dashes = Any
"""A line style of matplotlib: "-", ":", or an offset with the lengths of a pattern."""


class LineLook(TypedDict, total=False):
    """Keyword arguments of a matplotlib line."""

    color: str
    linewidth: float
    linestyle: Dashes
    marker: str
    markersize: float
    markerfacecolor: str
    markeredgecolor: str
    markeredgewidth: float
    alpha: float | None
    label: str
    zorder: float


# Default width of a figure in inches.
WIDTH = 8.6
# Points in an inch.
INCH = 72

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib: the same layout everywhere
    "font.size": 8.5,
    "axes.titlesize": 9.0,
    "axes.labelsize": 8.5,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.titley": 1.0,  # skips the search for free space above the axes
    "axes.edgecolor": palette.MUTED,
    "axes.labelcolor": palette.INK,
    "axes.titlecolor": palette.INK,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": palette.GRID,
    "grid.linewidth": 0.6,
    "text.color": palette.INK,
    "text.parse_math": False,  # a "$" in the name of a device is a "$"
    "xtick.color": palette.MUTED,
    "ytick.color": palette.MUTED,
    "xtick.labelcolor": palette.INK,
    "ytick.labelcolor": palette.INK,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "xtick.major.size": 3,
    "ytick.major.size": 3,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "figure.facecolor": "none",
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "legend.handlelength": 1.6,
    "lines.linewidth": 1.5,
    "lines.markersize": 4.5,
}


def styled(draw: Callable[Arguments, Drawn]) -> Callable[Arguments, Drawn]:
    """Return a function that draws in our style, without changing matplotlib's global settings.

    The decorated function raises `UnavailableError` if matplotlib is not installed.
    """

    @wraps(draw)
    def in_style(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Drawn:
        try:
            import matplotlib as mpl
        except ImportError as error:
            instead = "`uflip report` does not need matplotlib"
            raise missing_extra("report", "Figures need matplotlib", instead=instead) from error
        with mpl.rc_context(_STYLE), warnings.catch_warnings():
            # A page uses the reader's font; names may be in any script.
            warnings.filterwarnings("ignore", message="Glyph .* missing from font")
            # Ignore names that are too long for the layout.
            warnings.filterwarnings("ignore", message="constrained_layout not applied")
            return draw(*args, **kwargs)

    return in_style


def new_figure(
    rows: int = 1,
    columns: int = 1,
    *,
    height: float,
    share_y: bool = False,
    share_x: bool = False,
) -> tuple[Figure, list[Axes]]:
    """Make a figure of the page's width."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharey=share_y, sharex=share_x)
    return figure, list(axes.flat)


def escape_texts(figure: Figure) -> None:
    """Escape a figure's texts for XML, and shorten overlong ones."""
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        written = text.get_text()
        if (clean := labels.safe_text(written)) != written:
            text.set_text(clean)


def mark_simulated(figure: Figure, simulated: bool) -> None:
    """Mark a figure of simulated results, since figures are used without their page."""
    if simulated:
        figure.text(
            0.995, 0.995, "simulated device", ha="right", va="top", color=palette.MUTED, size=8
        )


def outside_legend(figure: Figure, handles: Sequence[Artist], *, columns: int) -> None:
    """Place a legend in rows above the panels."""
    figure.legend(handles=handles, loc="outside upper left", ncols=columns, borderaxespad=0.2)


# Drawing order: lines are above the grid, in their own order.
LINES, TEXTS, STEP = 2.0, 3.0, 1e-3
# Gaps between panels within axes, as shares of these: without and with tick labels; distance of the
# legend below them; distance of their label below them [points].
GAP, GAP_WITH_NAMES, BELOW = 0.03, 0.15, -0.13
LABEL_BELOW = 18
LEGEND_COLUMNS = 3
_VERTICAL_ANCHORS = {"middle": "center", "top": "top"}
_ANCHORS = {"start": "left", "middle": "center", "end": "right"}


def figure_of(chart: Chart) -> Figure:
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
    names = {axis.get_ylabel() for axis in axes[: len(chart.panels) : chart.columns]}
    if chart.rows > 1 and len(names) == 1:  # of several rows, the label is longer than one
        figure.supylabel(names.pop(), size=8.5)
        for axis in axes:
            axis.set_ylabel("")
    mark_simulated(figure, chart.simulated)
    return figure


def draw_chart(axis: Axes, chart: Chart) -> None:
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


def draw_panel(axis: Axes, panel: Panel) -> None:
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


def handles(entries: Sequence[Polyline | Box]) -> list[Artist]:
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


def _draw(axis: Axes, mark: Mark, order: float) -> None:
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


def _scale(axis: Axes, panel: Panel) -> None:
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


DPI = 320
"""Of a bitmap: a column of a paper is 1,088 pixels wide, enough for a slide."""


def check_name(path: Path, *, force: bool = False) -> OutputPath:
    """Check the name of a figure file, before anything is measured."""
    outputs.check_ending(path, "figure", "--out", outputs.FIGURES)
    return outputs.check(path, outputs.FIGURES[path.suffix], "--out", force=force)


@styled
def check_library() -> str:
    """Raise `UnavailableError` if matplotlib is missing, before anything is measured."""
    return ""


def nothing_to_draw(why: str, path: Path) -> UsageError:
    """Return the error for a figure whose numbers were not measured."""
    return UsageError(
        "There is nothing to draw",
        where=str(path),
        got=why,
        allowed="a measure that points have",
        action="ask for another measure, give more I/Os, or omit the figure",
    )


def save(figure: Figure, path: Path, salt: str, *, force: bool = False) -> str:
    """Write a figure; an older figure of this name is replaced, anything else only by `force`."""
    import matplotlib as mpl

    target = check_name(path, force=force)
    escape_texts(figure)

    # Equal data gives an equal file: no date, and constant ids.
    dated: dict[str, dict[str, None]] = {
        ".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None},
    }  # fmt: skip
    with mpl.rc_context({"svg.hashsalt": salt, "svg.fonttype": "path"}):
        drawn = io.BytesIO()
        figure.savefig(
            drawn,
            format=path.suffix[1:],
            dpi=DPI,
            facecolor="white",
            metadata=dated[path.suffix],
        )
    outputs.write(target, drawn.getvalue())
    return str(path)
