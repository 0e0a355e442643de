"""A folder and a database must belong to one site; a site is created only where it may be.

A start removes folders without a row in the database: with the database of another site it would
remove all of them.
"""

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command_line import tree, uflip
from site_server import SiteServer, postgres, site_server, small_result, start_site

import uflip as package
from uflip.errors import RefusedError
from uflip.site import blob_refs
from uflip.site.site import ID_FILE, open_site

LONG_AGO_S = 2 * 3600


@pytest.fixture(scope="module")
def result_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("identity") / "result"
    return small_result(out)


def _publish(server: SiteServer, folder: Path) -> str:
    outcome = uflip(
        "submit", folder, server.url, "--token", server.token("alice"), "--publish", "--json"
    )
    assert outcome.code == 0, outcome.err
    return str(json.loads(outcome.out)["id"])


@pytest.fixture
def site(tmp_path: Path, result_dir: Path) -> tuple[Path, str, str]:
    """Return a site with an external database and one result: folder, URL of the database, id."""
    folder, database = tmp_path / "site", f"sqlite:///{tmp_path / 'its.db'}"
    with site_server(folder, database) as server:
        result = _publish(server, result_dir)
    _age(folder)
    return folder, database, result


def _age(folder: Path) -> None:
    then = time.time() - LONG_AGO_S
    for path in folder.rglob("*"):
        os.utime(path, (then, then))


@contextmanager
def folders_unchanged(folder: Path) -> Iterator[None]:
    before = tree(folder / "folders")
    yield
    assert tree(folder / "folders") == before


def _refusal(*arguments: object) -> str:
    """Start a command that must be refused, and return its error."""
    process = start_site(*arguments)
    try:
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 3, err
    return str(err)


@pytest.mark.parametrize("aged", ["with its id", "older than the id"])
def test_wrong_database_removes_nothing(
    site: tuple[Path, str, str], tmp_path: Path, aged: str
) -> None:
    folder, database, result = site
    if aged == "older than the id":
        (folder / ID_FILE).unlink()
    another = tmp_path / "another.db"
    open_site(tmp_path / "elsewhere", f"sqlite:///{another}").close()
    with folders_unchanged(folder):
        for more in ((), ("--database", f"sqlite:///{another}")):
            message = _refusal("serve", folder, "--port", "0", *more)
            assert "The database belongs to another site" in message
            assert "--database" in message
            assert "nothing was changed" in message
            assert _refusal("token", folder, "bob", *more)
    assert not (folder / "site.db").exists(), "no database was created"
    # With its own database it starts.
    with site_server(folder, database) as server:
        assert server.client().get(f"/api/v1/results/{result}/summary").status_code == 200
    assert (folder / ID_FILE).read_text().strip()


def test_folder_without_id_gets_it_again(
    site: tuple[Path, str, str],
) -> None:
    folder, database, _ = site
    (folder / ID_FILE).unlink()
    with folders_unchanged(folder):
        first, second = open_site(folder, database), open_site(folder, database)
        assert blob_refs.sweep(first.sessions, first.blobs) == 0
        first.close()
        second.close()
    assert first.id == second.id == (folder / ID_FILE).read_text().strip()


def test_folder_of_another_site_is_refused_on_postgresql(
    site: tuple[Path, str, str], tmp_path: Path
) -> None:
    folder, _, _ = site
    with postgres() as url:
        with folders_unchanged(folder), pytest.raises(RefusedError) as raised:
            open_site(folder, url)
        assert str(folder) == raised.value.where
        # A new folder joins the site: servers on several machines have one each.
        one, other = open_site(tmp_path / "one", url), open_site(tmp_path / "other", url)
        assert one.id == other.id
        one.close()
        other.close()


def test_only_uflip_names_are_swept(site: tuple[Path, str, str]) -> None:
    folder, database, result = site
    name_of_result = "0123456789abcdef" * 2
    retained = (
        "thesis", ".git", "0123456789ab", f"{name_of_result}-x", name_of_result.upper(),
        f".{name_of_result}-thesis", result,
    )  # fmt: skip
    removed = (name_of_result, f".{name_of_result}-01234567", f".{result}-89abcdef")
    for name in {*retained, *removed} - {result}:
        (folder / "folders" / name).mkdir()
        (folder / "folders" / name / "t.txt").write_text("mine")
    (folder / "arriving" / "notes").mkdir()
    (folder / "arriving" / ("0" * 32)).mkdir()
    _age(folder)
    with site_server(folder, database):
        assert {path.name for path in (folder / "folders").iterdir()} == {*retained}
        assert [path.name for path in (folder / "arriving").iterdir()] == ["notes"]


