"""Many concurrent requests: do waiting requests leave connections and threads to the others?

The application runs in this process, and its database has a single connection.
"""

import asyncio
import json
import re
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy
from command_line import start, uflip
from site_server import SiteServer, postgres, site_server, small_result

from uflip.errors import ResultsError
from uflip.site import folders
from uflip.site.accounts import new_token
from uflip.site.app import AccountLimiter, application
from uflip.site.client import prepare
from uflip.site.intake import Intake
from uflip.site.site import Site, open_site
from uflip.site.upload_files import Missing, bodies, pack_parts

MANY = 45
"""More than there are threads for requests."""
PATIENCE_S = 30.0
Scenario = Callable[[httpx.AsyncClient], Awaitable[None]]


@pytest.fixture
def site(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Site]:
    patience_s = getattr(request, "param", PATIENCE_S / 3)
    one = {"pool_size": 1, "max_overflow": 0, "pool_timeout": patience_s}
    monkeypatch.setattr("sqlalchemy.create_engine", partial(sqlalchemy.create_engine, **one))
    made = open_site(tmp_path / "site")
    yield made
    made.close()


def run_scenario(site: Site, scenario: Scenario) -> None:
    with site.sessions.begin() as session:
        token = new_token(session, "alice", "submitter")
    transport = httpx.ASGITransport(application(site))
    headers = {"Authorization": f"Bearer {token}"}

    async def ask() -> None:
        async with httpx.AsyncClient(
            transport=transport, base_url="http://site", headers=headers, timeout=PATIENCE_S
        ) as client:
            await asyncio.wait_for(scenario(client), 2 * PATIENCE_S)

    asyncio.run(ask())


