"""Backup of a site into one folder, and restore: rows as JSON lines, files by their digest.

```text
BACKUP/rows.jsonl        every row of every table, the schema's revision first
BACKUP/blobs/ab/abcd…    every file that a row references
```

The rows are read in one transaction, and files never change, so that a backup of a running site is
consistent. If a result is deleted before its files are copied, the rows are read again: the backup
is of a later moment. It does not depend on the database: a site in SQLite can be restored into
PostgreSQL.
"""

import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, insert, select, text
from sqlalchemy.exc import SQLAlchemyError

from uflip.data.document import Table
from uflip.errors import ResultsError
from uflip.results.result_dir import create_atomically, refuse_existing
from uflip.safe_files import SYNC_THREADS, sync_paths, temporary_name
from uflip.site.database import revisions
from uflip.site.site import Site, open_site
from uflip.site.tables import (
    Account,
    Audit,
    Base,
    DeviceRecord,
    FileRecord,
    ResultRecord,
    Submission,
)

REPAIR = "delete the results that have it, or restore the site from an earlier backup"
ROWS = "rows.jsonl"
BLOBS = "blobs"
ORDER = (Account, DeviceRecord, ResultRecord, FileRecord, Audit)
"""Parents before their children. A backup does not contain unfinished uploads."""

Rows = Iterator[tuple[str, Table]]
"""Names of tables, and rows of them."""


@dataclass(frozen=True)
class BackupCounts:
    """The contents of a backup."""

    results: int
    files: int
    bytes: int


def back_up(site: Site, out: Path) -> BackupCounts:
    """Copy a consistent state of a site into a new folder."""
    refuse_existing(out, subject="Backups are", option="OUT")
    with create_atomically(out, kind="backup", option="OUT") as hidden:
        (hidden / BLOBS).mkdir()
        lost: dict[str, ResultsError] = {}
        while True:
            results, digests = _write_rows(site, hidden / ROWS)
            before, lost = lost, _copy_files(site, digests, hidden)
            if again := before.keys() & lost.keys():
                raise lost[min(again)]
            if not lost:
                break
            # Probably deleted since the rows were read: then the current rows do not reference it.
        for path in (hidden / BLOBS).glob("*/*"):
            if path.name not in digests:
                path.unlink()
    return BackupCounts(results, len(digests), sum(digests.values()))


def _write_rows(site: Site, path: Path) -> tuple[int, dict[str, int]]:
    """Write a consistent state of the rows; return the number of results and their file lengths."""
    digests: dict[str, int] = {}
    results = 0
    with _consistent_connection(site) as connection, path.open("w", encoding="utf-8") as file:
        revision = connection.scalar(text("SELECT version_num FROM alembic_version"))
        file.write(json.dumps({"format": "uflip-site", "revision": revision}) + "\n")
        rows = (
            (kind.__tablename__, dict(row))
            for kind in ORDER
            for row in connection.execute(select(kind.__table__)).mappings()
        )
        action = "bring the database back from an earlier backup"
        for table, row in _check_parents(rows, str(site.root), action):
            file.write(json.dumps({"table": table, "row": row}) + "\n")
            results += table == ResultRecord.__tablename__
            if table == FileRecord.__tablename__:
                digests[row["digest"]] = row["bytes"]
    return results, digests


@contextmanager
def _consistent_connection(site: Site) -> Iterator[Connection]:
    """Yield a connection that sees the database as at its first query."""
    with site.engine.connect() as connection:
        if connection.dialect.name == "sqlite":
            # Python's driver begins transactions for writes, and not for reads.
            connection.exec_driver_sql("BEGIN")
        else:
            connection.execution_options(isolation_level="REPEATABLE READ")
        yield connection


def _check_parents(rows: Rows, where: str, action: str) -> Rows:
    """Yield rows, parents first; refuse a row whose parent is missing."""
    keys = {kind.__tablename__: [*kind.__table__.foreign_keys] for kind in ORDER}
    known_keys: dict[tuple[str, str], set[object]] = {
        (key.column.table.name, key.column.name): set() for some in keys.values() for key in some
    }
    for table, row in rows:
        for key in keys[table]:
            parent = key.column.table.name
            if row[key.parent.name] not in known_keys[parent, key.column.name]:
                raise ResultsError(
                    "Rows of the site are inconsistent",
                    where=where,
                    got=f"a row of the table {table}, {key.parent.name} {row[key.parent.name]}",
                    allowed=f"a row whose parent exists in the table {parent}",
                    action=action,
                )
        for (parent, name), present in known_keys.items():
            if parent == table:
                present.add(row[name])
        yield table, row


def _copy_files(site: Site, digests: Iterable[str], hidden: Path) -> dict[str, ResultsError]:
    """Copy files that are not copied yet; return the error of each missing one."""
    with suppress(ResultsError):  # reported below for each file
        site.blobs.fetch(digests)

    def copy_file(digest: str) -> ResultsError | None:
        to = _blob_path(hidden, digest)
        if to.exists():
            return None
        try:
            site.blobs.fetch([digest])
            _copy(site.blobs.path(digest), to)
        except ResultsError as error:
            return error
        except FileNotFoundError:
            return ResultsError(
                "A file of the site is missing",
                where=str(site.blobs.path(digest)),
                got="nothing",
                allowed="content of this digest",
                action=f"{REPAIR}; nothing was backed up",
            )
        if (content_digest := _digest(to)) != digest:
            to.unlink()
            return ResultsError(
                "A file of the site is damaged",
                where=str(site.blobs.path(digest)),
                got=content_digest,
                allowed=digest,
                action=f"{REPAIR}; nothing was backed up",
            )
        return None

    with ThreadPoolExecutor(SYNC_THREADS) as pool:
        results = zip(digests, pool.map(copy_file, digests), strict=True)
        return {digest: error for digest, error in results if error is not None}


