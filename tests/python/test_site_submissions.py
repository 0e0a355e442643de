"""The site's answers about submissions: owner, visibility, lengths of files."""

import hashlib
import json
import os
import random
import re
import shutil
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from command_line import Outcome, uflip
from forged_results import forge_results
from site_server import SiteServer, site_server

from uflip.errors import ResultsError, UsageError
from uflip.site import upload_files
from uflip.site.blobs import Blobs
from uflip.site.client import Client, PreparedResult, redacted_copy
from uflip.site.intake import _existing_result
from uflip.site.site import open_site
from uflip.site.tables import Audit, ResultRecord
from uflip.site.upload_files import (
    MAX_PART_BYTES,
    MAX_PARTS,
    FilePart,
    Missing,
    UploadFile,
    bodies,
    pack_parts,
    unpack_parts,
)

DEVICE = "sim:demo?blocks_per_die=64"


@pytest.fixture(scope="module")
def result_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("taken") / "result"
    outcome = uflip("run", DEVICE, "--scale", "quick", "--only", "order", "-q", "--out", out)
    assert outcome.code == 0, outcome.err
    return out


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SiteServer]:
    with site_server(tmp_path / "site") as site:
        for name, role in (("alice", "submitter"), ("bob", "submitter"), ("root", "admin")):
            site.token(name, role)
        yield site


def submit(server: SiteServer, folder: Path, account: str, *options: object) -> Outcome:
    return uflip("submit", folder, server.url, "--token", server.token(account), "-q", *options)


def output_of(outcome: Outcome) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(outcome.out)
    return document


def test_duplicate_submission_reports_its_owner(server: SiteServer, result_dir: Path) -> None:
    first = submit(server, result_dir, "alice")
    assert (first.code, "(new, private until `--publish`)" in first.out) == (0, True)
    # Only alice can publish it: a duplicate submission does not, and its answer states that.
    duplicate = submit(server, result_dir, "bob")
    assert duplicate.code == 0, duplicate.err
    assert (
        "submitted by somebody else, private; only they or an admin can publish it" in duplicate.out
    )
    refused = submit(server, result_dir, "bob", "--publish", "--json")
    answer = output_of(refused)
    assert refused.code == 3
    assert (answer["new"], answer["own"], answer["published"]) == (False, False, False)
    address = f"/api/v1/results/{answer['id']}"
    assert server.client().get(address).status_code == 404
    # An admin may publish any result.
    done = output_of(submit(server, result_dir, "root", "--publish", "--json"))
    assert (done["own"], done["published"]) == (False, True)
    assert server.client().get(address).json()["submitted_by"] == "alice"
    # From now on every user learns that it is public, whatever they request.
    for account, own in (("bob", False), ("alice", True)):
        for options in ((), ("--publish",)):
            outcome = submit(server, result_dir, account, "--json", *options)
            answer = output_of(outcome)
            assert (outcome.code, answer["own"], answer["published"]) == (0, own, True), (
                account,
                options,
            )
    assert "submitted by somebody else, published" in submit(server, result_dir, "bob").out
    site = open_site(server.folder)
    with site.sessions() as session:
        publishers = session.query(Audit).filter(Audit.action == "publish")
        assert [each.account for each in publishers] == ["root"]
    site.close()


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _offer(client: httpx.Client, files: dict[str, bytes], **lengths: int) -> httpx.Response:
    offered = [
        {
            "path": name,
            "digest": hashlib.sha256(content).hexdigest(),
            "bytes": lengths.get(name.partition(".")[0], len(content)),
        }
        for name, content in files.items()
    ]
    return client.post("/api/v1/submissions", json={"files": offered})


