"""The id of a site, which its folder and its database store.

::

    FOLDER/site.id     the id, one line
    table `site`       the same, a row made with the schema

A server removes folders and files without a row. Beside the database of another site these would be
all results, so a folder and a database of different sites are refused before anything changes.
Sites older than the id get one if the database has rows for results of the folder.
"""

import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import make_url, select
from sqlalchemy.exc import ArgumentError
from sqlalchemy.orm import Session

from uflip.errors import RefusedError, UsageError
from uflip.results import atomic
from uflip.site.blobs import FOLDERS
from uflip.site.tables import Identity, ResultRecord
from uflip.site.upload_files import RESULT_ID

if TYPE_CHECKING:
    from sqlalchemy import Engine

ID_FILE = "site.id"


def site_exists(root: Path, url: str) -> bool:
    """Return whether a folder has a site whose database exists."""
    return _is_made(root) and _missing_file(url) is None


def check_exists(root: Path, url: str) -> None:
    """Refuse a folder or a database without a site.

    Raises
    ------
    UsageError
        Mostly for a mistyped name.
    """
    if not site_exists(root, url):
        raise UsageError(
            "The folder contains no site",
            where=str(root),
            got=f"no database {_missing_file(url)}" if _is_made(root) else _describe_folder(root),
            allowed="a folder that `uflip site serve`, `seed` or `restore` made",
            action="check the name of the folder, and --database",
        )


def check_new_database(root: Path, url: str) -> None:
    """Refuse to create a new database for the folder of an existing site.

    Raises
    ------
    RefusedError
        Mostly when `--database` was forgotten.
    """
    lacks = _missing_file(url)
    if lacks is not None and (stored_id(root) or _result_ids(root)):
        raise _other_site_error(root, f"no database {lacks}")


def match_ids(root: Path, engine: "Engine") -> str:
    """Check that a folder and a database belong together; return the id of their site.

    Raises
    ------
    RefusedError
        If they belong to different sites.
    OSError
        If the folder cannot be read or written.
    """
    with Session(engine) as session:
        ours = session.scalars(select(Identity.id)).one()
        stored = stored_id(root)
        if not stored:
            results = _result_ids(root)
            if results and results.isdisjoint(session.scalars(select(ResultRecord.id))):
                got = f"{len(results)} in the folder, none of them in {_url_of(engine)}"
                raise _other_site_error(root, got)
            stored = _store_id(root, ours)
    if stored != ours:
        raise _other_site_error(root, f"{_url_of(engine)}, which is of the site {ours}", stored)
    return ours


def stored_id(root: Path) -> str:
    """Return the id that a folder stores; "" if it has none yet."""
    with suppress(FileNotFoundError):
        return (root / ID_FILE).read_text(encoding="utf-8", errors="replace").strip()
    return ""


def folder_problem(root: Path, ours: str) -> str | None:
    """Return why results cannot be read from the folder of a site; None if they can."""
    try:
        with os.scandir(root / FOLDERS) as entries:
            next(entries, None)
        stored = stored_id(root)
    except OSError as error:
        return error.strerror or str(error)
    return None if stored == ours else f"the folder of another site: {stored or 'it has no id'}"


def _store_id(root: Path, ours: str) -> str:
    """Store an id in a folder; return the stored one: another server may be faster."""
    temporary = root / f".{ID_FILE}-{secrets.token_hex(4)}"  # used by this server alone
    try:
        atomic.write_file(temporary, f"{ours}\n".encode())
        with suppress(FileExistsError):
            os.link(temporary, root / ID_FILE)
        atomic.fsync_directory(root)
    finally:
        temporary.unlink(missing_ok=True)
    return stored_id(root)


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


def _url_of(engine: "Engine") -> str:
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
