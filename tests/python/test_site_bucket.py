"""A site with its files in S3-compatible storage: a real server, over HTTP."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from command_line import uflip
from site_server import site_server, small_result

import uflip as package

obstore = pytest.importorskip("obstore")
PROGRAMS = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
STORE = "s3://results/of-the-lab"


@dataclass
class Storage:
    """A server of buckets, and one bucket of it."""

    process: subprocess.Popen[bytes]
    url: str

    def names(self) -> set[str]:
        """Return the names in the bucket, as another client sees it."""
        objects = obstore.list(obstore.store.from_url("s3://results")).collect()
        return {each["path"] for each in objects}


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Storage]:
    program = shutil.which("moto_server", path=PROGRAMS)
    if program is None:
        pytest.skip("no server of S3: pip install 'moto[s3,server]'")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [program, "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    environment = {
        "AWS_ENDPOINT": url, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret",
    }  # fmt: skip
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    try:
        begun = time.monotonic()
        while True:
            try:
                httpx.put(f"{url}/results").raise_for_status()
                break
            except httpx.HTTPError:
                assert process.poll() is None
                assert time.monotonic() - begun < 60, "the storage does not answer"
                time.sleep(0.1)
        yield Storage(process, url)
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def result_dir(tmp_path: Path) -> Path:
    return small_result(tmp_path / "result")


def empty_folder(folder: Path) -> None:
    for name in ("blobs", "folders"):
        for each in (folder / name).iterdir():
            shutil.rmtree(each)


def test_site_is_restored_from_its_bucket(
    storage: Storage, result_dir: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "site"
    with site_server(folder, None, "--store", STORE) as server:
        token = server.token("alice")
        outcome = uflip("submit", result_dir, server.url, "--token", token, "--publish", "--json")
        assert outcome.code == 0, outcome.err
        (listed,) = server.client().get("/api/v1/results").json()["results"]
        address = f"/api/v1/results/{listed['id']}"
        files = server.client().get(address).json()["files"]
        assert storage.names() == {f"of-the-lab/{each['digest']}" for each in files}
        before = server.client().get(f"{address}/summary").content
        # Without local copies every address still works.
        for path in (
            f"/results/{listed['id']}", f"/explore/api/result?key={listed['id']}",
            f"{address}/summary", f"{address}/files/{files[-1]['digest']}",
        ):  # fmt: skip
            empty_folder(folder)
            assert server.client().get(path).status_code == 200, path
        assert server.client().get(f"{address}/summary").content == before
        empty_folder(folder)
        pulled = tmp_path / "pulled"
        assert uflip("pull", server.url, listed["id"], "--out", pulled).code == 0
        assert package.load(pulled).frame() == package.load(result_dir).frame()
        # Another machine: the same database and bucket, but another folder.
        database = f"sqlite:///{folder / 'site.db'}"
        with site_server(tmp_path / "other", database, "--store", STORE) as other:
            assert other.client().get(f"{address}/summary").content == before
        assert uflip(
            "site", "backup", tmp_path / "other", tmp_path / "backup", "--database", database,
            "--store", STORE,
        ).code == 0  # fmt: skip
        # Deleted is deleted there, too.
        assert server.client("alice").delete(address).status_code == 204
        assert storage.names() == set()
    restored = uflip("site", "restore", tmp_path / "backup", tmp_path / "again", "--store", STORE)
    assert restored.code == 0, restored.err
    assert storage.names() == {f"of-the-lab/{each['digest']}" for each in files}


def test_changed_bucket_object_is_detected(
    storage: Storage, result_dir: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "site"
    with site_server(folder, None, "--store", STORE) as server:
        token = server.token("alice")
        assert uflip("submit", result_dir, server.url, "--token", token, "--publish").code == 0
        (listed,) = server.client().get("/api/v1/results").json()["results"]
        empty_folder(folder)
        changed = sorted(storage.names())[0]
        obstore.put(obstore.store.from_url("s3://results"), changed, b"something else")
        response = server.client().get(f"/api/v1/results/{listed['id']}/summary")
        assert response.status_code == 422
        assert "is damaged" in response.text
        assert not list((folder / "folders").iterdir())


def test_unavailable_bucket_refuses_submission(
    storage: Storage, result_dir: Path, tmp_path: Path
) -> None:
    with site_server(tmp_path / "site", None, "--store", STORE) as server:
        token = server.token("alice")
        storage.process.kill()
        storage.process.wait()
        sent = uflip("submit", result_dir, server.url, "--token", token, "--publish")
        assert sent.code != 0
        assert "bucket cannot be used" in sent.err
        listed: Any = server.client("alice").get("/api/v1/results").json()
        assert listed["total"] == 0


@pytest.mark.parametrize("url", ["file:///tmp/x", "nonsense", "s3://"])
def test_invalid_bucket_url_is_refused(tmp_path: Path, url: str) -> None:
    outcome = uflip("site", "backup", tmp_path / "site", tmp_path / "out", "--store", url)
    assert outcome.code == 2, outcome.err
    assert "Not a bucket" in outcome.err