def _blob_path(backup: Path, digest: str) -> Path:
    return backup / BLOBS / digest[:2] / digest


def _copy(path: Path, to: Path) -> None:
    """Copy a file; its name appears when all of it is on the disk."""
    to.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_name(to)
    shutil.copyfile(path, temporary)
    temporary.chmod(0o444)
    sync_paths([temporary])
    temporary.rename(to)


def restore_from(
    backup: Path, folder: Path, database: str | None = None, store: str | None = None
) -> BackupCounts:
    """Make a site from a backup: check every file's digest, and compute every result again."""
    refuse_existing(folder, subject="A site is", option="FOLDER")
    rows = _read_rows(backup)
    files: dict[str, list[tuple[str, str]]] = {}
    digests: dict[str, int] = {}
    for table, row in rows:
        if table == FileRecord.__tablename__:
            files.setdefault(row["result_id"], []).append((row["path"], row["digest"]))
            digests[row["digest"]] = row["bytes"]
    for digest in digests:
        _check(_blob_path(backup, digest), digest)
    site = open_site(folder, database, store=store)
    try:
        _refuse_full(site)
        _copy_blobs(site, backup, digests)
        for result, named in files.items():
            site.folders.make(result, named)
        # Last: a site that a kill leaves without rows shows no result that is incomplete.
        _insert(site, rows, str(backup / ROWS))
    except BaseException:
        site.close()
        shutil.rmtree(folder, ignore_errors=True)
        raise
    site.close()
    return BackupCounts(len(files), len(digests), sum(digests.values()))


def _refuse_full(site: Site) -> None:
    with site.sessions() as session:
        if session.scalar(select(ResultRecord.id).limit(1)) is not None:
            raise ResultsError(
                "The database holds a site already",
                where=site.engine.url.render_as_string(),
                action="restore into an empty one",
            )


def _copy_blobs(site: Site, backup: Path, digests: Iterable[str]) -> None:
    def copy_blob(digest: str) -> Path:
        to = site.blobs.path(digest)
        _copy(_blob_path(backup, digest), to)
        return to.parent

    with ThreadPoolExecutor(SYNC_THREADS) as pool:
        filled = {*pool.map(copy_blob, digests)}
    sync_paths({*filled, *(folder.parent for folder in filled)})
    site.blobs.store(digests)


def _insert(site: Site, rows: Sequence[tuple[str, Table]], where: str) -> None:
    try:
        with site.engine.begin() as connection:
            for table, row in rows:
                connection.execute(insert(Base.metadata.tables[table]).values(**row))
            _reset_sequences(connection)
    except SQLAlchemyError as error:
        raise ResultsError(
            "The rows of the backup cannot be restored",
            where=where,
            got=str(error).splitlines()[0],
            action="restore it with the version of uflip that made it; nothing was restored",
        ) from error


def _reset_sequences(connection: Connection) -> None:
    """Set the ids of new rows to continue after the restored ones (sequences of PostgreSQL)."""
    if connection.dialect.name != "postgresql":
        return
    for kind in (Account, DeviceRecord, Audit):
        name = kind.__tablename__
        connection.execute(
            text(
                f"SELECT setval(pg_get_serial_sequence('{name}', 'id'), "
                f"(SELECT coalesce(max(id), 0) + 1 FROM {name}), false)"
            )
        )


def _read_rows(backup: Path) -> list[tuple[str, Table]]:
    tables = {kind.__tablename__ for kind in ORDER} - {Submission.__tablename__}
    try:
        first, *others = (backup / ROWS).read_text(encoding="utf-8").splitlines()
        head = json.loads(first)
        if head["format"] != "uflip-site":
            raise ValueError("of another format")
        _check_revision(head["revision"], backup / ROWS)
        rows = [(each["table"], each["row"]) for each in map(json.loads, others)]
        if unknown := {table for table, _ in rows} - tables:
            raise ValueError(f"a table {min(unknown)}")
        action = "take another backup; nothing was restored"
        return [*_check_parents(iter(rows), str(backup / ROWS), action)]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ResultsError(
            "The folder is not a backup of a site",
            where=str(backup / ROWS),
            got=str(error),
            allowed="a folder that `uflip site backup` made",
            action="name the folder of a backup",
        ) from error


def _check_revision(revision: object, path: Path) -> None:
    """Refuse rows of an unknown schema, most likely of a newer version."""
    supported = revisions()
    if revision not in supported:
        raise ResultsError(
            "This version of uflip does not support the schema of the backup",
            where=str(path),
            got=f"revision {revision}",
            allowed=", ".join(supported),
            action="restore it with the version that made it, or a newer one",
        )


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check(path: Path, digest: str) -> None:
    try:
        content_digest = _digest(path)
    except OSError as error:
        content_digest = error.strerror or str(error)
    if content_digest != digest:
        raise ResultsError(
            "A file of the backup is damaged",
            where=str(path),
            got=content_digest,
            allowed=digest,
            action="take another backup; nothing was restored",
        )