def test_request_uses_one_connection_at_a_time(site: Site, tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    prepared = prepare(small_result(tmp_path / "result"), tmp_path / "scratch")
    offer = [asdict(each) for each in prepared.files]
    sent = [
        Missing(prepared.folder / each.path, each.digest, each.bytes, 0) for each in prepared.files
    ]

    async def scenario(client: httpx.AsyncClient) -> None:
        async def done(method: str, address: str, **options: Any) -> Any:
            response = await client.request(method, address, **options)
            assert response.is_success, (method, address, response.text)
            return response

        begun = await done("POST", "/api/v1/submissions", json={"files": offer})
        upload = f"/api/v1/submissions/{begun.json()['id']}"
        for part in bodies(sent):
            await done("POST", f"{upload}/parts", content=pack_parts(part))
        result = (await done("POST", f"{upload}/commit?publish=true")).json()["id"]
        address = f"/api/v1/results/{result}"
        asking = (
            "/", "/devices", f"/results/{result}", f"/explore/api/result?key={result}", address,
            f"{address}/summary", f"{address}/files/{prepared.files[0].digest}",
            "/api/v1/results.csv", "/api/v1/devices", "/health",
        )  # fmt: skip
        await asyncio.gather(*(done("GET", each) for each in asking))
        await done("POST", f"{address}/withdraw")
        await done("DELETE", address)

    run_scenario(site, scenario)


def test_slow_sender_holds_no_connection(site: Site) -> None:
    async def scenario(client: httpx.AsyncClient) -> None:
        reading, resume = asyncio.Event(), asyncio.Event()

        async def slowly() -> AsyncIterator[bytes]:
            yield b"xx"
            reading.set()
            await resume.wait()

        address = f"/api/v1/submissions/{'0' * 32}/parts"
        sending = asyncio.create_task(client.post(address, content=slowly()))
        await reading.wait()
        assert (await client.get("/health")).status_code == 200
        resume.set()
        assert (await sending).status_code == 400

    run_scenario(site, scenario)


def test_body_is_not_read_before_authorization(site: Site) -> None:
    async def unread() -> AsyncIterator[bytes]:
        raise AssertionError("somebody read it")
        yield b""

    with site.sessions.begin() as session:
        reader = new_token(session, "reader", "reader")

    async def scenario(client: httpx.AsyncClient) -> None:
        described = (await client.get("/api/v1/openapi.json")).json()["paths"]
        written = [
            (method, re.sub(r"{\w+}", "0" * 32, path))
            for path, methods in described.items()
            for method in methods.keys() - {"get"}
        ]
        assert len(written) > 7
        for method, path in written:
            for token in ("", f"Bearer {reader}", "Bearer uflip_nobody", "Basic x"):
                asked_by = {"Authorization": token, "Content-Type": "application/json"}
                response = await client.request(
                    method, path, params={"offset": 0} if method == "put" else {},
                    headers=asked_by, content=unread(),
                )  # fmt: skip
                assert response.status_code == 403, (method, path, token)
        wrong = await client.post("/api/v1/submissions", json={"files": [{"digest": 1}]})
        assert wrong.status_code == 400
        assert wrong.json()["error"]["where"] == "files[0].digest"

    run_scenario(site, scenario)


def test_bodies_read_at_once_are_limited(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uflip.site.app.MAX_BODIES", 6)

    async def scenario(client: httpx.AsyncClient) -> None:
        resume = asyncio.Event()
        reading = 0

        async def slowly() -> AsyncIterator[bytes]:
            nonlocal reading
            reading += 1
            yield b"xx"
            await resume.wait()

        address = f"/api/v1/submissions/{'0' * 32}/parts"
        sending = [asyncio.create_task(client.post(address, content=slowly())) for _ in range(MANY)]
        while reading < 3:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)
        assert reading == 3, "half of them, of one account"
        resume.set()
        assert {each.status_code for each in await asyncio.gather(*sending)} == {400}
        assert reading == MANY

    run_scenario(site, scenario)


def test_waiting_commits_leave_threads_free(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    end = threading.Event()

    def wait(*_: object, **__: object) -> None:
        assert end.wait(PATIENCE_S)
        raise ResultsError("It does not hold")

    monkeypatch.setattr(Intake, "commit", wait)

    async def scenario(client: httpx.AsyncClient) -> None:
        address = f"/api/v1/submissions/{'0' * 32}/commit"
        waiting = [asyncio.create_task(client.post(address)) for _ in range(MANY)]
        await asyncio.sleep(0.2)
        health = await asyncio.wait_for(client.get("/health"), PATIENCE_S / 2)
        end.set()
        assert health.status_code == 200
        assert {each.status_code for each in await asyncio.gather(*waiting)} == {422}

    run_scenario(site, scenario)


def test_one_account_leaves_examiners_to_others() -> None:
    peak: dict[int, int] = {1: 0, 2: 0}
    working: dict[int, int] = {1: 0, 2: 0}
    lock, served = threading.Lock(), threading.Event()

    def work(account: int) -> None:
        with lock:
            working[account] += 1
            peak[account] = max(peak[account], working[account])
        if account == 2:
            served.set()
        assert served.wait(PATIENCE_S), "the second account never had its turn"
        with lock:
            working[account] -= 1

    async def commit_all() -> None:
        committing = AccountLimiter(folders.EXAMINERS)
        many = [
            asyncio.create_task(committing.run(1, partial(work, 1)))
            for _ in range(3 * folders.EXAMINERS)
        ]
        await asyncio.sleep(0.1)
        await committing.run(2, partial(work, 2))
        await asyncio.gather(*many)

    asyncio.run(commit_all())
    assert peak == {1: folders.EXAMINERS // 2, 2: 1}


def test_concurrent_examiners_are_limited(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    working: set[int] = set()

    def run(*_: object, **__: object) -> subprocess.CompletedProcess[str]:
        working.add(threading.get_ident())
        counts.append(len(working))
        time.sleep(0.02)
        working.discard(threading.get_ident())
        return subprocess.CompletedProcess((), 0, json.dumps({"error": {"what": "no"}}))

    monkeypatch.setattr("uflip.site.folders.subprocess.run", run)

    def make(number: int) -> None:
        with pytest.raises(ResultsError, match="no"):
            site.folders.make(f"{number:012x}", [])

    threads = [
        threading.Thread(target=make, args=(number,)) for number in range(3 * folders.EXAMINERS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(counts) == len(threads)
    assert max(counts) <= folders.EXAMINERS


@pytest.mark.parametrize("site", [0.1], indirect=True)
def test_request_without_connection_gets_503(site: Site) -> None:
    async def scenario(client: httpx.AsyncClient) -> None:
        with site.engine.connect():
            answers = [await client.get(each) for each in ("/api/v1/results", "/", "/health")]
        assert [each.status_code for each in answers] == [503] * 3
        error = answers[0].json()["error"]
        assert (error["kind"], error["what"]) == (
            "unavailable",
            "The database does not answer in time",
        )
        assert "try again" in answers[1].text

    run_scenario(site, scenario)


# Two servers on one PostgreSQL and one folder: are they one site?


AT_ONCE = 6


@pytest.fixture
def server_pair(tmp_path: Path) -> Iterator[tuple[SiteServer, SiteServer]]:
    folder = tmp_path / "site"
    with postgres() as url, site_server(folder, url) as one, site_server(folder, url) as other:
        other.tokens = one.tokens
        yield one, other


def test_concurrent_submissions_to_both_servers_are_one_result(
    server_pair: tuple[SiteServer, SiteServer], tmp_path: Path
) -> None:
    small_result(tmp_path / "result")
    token = server_pair[0].token("alice")
    answers: list[dict[str, Any]] = []
    options = ("--token", token, "--json")
    with ExitStack() as stack:  # closes their pipes, also after a failure
        processes = [
            stack.enter_context(start("submit", tmp_path / "result", server.url, *options))
            for server in server_pair
            for _ in range(AT_ONCE // 2)
        ]
        for process in processes:
            out, err = process.communicate(timeout=120)
            assert process.returncode == 0, err + out
            answers.append(json.loads(out))
    assert len({each["id"] for each in answers}) == 1, "one result"
    assert sum(each["new"] for each in answers) == 1, "one of them made it"
    address = f"/api/v1/results/{answers[0]['id']}"
    for server in server_pair:
        assert server.client("alice").get("/api/v1/results").json()["total"] == 1
    # Each server shows changes made through the other.
    one, other = server_pair
    assert one.client("alice").post(f"{address}/publish").status_code == 200
    assert other.client().get(address).status_code == 200
    assert other.client().get(f"/results/{answers[0]['id']}").status_code == 200
    assert other.client("alice").delete(address).status_code == 204
    assert one.client("alice").get(address).status_code == 404
    assert not [*(one.folder / "folders").iterdir()]
    assert not [path for path in (one.folder / "blobs").rglob("*") if path.is_file()]


def test_concurrent_publishing_is_consistent(
    server_pair: tuple[SiteServer, SiteServer], tmp_path: Path
) -> None:
    small_result(tmp_path / "result")
    token = server_pair[0].token("alice")
    outcome = uflip("submit", tmp_path / "result", server_pair[0].url, "--token", token, "--json")
    result = json.loads(outcome.out)["id"]
    answers: list[int] = []

    def switch(server: SiteServer) -> None:
        client = server.client("alice")
        answers.extend(
            client.post(f"/api/v1/results/{result}/{act}").status_code
            for act in ("publish", "withdraw") * 5
        )

    for server in server_pair:
        server.client("alice")
    threads = [threading.Thread(target=switch, args=(server,)) for server in server_pair]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert {*answers} == {200}, answers
    states = {
        server.client("alice").get(f"/api/v1/results/{result}").json()["published_utc"] is None
        for server in server_pair
    }
    assert len(states) == 1, "both servers agree"
