"""The results site: are submissions checked, stored, searchable, and visible to allowed users?"""

import hashlib
import json
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from functools import partial
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from command_line import uflip
from site_server import SiteServer, postgres, site_server
from test_web_connections import open_connections

import uflip as package
from uflip.benchmark.events import RunFinished
from uflip.errors import InterruptedRun
from uflip.profiles import profile_names
from uflip.results import Results
from uflip.site import pages
from uflip.site import seed as seeding
from uflip.site.app import RequestRateLimit, application
from uflip.site.client import redacted_copy
from uflip.site.database import open_database
from uflip.site.site import open_site
from uflip.site.tables import Audit, Base, ResultRecord

DEVICE = "sim:demo?blocks_per_die=64"
SUBMITTER = "submitter"


def benchmark(out: Path, device: str = DEVICE, *more: object) -> Path:
    outcome = uflip("run", device, "--scale", "quick", "--only", "order", "-q", "--out", out, *more)
    assert outcome.code == 0, outcome.err
    return out


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return benchmark(tmp_path_factory.mktemp("site") / "result")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SiteServer]:
    with site_server(tmp_path_factory.mktemp("served") / "site", fresh=True) as site:
        yield site


@pytest.fixture(scope="module")
def over_postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SiteServer]:
    folder = tmp_path_factory.mktemp("served") / "site"
    with postgres() as url, site_server(folder, url) as site:
        yield site


@pytest.fixture(params=["server", "over_postgres"], ids=["sqlite", "postgresql"])
def any_server(request: pytest.FixtureRequest) -> SiteServer:
    made: SiteServer = request.getfixturevalue(request.param)
    return made


def submit(server: SiteServer, folder: Path, *options: object, account: str = "alice") -> Any:
    token = server.token(account)
    outcome = uflip("submit", folder, server.url, "--token", token, "--json", *options)
    assert outcome.code == 0, outcome.err
    return json.loads(outcome.out)


def test_result_is_submitted_checked_published_and_pulled(
    any_server: SiteServer, folder: Path, tmp_path: Path
) -> None:
    first = submit(any_server, folder)
    assert first["new"]
    nobody, alice = any_server.client(), any_server.client("alice")
    # Private until it is published: to others it is not there at all.
    address = f"/api/v1/results/{first['id']}"
    assert nobody.get(address).status_code == 404
    assert alice.get(address).json()["published_utc"] is None
    assert nobody.get("/api/v1/results").json()["total"] == 0
    assert alice.post(f"{address}/publish").status_code == 200
    (listed,) = nobody.get("/api/v1/results").json()["results"]
    assert listed["id"] == first["id"]
    for page in ("/", "/devices", f"/devices/{listed['device_slug']}", f"/results/{first['id']}"):
        response = nobody.get(page)
        assert response.status_code == 200, page
        assert listed["device"] in response.text
    for path in ("", "app.js", "api/results", f"api/result?key={first['id']}"):
        response = nobody.get(f"/explore/{path}")
        assert response.status_code == 200, path
        assert str(any_server.folder) not in response.text
    # A site runs nothing: the page lists the views that it has.
    assert 'data-views="site results"' in nobody.get("/explore/").text
    # The downloaded result is the same, and verifies.
    assert uflip("pull", any_server.url, first["id"], "--out", tmp_path / "pulled").code == 0
    assert uflip("verify", tmp_path / "pulled").code == 0
    ours, theirs = package.load(folder), package.load(first["url"])
    assert theirs.frame() == ours.frame()
    # The summary of the server equals that of the local folder.
    document = nobody.get(f"{address}/summary").json()
    assert document["micro_benchmarks"] == ours.summary["micro_benchmarks"]
    # The same files again are not another result.
    resubmitted = submit(any_server, folder)
    assert (resubmitted["id"], resubmitted["new"]) == (first["id"], False)
    # Deleted is deleted.
    assert alice.delete(address).status_code == 204
    assert alice.get(address).status_code == 404
    assert nobody.get(f"/explore/api/result?key={first['id']}").status_code == 404
    assert not list((any_server.folder / "folders").iterdir())
    assert not [path for path in (any_server.folder / "blobs").rglob("*") if path.is_file()]


