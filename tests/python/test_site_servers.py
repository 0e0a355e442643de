"""Two servers on one PostgreSQL and one folder: are they one site?"""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import start, uflip
from site_server import SiteServer, postgres, site_server, small_result

AT_ONCE = 6


@pytest.fixture
def both(tmp_path: Path) -> Iterator[tuple[SiteServer, SiteServer]]:
    folder = tmp_path / "site"
    with postgres() as url, site_server(folder, url) as one, site_server(folder, url) as other:
        other.tokens = one.tokens
        yield one, other


def test_what_comes_to_both_at_once_is_one_and_seen_by_both(
    both: tuple[SiteServer, SiteServer], tmp_path: Path
) -> None:
    small_result(tmp_path / "result")
    token = both[0].token("alice")
    told: list[dict[str, Any]] = []
    processes = [
        start("submit", tmp_path / "result", server.url, "--token", token, "--json")
        for server in both
        for _ in range(AT_ONCE // 2)
    ]
    for process in processes:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err + out
        told.append(json.loads(out))
    assert len({each["id"] for each in told}) == 1, "one result"
    assert sum(each["new"] for each in told) == 1, "one of them made it"
    address = f"/api/v1/results/{told[0]['id']}"
    for server in both:
        assert server.client("alice").get("/api/v1/results").json()["total"] == 1
    # What one does, the other knows.
    one, other = both
    assert one.client("alice").post(f"{address}/publish").status_code == 200
    assert other.client().get(address).status_code == 200
    assert other.client().get(f"/results/{told[0]['id']}").status_code == 200
    assert other.client("alice").delete(address).status_code == 204
    assert one.client("alice").get(address).status_code == 404
    assert not [*(one.folder / "folders").iterdir()]
    assert not [path for path in (one.folder / "blobs").rglob("*") if path.is_file()]


def test_it_is_published_once_by_many(both: tuple[SiteServer, SiteServer], tmp_path: Path) -> None:
    small_result(tmp_path / "result")
    token = both[0].token("alice")
    made = uflip("submit", tmp_path / "result", both[0].url, "--token", token, "--json")
    result = json.loads(made.out)["id"]
    answers: list[int] = []

    def switch(server: SiteServer) -> None:
        client = server.client("alice")
        answers.extend(
            client.post(f"/api/v1/results/{result}/{act}").status_code
            for act in ("publish", "withdraw") * 5
        )

    for server in both:
        server.client("alice")
    threads = [threading.Thread(target=switch, args=(server,)) for server in both]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert {*answers} == {200}, answers
    states = {
        server.client("alice").get(f"/api/v1/results/{result}").json()["published_utc"] is None
        for server in both
    }
    assert len(states) == 1, "both say the same"
