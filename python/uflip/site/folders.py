"""Result folders: made of their files in one step, examined, made again if lost."""

import gzip
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from threading import BoundedSemaphore
from typing import TYPE_CHECKING

from sqlalchemy import select

from uflip.site.blobs import Blobs, sync_paths
from uflip.site.examination import examine
from uflip.site.result_summary import ExaminedFolder
from uflip.site.tables import AbsentError, FileRecord
from uflip.site.upload_files import COMPLETE, unfinished_error

if TYPE_CHECKING:
    from sqlalchemy.orm import Session, sessionmaker

EXAMINERS = 4
"""Concurrent examiners of a server: each computes, and may use `examiner.MEMORY_BYTES`."""
SUMMARY = "summary.json.gz"


class ResultFolders:
    """The folders of the results of a site.

    Parameters
    ----------
    sessions : sessionmaker
        Of the database.
    blobs : Blobs
        The files.
    """

    def __init__(self, sessions: "sessionmaker[Session]", blobs: Blobs) -> None:
        self._sessions = sessions
        self._blobs = blobs
        self._examining = BoundedSemaphore(EXAMINERS)

    def path_of(self, result: str) -> Path:
        """Return the path of a result's folder, whether it exists or not."""
        return self._blobs.folders / result

    def make(
        self, result: str, files: Sequence[tuple[str, str]], *, new: bool = False
    ) -> ExaminedFolder:
        """Make and examine the folder of a result in one step.

        Parameters
        ----------
        result : str
            Its id.
        files : sequence of (str, str)
            Names in the folder, and digests.
        new : bool
            The result has no row yet: a folder of its name was left by a kill, and is replaced.

        Returns
        -------
        ExaminedFolder
            The output of the examiner.
        """
        temporary = self._blobs.hidden_folder(result)
        try:
            self._blobs.assemble(temporary, files)
            with self._examining:
                examined = examine(temporary)
            if new and examined.row.status != COMPLETE:
                raise unfinished_error(examined.row.status)
            packed = gzip.compress(json.dumps(examined.summary).encode(), mtime=0)
            (temporary / SUMMARY).write_bytes(packed)
            sync_paths([temporary / SUMMARY, *((temporary / name).parent for name, _ in files)])
            if new:
                self._blobs.remove_folder(result)
            self._name(temporary, self.path_of(result))
            return examined
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def _name(self, temporary: Path, folder: Path) -> None:
        try:
            temporary.rename(folder)
        except OSError:
            if not folder.exists():  # no other server made it first
                raise
        sync_paths([folder.parent])

    def present(self, result: str) -> None:
        """Make the folder of a result if it is missing, from its files here or in the bucket."""
        if self.path_of(result).exists():
            return
        with self._sessions() as session:
            named = select(FileRecord.path, FileRecord.digest).where(FileRecord.result_id == result)
            files = [(path, digest) for path, digest in session.execute(named)]
        if not files:
            raise AbsentError("There is no such result any more", where=result)
        self._blobs.fetch(digest for _, digest in files)
        self.make(result, files)

    def summary_text(self, result: str) -> bytes:
        """Return the summary that the server computed for a result, as JSON."""
        self.present(result)
        return gzip.decompress((self.path_of(result) / SUMMARY).read_bytes())