def test_interrupted_upload_resumes(server: SiteServer, folder: Path, tmp_path: Path) -> None:
    redacted_copy(folder, tmp_path / "copy")
    files = _files(tmp_path / "copy")
    server.token("carol")
    carol = server.client("carol")
    begun = begin_upload(carol, files)
    name, content = max(files.items(), key=lambda item: len(item[1]))
    address = f"/api/v1/submissions/{begun['id']}/files/{_digest(content)}"
    half = len(content) // 2
    sent = carol.put(address, params={"offset": 0}, content=content[:half])
    assert sent.json() == {"received": half}
    # An incomplete upload cannot be committed, and a gap is refused.
    assert carol.post(f"/api/v1/submissions/{begun['id']}/commit").status_code == 400
    assert carol.put(address, params={"offset": half + 1}, content=b"x").status_code == 400
    resumed = begin_upload(carol, files)
    assert resumed["id"] == begun["id"]
    assert resumed["received"][_digest(content)] == half
    assert submit(server, folder, account="carol")["new"], name
    carol = server.client("carol")
    assert carol.get(f"/api/v1/submissions/{begun['id']}").status_code == 404
    for each in carol.get("/api/v1/results").json()["results"]:
        assert carol.delete(f"/api/v1/results/{each['id']}").status_code == 204


def test_file_complete_before_kill_is_kept(
    server: SiteServer, folder: Path, tmp_path: Path
) -> None:
    redacted_copy(folder, tmp_path / "copy")
    files = _files(tmp_path / "copy")
    server.token("dora")
    dora = server.client("dora")
    begun = begin_upload(dora, files)
    # Files as left by a kill between the last part and the rename, one right and one wrong.
    arriving = server.folder / "arriving" / begun["id"]
    arriving.mkdir(exist_ok=True)
    right, wrong = list(files.values())[:2]
    (arriving / _digest(right)).write_bytes(right)
    (arriving / _digest(wrong)).write_bytes(bytes(len(wrong)))
    received = begin_upload(dora, files)["received"]
    assert received[_digest(right)] == len(right)
    assert received[_digest(wrong)] == 0
    (blob,) = arriving.iterdir()
    assert blob.samefile(server.folder / "blobs" / blob.name[:2] / blob.name)
    assert send_files(dora, files).status_code == 201
    for each in dora.get("/api/v1/results").json()["results"]:
        assert dora.delete(f"/api/v1/results/{each['id']}").status_code == 204


def test_cancelled_upload_leaves_no_file(server: SiteServer, folder: Path, tmp_path: Path) -> None:
    redacted_copy(folder, tmp_path / "copy")
    files = _files(tmp_path / "copy")
    submission = submit(server, folder, account="ellen")
    blobs_of_result = {path.name for path in server.folder.glob("blobs/*/*")}
    files["manifest.json"] += b" "
    begun = begin_upload(server.client("ellen"), files)
    address = f"/api/v1/submissions/{begun['id']}"
    changed = files["manifest.json"]
    sent = server.client("ellen").put(
        f"{address}/files/{_digest(changed)}", params={"offset": 0}, content=changed
    )
    assert sent.json() == {"received": len(changed)}
    assert (server.folder / "blobs" / _digest(changed)[:2] / _digest(changed)).exists()
    assert server.client("ellen").delete(address).status_code == 204
    assert {path.name for path in server.folder.glob("blobs/*/*")} == blobs_of_result
    assert server.client("ellen").delete(f"/api/v1/results/{submission['id']}").status_code == 204


def test_machine_names_are_redacted(tmp_path: Path) -> None:
    secret = "a-very-private-name"
    target = tmp_path / f"{secret}.bin"
    result = benchmark(
        tmp_path / secret, f"file:{target}", "--size", "16MiB", "--buffered", "--pause", "0s"
    )
    redactions = redacted_copy(result, tmp_path / "copy")
    assert {"device.url", "host.command_line"} <= {each.where for each in redactions}
    for path in (tmp_path / "copy").rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path
    assert uflip("verify", tmp_path / "copy").code == 0
    assert package.load(tmp_path / "copy").frame() == package.load(result).frame()


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def begin_upload(client: httpx.Client, files: dict[str, bytes]) -> Any:
    offered = [{"path": n, "digest": _digest(c), "bytes": len(c)} for n, c in files.items()]
    response = client.post("/api/v1/submissions", json={"files": offered})
    assert response.status_code == 201, response.text
    return response.json()


def send_files(client: httpx.Client, files: dict[str, bytes]) -> httpx.Response:
    begun = begin_upload(client, files)
    for content in files.values():
        address = f"/api/v1/submissions/{begun['id']}/files/{_digest(content)}"
        assert client.put(address, params={"offset": 0}, content=content).status_code == 200
    response = client.post(f"/api/v1/submissions/{begun['id']}/commit")
    if response.status_code != 201:
        assert client.delete(f"/api/v1/submissions/{begun['id']}").status_code == 204
    return response


