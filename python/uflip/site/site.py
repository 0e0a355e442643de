"""The storage of a site: a folder with files, a database that describes them, and the id in both.

::

    FOLDER/site.id     the id, one line
    table `site`       the same, a row made with the schema

A server removes folders and files without a row. Beside the database of another site these would be
all results, so a folder and a database of different sites are refused before anything changes.
A folder that has lost its id gets it again if the database has rows for results of the folder.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Engine, make_url, select
from sqlalchemy.exc import ArgumentError
from sqlalchemy.orm import Session, sessionmaker

from uflip import safe_files
from uflip.data.manifest import refuse_results
from uflip.errors import RefusedError, ResultsError, UsageError
from uflip.site.blobs import FOLDERS, FOLDERS_OF_A_SITE, Blobs, Bucket
from uflip.site.database import check_url, open_database
from uflip.site.folders import ResultFolders
from uflip.site.intake import Intake
from uflip.site.tables import Identity, ResultRecord
from uflip.site.upload_files import RESULT_ID

DATABASE, ID_FILE = "site.db", "site.id"


@dataclass(frozen=True)
class Site:
    """An open site."""

    root: Path  #: Its folder.
    id: str  #: Stored in the folder and the database.
    new: bool  #: Whether `open_site` created it.
    base_url: str  #: Prefix of its public addresses.
    #: Database, files, the folders made of them, and the upload handler.
    engine: Engine
    sessions: sessionmaker[Session]
    blobs: Blobs
    folders: ResultFolders
    intake: Intake

    def url_of(self, result: str) -> str:
        """Return the permanent address of a result."""
        return f"{self.base_url}/results/{result}"

    def folder_problem(self) -> str | None:
        """Return why results cannot be read from the folder; None if they can."""
        try:
            with os.scandir(self.root / FOLDERS) as entries:
                next(entries, None)
            stored = _stored_id(self.root)
        except OSError as error:
            return error.strerror or str(error)
        if stored == self.id:
            return None
        return f"the folder of another site: {stored or 'it has no id'}"

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

    `root`: its folder. `database`: URL of the database; by default SQLite in the folder.
    `base_url`: prefix of its public addresses. `store`: URL of the bucket for the files; by default
    the folder alone stores them. `make`: create a missing folder and database.
    """
    bucket = Bucket(store) if store else None
    url = database_of(root, database)
    check_url(url)
    with _folder_of(root):
        refuse_results(root / DATABASE, "site", str(root))
        new = not _site_exists(root, url)
        if make:
            _check_new_database(root, url)
            made = not root.exists()
            safe_files.make_folders(root)
            if made:
                root.chmod(0o700)
        else:
            _check_exists(root, url)
    engine = open_database(url)
    try:
        with _folder_of(root):
            site_id = _match_ids(root, engine)
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
    """Remove access of other users to results and database."""
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


def _site_exists(root: Path, url: str) -> bool:
    """Return whether a folder has a site whose database exists."""
    return _is_made(root) and _missing_file(url) is None


def _check_exists(root: Path, url: str) -> None:
    """Refuse a folder or a database without a site, mostly a mistyped name."""
    if not _site_exists(root, url):
        raise UsageError(
            "The folder contains no site",
            where=str(root),
            got=f"no database {_missing_file(url)}" if _is_made(root) else _describe_folder(root),
            allowed="a folder that `uflip site serve`, `seed` or `restore` made",
            action="check the name of the folder, and --database",
        )


def _check_new_database(root: Path, url: str) -> None:
    """Refuse to create a new database for the folder of a site: `--database` was forgotten."""
    lacks = _missing_file(url)
    if lacks is not None and (_stored_id(root) or _result_ids(root)):
        raise _other_site_error(root, f"no database {lacks}")


def _match_ids(root: Path, engine: Engine) -> str:
    """Check that a folder and a database belong together; return the id of their site."""
    with Session(engine) as session:
        ours = session.scalars(select(Identity.id)).one()
        stored = _stored_id(root)
        if not stored:
            results = _result_ids(root)
            if results and results.isdisjoint(session.scalars(select(ResultRecord.id))):
                got = f"{len(results)} in the folder, none of them in {_url_of(engine)}"
                raise _other_site_error(root, got)
            stored = _store_id(root, ours)
    if stored != ours:
        raise _other_site_error(root, f"{_url_of(engine)}, which is of the site {ours}", stored)
    return ours


def _stored_id(root: Path) -> str:
    """Return the id that a folder stores; "" if it has none yet."""
    with suppress(FileNotFoundError):
        return (root / ID_FILE).read_text(encoding="utf-8", errors="replace").strip()
    return ""


def _store_id(root: Path, ours: str) -> str:
    """Store an id in a folder; return the stored one: another server may be faster."""
    with suppress(FileExistsError):
        safe_files.write_new_file(root / ID_FILE, f"{ours}\n".encode())
    safe_files.sync_path(root)
    return _stored_id(root)


def _is_made(root: Path) -> bool:
    return (root / ID_FILE).exists() or (root / FOLDERS).is_dir()


def _result_ids(root: Path) -> set[str]:
    """Return the ids of the results whose folders are here."""
    with suppress(FileNotFoundError):
        return {each.name for each in (root / FOLDERS).iterdir() if RESULT_ID.fullmatch(each.name)}
    return set()


def _missing_file(url: str) -> str | None:
    """Return the file of a SQLite database that does not exist yet; None for any other."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):  # reported in full when it is opened
        return None
    name = parsed.database if parsed.get_backend_name() == "sqlite" else None
    if not name or name == ":memory:" or name.startswith("file:"):
        return None
    return None if Path(name).exists() else name


def _describe_folder(root: Path) -> str:
    if not root.exists():
        return "nothing of this name"
    return "a folder without a site in it" if root.is_dir() else "a file"


def _url_of(engine: Engine) -> str:
    return engine.url.render_as_string()


def _other_site_error(root: Path, got: str, expected: str = "") -> RefusedError:
    return RefusedError(
        "The database belongs to another site",
        where=str(root),
        got=got,
        allowed=f"the database of the site {expected}"
        if expected
        else "the database of its results",
        action="name its database with --database or UFLIP_SITE_DATABASE, or another folder; "
        "nothing was changed"
        + (f". If they belong to one site, remove {root / ID_FILE}" if expected else ""),
    )
