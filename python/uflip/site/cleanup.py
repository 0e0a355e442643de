"""Removes leftovers of interrupted commits and uploads when a server starts."""

import re
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

from uflip.site import blob_refs
from uflip.site.blobs import Blobs
from uflip.site.tables import ResultRecord, Submission
from uflip.site.upload_files import RESULT_ID

if TYPE_CHECKING:
    from sqlalchemy.orm import Session, sessionmaker

STALE_S = 3600.0
"""Age after which no server can still be making a folder: a commit takes far less."""
RESULT_FOLDER = re.compile(rf"({RESULT_ID.pattern})|\.({RESULT_ID.pattern})-[0-9a-f]{{8}}")
"""Names of folders of results, and of those that are being made."""
DIGEST = re.compile("[0-9a-f]{64}")
TEMPORARY_FILE = re.compile(r"\.[0-9a-f]{64}(-[0-9a-f]{8}|\.tmp)")
"""Names of temporary files that a kill leaves while a file is copied."""
UPLOAD = re.compile("[0-9a-f]{32}")


def sweep(sessions: "sessionmaker[Session]", blobs: Blobs) -> int:
    """Remove folders without a row, and unreferenced files and uploads; return their number.

    Another server on the same database may be making a folder: young ones stay. So do folders and
    files whose names uflip does not use.
    """
    removed, young = 0, time.time() - STALE_S
    with sessions() as session:
        for folder in list(blobs.folders.iterdir()):
            if not RESULT_FOLDER.fullmatch(folder.name) or _changed(folder) > young:
                continue
            if folder.name.startswith(".") or session.get(ResultRecord, folder.name) is None:
                shutil.rmtree(folder, ignore_errors=True)
                removed += 1
        for name in blobs.arriving():
            if UPLOAD.fullmatch(name) and session.get(Submission, name) is None:
                blobs.remove_upload(name)
                removed += 1
    return removed + _remove_stray_files(sessions, blobs, young)


def _remove_stray_files(sessions: "sessionmaker[Session]", blobs: Blobs, young: float) -> int:
    """Remove unreferenced files, and temporary files."""
    removed = 0
    for some in blob_refs.batched(blobs.unchanged(before=young)):
        complete = {path.name for path in some if DIGEST.fullmatch(path.name)}
        for path in some:
            if TEMPORARY_FILE.fullmatch(path.name):
                path.unlink(missing_ok=True)
                removed += 1
        # First without the lock, which blocks uploads: mostly there are no such files.
        if stray := blob_refs.unreferenced(sessions, complete):
            removed += blob_refs.remove_unreferenced(sessions, blobs, stray)
    return removed


def _changed(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except FileNotFoundError:  # another server removed it
        return float("inf")
