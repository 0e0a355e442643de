"""The storage of a site: a folder with files, and a database that describes them."""

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
    """An open site.

    Attributes
    ----------
    root : Path
        Its folder.
    id : str
        Stored in the folder and the database, see `uflip.site.identity`.
    new : bool
        Whether `open_site` created it.
    base_url : str
        Prefix of its public addresses.
    engine, sessions, blobs, folders, intake
        Database, files, the folders made of them, and the upload handler.
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
        """Return the permanent address of a result."""
        return f"{self.base_url}/results/{result}"

    def close(self) -> None:
        """Close the database."""
        self.engine.dispose()


def open_site(
    root: Path,
    database: str | None = None,
    base_url: str = "",
    store: str | None = None,
    *,
    make: bool = True,
) -> Site:
    """Open a site, or create one.

    Parameters
    ----------
    root : Path
        Its folder.
    database : str, optional
        URL of the database; by default SQLite in the folder.
    base_url : str
        Prefix of its public addresses.
    store : str, optional
        URL of the bucket for the files; by default the folder alone stores them.
    make : bool
        Create a missing folder and database.

    Raises
    ------
    ResultsError
        If the folder cannot be created or written.
    RefusedError
        If the database belongs to another site, or the folder contains results.
    UsageError
        If there is no site, and `make` is false.
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
        new = not identity.site_exists(root, url)
        if make:
            identity.check_new_database(root, url)
            made = not root.exists()
            make_folders(root)
            if made:
                root.chmod(0o700)
        else:
            identity.check_exists(root, url)
    engine = open_database(url)
    try:
        with _folder_of(root):
            site_id = identity.match_ids(root, engine)
            blobs = Blobs(root, bucket)
            _keep_private(root)
    except BaseException:
        engine.dispose()
        raise
    sessions = sessionmaker(engine, expire_on_commit=False)
    folders = ResultFolders(sessions, blobs)
    intake = Intake(sessions, blobs, folders)
    return Site(root, site_id, new, base_url.rstrip("/"), engine, sessions, blobs, folders, intake)


def database_of(root: Path, database: str | None) -> str:
    """Return the URL of the database of a site: by default SQLite in its folder."""
    return database or f"sqlite:///{(root / DATABASE).absolute()}"


def _keep_private(root: Path) -> None:
    """Remove access of other users to results and database, also to those of older versions."""
    names = (*FOLDERS_OF_A_SITE, *(f"{DATABASE}{ending}" for ending in ("", "-wal", "-shm")))
    for path in (root / name for name in names):
        with suppress(FileNotFoundError, PermissionError):
            mode = stat.S_IMODE(path.stat().st_mode)
            if mode & 0o077:
                path.chmod(mode & 0o700)


@contextmanager
def _folder_of(root: Path) -> Iterator[None]:
    """Convert errors of the operating system into a `ResultsError` about the site's folder."""
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
