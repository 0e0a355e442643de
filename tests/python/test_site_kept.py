"""A result that is deleted and sent again: whatever ends the server in between, it is whole.

What takes results in is called in this process; a kill is an exception that nobody expects.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from site_server import small_result
from sqlalchemy import select

from uflip.results import Results
from uflip.site.accounts import new_token
from uflip.site.blobs import Blobs
from uflip.site.client import Prepared, missing, prepare
from uflip.site.intake import Taken
from uflip.site.offer import Offered
from uflip.site.parts import bodies
from uflip.site.site import Site, open_site
from uflip.site.tables import Account, Result


class KilledError(BaseException):
    """The server is gone."""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    folder = tmp_path_factory.mktemp("kept")
    (folder / "scratch").mkdir()
    return prepare(small_result(folder / "result"), folder / "scratch")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = open_site(tmp_path / "site")
    with made.sessions.begin() as session:
        new_token(session, "alice", "submitter")
    yield made
    made.close()


def alice(site: Site) -> Account:
    with site.sessions() as session:
        return session.scalars(select(Account)).one()


def uploaded(site: Site, prepared: Prepared) -> str:
    """Send the files of a result; returns the id of the upload."""
    who = alice(site)
    upload = site.intake.begin(who, [Offered(*each) for each in prepared.files])
    for some in bodies(missing(prepared, site.intake.received(who, upload))):
        site.intake.receive(who, upload, some)
    return upload


def submitted(site: Site, prepared: Prepared) -> Taken:
    return site.intake.commit(alice(site), uploaded(site, prepared), publish=True)


def check_whole(site: Site, result: str, prepared: Prepared) -> None:
    with site.sessions() as session:
        digests = [each.digest for each in session.get_one(Result, result).files]
    assert sorted(digests) == sorted(digest for _, digest, _ in prepared.files)
    assert all(map(site.blobs.there, digests)), "files by their digests"
    assert site.folders.summary_text(result)
    folder = site.folders.of(result)
    for name, _, size in prepared.files:
        assert (folder / name).stat().st_size == size, name
    Results.load(folder)


def test_a_kill_in_the_middle_of_a_removal_leaves_no_half_folder(
    site: Site, prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = submitted(site, prepared).result

    def half(folder: Path, **_: object) -> None:
        next((folder / "runs").iterdir()).unlink()
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr("uflip.site.blobs.shutil.rmtree", half)
        with pytest.raises(KilledError):
            site.intake.delete(result, "alice")
    assert not site.folders.of(result).exists()
    assert submitted(site, prepared).new
    check_whole(site, result, prepared)


def test_a_folder_without_a_row_is_replaced_whatever_is_in_it(
    site: Site, prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = submitted(site, prepared).result

    def kill(_: Blobs, __: str) -> None:
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(Blobs, "remove_folder", kill)
        with pytest.raises(KilledError):
            site.intake.delete(result, "alice")
    (site.folders.of(result) / "ledger.jsonl").unlink()
    assert submitted(site, prepared).new
    check_whole(site, result, prepared)
    assert [each.name for each in site.blobs.folders.iterdir()] == [result]


def test_a_folder_is_on_the_disk_before_its_row(
    site: Site, prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = uploaded(site, prepared)
    synced: set[str] = set()

    def note(paths: Iterable[Path]) -> None:
        synced.update(os.path.relpath(path, site.blobs.folders) for path in paths)

    monkeypatch.setattr("uflip.site.folders.on_disk", note)
    result = site.intake.commit(alice(site), upload, publish=False).result
    inside = {path.partition("/")[2] for path in synced if path.startswith(f".{result}-")}
    assert inside == {"", "runs", "summary.json.gz"}
    assert "." in synced
