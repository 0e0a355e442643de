"""What a kill leaves of a commit, or of the end of an upload: taken away when a server starts."""

import re
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

from uflip.site.blobs import Blobs
from uflip.site.tables import Result, Submission

if TYPE_CHECKING:
    from sqlalchemy.orm import Session, sessionmaker

STALE_S = 3600.0
"""The age of a folder from which on nobody can be making it: many times what a commit may take."""
OURS = re.compile(r"[0-9a-f]{12}|\.[0-9a-f]{12}-[0-9a-f]{8}")
"""Names of folders of results, and of those that are being made."""
UPLOAD = re.compile("[0-9a-f]{32}")


def sweep(sessions: "sessionmaker[Session]", blobs: Blobs) -> int:
    """Take away folders without a row and uploads that nobody knows; returns how many.

    Another server on the same database may be making a folder now: a young one stays. So does what
    has a name that is none of ours.
    """
    gone, young = 0, time.time() - STALE_S
    with sessions() as session:
        for folder in list(blobs.folders.iterdir()):
            if not OURS.fullmatch(folder.name) or _changed(folder) > young:
                continue
            if folder.name.startswith(".") or session.get(Result, folder.name) is None:
                shutil.rmtree(folder, ignore_errors=True)
                gone += 1
        for name in blobs.arriving():
            if UPLOAD.fullmatch(name) and session.get(Submission, name) is None:
                blobs.forget(name)
                gone += 1
    return gone


def _changed(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except FileNotFoundError:  # another server was faster
        return float("inf")