def test_lost_result_folder_is_rebuilt_from_blobs(
    site: tuple[Path, str, str], result_dir: Path
) -> None:
    folder, database, result = site
    with site_server(folder, database) as server:
        address = f"/api/v1/results/{result}/summary"
        before = server.client().get(address).content
        for path in (address, f"/results/{result}", f"/explore/api/result?key={result}"):
            shutil.rmtree(folder / "folders" / result)
            assert server.client().get(path).status_code == 200, path
        assert server.client().get(address).content == before
        assert package.load(f"{server.url}/results/{result}").frame() == (
            package.load(result_dir).frame()
        )
        # Without its files the result cannot be made; the error reports it.
        shutil.rmtree(folder / "folders" / result)
        shutil.rmtree(folder / "blobs")
        response = server.client().get(address)
        assert response.status_code == 422
        assert response.json()["error"]["what"] == "A file of this result is missing"


def test_health_checks_that_folders_are_readable(site: tuple[Path, str, str]) -> None:
    folder, database, _ = site
    with site_server(folder, database) as server:
        healthy = server.client().get("/health")
        assert (healthy.status_code, healthy.json()["status"]) == (200, "ok")
        # A disk that is not mounted leaves an empty folder, or none, or something else there.
        away = folder.with_name("away")
        folder.rename(away)
        assert server.client().get("/health").status_code == 503
        (folder / "folders").mkdir(parents=True)
        assert "another site" in server.client().get("/health").text
        (folder / ID_FILE).write_text((away / ID_FILE).read_text())
        assert server.client().get("/health").status_code == 200
        (folder / "folders").rmdir()
        (folder / "folders").write_text("no folder")
        assert server.client().get("/health").status_code == 503


def test_mistyped_folder_creates_no_site(site: tuple[Path, str, str], tmp_path: Path) -> None:
    _, database, _ = site
    typo, plain = tmp_path / "tpyo", tmp_path / "plain"
    plain.mkdir()
    for folder in (typo, plain):
        for arguments in (
            ("backup", folder, tmp_path / "backup"),
            ("backup", folder, tmp_path / "backup", "--database", database),
            ("token", folder, "alice", "--revoke"),
        ):
            outcome = uflip("site", *arguments)
            assert (outcome.code, "The folder contains no site" in outcome.err) == (2, True), (
                outcome.err
            )
            assert str(folder) in outcome.err
    assert not typo.exists()
    assert not [*plain.iterdir()]
    assert not (tmp_path / "backup").exists()


def test_backup_creates_no_database(site: tuple[Path, str, str], tmp_path: Path) -> None:
    folder, _, _ = site
    for more in ((), ("--database", f"sqlite:///{tmp_path / 'tpyo.db'}")):
        outcome = uflip("site", "backup", folder, tmp_path / "backup", *more)
        assert (outcome.code, "no database" in outcome.err) == (2, True), outcome.err
    assert not (folder / "site.db").exists()
    assert not (tmp_path / "tpyo.db").exists()


def test_token_for_new_site_reports_its_creation(tmp_path: Path) -> None:
    first = uflip("site", "token", tmp_path / "site", "alice", "--json")
    second = uflip("site", "token", tmp_path / "site", "bob", "--json")
    assert (first.code, second.code) == (0, 0), first.err + second.err
    assert f"There was no site in {tmp_path / 'site'}: a NEW one was created" in first.err
    assert second.err == ""
    assert json.loads(first.out)["token"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("token", "{site}", ""), "The account name is invalid"),
        (("token", "{site}", "alice", "--role", "king"), "Unknown role"),
        (("seed", "{site}", "--device", "foo"), "Unknown device"),
        (("seed", "{site}", "--device", "sim:demo", "--only", "foo"), "Unknown micro-benchmark"),
        (("seed", "{site}", "--device", "sim:demo", "--scale", "foo"), "Unknown scale"),
        (("token", "{site}", "alice", "--database", "mysql://x"), "Not the address of a database"),
        (
            ("serve", "{site}", "--database", "mysql://x", "--port", "0"),
            "Not the address of a database",
        ),
        (("serve", "{site}", "--host", "0.0.0.0", "--port", "0"), "--base-url"),
    ],
)
def test_invalid_arguments_create_no_site(
    arguments: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    folder = tmp_path / "site"
    outcome = uflip("site", *(word.format(site=folder) for word in arguments))
    assert (outcome.code, message in outcome.err) == (2, True), outcome.err
    assert not folder.exists()


@pytest.mark.parametrize("library", ["sqlalchemy", "alembic"])
@pytest.mark.parametrize("verb", ["serve", "token", "seed", "backup", "restore"])
def test_missing_libraries_are_reported_by_every_verb(
    verb: str, library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, library, None)
        second = () if verb in {"serve", "seed"} else (tmp_path / "second",)
        outcome = uflip("site", verb, tmp_path / "first", *second)
    assert (outcome.code, "pip install 'fastapi>=" in outcome.err) == (6, True), outcome.err
    assert not [*tmp_path.iterdir()]
