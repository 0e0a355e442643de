"""Backups of a running site, and sites restored from them: complete, or nothing."""

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from command_line import uflip
from local_site import alice, check_whole, open_test_site, submit, upload_files
from site_server import postgres, small_result
from sqlalchemy import event, select

from uflip.errors import ResultsError
from uflip.safe_files import temporary_file
from uflip.site import blob_refs
from uflip.site.backup import BackupCounts, back_up, restore_from
from uflip.site.blobs import Blobs
from uflip.site.client import PreparedResult, prepare
from uflip.site.database import revisions
from uflip.site.folders import ResultFolders
from uflip.site.rows import ExaminedFolder
from uflip.site.site import Site, open_site
from uflip.site.tables import DeviceRecord, ResultRecord


@pytest.fixture(scope="module")
def prepared_result(tmp_path_factory: pytest.TempPathFactory) -> PreparedResult:
    folder = tmp_path_factory.mktemp("backup")
    (folder / "scratch").mkdir()
    return prepare(small_result(folder / "result"), folder / "scratch")


@pytest.fixture(params=["sqlite", "postgresql"])
def any_site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    with ExitStack() as stack:
        url = stack.enter_context(postgres()) if request.param == "postgresql" else None
        yield stack.enter_context(open_test_site(tmp_path / "site", url))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with open_test_site(tmp_path / "site") as made:
        yield made


def add_result(site: Site) -> None:
    """Write down a result of a new device."""
    with site.sessions.begin() as session:
        first = session.scalars(select(ResultRecord)).one()
        columns = {name: getattr(first, name) for name in ResultRecord.__table__.columns.keys()}  # noqa: SIM118
        device = DeviceRecord(slug="new", kind="sim", model="new", capacity_bytes=1)
        session.add(ResultRecord(**columns | {"id": "f" * 12, "device_id": None, "device": device}))