def flip_bit(name: str, position: float) -> Callable[[dict[str, bytes]], None]:
    def change(files: dict[str, bytes]) -> None:
        file_name = next(each for each in files if each.startswith(name))
        content = bytearray(files[file_name])
        content[int(len(content) * position)] ^= 1
        files[file_name] = bytes(content)

    return change


def replace_file(name: str, content: bytes) -> Callable[[dict[str, bytes]], None]:
    return lambda files: files.update({name: content})


def drop_file(name: str) -> Callable[[dict[str, bytes]], None]:
    return lambda files: files.pop(next(each for each in files if each.startswith(name))) and None


FORGED = {
    "a bit of a run": flip_bit("runs/", 0.5),
    "a bit of the manifest": flip_bit("manifest.json", 0.5),
    "a bit of the ledger": flip_bit("ledger.jsonl", 0.5),
    "a run is missing": drop_file("runs/"),
    "a run too many": replace_file("runs/0099-order.parquet", b"PAR1"),
    "no JSON": replace_file("manifest.json", b"\x00\xff"),
    "a bomb of brackets": replace_file("manifest.json", b"[" * 1_000_000),
    "another format": replace_file(
        "manifest.json", b'{"format": "uflip-results", "format_version": 99}'
    ),
    "an empty ledger": replace_file("ledger.jsonl", b""),
}


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED.keys())
def test_forged_files_are_refused_and_removed(
    server: SiteServer, folder: Path, tmp_path: Path, change: Callable[[dict[str, bytes]], None]
) -> None:
    redacted_copy(folder, tmp_path / "copy")
    files = _files(tmp_path / "copy")
    change(files)
    server.token("mallory")
    mallory = server.client("mallory")
    before = mallory.get("/api/v1/results").json()["total"]
    answer = send_files(mallory, files)
    assert answer.status_code == 422, answer.text
    assert answer.json()["error"]["what"]
    assert str(server.folder) not in answer.text
    assert mallory.get("/api/v1/results").json()["total"] == before
    assert not list((server.folder / "folders").glob(".*"))


@pytest.mark.parametrize(
    "name",
    ["../evil", "/etc/passwd", "runs/../../evil.parquet", "runs/a/b.parquet", "runs/.parquet",
     "summaries/x.json", "runs/a\0.parquet", "runs/\u202e.parquet", "RUNS/a.parquet", ""],
)  # fmt: skip
def test_path_outside_result_is_refused(server: SiteServer, name: str) -> None:
    server.token("mallory")
    mallory = server.client("mallory")
    offered = [
        {"path": each, "digest": "0" * 64, "bytes": 1}
        for each in ("manifest.json", "ledger.jsonl", name)
    ]
    response = mallory.post("/api/v1/submissions", json={"files": offered})
    assert response.status_code == 400, response.text


def test_folder_without_ledger_is_not_submitted(tmp_path: Path) -> None:
    shutil.copytree(Path(__file__).parents[1] / "golden" / "results", tmp_path / "r")
    (tmp_path / "r" / "ledger.jsonl").unlink()
    outcome = uflip("submit", tmp_path / "r", "http://127.0.0.1:1", "--dry-run")
    assert (outcome.code, "no ledger" in outcome.err) == (5, True), outcome.err


def test_dry_run_lists_files_and_sends_nothing(tmp_path: Path) -> None:
    target = tmp_path / "drive.bin"
    result = benchmark(tmp_path / "r", f"file:{target}", "--size", "16MiB", "--buffered")
    files = len([*(result / "runs").iterdir()]) + 2
    # No server listens there.
    outcome = uflip("submit", result, "http://127.0.0.1:1", "--dry-run")
    assert outcome.code == 0, outcome.err
    assert outcome.out.startswith(f"{files} files, ")
    assert f"device.url: file:{target}" in outcome.out
    assert outcome.out.endswith("nothing was sent\n")
    assert uflip("submit", result, "http://127.0.0.1:1").code == 6


