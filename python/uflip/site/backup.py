"""A site as one folder: rows as JSON lines, files by their digest; and a site made from that.

```text
BACKUP/rows.jsonl        every row of every table, the schema's revision first
BACKUP/blobs/ab/abcd…    every file that a row names
```

The rows are read in one transaction, and files are never changed, so that a backup is of one
moment while the site is served. It says nothing of the kind of database: what was in SQLite can be
restored into PostgreSQL.
"""

import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import insert, select, text

from uflip.data.document import Table
from uflip.errors import ResultsError
from uflip.results.place import made_beside, refuse_existing
from uflip.site.site import Site, open_site
from uflip.site.tables import Account, Audit, Base, Device, File, Result, Submission

ROWS = "rows.jsonl"
ORDER = (Account, Device, Result, File, Audit)
"""Parents before what belongs to them. Uploads on their way are not part of a backup."""


@dataclass(frozen=True)
class Counted:
    """What is in a backup."""

    results: int
    files: int
    bytes: int


def back_up(site: Site, out: Path) -> Counted:
    """Copy a site, as it is at one moment, into a new folder.

    Raises
    ------
    ResultsError
        If the folder exists, or cannot be written.
    """
    refuse_existing(out)
    with made_beside(out) as hidden:
        digests: dict[str, int] = {}
        results = 0
        with (
            site.engine.connect().execution_options(
                isolation_level=_one_moment(site)
            ) as connection,
            (hidden / ROWS).open("w", encoding="utf-8") as file,
        ):
            revision = connection.scalar(text("SELECT version_num FROM alembic_version"))
            file.write(json.dumps({"format": "uflip-site", "revision": revision}) + "\n")
            for kind in ORDER:
                for row in connection.execute(select(kind.__table__)).mappings():
                    file.write(json.dumps({"table": kind.__tablename__, "row": dict(row)}) + "\n")
                    results += kind is Result
                    if kind is File:
                        digests[row["digest"]] = row["bytes"]
        site.blobs.fetch(digests)
        for digest in digests:
            to = hidden / "blobs" / digest[:2] / digest
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(site.blobs.path(digest), to)
    return Counted(results, len(digests), sum(digests.values()))


def _one_moment(site: Site) -> str:
    return "SERIALIZABLE" if site.engine.dialect.name == "sqlite" else "REPEATABLE READ"


def restore_from(
    backup: Path, folder: Path, database: str | None = None, store: str | None = None
) -> Counted:
    """Make a site from a backup: every file is held against its digest, everything computed again.

    Raises
    ------
    ResultsError
        If it is no backup, a file of it is not what it was, or the folder or database is in use.
    """
    refuse_existing(folder)
    rows = _read_rows(backup)
    digests = {row["digest"]: row["bytes"] for table, row in rows if table == File.__tablename__}
    for digest in digests:
        _check(backup / "blobs" / digest[:2] / digest, digest)
    site = open_site(folder, database, store=store)
    try:
        with site.engine.begin() as connection:
            if connection.scalar(select(Result.id).limit(1)) is not None:
                raise ResultsError(
                    "The database holds a site already",
                    where=site.engine.url.render_as_string(),
                    action="restore into an empty one",
                )
            for table, row in rows:
                connection.execute(insert(Base.metadata.tables[table]).values(**row))
            _count_on(connection)
        for digest in digests:
            to = site.blobs.path(digest)
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(backup / "blobs" / digest[:2] / digest, to)
            to.chmod(0o444)
        site.blobs.store(digests)
        names = [row["id"] for table, row in rows if table == Result.__tablename__]
        with site.sessions() as session:
            for name in names:
                files = session.get_one(Result, name).files
                site.folders.make(name, [(each.path, each.digest) for each in files])
    finally:
        site.close()
    return Counted(len(names), len(digests), sum(digests.values()))


def _count_on(connection: Any) -> None:
    """Let new rows be counted from where the restored ones end (PostgreSQL counts beside them)."""
    if connection.dialect.name != "postgresql":
        return
    for kind in (Account, Device, Audit):
        name = kind.__tablename__
        connection.execute(
            text(
                f"SELECT setval(pg_get_serial_sequence('{name}', 'id'), "
                f"(SELECT coalesce(max(id), 0) + 1 FROM {name}), false)"
            )
        )


def _read_rows(backup: Path) -> list[tuple[str, Table]]:
    known = {kind.__tablename__ for kind in ORDER} - {Submission.__tablename__}
    try:
        first, *others = (backup / ROWS).read_text(encoding="utf-8").splitlines()
        if json.loads(first)["format"] != "uflip-site":
            raise ValueError("of another format")
        rows = [(each["table"], each["row"]) for each in map(json.loads, others)]
        if strange := {table for table, _ in rows} - known:
            raise ValueError(f"a table {min(strange)}")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ResultsError(
            "This is no backup of a site",
            where=str(backup / ROWS),
            got=str(error),
            allowed="a folder that `uflip site backup` made",
            action="name the folder that was made",
        ) from error
    return rows


def _check(path: Path, digest: str) -> None:
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        found = error.strerror or str(error)
    if found != digest:
        raise ResultsError(
            "A file of the backup is not what it was",
            where=str(path),
            got=found,
            allowed=digest,
            action="take another backup; nothing was restored",
        )
