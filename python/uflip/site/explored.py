"""The explorer over what is published: its folders are rows of the database, its keys their ids."""

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import select

from uflip.site.blobs import Blobs
from uflip.site.tables import AbsentError, Result
from uflip.web.folders import Folders, Place

if TYPE_CHECKING:
    from sqlalchemy.orm import Session, sessionmaker

    from uflip.site.intake import Intake

LISTED = 1000
"""The explorer's list is for choosing among the newest; the site's own has all."""


class PublishedFolders(Folders):
    """The folders of what is published.

    Parameters
    ----------
    sessions : sessionmaker
        Of the database.
    blobs : Blobs
        Where the folders are.
    intake : Intake
        Makes a folder where there is none yet.
    """

    def __init__(self, sessions: "sessionmaker[Session]", blobs: Blobs, intake: "Intake") -> None:
        super().__init__([])
        self._intake = intake
        self._sessions = sessions
        self._blobs = blobs

    @property
    def roots(self) -> list[Path]:
        """None that a visitor is told of."""
        return []

    def scan(self) -> list[Place]:
        """Find the newest."""
        with self._sessions() as session:
            query = select(Result).where(Result.published_utc.is_not(None))
            newest = query.order_by(Result.created_utc.desc(), Result.id).limit(LISTED)
            return [self._place(each) for each in session.scalars(newest)]

    def find(self, key: str) -> Place:
        """Find a result by its id.

        Raises
        ------
        ResultsError
            If there is none that is published.
        """
        with self._sessions() as session:
            found = session.get(Result, key)
            if found is not None and found.published_utc is not None:
                self._intake.present(found)
                return self._place(found)
        raise AbsentError(
            "There is no such result",
            where=key[:100],
            got="nothing of this id that is published",
            action="go back to the list",
        )

    def _place(self, found: Result) -> Place:
        name = f"{found.device.model}, {found.created_utc[:10]}, {found.id}"
        return Place(found.id, name, self._blobs.folders / found.id)