def test_cached_file_is_not_sent_again(server: SiteServer, folder: Path) -> None:
    submission = submit(server, folder, "--publish", account="keeper")
    address = f"/api/v1/results/{submission['id']}"
    nobody, keeper = server.client(), server.client("keeper")
    digest = nobody.get(address).json()["files"][0]["digest"]
    file = f"{address}/files/{digest}"
    whole = nobody.get(file)
    assert whole.headers["etag"] == f'"{digest}"'
    assert hashlib.sha256(whole.content).hexdigest() == digest
    for held in (f'"{digest}"', f'"other", W/"{digest}"', "*"):
        cached = nobody.get(file, headers={"If-None-Match": held})
        assert (cached.status_code, cached.content) == (304, b""), held
    assert nobody.get(file, headers={"If-None-Match": '"other"'}).status_code == 200
    part = nobody.get(file, headers={"Range": "bytes=10-19", "If-Range": f'"{digest}"'})
    assert (part.status_code, part.content) == (206, whole.content[10:20])
    # A withdrawn result is not served to clients that have a copy, either.
    assert keeper.post(f"{address}/withdraw").status_code == 200
    assert nobody.get(file, headers={"If-None-Match": f'"{digest}"'}).status_code == 404
    assert keeper.delete(address).status_code == 204


def test_idle_connections_do_not_exhaust_descriptors(tmp_path: Path) -> None:
    with site_server(tmp_path / "site", fresh=True, descriptors=128) as site:
        port = httpx.URL(site.url).port
        assert port is not None
        with open_connections(150, port, b"GET / HTTP/1.1\r\n"):
            assert httpx.get(f"{site.url}/health", timeout=30).status_code == 200


# Route -> the role that it needs.
OPEN, OWNER, SUBMITTING = "anybody who may see it", "the owner or an admin", "a submitter"
ROUTES = {
    ("get", "/api/v1/results"): OPEN,
    ("get", "/api/v1/results.{ending}"): OPEN,
    ("get", "/api/v1/results/{result}"): OPEN,
    ("get", "/api/v1/results/{result}/summary"): OPEN,
    ("get", "/api/v1/results/{result}/files/{digest}"): OPEN,
    ("post", "/api/v1/results/{result}/publish"): OWNER,
    ("post", "/api/v1/results/{result}/withdraw"): OWNER,
    ("delete", "/api/v1/results/{result}"): OWNER,
    ("get", "/api/v1/devices"): OPEN,
    ("get", "/api/v1/devices.{ending}"): OPEN,
    ("get", "/api/v1/devices/{slug}"): OPEN,
    ("post", "/api/v1/submissions"): SUBMITTING,
    ("get", "/api/v1/submissions/{submission}"): SUBMITTING,
    ("put", "/api/v1/submissions/{submission}/files/{digest}"): SUBMITTING,
    ("post", "/api/v1/submissions/{submission}/parts"): SUBMITTING,
    ("delete", "/api/v1/submissions/{submission}"): SUBMITTING,
    ("post", "/api/v1/submissions/{submission}/commit"): SUBMITTING,
    ("get", "/api/v1/version"): OPEN,
}
OF_ONE = ("{result}", "{slug}", "{submission}")


def test_route_permissions_match_roles(server: SiteServer, folder: Path) -> None:
    described = server.client().get("/api/v1/openapi.json").json()["paths"]
    served = {(method, path) for path, methods in described.items() for method in methods}
    assert served == set(ROUTES), "a route is new, or is gone: say here who may use it"
    private = submit(server, folder, account="owner")
    owner = server.client("owner")
    detail = owner.get(f"/api/v1/results/{private['id']}").json()
    upload = _upload_of_owner(server)
    for name, role in (("reader", "reader"), ("other", "submitter"), ("admin", "admin")):
        server.token(name, role)
    filled = {
        "{ending}": "csv", "{result}": private["id"], "{slug}": detail["device_slug"],
        "{digest}": detail["files"][0]["digest"], "{submission}": upload,
    }  # fmt: skip
    for (method, path), needs in ROUTES.items():
        if (method, path) == ("delete", "/api/v1/results/{result}"):
            continue  # last, below
        for account in (None, "reader", "other", "owner", "admin"):
            address = path
            for name, value in filled.items():
                address = address.replace(name, value)
            client = server.client(account)
            params = {"offset": 0} if path.endswith("/files/{digest}") and method == "put" else {}
            status = client.request(method, address, params=params).status_code
            expected = _expected(path, needs, account)
            assert status in expected, f"{method} {path} by {account}: {status}, not {expected}"
        if path.endswith("/publish"):
            owner = server.client("owner")
            assert owner.post(address.replace("publish", "withdraw")).status_code == 200
    for account in (None, "reader", "other"):
        client = server.client(account)
        assert client.delete(f"/api/v1/results/{private['id']}").status_code in (403, 404)
    admin = server.client("admin")
    assert admin.delete(f"/api/v1/results/{private['id']}").status_code == 204
    stranger = httpx.get(f"{server.url}/api/v1/results", headers={"Authorization": "Bearer no"})
    assert stranger.status_code == 403


