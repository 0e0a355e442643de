"""What a kill leaves of a commit, or of the end of an upload: taken away when a server starts."""

import re
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

from uflip.site import blob_refs
from uflip.site.blobs import Blobs
from uflip.site.tables import ResultRecord, Submission
from uflip.site.upload_manifest import RESULT_ID

if TYPE_CHECKING:
    from sqlalchemy.orm import Session, sessionmaker

STALE_S = 3600.0
"""The age of a folder from which on nobody can be making it: many times what a commit may take."""
OURS = re.compile(rf"({RESULT_ID.pattern})|\.({RESULT_ID.pattern})-[0-9a-f]{{8}}")
"""Names of folders of results, and of those that are being made."""
DIGEST = re.compile("[0-9a-f]{64}")
BEGUN = re.compile(r"\.[0-9a-f]{64}(-[0-9a-f]{8}|\.tmp)")
"""Names of files, and of what a kill leaves of one that was being copied."""
UPLOAD = re.compile("[0-9a-f]{32}")


def sweep(sessions: "sessionmaker[Session]", blobs: Blobs) -> int:
    """Take away folders without a row, files and uploads that nobody knows; returns how many.

    Another server on the same database may be making a folder now: a young one stays. So does what
    has a name that is none of ours.
    """
    gone, young = 0, time.time() - STALE_S
    with sessions() as session:
        for folder in list(blobs.folders.iterdir()):
            if not OURS.fullmatch(folder.name) or _changed(folder) > young:
                continue
            if folder.name.startswith(".") or session.get(ResultRecord, folder.name) is None:
                shutil.rmtree(folder, ignore_errors=True)
                gone += 1
        for name in blobs.arriving():
            if UPLOAD.fullmatch(name) and session.get(Submission, name) is None:
                blobs.forget(name)
                gone += 1
    return gone + _files(sessions, blobs, young)


def _files(sessions: "sessionmaker[Session]", blobs: Blobs, young: float) -> int:
    """Take away files that no result and no upload has, and what was begun of others."""
    gone = 0
    for some in blob_refs.batched(blobs.kept(before=young)):
        whole = {path.name for path in some if DIGEST.fullmatch(path.name)}
        for path in some:
            if BEGUN.fullmatch(path.name):
                path.unlink(missing_ok=True)
                gone += 1
        # Asked first without the lock, which holds up whoever sends: most often nothing is.
        if stray := blob_refs.unclaimed(sessions, whole):
            gone += blob_refs.remove_unclaimed(sessions, blobs, stray)
    return gone


def _changed(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except FileNotFoundError:  # another server was faster
        return float("inf")
