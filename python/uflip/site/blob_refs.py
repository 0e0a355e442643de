"""References to files by results and by uploads; unreferenced files are removed.

```text
begin     lock · add the upload · unlock                  existing files stay from now on
commit    add the result and remove its upload, in one transaction
delete    remove the result · lock · remove unreferenced files · unlock
start     remove what interrupted commits and uploads left: see `sweep`
```

The lock is in the database, so that it holds for all servers of a site. Files removed under it are
gone before a new upload receives the list of existing files.
"""

import re
import shutil
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import select, update

from uflip.site.blobs import Blobs
from uflip.site.browse import visible_to
from uflip.site.tables import Account, FileRecord, Identity, ResultRecord, Submission
from uflip.site.upload_files import RESULT_ID

if TYPE_CHECKING:
    from sqlalchemy.orm import Session, sessionmaker


T = TypeVar("T")
MAX_QUERY_FILES = 500
"""Files in a query: a query takes a limited number of parameters."""
STALE_S = 3600.0
"""Age after which no server can still be making a folder: a commit takes far less."""
RESULT_FOLDER = re.compile(rf"({RESULT_ID.pattern})|\.({RESULT_ID.pattern})-[0-9a-f]{{8}}")
"""Names of folders of results, and of those that are being made."""
DIGEST = re.compile("[0-9a-f]{64}")
TEMPORARY_FILE = re.compile(r"\.[0-9a-f]{64}(\.[0-9]+-[0-9]+)?\.tmp")
"""Names of temporary files that a kill leaves while a file is copied."""
UPLOAD = re.compile("[0-9a-f]{32}")


def lock(session: "Session") -> None:
    """Block other uploads from beginning, and removals of files, until this transaction ends."""
    # In any database, a write to the one row of this table waits for the previous writer.
    session.execute(update(Identity).values(id=Identity.id))


def remove_unreferenced(
    sessions: "sessionmaker[Session]", blobs: Blobs, digests: Iterable[str]
) -> int:
    """Remove the unreferenced ones of some files; return their number."""
    some = set(digests)
    with sessions.begin() as session:
        lock(session)
        # Also from the bucket before the lock is released: a new upload may have the same content,
        # and would find a file that is about to be deleted.
        removable = some - _referenced(session, some)
        blobs.remove(removable)
    return len(removable)


def unreferenced(sessions: "sessionmaker[Session]", digests: Iterable[str]) -> set[str]:
    """Return the files that are unreferenced now; an upload may reference them at any time."""
    some = set(digests)
    with sessions() as session:
        return some - _referenced(session, some)


def _referenced(session: "Session", digests: set[str]) -> set[str]:
    # Uploads first: an upload that is committed between the queries is a result in the second.
    claimed: set[str] = set()
    for files in session.scalars(select(Submission.files)):
        claimed.update(each["digest"] for each in files if each["digest"] in digests)
    claimed.update(session.scalars(select(FileRecord.digest).where(FileRecord.digest.in_(digests))))
    return claimed


def visible(
    sessions: "sessionmaker[Session]", account: Account, digests: Iterable[str]
) -> set[str]:
    """Return the files that an account may download: those of results that it may see.

    Only these need not be sent. Knowing a digest does not grant access: anybody may have noted it
    while a result was public that has been withdrawn since.
    """
    visible_digests: set[str] = set()
    with sessions() as session:
        for some in batched(digests):
            query = (
                select(FileRecord.digest)
                .join(ResultRecord)
                .where(FileRecord.digest.in_(some), visible_to(account))
            )
            visible_digests.update(session.scalars(query))
    return visible_digests


def batched(each: Iterable[T]) -> Iterator[list[T]]:
    """Yield lists of at most `MAX_QUERY_FILES` items."""
    items = iter(each)
    while some := [*islice(items, MAX_QUERY_FILES)]:
        yield some


def sweep(sessions: "sessionmaker[Session]", blobs: Blobs) -> int:
    """Remove what interrupted commits and uploads left, when a server starts; return its number.

    That is folders without a row, and unreferenced files and uploads. Another server on the same
    database may be making a folder: young ones stay. So do folders and files whose names
    uflip does not use.
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
    for some in batched(blobs.unchanged(before=young)):
        complete = {path.name for path in some if DIGEST.fullmatch(path.name)}
        for path in some:
            if TEMPORARY_FILE.fullmatch(path.name):
                path.unlink(missing_ok=True)
                removed += 1
        # First without the lock, which blocks uploads: mostly there are no such files.
        if stray := unreferenced(sessions, complete):
            removed += remove_unreferenced(sessions, blobs, stray)
    return removed


def _changed(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except FileNotFoundError:  # another server removed it
        return float("inf")