PARAMETERS = {"slug": "device_slug", "name": "id", "digest": "digest", "result": "id"}


def test_no_page_shows_unpublished_results(
    server: SiteServer, folder: Path, tmp_path: Path
) -> None:
    """For every role, all addresses outside the API, including those of the explorer."""
    private = submit(server, folder, account="owner")
    detail = server.client("owner").get(f"/api/v1/results/{private['id']}").json()
    for name, role in (("reader", "reader"), ("other", "submitter"), ("admin", "admin")):
        server.token(name, role)
    run = next(each["path"] for each in detail["files"] if "runs/" in each["path"])
    params = {
        "key": private["id"], "keys": f"{private['id']},{private['id']}", "q": private["id"],
        "run": Path(run).stem, "from": 0, "to": 100, "width": 100, "height": 100,
    }  # fmt: skip
    addresses = _pages(tmp_path, detail)
    assert len(addresses) > 20
    # The pages accept known parameters, and refuse others.
    page_queries = {f"/{each}": {} for each in ("devices", "site.css")} | {
        "/": {"q": private["id"]}
    }
    page_queries |= {f"/devices/{detail['device_slug']}": {}, f"/results/{private['id']}": {}}
    assert page_queries.keys() <= {*addresses}

    def visible_pages(account: str | None) -> set[str]:
        answers = {
            each: server.client(account).get(each, params=page_queries.get(each, params))
            for each in addresses
        }
        assert {each.status_code for each in answers.values()} <= {200, 400, 404}
        # An address may be repeated; what only this result has may not.
        mine = (detail["submitted_utc"], "0001-", f"results/{private['id']}")
        good = {path: answer.text for path, answer in answers.items() if answer.status_code == 200}
        return {path for path, text in good.items() if any(each in text for each in mine)}

    everybody = (None, "reader", "other", "owner", "admin")
    assert [visible_pages(account) for account in everybody] == [set()] * len(everybody)
    owner = server.client("owner")
    assert owner.post(f"/api/v1/results/{private['id']}/publish").status_code == 200
    assert len(visible_pages(None)) > 2, "it is by these words that it would have been found"
    assert owner.post(f"/api/v1/results/{private['id']}/withdraw").status_code == 200
    assert [visible_pages(account) for account in everybody] == [set()] * len(everybody)
    assert owner.delete(f"/api/v1/results/{private['id']}").status_code == 204


def _pages(scratch: Path, detail: dict[str, Any]) -> list[str]:
    """List the addresses outside the API, with this result in them."""
    site = open_site(scratch / "another")
    app: Any = application(site)
    routes = [*app._app.routes, *pages.router.routes]
    # Included routers have no path: the API, which has its matrix above, and the pages.
    paths = {each.path for each in routes if hasattr(each, "path")}
    site.close()
    filled = [re.sub(r"\{(\w+)[^}]*\}", lambda m: str(detail[PARAMETERS[m[1]]]), p) for p in paths]
    return sorted(filled)


def test_audit_log_records_actions(tmp_path: Path, folder: Path) -> None:
    with site_server(tmp_path / "site") as made:
        result = submit(made, folder, "--publish", account="alice")["id"]
        made.token("root", "admin")
        address = f"/api/v1/results/{result}"
        assert made.client("alice").post(f"{address}/withdraw").status_code == 200
        assert made.client("root").delete(address).status_code == 204
        assert uflip("site", "token", made.folder, "alice", "--revoke").code == 0
        site = open_site(made.folder)
        with site.sessions() as session:
            rows = session.query(Audit).order_by(Audit.id)
            entries = [(each.account, each.action, each.what) for each in rows]
        site.close()
    assert entries == [
        ("alice", "token", "submitter"),
        ("alice", "submit", result),
        ("alice", "publish", result),
        ("root", "token", "admin"),
        ("alice", "withdraw", result),
        ("root", "delete", result),
        ("alice", "revoke", "submitter"),
    ]


def _upload_of_owner(server: SiteServer) -> str:
    owner = server.client("owner")
    begun = begin_upload(owner, {"manifest.json": b"{}", "ledger.jsonl": b"{}"})
    return str(begun["id"])


def _expected(path: str, needs: str, account: str | None) -> set[int]:
    """Return the allowed answers of a route about a private result, or an upload, of `owner`."""
    fine = {200, 400, 404, 422}
    about_one_result = any(name in path for name in OF_ONE)
    if needs == SUBMITTING:
        if account in (None, "reader"):
            return {403, 400}  # 400: the body was read before
        return {404, 400} if about_one_result and account != "owner" else fine | {201, 204}
    if needs == OWNER:
        return {200} if account in ("owner", "admin") else {403, 404}
    if about_one_result:
        return {200} if account in ("owner", "admin") else {404}
    return {200}