@pytest.mark.parametrize("claimed", [0, 1, 1 << 20])
def test_announced_length_must_match_file(
    server: SiteServer, result_dir: Path, tmp_path: Path, claimed: int
) -> None:
    redacted_copy(result_dir, tmp_path / "copy")
    files = _files(tmp_path / "copy")
    bob = server.client("bob")
    # An upload begun before the file exists: later parts and the commit are checked against it.
    early = _offer(bob, files, manifest=claimed)
    assert early.status_code == 201
    made = output_of(submit(server, result_dir, "alice", "--publish", "--json"))
    late = _offer(bob, files, manifest=claimed)
    assert late.status_code == 400
    error = late.json()["error"]
    assert error["what"] == "The file has another length than announced"
    assert (error["where"], error["got"]) == ("manifest.json", f"{claimed} bytes")
    begun = early.json()["id"]
    received = bob.get(f"/api/v1/submissions/{begun}").json()["received"]
    digest = hashlib.sha256(files["manifest.json"]).hexdigest()
    assert received[digest] == len(files["manifest.json"])
    early_commit = bob.post(f"/api/v1/submissions/{begun}/commit")
    assert early_commit.status_code == 400
    assert early_commit.json()["error"]["what"] == "The file has another length than announced"
    server.client("alice").delete(f"/api/v1/results/{made['id']}")
    # Bob must send files that he may not see any more.
    committed = bob.post(f"/api/v1/submissions/{begun}/commit")
    assert committed.status_code == 400
    assert committed.json()["error"]["what"] == "A file is missing"
    assert bob.delete(f"/api/v1/submissions/{begun}").status_code == 204


def test_full_disk_is_reported_to_sender(server: SiteServer) -> None:
    alice, content = server.client("alice"), b"content"
    begun = _offer(alice, {"manifest.json": content, "ledger.jsonl": b""}).json()
    name = hashlib.sha256(content).hexdigest()
    arriving = server.folder / "arriving" / begun["id"] / name
    arriving.symlink_to("/dev/full")
    address = f"/api/v1/submissions/{begun['id']}/files/{name}"
    full = alice.put(address, params={"offset": 0}, content=content)
    assert full.status_code == 507
    error = full.json()["error"]
    assert (error["kind"], error["what"]) == ("unavailable", "The disk of the site is full")
    assert error["got"] == "No space left on device"
    arriving.unlink()
    assert alice.put(address, params={"offset": 0}, content=content).json() == {"received": 7}


def test_site_files_are_private_to_its_user(result_dir: Path, tmp_path: Path) -> None:
    """Including a site in an existing folder."""
    umask = 0o022
    before = os.umask(umask)
    try:
        (tmp_path / "old" / "blobs").mkdir(parents=True)
        for name in ("new", "old"):
            with site_server(tmp_path / name) as site:
                site.token("alice")
                assert submit(site, result_dir, "alice").code == 0
                backup = tmp_path / f"backup-{name}"
                assert uflip("site", "backup", site.folder, backup).code == 0
                for path in [*site.folder.iterdir(), backup, *backup.iterdir()]:
                    mode = stat.S_IMODE(path.stat().st_mode)
                    assert mode & 0o077 == 0 or path.name == "site.id", (path, oct(mode))
        assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
        assert os.umask(umask) == umask, "a verb of a site leaves it as it was"
    finally:
        os.umask(before)


def test_digest_grants_no_access(server: SiteServer, result_dir: Path, tmp_path: Path) -> None:
    """Bob noted the list of files while it was public, and sends all but one of them."""
    redacted_copy(result_dir, tmp_path / "copy")
    files = _files(tmp_path / "copy")
    run = max(files, key=lambda name: len(files[name]))
    digest = hashlib.sha256(files[run]).hexdigest()
    made = output_of(submit(server, result_dir, "alice", "--publish", "--json"))
    alice, bob = server.client("alice"), server.client("bob")
    first = _offer(bob, files).json()
    assert first["received"][digest] == len(files[run]), "it is public"
    assert alice.post(f"/api/v1/results/{made['id']}/withdraw").status_code == 200

    begun = _offer(bob, files).json()
    assert begun["id"] == first["id"]
    assert {*begun["received"].values()} == {0}
    # Refusing another length must not reveal whether the site has a file.
    assert _offer(bob, files, manifest=1).status_code == 201
    upload = f"/api/v1/submissions/{begun['id']}"
    for name, content in files.items():
        address = f"{upload}/files/{hashlib.sha256(content).hexdigest()}"
        most = len(content) - (name == run)
        sent = bob.put(address, params={"offset": 0}, content=content[:most])
        assert sent.json() == {"received": most}, sent.text
    refused = bob.post(f"{upload}/commit", params={"publish": True})
    assert (refused.status_code, refused.json()["error"]["where"]) == (400, run)
    last = f"{upload}/files/{digest}"
    wrong = bob.put(last, params={"offset": len(files[run]) - 1}, content=b"?")
    assert wrong.status_code == 422, "its last byte is another"
    assert bob.post(f"{upload}/commit").status_code == 400
    # A client that has the file sends it, and gets alice's result; her files are intact.
    assert bob.put(last, params={"offset": 0}, content=files[run]).status_code == 200
    committed = bob.post(f"{upload}/commit").json()
    assert (committed["id"], committed["new"], committed["own"]) == (made["id"], False, False)
    assert alice.get(f"/api/v1/results/{made['id']}/files/{digest}").content == files[run]
    assert not [*(server.folder / "arriving" / begun["id"]).glob("*")]


