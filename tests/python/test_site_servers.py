"""Two servers on one PostgreSQL and one folder: are they one site?"""

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from command_line import start, uflip
from site_server import SiteServer, postgres, site_server, small_result

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
