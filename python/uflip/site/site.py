"""What a site keeps: a folder with files, and a database that says what they are."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from uflip.errors import ResultsError
from uflip.site.blobs import Blobs
from uflip.site.bucket import Bucket
from uflip.site.database import missing_library, open_database

if TYPE_CHECKING:
    from sqlalchemy import Engine
    from sqlalchemy.orm import Session, sessionmaker

    from uflip.site.intake import Intake

DATABASE = "site.db"


@dataclass(frozen=True)
class Site:
    """A site that is open.

    Attributes
    ----------
    root : Path
        Its folder.
    base_url : str
        What its addresses begin with, where it is seen from.
    engine, sessions, blobs, intake
        Database and files, and what takes results in.
    """

    root: Path
    base_url: str
    engine: "Engine"
    sessions: "sessionmaker[Session]"
    blobs: Blobs
    intake: "Intake"

    def url_of(self, result: str) -> str:
        """The permanent address of a result."""
        return f"{self.base_url}/results/{result}"

    def close(self) -> None:
        """Let go of the database."""
        self.engine.dispose()


def open_site(
    root: Path, database: str | None = None, base_url: str = "", store: str | None = None
) -> Site:
    """Open a site, or make one.

    Parameters
    ----------
    root : Path
        Its folder; made if it is not there.
    database : str, optional
        URL of the database; SQLite in the folder without one.
    base_url : str
        What its addresses begin with.
    store : str, optional
        URL of the bucket that has the files; they are in the folder alone without one.

    Raises
    ------
    ResultsError
        If the folder cannot be made or written.
    UflipError
        As `uflip.site.database.open_database`, and as `Bucket`.
    """
    try:
        from sqlalchemy.orm import sessionmaker
    except ImportError as error:
        raise missing_library() from error
    from uflip.site.intake import Intake

    bucket = Bucket(store) if store else None
    try:
        root.mkdir(parents=True, exist_ok=True)
        blobs = Blobs(root, bucket)
    except OSError as error:
        raise ResultsError(
            "The site's folder cannot be used",
            where=str(root),
            got=error.strerror or str(error),
            allowed="a folder that can be written",
            action="give another folder",
        ) from error
    engine = open_database(database or f"sqlite:///{(root / DATABASE).absolute()}")
    sessions = sessionmaker(engine, expire_on_commit=False)
    return Site(root, base_url.rstrip("/"), engine, sessions, blobs, Intake(sessions, blobs))
