"""Figure files: the extension selects the format, and equal data gives equal bytes."""

import io
from pathlib import Path
from typing import TYPE_CHECKING

from uflip.errors import UsageError
from uflip.report.figures.canvas import escape_texts, styled
from uflip.results import outputs
from uflip.results.outputs import OutputPath

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 160


def check_name(path: Path, *, force: bool = False) -> OutputPath:
    """Check the name of a figure file, before anything is measured.

    Raises
    ------
    UsageError
        For another extension, or a folder that does not exist.
    RefusedError
        If the name belongs to a file that is not a figure of uflip, unless `force` is given.
    """
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


def save(figure: "Figure", path: Path, salt: str, *, force: bool = False) -> str:
    """Write a figure; an older figure of this name is replaced, anything else only by `force`.

    Returns
    -------
    str
        The path.
    """
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
