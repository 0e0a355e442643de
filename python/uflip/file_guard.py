"""Nothing is overwritten that is not expendable: which files a benchmark may write to.

A file that uflip made carries a mark (an extended attribute), which moves with it and goes with it.
Any other file that is there already may hold something: it is written to only when its name is
given a second time, to `--destroy`. That marks it as expendable from then on.
"""

import os
from contextlib import suppress
from pathlib import Path

from uflip.errors import RefusedError

MARK = "user.uflip"
CONTENT = b"expendable"


def may_be_overwritten(path: Path, destroy: str | None) -> bool:
    """Say whether a file is there and may be written to; refuse if it must not be.

    Returns
    -------
    bool
        False where nothing is there yet, or where the system will refuse for reasons of its own.

    Raises
    ------
    RefusedError
        For a file that uflip did not make, without its name in `destroy`.
    """
    if not path.is_file() or path.stat().st_mode & 0o222 == 0 or path.stat().st_size == 0:
        return False
    if _is_marked(path) or destroy == str(path):
        return True
    raise RefusedError(
        "This file was not made by uflip, and its content would be lost",
        where=f"file:{path}",
        got="no --destroy" if destroy is None else f"--destroy {destroy}",
        allowed=f"--destroy {path}",
        action="name a file that does not exist yet, with --size; or give exactly this --destroy",
    )


def mark(path: Path) -> None:
    """Mark a file as expendable; where marks cannot be kept it will be asked for again."""
    with suppress(OSError):
        os.setxattr(path, MARK, CONTENT)


def _is_marked(path: Path) -> bool:
    try:
        return os.getxattr(path, MARK) == CONTENT
    except OSError:
        return False
