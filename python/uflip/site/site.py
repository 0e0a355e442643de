"""What a site keeps: a folder with files, and a database that says what they are."""

import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from uflip.data.folder import refuse_results
from uflip.errors import ResultsError
from uflip.results.atomic import make_folders
from uflip.site.blobs import FOLDERS_OF_A_SITE, Blobs
from uflip.site.bucket import Bucket
from uflip.site.database import check_library, check_url, open_database

if TYPE_CHECKING:
    from sqlalchemy import Engine
    from sqlalchemy.orm import Session, sessionmaker

    from uflip.site.folders import ResultFolders
    from uflip.site.intake import Intake

DATABASE = "site.db"


@dataclass(frozen=True)
class Site:
    """A site that is open.

    Attributes
    ----------
    root : Path
        Its folder.
    id : str
        Kept by folder and database, see `uflip.site.identity`.
    new : bool
        Whether it was made just now.
    base_url : str
        What its addresses begin with, where it is seen from.
    engine, sessions, blobs, folders, intake
        Database, files, the folders made of them, and what takes results in.
    """

    root: Path
    id: str
    new: bool
    base_url: str
    engine: "Engine"
    sessions: "sessionmaker[Session]"
    blobs: Blobs
    folders: "ResultFolders"
    intake: "Intake"

    def url_of(self, result: str) -> str:
        """The permanent address of a result."""
        return f"{self.base_url}/results/{result}"

    def close(self) -> None:
        """Let go of the database."""
        self.engine.dispose()


def open_site(
    root: Path,
    database: str | None = None,
    base_url: str = "",
    store: str | None = None,
    *,
    make: bool = True,
) -> Site:
    """Open a site, or make one.

    Parameters
    ----------
    root : Path
        Its folder.
    database : str, optional
        URL of the database; SQLite in the folder without one.
    base_url : str
        What its addresses begin with.
    store : str, optional
        URL of the bucket that has the files; they are in the folder alone without one.
    make : bool
        Make what is not there.

    Raises
    ------
    ResultsError
        If the folder cannot be made or written.
    RefusedError
        If the database is that of another site, or the folder that of results.
    UsageError
        If there is no site, and none is to be made.
    UflipError
        As `uflip.site.database.open_database`, and as `Bucket`.
    """
    check_library()
    from sqlalchemy.orm import sessionmaker

    from uflip.site import identity
    from uflip.site.folders import ResultFolders
    from uflip.site.intake import Intake

    bucket = Bucket(store) if store else None
    url = database_of(root, database)
    check_url(url)
    with _folder_of(root):
        refuse_results(root / DATABASE, "site", str(root))
        new = not identity.is_there(root, url)
        if make:
            identity.check_before(root, url)
            made = not root.exists()
            make_folders(root)
            if made:
                root.chmod(0o700)
        else:
            identity.check_there(root, url)
    engine = open_database(url)
    try:
        with _folder_of(root):
            known = identity.settle(root, engine)
            blobs = Blobs(root, bucket)
            _keep_private(root)
    except BaseException:
        engine.dispose()
        raise
    sessions = sessionmaker(engine, expire_on_commit=False)
    folders = ResultFolders(sessions, blobs)
    intake = Intake(sessions, blobs, folders)
    return Site(root, known, new, base_url.rstrip("/"), engine, sessions, blobs, folders, intake)


def database_of(root: Path, database: str | None) -> str:
    """Return the URL of the database of a site: in its folder, where none is named."""
    return database or f"sqlite:///{(root / DATABASE).absolute()}"


def _keep_private(root: Path) -> None:
    """Take away what everybody may do with results and database, also of an older version."""
    names = (*FOLDERS_OF_A_SITE, *(f"{DATABASE}{ending}" for ending in ("", "-wal", "-shm")))
    for path in (root / name for name in names):
        with suppress(FileNotFoundError, PermissionError):
            mode = stat.S_IMODE(path.stat().st_mode)
            if mode & 0o077:
                path.chmod(mode & 0o700)


@contextmanager
def _folder_of(root: Path) -> Iterator[None]:
    """Let what goes wrong with the folder of a site be one of our errors."""
    try:
        yield
    except OSError as error:
        raise ResultsError(
            "The site's folder cannot be used",
            where=str(root),
            got=error.strerror or str(error),
            allowed="a folder that can be written",
            action="give another folder",
        ) from error