def test_revoked_token_is_refused(server: SiteServer) -> None:
    server.token("gone")
    client = server.client("gone")
    assert client.get("/api/v1/results").status_code == 200
    more = ["--database", server.database] if server.database else []
    assert uflip("site", "token", server.folder, "gone", "--revoke", *more).code == 0
    assert client.get("/api/v1/results").status_code == 403
    # A new token of the same account may have another role; a third one is refused.
    renewed = uflip("site", "token", server.folder, "gone", "--role", "admin", "--json", *more)
    assert renewed.code == 0, renewed.err
    headers = {"Authorization": f"Bearer {json.loads(renewed.out)['token']}"}
    assert httpx.get(f"{server.url}/api/v1/results", headers=headers).status_code == 200
    assert client.get("/api/v1/results").status_code == 403
    third = uflip("site", "token", server.folder, "gone", *more)
    assert (third.code, "--rotate" in third.err) == (2, True)


def _slug(client: httpx.Client) -> str:
    return str(client.get("/api/v1/results").json()["results"][0]["device_slug"])


def test_results_are_found_by_search_filter_and_order(
    any_server: SiteServer, folder: Path, tmp_path: Path
) -> None:
    other = benchmark(tmp_path / "other", "sim:demo?blocks_per_die=32")
    ids = {submit(any_server, each, "--publish")["id"] for each in (folder, other)}
    client = any_server.client("alice")
    for query, count in (
        ("", 2), ("q=demo", 2), ("q=nobody-has-this", 0), ("kind=sim", 2), ("kind=block", 0),
        ("scale=quick", 2), ("scale=standard", 0), ("per_page=1", 2), ("q=%25", 0),
        ("sort=-capacity", 2), ("sort=rw", 2), ("q=DEMO+sim", 0), ("year=1999", 0),
        ("capacity=..1GiB", 2), ("capacity=1GiB..", 0), ("class=usb", 0),
    ):  # fmt: skip
        assert client.get(f"/api/v1/results?{query}").json()["total"] == count, query
    sizes = [
        each["capacity_bytes"]
        for each in client.get("/api/v1/results?sort=-capacity").json()["results"]
    ]
    assert sizes == sorted(sizes, reverse=True)
    assert client.get("/api/v1/results?sort=nothing").status_code == 400
    for nowhere in ("after=nothing", "before=WzEsMl0=", "per_page=0", "year=MMXX", "capacity=x"):
        assert client.get(f"/api/v1/results?{nowhere}").status_code == 400, nowhere
    for page, name, suggestion in (
        ("/api/v1/results.csv?scal=standard", "scal", "did you mean scale?"),
        ("/api/v1/results?limit=-1", "limit", "per_page"), ("/?order=rw", "order", "sort"),
        ("/devices?kind=sim&sort=rw", "kind", "sort, after, before"),
        ("/api/v1/devices.csv?scale=quick", "scale", "no parameters"),
        ("/api/v1/results?scale=quick&scale=standard", "scale", "2 times"),
        (f"/api/v1/results/{next(iter(ids))}?bogus=1", "bogus", "no parameters"),
    ):  # fmt: skip
        response = client.get(page)
        assert response.status_code == 400, page
        assert name in response.text, page
        assert suggestion in response.text, page
    # Links that pages contain, and the form with empty fields, are accepted.
    left_empty = "q=&kind=&class=&capacity=&scale=&state=&durability=&year=&sort=-created"
    assert client.get(f"/?{left_empty}").status_code == 200
    for page in ("/?scale=quick", "/devices", f"/devices/{_slug(client)}"):
        links = re.findall(r'href="(/[^"#]*|\?[^"#]*)"', client.get(page).text)
        assert any("?" in each for each in links), page
        for link in links:
            address = urljoin(page, unescape(link))
            assert client.get(address).status_code == 200, (page, address)
    assert client.get("/api/v1/results?q=%00").status_code == 400
    assert client.get("/devices/%00").status_code == 400
    table = client.get("/api/v1/results.csv").text.splitlines()
    assert len(table) == 3
    assert {line.split(",")[0] for line in table[1:]} == ids
    assert client.get("/api/v1/results.parquet").content[:4] == b"PAR1"
    for each in ids:
        assert client.delete(f"/api/v1/results/{each}").status_code == 204


