"""Figures that are files of their own: names say the format, the same data gives the same bytes."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from uflip.errors import UsageError
from uflip.report.figures.canvas import styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".pdf")
DPI = 160


def check_name(path: Path) -> None:
    """Refuse a name that cannot become a figure, before anything is measured.

    Raises
    ------
    UsageError
        For another ending, or a folder that does not exist.
    """
    if path.suffix not in FORMATS:
        raise UsageError(
            "The name of the figure does not say its format",
            where="--out",
            got=str(path),
            allowed=", ".join(f"FILE{ending}" for ending in FORMATS),
            action="add one of these endings",
        )
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise UsageError(
            "The figure cannot be written there",
            where="--out",
            got=f"{path} (a folder)" if path.is_dir() else f"{path} (its folder does not exist)",
            allowed="a file name in a folder that exists",
            action="create the folder first, or choose another name",
        )


@styled
def check_library() -> str:
    """Raise `UnavailableError` if there is no matplotlib, before anything is measured."""
    return ""


def save(figure: "Figure", path: Path, salt: str) -> str:
    """Write a figure; an older one of this name is replaced.

    Returns
    -------
    str
        The path.
    """
    import matplotlib as mpl

    # The same data gives the same file: no date, and ids that do not change.
    dated: dict[str, dict[str, Any]] = {
        ".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None},
    }  # fmt: skip
    with mpl.rc_context({"svg.hashsalt": salt, "svg.fonttype": "path"}):
        figure.savefig(path, dpi=DPI, facecolor="white", metadata=dated[path.suffix])
    return str(path)