def test_backup_is_a_consistent_snapshot(
    any_site: Site, prepared_result: PreparedResult, tmp_path: Path
) -> None:
    result = submit(any_site, prepared_result).id
    statements: list[str] = []

    def meanwhile(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if "FROM result" in statement and not statements:
            statements.append(statement)
            add_result(any_site)

    event.listen(any_site.engine, "before_cursor_execute", meanwhile)
    assert back_up(any_site, tmp_path / "backup").results == 1
    assert statements
    restore_from(tmp_path / "backup", tmp_path / "restored")
    site = open_site(tmp_path / "restored")
    check_whole(site, result, prepared_result)
    site.close()


def test_result_deleted_before_copy_is_not_in_backup(
    site: Site, prepared_result: PreparedResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = submit(site, prepared_result).id

    def meanwhile(_: Blobs, digests: Iterable[str]) -> None:
        del digests
        site.intake.delete(result, "alice")

    monkeypatch.setattr(Blobs, "fetch", meanwhile)
    assert back_up(site, tmp_path / "backup") == BackupCounts(0, 0, 0)
    assert not [*(tmp_path / "backup").glob("blobs/*/*")]
    assert restore_from(tmp_path / "backup", tmp_path / "restored").results == 0


def test_missing_file_fails_backup(
    site: Site, prepared_result: PreparedResult, tmp_path: Path
) -> None:
    submit(site, prepared_result)
    lost = site.blobs.path(prepared_result.files[0].digest)
    lost.unlink()
    with pytest.raises(ResultsError, match="A file of the site is missing") as raised:
        back_up(site, tmp_path / "backup")
    assert raised.value.where == str(lost)
    assert [each.name for each in tmp_path.iterdir()] == ["site"]


@pytest.mark.parametrize("table", ["account", "device", "result"])
def test_inconsistent_rows_are_not_restored(
    site: Site, prepared_result: PreparedResult, tmp_path: Path, table: str
) -> None:
    submit(site, prepared_result)
    back_up(site, tmp_path / "backup")
    rows = tmp_path / "backup" / "rows.jsonl"
    remaining = [
        line for line in rows.read_text().splitlines() if f'"table": "{table}"' not in line
    ]
    rows.write_text("\n".join(remaining))
    outcome = uflip("site", "restore", tmp_path / "backup", tmp_path / "restored")
    assert (outcome.code, "Rows of the site are inconsistent" in outcome.err) == (5, True), (
        outcome.err
    )
    assert not (tmp_path / "restored").exists()


def test_failed_restore_leaves_nothing(
    site: Site, prepared_result: PreparedResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = submit(site, prepared_result).id
    back_up(site, tmp_path / "backup")
    restored = tmp_path / "restored"
    synced: set[Path] = set()
    states: list[tuple[int, bool]] = []
    made = ResultFolders.make

    def note(paths: Iterable[Path]) -> None:
        synced.update(each.with_name(each.name.strip(".").removesuffix(".tmp")) for each in paths)

    def look(folders: ResultFolders, *args: Any) -> ExaminedFolder:
        with sqlite3.connect(restored / "site.db") as connection:
            (rows,) = connection.execute("SELECT count(*) FROM result").fetchone()
        connection.close()
        blobs = Blobs(restored)
        paths = {blobs.path(each.digest) for each in prepared_result.files}
        names = {parent for path in paths for parent in (path.parent, path.parent.parent)}
        states.append((rows, paths | names <= synced and all(path.exists() for path in paths)))
        return made(folders, *args)

    with monkeypatch.context() as patch:
        patch.setattr("uflip.site.backup.sync_paths", note)
        patch.setattr(ResultFolders, "make", look)
        assert restore_from(tmp_path / "backup", restored).results == 1
    assert states == [(0, True)]
    with monkeypatch.context() as patch:
        patch.setattr(ResultFolders, "make", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            restore_from(tmp_path / "backup", tmp_path / "again")
    assert not (tmp_path / "again").exists()
    reopened = open_site(restored)
    check_whole(reopened, result, prepared_result)
    reopened.close()


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_refused_rows_are_reported(
    site: Site, prepared_result: PreparedResult, tmp_path: Path
) -> None:
    submit(site, prepared_result)
    back_up(site, tmp_path / "backup")
    rows = tmp_path / "backup" / "rows.jsonl"
    rows.write_text(rows.read_text().replace('"slug":', '"called":'))
    outcome = uflip("site", "restore", tmp_path / "backup", tmp_path / "restored")
    assert (outcome.code, "cannot be restored" in outcome.err) == (5, True), outcome.err
    assert not (tmp_path / "restored").exists()


def test_unknown_schema_revision_is_refused(
    site: Site, prepared_result: PreparedResult, tmp_path: Path
) -> None:
    submit(site, prepared_result)
    back_up(site, tmp_path / "backup")
    rows = tmp_path / "backup" / "rows.jsonl"
    head, *others = rows.read_text().splitlines()
    assert json.loads(head)["revision"] == revisions()[-1]
    rows.write_text("\n".join([json.dumps(json.loads(head) | {"revision": "0999"}), *others]))
    outcome = uflip("site", "restore", tmp_path / "backup", tmp_path / "restored")
    assert (outcome.code, "got      revision 0999" in outcome.err) == (5, True), outcome.err
    assert "or a newer one" in outcome.err
    assert not (tmp_path / "restored").exists()


def test_existing_target_is_reported_by_argument_name(site: Site, tmp_path: Path) -> None:
    back_up(site, tmp_path / "backup")
    repeated = uflip("site", "backup", site.root, tmp_path / "backup")
    assert "Backups are never overwritten" in repeated.err
    assert "choose another OUT" in repeated.err
    over = uflip("site", "restore", tmp_path / "backup", site.root)
    assert "A site is never overwritten" in over.err
    assert "choose another FOLDER" in over.err
    assert "--out" not in repeated.err + over.err


def test_startup_removes_orphaned_files(
    any_site: Site, prepared_result: PreparedResult, tmp_path: Path
) -> None:
    result = submit(any_site, prepared_result).id
    (tmp_path / "sent").mkdir()
    other = prepare(small_result(tmp_path / "other"), tmp_path / "sent")
    upload = upload_files(any_site, other)
    stray, young = (any_site.blobs.path(letter * 64) for letter in "ab")
    stray.parent.mkdir(exist_ok=True)
    with temporary_file(stray) as begun:
        pass  # only its name is needed
    foreign = stray.with_name("notes")
    for path in (stray, young, begun, foreign):
        path.parent.mkdir(exist_ok=True)
        path.write_text("left by a kill")
    for path in any_site.root.glob("blobs/*/*"):
        if path != young:
            os.utime(path, (1, 1))
    assert blob_refs.sweep(any_site.sessions, any_site.blobs) == 2
    assert [path.exists() for path in (stray, begun, young, foreign)] == [False, False, True, True]
    assert blob_refs.sweep(any_site.sessions, any_site.blobs) == 0
    check_whole(any_site, result, prepared_result)
    assert any_site.intake.commit(alice(any_site), upload, publish=True).new
