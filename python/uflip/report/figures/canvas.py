"""Matplotlib's side of a figure: style, SVG output, accessible names, theme colours.

Figures are made with the object interface, never pyplot: no global state, no windows. The SVG is
deterministic (no date, salted ids) and its text stays text: searchable, selectable, in the font of
the page. Ids are made unique per figure, because many figures share one page.
"""

import io
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from uflip.errors import UnavailableError
from uflip.report.figures import palette
from uflip.report.words import anchor

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Arguments = ParamSpec("Arguments")
Drawn = TypeVar("Drawn")

# The width of a figure in inches at 72 units each; the page scales it to its column.
WIDTH = 8.6
RASTER_DPI = 200
# What SVG is laid out at.
SVG_DPI = 72

# What is longer makes a figure of nothing but its name.
LONGEST_TEXT = 100
_NOT_XML = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)

# The font that matplotlib laid the text out for; the page shows it in its own.
_FONT = re.compile(r"font: ([^;\"]*?)'DejaVu Sans'[^;\"]*")
_FONT_OF_PAGE = r"font: \1var(--figure-font, sans-serif)"
# What a page has a use for of a file of SVG: how large it is, and what is drawn. The picture's size
# is the page's matter, and its name and description are the template's.
_METADATA = re.compile(r"<metadata>.*?</metadata>\s*", re.DOTALL)
_PARTS = re.compile(r'<svg[^>]* viewBox="([^"]*)"[^>]*>\s*(.*?)\s*</svg>\s*$', re.DOTALL)

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib: the same layout everywhere
    "font.size": 8.5,
    "axes.titlesize": 9.0,
    "axes.labelsize": 8.5,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.titley": 1.0,  # where it would be put as well, after a look at everything above the axes
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


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture as a page takes it.

    Attributes
    ----------
    name
        Unique in the page, and what its ids begin with.
    title, description
        What a screen reader says instead of the picture.
    view_box
        Its width and height, as SVG has them.
    shapes
        SVG: what matplotlib drew, in which every text is escaped.
    """

    name: str
    title: str
    description: str
    view_box: str
    shapes: str


def styled(draw: Callable[Arguments, Drawn]) -> Callable[Arguments, Drawn]:
    """Let a function draw in our style, without touching matplotlib's global settings.

    The decorated function raises `UnavailableError` if matplotlib is not installed.
    """

    @wraps(draw)
    def in_style(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Drawn:
        try:
            import matplotlib as mpl
        except ImportError as error:
            raise UnavailableError(
                what="Figures need matplotlib",
                where="uflip report",
                got="a Python environment without matplotlib",
                allowed="matplotlib 3.9 or later",
                action="pip install 'uflip[report]'; `uflip show` needs no figures",
            ) from error
        with mpl.rc_context(_STYLE), warnings.catch_warnings():
            # A page shows text in a font of its reader's; names may be in any script.
            warnings.filterwarnings("ignore", message="Glyph .* missing from font")
            # A foreign name that leaves no room for a figure is worth no word on a terminal.
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
) -> tuple["Figure", list["Axes"]]:
    """Make a figure of the page's width.

    Parameters
    ----------
    rows, columns
        Panels.
    height
        Height [inches at 72 units].
    share_y, share_x
        Do panels share their scales?
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharey=share_y, sharex=share_x)
    return figure, list(axes.flat)


def to_drawing(figure: "Figure", name: str, title: str, description: str) -> Drawing:
    """Turn a figure into a drawing for a page.

    Parameters
    ----------
    figure
        From `new_figure`.
    name
        Unique in the page; as an anchor it becomes part of every id.
    title, description
        What a screen reader says instead of the picture.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    only_text(figure)
    name = f"fig-{anchor(name)}"
    buffer = io.StringIO()
    canvas = FigureCanvasSVG(figure)
    with mpl.rc_context({"svg.hashsalt": name}):
        _lay_out(figure)
        # Not by way of `savefig`, which draws a figure that ever had a layout twice.
        figure.dpi = RASTER_DPI
        metadata = {"Date": None, "Creator": None, "Format": None, "Type": None}
        canvas.print_svg(buffer, metadata=metadata)  # type: ignore[no-untyped-call]
    svg = _METADATA.sub("", buffer.getvalue())
    svg = _themed(_unique_ids(svg, name))
    head, shapes = _PARTS.search(svg).groups()  # type: ignore[union-attr]
    return Drawing(name, title, description, head, _FONT.sub(_FONT_OF_PAGE, shapes))


def _lay_out(figure: "Figure") -> None:
    """Find where everything stands, once; a figure that has its layout is not drawn twice."""
    engine = figure.get_layout_engine()
    if engine is not None:
        figure.dpi = SVG_DPI
        engine.execute(figure)
        figure.set_layout_engine("none")


def only_text(figure: "Figure") -> None:
    """Take out of a figure's texts what XML cannot say, and what no figure has room for."""
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        written = text.get_text()
        clean = _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", written)
        if len(clean) > LONGEST_TEXT:
            clean = f"{clean[:LONGEST_TEXT]}…"
        if clean != written:
            text.set_text(clean)


def mark_simulated(figure: "Figure", simulated: bool) -> None:
    """Say in the figure that a simulator made its numbers: figures travel without their page."""
    if simulated:
        figure.text(
            0.995, 0.995, "simulated device", ha="right", va="top", color=palette.MUTED, size=8
        )


def legend_above(figure: "Figure", handles: Sequence[object], *, columns: int = 8) -> None:
    """Put a legend in a row above the panels."""
    figure.legend(handles=list(handles), loc="outside upper left", ncols=columns, borderaxespad=0.2)


def _themed(svg: str) -> str:
    """Colours of the theme become CSS variables that fall back to the light colour."""
    for color, (variable, _) in palette.THEME.items():
        svg = svg.replace(f": {color}", f": var(--{variable}, {color})")
    return svg


def _unique_ids(svg: str, name: str) -> str:
    """Prefix every id and every reference to one."""
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', svg)
    svg = re.sub(r'xlink:href="#([^"]+)"', rf'xlink:href="#{name}-\1"', svg)
    return re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", svg)
