"""A result that is deleted and sent again is complete, whenever the server ends.

Submissions are handled in this process; a kill is simulated by an unexpected exception.
"""

import os
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from local_site import alice, check_whole, open_test_site, submit, upload_files
from site_server import postgres, small_result
from sqlalchemy import select

from uflip.site import blob_refs
from uflip.site.blobs import Blobs
from uflip.site.client import PreparedResult, prepare
from uflip.site.folders import ResultFolders
from uflip.site.intake import Intake
from uflip.site.rows import ExaminedFolder
from uflip.site.site import Site
from uflip.site.tables import AbsentError, ResultRecord
from uflip.site.upload_files import FilePart, result_id


class KilledError(BaseException):
    """The server is gone."""


@pytest.fixture(scope="module")
def prepared_result(tmp_path_factory: pytest.TempPathFactory) -> PreparedResult:
    folder = tmp_path_factory.mktemp("kept")
    (folder / "scratch").mkdir()
    return prepare(small_result(folder / "result"), folder / "scratch")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with open_test_site(tmp_path / "site") as made:
        yield made


@pytest.fixture(params=["sqlite", "postgresql"])
def any_site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    with ExitStack() as stack:
        url = stack.enter_context(postgres()) if request.param == "postgresql" else None
        yield stack.enter_context(open_test_site(tmp_path / "site", url))


def test_kill_during_removal_leaves_no_partial_folder(
    site: Site, prepared_result: PreparedResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = submit(site, prepared_result).id

    def half(folder: Path, **_: object) -> None:
        next((folder / "runs").iterdir()).unlink()
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr("uflip.site.blobs.shutil.rmtree", half)
        with pytest.raises(KilledError):
            site.intake.delete(result, "alice")
    assert not site.folders.path_of(result).exists()
    assert submit(site, prepared_result).new
    check_whole(site, result, prepared_result)


def test_folder_without_row_is_replaced(
    site: Site, prepared_result: PreparedResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = submit(site, prepared_result).id

    def kill(_: Blobs, __: str) -> None:
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(Blobs, "remove_folder", kill)
        with pytest.raises(KilledError):
            site.intake.delete(result, "alice")
    (site.folders.path_of(result) / "ledger.jsonl").unlink()
    assert submit(site, prepared_result).new
    check_whole(site, result, prepared_result)
    assert [each.name for each in site.blobs.folders.iterdir()] == [result]


def test_folder_is_synced_before_its_row(
    site: Site, prepared_result: PreparedResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = upload_files(site, prepared_result)
    synced: set[str] = set()

    def note(path: Path) -> None:
        synced.add(os.path.relpath(path, site.blobs.folders))

    monkeypatch.setattr("uflip.safe_files.sync_path", note)
    result = site.intake.commit(alice(site), upload, publish=False).id
    inside = {path.partition("/")[2] for path in synced if path.startswith(f".{result}-")}
    assert inside >= {"", "runs", "manifest.json", "ledger.jsonl", "summary.json.gz"}
    assert "." in synced


def test_resubmission_during_deletion_keeps_files(
    site: Site, prepared_result: PreparedResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = submit(site, prepared_result).id
    removed = Blobs.remove_folder

    def remove_and_resubmit(blobs: Blobs, folder: str) -> None:
        removed(blobs, folder)
        monkeypatch.setattr(Blobs, "remove_folder", removed)
        assert submit(site, prepared_result).new

    monkeypatch.setattr(Blobs, "remove_folder", remove_and_resubmit)
    site.intake.delete(result, "alice")
    check_whole(site, result, prepared_result)


def test_upload_and_removal_do_not_interleave(
    any_site: Site, prepared_result: PreparedResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = submit(any_site, prepared_result).id
    results: list[bool] = []
    resubmission = threading.Thread(
        target=lambda: results.append(submit(any_site, prepared_result).new)
    )
    removed = Blobs.remove

    def slowly(blobs: Blobs, digests: Iterable[str]) -> None:
        resubmission.start()
        time.sleep(0.3)  # without a lock it would have begun by now, and found all files
        removed(blobs, digests)

    monkeypatch.setattr(Blobs, "remove", slowly)
    any_site.intake.delete(result, "alice")
    resubmission.join()
    assert results == [True]
    check_whole(any_site, result, prepared_result)


def test_upload_cancelled_during_examination_is_no_result(
    site: Site, prepared_result: PreparedResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = upload_files(site, prepared_result)
    made = ResultFolders.make

    def make_and_cancel(*args: Any, **options: bool) -> ExaminedFolder:
        examined = made(*args, **options)
        site.intake.abandon(alice(site), upload)
        return examined

    monkeypatch.setattr(ResultFolders, "make", make_and_cancel)
    with pytest.raises(AbsentError, match="no such upload"):
        site.intake.commit(alice(site), upload, publish=False)
    with site.sessions() as session:
        assert session.scalars(select(ResultRecord)).all() == []


def test_upload_that_a_concurrent_commit_ends_is_begun_again(
    site: Site, prepared_result: PreparedResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request has found the upload; then a request with the same files commits it."""
    account = alice(site)
    files = prepared_result.files
    upload = upload_files(site, prepared_result)
    visible = blob_refs.visible

    def visible_then_commit(*arguments: Any) -> set[str]:
        found = visible(*arguments)
        monkeypatch.setattr(blob_refs, "visible", visible)
        assert site.intake.commit(account, upload, publish=False).new
        return found

    def commit_meanwhile() -> None:
        monkeypatch.setattr(blob_refs, "visible", visible_then_commit)

    commit_meanwhile()
    missing_bytes = site.intake.received(account, upload, files)
    assert set(missing_bytes.values()) == {0}, "its files were removed with it"
    site.intake.delete(result_id(files), "alice")

    upload = upload_files(site, prepared_result)
    commit_meanwhile()
    monkeypatch.setattr(Intake, "_check_lengths", lambda *_: None)  # asks for the same before
    with pytest.raises(AbsentError, match="no such upload"):
        site.intake.commit(account, upload, publish=False)
    site.intake.delete(result_id(files), "alice")

    upload = upload_files(site, prepared_result)
    receive = Blobs.receive

    def commit_then_receive(blobs: Blobs, *arguments: Any) -> dict[str, int]:
        assert site.intake.commit(account, upload, publish=False).new
        return receive(blobs, *arguments)

    monkeypatch.setattr(Blobs, "receive", commit_then_receive)
    part = FilePart(files[0].digest, 1, b"x")
    with pytest.raises(AbsentError, match="no such upload"):
        site.intake.receive(account, upload, [part])
