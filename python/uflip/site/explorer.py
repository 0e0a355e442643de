"""The explorer over what is published: its folders are rows of the database, its keys their ids."""

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import select

from uflip.site.tables import AbsentError, ResultRecord
from uflip.web.folders import Folders, ResultFolder

if TYPE_CHECKING:
    from sqlalchemy.orm import Session, sessionmaker

    from uflip.site.folders import ResultFolders

LISTED = 1000
"""The explorer's list is for choosing among the newest; the site's own has all."""


class PublishedFolders(Folders):
    """The folders of what is published.

    Parameters
    ----------
    sessions : sessionmaker
        Of the database.
    folders : ResultFolders
        Where they are; makes one where there is none yet.
    """

    def __init__(self, sessions: "sessionmaker[Session]", folders: "ResultFolders") -> None:
        super().__init__([])
        self._sessions = sessions
        self._folders = folders

    @property
    def roots(self) -> list[Path]:
        """None that a visitor is told of."""
        return []

    def scan(self) -> list[ResultFolder]:
        """Find the newest."""
        with self._sessions() as session:
            query = select(ResultRecord).where(ResultRecord.published_utc.is_not(None))
            newest = query.order_by(ResultRecord.created_utc.desc(), ResultRecord.id).limit(LISTED)
            return [self._place(each) for each in session.scalars(newest)]

    def find(self, key: str) -> ResultFolder:
        """Find a result by its id.

        Raises
        ------
        ResultsError
            If there is none that is published.
        """
        with self._sessions() as session:
            found = session.get(ResultRecord, key)
        if found is None or found.published_utc is None:
            raise AbsentError(
                "There is no such result",
                where=key[:100],
                got="nothing of this id that is published",
                action="go back to the list",
            )
        self._folders.present(found.id)
        return self._place(found)

    def _place(self, found: ResultRecord) -> ResultFolder:
        name = f"{found.device.model}, {found.created_utc[:10]}, {found.id}"
        return ResultFolder(found.id, name, self._folders.of(found.id))
