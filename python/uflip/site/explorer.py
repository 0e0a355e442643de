"""The explorer over published results: its folders are rows of the database, keyed by id."""

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import select

from uflip.site.tables import AbsentError, ResultRecord
from uflip.web.folders import Folders, ResultFolder

if TYPE_CHECKING:
    from sqlalchemy.orm import Session, sessionmaker

    from uflip.site.folders import ResultFolders

MAX_EXPLORER_RESULTS = 1000
"""The explorer lists the newest results; the site's own list has all."""


class PublishedFolders(Folders):
    """The folders of published results.

    Parameters
    ----------
    sessions : sessionmaker
        Of the database.
    folders : ResultFolders
        The result folders; it makes missing ones.
    """

    def __init__(self, sessions: "sessionmaker[Session]", folders: "ResultFolders") -> None:
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
        """Return a result by its id.

        Raises
        ------
        ResultsError
            If there is no published result of this id.
        """
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
        name = f"{record.device.model}, {record.created_utc[:10]}, {record.id}"
        return ResultFolder(record.id, name, self._folders.path_of(record.id))
