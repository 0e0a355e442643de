"""Result folders: made of their files in one step, examined, made again if lost.

The examiner process (`examiner`) starts in half the time without the models that check its output.
"""

import gzip
import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import BoundedSemaphore
from typing import TYPE_CHECKING

import msgspec
from sqlalchemy import select

from uflip.data.document import Table, locate_fault
from uflip.errors import ResultsError
from uflip.safe_files import new_folder
from uflip.site.blobs import Blobs
from uflip.site.examiner import MEMORY_BYTES, SECONDS
from uflip.site.rows import ExaminedFolder
from uflip.site.tables import AbsentError, FileRecord, ResultRecord
from uflip.web.open_results import Folders, ResultFolder

if TYPE_CHECKING:
    from sqlalchemy.orm import Session, sessionmaker


EXAMINERS = 4
"""Concurrent examiners of a server: each computes, and may use `examiner.MEMORY_BYTES`."""
SUMMARY = "summary.json.gz"
SHORT_ID = 8
"""Digits of an id that tell results of one day apart in the explorer."""
MAX_EXPLORER_RESULTS = 1000
"""The explorer lists the newest results; the site's own list has all."""


class ResultFolders:
    """The folders of the results of a site."""

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

        `result`: its id. `files`: names in the folder, and digests (str, str). `new`: the result
        has no row yet: a folder of its name was left by a kill, and is replaced.
        """
        with suppress(FileExistsError), new_folder(self.path_of(result)) as hidden:
            self._blobs.assemble(hidden, files)
            with self._examining:
                examined = examine(hidden)
            packed = gzip.compress(json.dumps(examined.summary).encode(), mtime=0)
            (hidden / SUMMARY).write_bytes(packed)
            if new:
                self._blobs.remove_folder(result)
        return examined  # also if another server made the folder first

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


def examine(folder: Path) -> ExaminedFolder:
    """Examine a folder in a process of its own."""
    command = [sys.executable, "-m", "uflip.site.examiner", str(folder)]
    try:
        process = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
        output = json.loads(process.stdout)
    except (subprocess.TimeoutExpired, ValueError) as error:
        raise ResultsError(
            "The results cannot be checked",
            where=folder.name,
            got="they exceed the limits of memory or time",
            allowed=f"{MEMORY_BYTES >> 20} MiB, {SECONDS} s",
            action="check the folder with `uflip verify`, and submit one without faults",
        ) from error
    if "error" in output:
        raise ResultsError(**output["error"])
    return parse_examination(output)


def parse_examination(output: Table) -> ExaminedFolder:
    """Check the output of `examiner.examine_folder` against the database columns."""
    try:
        return msgspec.convert(output, ExaminedFolder)
    except msgspec.ValidationError as error:
        where, fault = locate_fault(error)
        raise ResultsError(
            "The site cannot store the description of these results",
            where=f"manifest.json, {where}",
            got=fault,
            action="submit the folder as `uflip run` wrote it",
        ) from error


class PublishedFolders(Folders):
    """The folders of published results, for the explorer: rows of the database, keyed by id.

    `sessions`: of the database. `folders`: the result folders; it makes missing ones.
    """

    def __init__(self, sessions: "sessionmaker[Session]", folders: ResultFolders) -> None:
        super().__init__([])
        self._sessions = sessions
        self._folders = folders

    @property
    def roots(self) -> list[Path]:
        """Return no roots: visitors do not see paths of the server."""
        return []

    def scan(self) -> list[ResultFolder]:
        """Return the newest results."""
        with self._sessions() as session:
            query = select(ResultRecord).where(ResultRecord.published_utc.is_not(None))
            newest = query.order_by(ResultRecord.created_utc.desc(), ResultRecord.id).limit(
                MAX_EXPLORER_RESULTS
            )
            return [self._result_folder(each) for each in session.scalars(newest)]

    def find(self, key: str) -> ResultFolder:
        """Return a result by its id."""
        with self._sessions() as session:
            record = session.get(ResultRecord, key)
        if record is None or record.published_utc is None:
            raise AbsentError(
                "There is no such result",
                where=key[:100],
                got="nothing of this id that is published",
                action="go back to the list",
            )
        self._folders.present(record.id)
        return self._result_folder(record)

    def _result_folder(self, record: ResultRecord) -> ResultFolder:
        name = f"{record.device.model}, {record.created_utc[:10]}, {record.id[:SHORT_ID]}"
        return ResultFolder(record.id, name, self._folders.path_of(record.id))