def test_result_id_depends_on_files(
    server: SiteServer, result_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An id that other files have is refused."""
    made = output_of(submit(server, result_dir, "alice", "--publish", "--json"))
    assert re.fullmatch("[0-9a-f]{32}", made["id"])
    site = open_site(server.folder)
    with site.sessions() as session:
        record = session.get_one(ResultRecord, made["id"])
        files = [UploadFile(each.path, each.digest, each.bytes) for each in record.files]
        assert _existing_result(session, files) is record
        other = [*files[1:], replace(files[0], digest="0" * 64)]
        assert _existing_result(session, other) is None
        monkeypatch.setattr("uflip.site.intake.result_id", lambda _files: made["id"])
        with pytest.raises(ResultsError, match="Another result has this id"):
            _existing_result(session, other)
    site.close()


@pytest.mark.parametrize("document", ["manifest", "ledger"])
def test_document_length_is_limited(server: SiteServer, result_dir: Path, document: str) -> None:
    files = _files(result_dir)
    documents = {name: files[name] for name in ("manifest.json", "ledger.jsonl")}
    answer = _offer(server.client("bob"), documents, **{document: (8 << 20) + 1})
    assert answer.status_code == 400
    assert f"{document}.json" in answer.json()["error"]["got"]
    assert _offer(server.client("bob"), documents, **{document: 8 << 20}).status_code == 201


def test_unfinished_result_is_neither_sent_nor_accepted(
    server: SiteServer, result_dir: Path, tmp_path: Path
) -> None:
    changes = {"status": "interrupted"}
    folder = forge_results(
        result_dir, tmp_path / "unfinished", lambda content: content.update(changes)
    )
    outcome = uflip("submit", folder, "http://127.0.0.1:1", "--dry-run")
    assert (outcome.code, "The results are incomplete" in outcome.err) == (5, True), outcome.err
    files = [
        UploadFile(name, hashlib.sha256(content).hexdigest(), len(content))
        for name, content in _files(folder).items()
    ]
    with Client(server.url, server.token("alice")) as client, pytest.raises(ResultsError) as raised:
        client.submit(PreparedResult(folder, files, []))
    assert (raised.value.what, raised.value.got) == (
        "The results are incomplete",
        "interrupted",
    )
    assert not [*(server.folder / "folders").iterdir()]


def test_submit_names_the_damaged_file(result_dir: Path, tmp_path: Path) -> None:
    folder = tmp_path / "damaged"
    shutil.copytree(result_dir, folder)
    run = sorted((folder / "runs").glob("*.parquet"))[3]
    content = bytearray(run.read_bytes())
    content[len(content) // 2] ^= 1
    run.chmod(0o644)
    run.write_bytes(content)
    verified = uflip("verify", folder)
    outcome = uflip("submit", folder, "http://127.0.0.1:1", "--dry-run")
    assert (verified.code, outcome.code) == (5, 5), outcome.err
    assert f"{run}: " in verified.out
    assert str(run) in outcome.err
    assert "damaged: " in outcome.err
    assert "damaged-1" not in outcome.err


# Parts of many files in one body: only valid parts are accepted.


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_files_arrive_intact_in_any_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(3)
    contents = [rng.randbytes(rng.choice([0, 1, 999, 1000, 1001, 5000])) for _ in range(60)]
    files = []
    for number, content in enumerate(contents):
        path = tmp_path / f"{number}"
        path.write_bytes(content)
        files.append(Missing(path, digest(content), len(content), 0))
    blobs = Blobs(tmp_path / "site")
    monkeypatch.setattr(upload_files, "MAX_PART_BYTES", 1000)
    monkeypatch.setattr(upload_files, "MAX_PARTS", 7)
    sizes = {each.digest: each.bytes for each in files}
    received: dict[str, int] = {}
    for batch in bodies(files):
        assert len(batch) <= 7
        assert sum(len(each.content) for each in batch) <= 1000
        decoded = unpack_parts(pack_parts(batch))
        assert decoded == batch
        received |= blobs.receive("upload", [(each, sizes[each.digest]) for each in decoded])
    assert received == sizes
    for content in contents:
        assert blobs.path(digest(content)).read_bytes() == content
    sent = [*(tmp_path / "site" / "arriving" / "upload").iterdir()]
    assert {each.name for each in sent} == {*sizes}, "the upload holds them"
    assert all(each.samefile(blobs.path(each.name)) for each in sent), "each is kept once"
    blobs.remove_upload("upload")
    assert not [*(tmp_path / "site" / "arriving").iterdir()]


def test_file_of_two_senders_is_stored_once(
    tmp_path: Path,
) -> None:
    blobs, content = Blobs(tmp_path / "site"), b"some content"
    name, size = digest(content), len(content)
    whole = [(FilePart(name, 0, content), size)]
    assert blobs.receive("first", whole) == {name: size}
    assert blobs.received("second", name, size) == 0
    half = (FilePart(name, 0, content[:5]), size)
    assert blobs.receive("second", [half]) == {name: 5}
    assert blobs.receive("second", [(FilePart(name, 5, content[5:]), size)]) == {name: size}
    assert blobs.receive("second", whole) == {name: size}, "again"
    links = [tmp_path / "site" / "arriving" / each / name for each in ("first", "second")]
    assert all(each.samefile(blobs.path(name)) for each in links)
    assert [*links[1].parent.iterdir()] == [links[1]]
    blobs.remove_upload("first")
    assert blobs.received("second", name, size) == size
    assert blobs.path(name).read_bytes() == content


GOOD = pack_parts([FilePart("0" * 64, 0, b"abc")])


@pytest.mark.parametrize(
    "body",
    [b"x", GOOD[:-1], GOOD + b"x", GOOD + GOOD[:40], bytes(32) + b"\xff" * 16,
     pack_parts([FilePart("0" * 64, 0, b"")] * (MAX_PARTS + 1)),
     pack_parts([FilePart("0" * 64, 0, bytes(MAX_PART_BYTES)), FilePart("0" * 64, 0, b"x")])],
    ids=["a letter", "cut", "more", "half a head", "a huge length", "many", "long"],
)  # fmt: skip
def test_malformed_body_is_refused(body: bytes) -> None:
    with pytest.raises(UsageError, match="Not parts of files"):
        unpack_parts(body)


def test_invalid_part_affects_no_other(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path / "site")
    first, second = b"first", b"second"
    sent = [(FilePart(digest(first), 0, first), 5), (FilePart(digest(second), 3, second[3:]), 6)]
    with pytest.raises(UsageError, match="does not continue"):
        blobs.receive("upload", sent)
    assert blobs.received("upload", digest(first), 5) == 5
    assert blobs.exists(digest(first))
    # The part with a wrong digest is discarded; the other one is stored.
    sent = [(FilePart(digest(b"other!"), 0, second), 6), (FilePart(digest(second), 0, second), 6)]
    with pytest.raises(ResultsError, match="does not match its digest"):
        blobs.receive("upload", sent)
    assert blobs.exists(digest(second))
    assert blobs.received("upload", digest(b"other!"), 6) == 0
