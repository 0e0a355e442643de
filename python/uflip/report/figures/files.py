"""Figures that are files of their own: names say the format, the same data gives the same bytes."""

import io
from pathlib import Path
from typing import TYPE_CHECKING

from uflip.errors import UsageError
from uflip.report.figures.canvas import only_text, styled
from uflip.results import checksums, outputs
from uflip.results.outputs import OutputPath

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 160


def check_name(path: Path, *, force: bool = False) -> OutputPath:
    """Refuse a name that cannot become a figure, before anything is measured.

    Raises
    ------
    UsageError
        For another ending, or a folder that does not exist.
    RefusedError
        If something has this name that is no figure of uflip, and is not given up by `force`.
    """
    outputs.check_ending(path, "figure", "--out", checksums.FIGURES)
    return outputs.check(path, checksums.FIGURES[path.suffix], "--out", force=force)


@styled
def check_library() -> str:
    """Raise `UnavailableError` if there is no matplotlib, before anything is measured."""
    return ""


def nothing_to_draw(why: str, path: Path) -> UsageError:
    """Return the error of a figure whose numbers were not measured."""
    return UsageError(
        "There is nothing to draw",
        where=str(path),
        got=why,
        allowed="a measure that points have",
        action="ask for another measure, give more I/Os, or leave the figure out",
    )


def save(figure: "Figure", path: Path, salt: str, *, force: bool = False) -> str:
    """Write a figure; an older figure of this name is replaced, anything else only by `force`.

    Returns
    -------
    str
        The path.
    """
    import matplotlib as mpl

    place = check_name(path, force=force)
    only_text(figure)

    # The same data gives the same file: no date, and ids that do not change.
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
    outputs.write(place, drawn.getvalue())
    return str(path)