def test_concurrent_submissions_give_one_result(any_server: SiteServer, folder: Path) -> None:
    names = [f"many-{number}" for number in range(4)]
    for name in names:
        any_server.client(any_server.token(name) and name)
    commits: list[tuple[str, bool]] = []

    def send(name: str) -> None:
        commits.append(submit_copy(any_server, folder, name))

    threads = [threading.Thread(target=send, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(commits) == len(names)
    assert len({result for result, _ in commits}) == 1
    any_server.token("admin", "admin")
    admin = any_server.client("admin")
    assert admin.get("/api/v1/results").json()["total"] == 1
    assert admin.delete(f"/api/v1/results/{commits[0][0]}").status_code == 204


def submit_copy(server: SiteServer, folder: Path, name: str) -> tuple[str, bool]:
    with tempfile.TemporaryDirectory() as scratch:
        redacted_copy(folder, Path(scratch) / "copy")
        answer = send_files(server.client(name), _files(Path(scratch) / "copy"))
    assert answer.status_code == 201, answer.text
    return answer.json()["id"], answer.json()["new"]


def test_backup_restores_into_another_database(
    any_server: SiteServer, folder: Path, tmp_path: Path
) -> None:
    submission = submit(any_server, folder, "--publish")
    more = ["--database", any_server.database] if any_server.database else []
    outcome = uflip("site", "backup", any_server.folder, tmp_path / "backup", *more)
    assert outcome.code == 0, outcome.err
    assert uflip("site", "restore", tmp_path / "backup", tmp_path / "restored").code == 0
    client = any_server.client()
    with site_server(tmp_path / "restored") as restored:
        answers = [
            httpx.get(f"{url}/api/v1/results/{submission['id']}/summary").json()
            for url in (any_server.url, restored.url)
        ]
        assert answers[0] == answers[1]
        listing = httpx.get(
            f"{restored.url}/api/v1/results",
            headers={"Authorization": f"Bearer {any_server.tokens['alice']}"},
        )
        assert listing.json() == any_server.client("alice").get("/api/v1/results").json()
        assert client.get("/health").status_code == 200
    blob = next(path for path in (tmp_path / "backup" / "blobs").rglob("*") if path.is_file())
    blob.chmod(0o644)
    blob.write_bytes(blob.read_bytes()[:-1])
    damaged = uflip("site", "restore", tmp_path / "backup", tmp_path / "again")
    assert damaged.code == 5
    assert blob.name in damaged.err
    assert not (tmp_path / "again").exists()


def test_unknown_host_is_refused_and_policy_is_sent(server: SiteServer) -> None:
    response = httpx.get(f"{server.url}/", headers={"Host": "evil.example"})
    assert response.status_code == 421
    response = httpx.get(f"{server.url}/nothing")
    assert response.status_code == 404
    assert "default-src 'none'" in response.headers["content-security-policy"]
    assert "set-cookie" not in response.headers
    large = httpx.post(f"{server.url}/api/v1/submissions", content=b"x" * (17 << 20))
    assert large.status_code == 413
    metrics = httpx.get(f"{server.url}/metrics").text
    assert "uflip_requests_total" in metrics
    assert 'uflip_refusals_total{status="413"} 1.0' in metrics


def test_rate_limit_counts_each_caller() -> None:
    rate = RequestRateLimit(60)
    assert sum(rate.allows("a", 0.0) for _ in range(100)) == 60
    assert sum(rate.allows("a", 10.0) for _ in range(100)) == 10
    assert rate.allows("b", 10.0)


@pytest.mark.parametrize("proxy", [True, False])
def test_caller_is_identified_by_address(tmp_path: Path, proxy: bool) -> None:
    options = ["--per-minute", "60", *(["--behind-proxy"] if proxy else [])]
    with site_server(tmp_path / "site", None, *options) as server:

        def answers(address: str) -> int:
            headers = {"X-Forwarded-For": address}
            names = [{"Authorization": f"Bearer {number}"} for number in range(100)]
            with httpx.Client(base_url=server.url, headers=headers) as client:
                responses = [client.get("/health", headers=name) for name in names]
            return sum(answer.status_code == 200 for answer in responses)

        # More than a bucket holds. The header of a proxy counts only behind a proxy.
        assert 50 <= answers("192.0.2.1") < 100
        assert (answers("192.0.2.2") >= 50) is proxy


def test_migrations_match_table_definitions(tmp_path: Path) -> None:
    engine = open_database(f"sqlite:///{tmp_path / 'x.db'}")
    with engine.connect() as connection:
        # Full-text search has its own tables, created by SQLite.
        ours = {"include_name": lambda name, kind, _: kind != "table" or "result_words" not in name}
        context = MigrationContext.configure(connection, opts=ours)
        assert compare_metadata(context, Base.metadata) == []
    engine.dispose()


def test_seeded_collection_is_measured_and_labelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of the simulated devices and the file; those of the whole collection by name."""
    assert seeding.default_devices() == [*(f"sim:{name}" for name in profile_names()), "file"]
    folder = tmp_path / "site"
    outcome = uflip("site", "seed", folder, "--json", "--device", DEVICE, "--only", "order")
    assert outcome.code == 0, outcome.err
    (simulated,) = json.loads(outcome.out)["results"]
    monkeypatch.setattr(seeding, "FILE_BYTES", 16 << 20)
    site = open_site(folder)
    (file,) = seeding.seed(site, ["file"], only=["order"])
    site.close()
    with site_server(folder) as server:
        listed = server.client().get("/api/v1/results").json()["results"]
        assert {each["id"] for each in listed} == {simulated["id"], file.result}
        pages = [server.client().get(f"/results/{n}").text for n in (simulated["id"], file.result)]
    assert [">simulated<" in page for page in pages] == [True, False]
    assert [path.suffix for path in (folder / seeding.PROGRESS_FOLDER).iterdir()] == [
        ".published"
    ] * 2


def test_interrupted_seeding_resumes_without_repeating(
    tmp_path: Path,
) -> None:
    site = open_site(tmp_path / "site")
    seed_device = partial(seeding.seed, site, [DEVICE], only=["order"])
    finished: list[str] = []

    def watch(event: object) -> None:
        if isinstance(event, RunFinished):
            finished.append(event.run.id)
            if len(finished) == 3:
                raise KeyboardInterrupt

    with pytest.raises(InterruptedRun, match="same command"):
        next(seed_device(on_event=watch))
    (begun,) = (site.root / seeding.PROGRESS_FOLDER).glob("*/result")
    begun_as = Results.load(begun).manifest.folder_id
    (first,) = seed_device(on_event=watch)
    (repeated,) = seed_device(on_event=watch)
    assert (first.new, repeated.new, repeated.result) == (True, False, first.result)
    with site.sessions() as session:
        assert [each.folder_id for each in session.query(ResultRecord)] == [begun_as]
    assert not begun.exists()
    # Other micro-benchmarks and deleted results are measured anew.
    (other,) = seeding.seed(site, [DEVICE], only=["mix"])
    site.intake.delete(first.result, seeding.ACCOUNT)
    (anew,) = seed_device()
    assert len({first.result, other.result, anew.result}) == 3
    site.close()


def test_worn_out_device_does_not_stop_seeding(tmp_path: Path) -> None:
    worn = "sim:worn-mlc?program_failures=0.05"
    outcome = uflip(
        "site", "seed", tmp_path / "site", "--json", "--only", "order", "--device", worn,
        "--device", DEVICE,
    )  # fmt: skip
    document = json.loads(outcome.out)
    assert outcome.code == 4, outcome.err
    assert [each["device"] for each in document["failed"]] == [worn]
    assert [each["device"] for each in document["results"]] == [DEVICE]


def test_chunked_body_is_limited_like_a_sized_one(server: SiteServer) -> None:
    def peak_kib() -> int:
        assert server.process is not None
        status = Path(f"/proc/{server.process.pid}/status").read_text()
        return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0])

    before = peak_kib()
    token = {"Authorization": f"Bearer {server.token('alice')}"}
    for headers, expected in (({}, 403), (token, 400)):
        with httpx.Client(base_url=server.url, timeout=60, headers=headers) as client:
            try:
                pieces = (bytes(1 << 20) for _ in range(256))
                status = client.post("/api/v1/submissions", content=pieces).status_code
            except httpx.TransportError:
                # The server hung up before everything was sent.
                status = expected
        assert status == expected
    assert peak_kib() - before < 100 << 10, "everything was kept"


def test_head_matches_get(server: SiteServer) -> None:
    with httpx.Client(base_url=server.url) as client:
        for path in ("/", "/devices", "/health", "/api/v1/results", "/site.css", "/explore/"):
            head, whole = client.head(path), client.get(path)
            assert (head.status_code, head.content) == (whole.status_code, b""), path
            assert head.headers["content-type"] == whole.headers["content-type"]
        refused = client.post("/api/v1/results")
        assert refused.status_code == 405
        assert "GET" in refused.headers["allow"]
        assert len(refused.headers.get_list("content-security-policy")) == 1
