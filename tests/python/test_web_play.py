"""Does Play run the requested pattern, show it over the previous one, and refuse other callers?"""

import http.client
import json
import re
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Any

import pytest
from browser_page import MonitoredPage, check_in_all_themes
from command_line import uflip

from uflip.data.document import plain
from uflip.device.catalogue import inspect_device
from uflip.device.url import read_override
from uflip.errors import UsageError
from uflip.play import stage as stages
from uflip.play.form import MAX_IOS, form, parse_request
from uflip.play.stage import Played, Stage
from uflip.result_views import summary
from uflip.results import Results
from uflip.web.server import Serving, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SMALL = {"blocks_per_die": "64"}
WRITES = {"io_size": "4KiB", "io_count": "300"}
RW = {"device": "demo", "benchmark": "pattern", "pattern": "RW", "keys": SMALL, "options": WRITES}
LONG = RW | {"options": {"io_size": "256KiB", "io_count": str(MAX_IOS)}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving([tmp_path_factory.mktemp("nothing")]) as running:
        yield running


def ask(
    server: Serving, path: str, method: str = "GET", body: bytes = b"", **headers: str
) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    base = urllib.parse.urlsplit(server.url).path
    header_fields = {name.replace("_", "-"): each for name, each in headers.items()}
    connection.request(method, path if path.startswith("/") else base + path, body, header_fields)
    response = connection.getresponse()
    content = response.read()
    connection.close()
    is_json = response.headers.get_content_type() == "application/json"
    return response.status, json.loads(content) if is_json else content


def post(server: Serving, name: str, document: Any, **changes: str) -> tuple[int, Any]:
    headers = {"Origin": f"http://127.0.0.1:{server.port}", "Content_Type": "application/json"}
    effective = {name: each for name, each in (headers | changes).items() if each}
    return ask(server, f"api/play/{name}", "POST", json.dumps(document).encode(), **effective)


def wait_for_last_run(server: Serving) -> dict[str, Any]:
    """Wait until nothing runs, and return what ran last."""
    while True:
        last: dict[str, Any] = ask(server, "api/played")[1]["played"][-1]
        if last["state"] != "running":
            return last
        sleep(0.05)


def wait_for_run(one: Played) -> Played:
    while one.state == "running" or not one.took_s:
        sleep(0.02)
    return one


@pytest.fixture
def stage() -> Iterator[Stage]:
    new_stage = Stage()
    yield new_stage
    new_stage.close()


# The form


def test_form_lists_every_key_with_its_value() -> None:
    changed = {"spare_factor": "0.3", "gc": "greedy"}
    document = form("demo", changed)
    profile = plain(inspect_device("sim:demo?spare_factor=0.3&gc=greedy"))["details"]["profile"]
    fields = {key["name"]: key for table in document["tables"] for key in table["keys"]}
    expected = {
        key: value
        for name, table in profile.items()
        if isinstance(table, dict)
        for key, value in table.items()
        if value is not None
    }
    assert expected.keys() == fields.keys()
    for key, value in expected.items():
        assert read_override(key, fields[key]["value"]) == value, key
        assert fields[key]["meaning"]
        assert fields[key]["choices"] is None or fields[key]["value"] in fields[key]["choices"]
    differs = {key for key, row in fields.items() if row["value"] != row["usual"]}
    assert differs == changed.keys()
    assert (
        fields["gc"]["choices"][:2] == ["greedy", "cyclic"] or "greedy" in fields["gc"]["choices"]
    )


# Runs


def test_pattern_matches_command_line(server: Serving) -> None:
    status, begun = post(server, "begin", RW)
    assert (status, begun["state"]) == (200, "running")
    made = wait_for_last_run(server)
    assert made["state"] == "done", made["error"]
    (run,) = ask(server, f"api/result?key={made['key']}")[1]["runs"]
    view = ask(server, f"api/run?key={made['key']}&run={run['id']}")[1]
    url = "sim:demo?blocks_per_die=64"
    printed = json.loads(
        uflip("pattern", url, "--pattern", "RW", "--io-size", "4k", "--io-count", 300, "--json").out
    )
    assert view["statistics"]["mean_ns"] == printed["statistics"]["mean_ns"]
    assert view["statistics"]["max_ns"] == printed["statistics"]["max_ns"]
    assert view["elapsed_ns"] == printed["elapsed_ns"]
    assert made["url"] == url


def test_micro_benchmark_matches_command_line(stage: Stage, tmp_path: Path) -> None:
    one = wait_for_run(
        stage.begin(parse_request({"device": "demo", "keys": SMALL, "benchmark": "order"}))
    )
    assert one.state == "done", one.error
    url = "sim:demo?blocks_per_die=64"
    outcome = uflip("run", url, "--scale", "quick", "--only", "order", "--out", tmp_path / "r")
    assert outcome.code == 0, outcome.err
    ours, theirs = (summary(Results.load(path)) for path in (one.folder, tmp_path / "r"))
    assert ours["micro_benchmarks"] == theirs["micro_benchmarks"]
    assert ours["runs_finished"] == theirs["runs_finished"] > 4


def test_one_run_at_a_time_and_oldest_results_are_removed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, "MAX_RESULTS", 1)
    first, second = (wait_for_run(stage.begin(parse_request(RW))) for _ in range(2))
    assert [one.folder.exists() for one in (first, second)] == [False, True]
    assert stage.played() == [second]
    monkeypatch.setattr(stages, "MAX_RESULTS", 2)
    long = stage.begin(parse_request(LONG))
    with pytest.raises(UsageError, match="Another run is in progress"):
        stage.begin(parse_request(LONG))
    stage.stop()
    assert wait_for_run(long).state == "stopped"
    assert not long.folder.exists()
    assert stage.played() == [second]
    stage.close()
    assert not second.folder.parent.exists()


def test_stopped_run_replaces_no_result(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "MAX_RESULTS", 1)
    first = wait_for_run(stage.begin(parse_request(RW)))
    long = stage.begin(parse_request(LONG))
    stage.stop()
    assert wait_for_run(long).state == "stopped"
    assert stage.played() == [first]
    assert first.folder.exists()


def test_zoned_device_has_its_patterns_and_micro_benchmarks(server: Serving) -> None:
    zoned, usual = form("zns", {}), form("demo", {})
    assert [each["name"] for each in zoned["patterns"]] == ["SR", "RR", "SW"]
    assert [each["name"] for each in usual["patterns"]] == ["SR", "RR", "SW", "RW"]
    names = {each["name"] for each in zoned["benchmarks"]}
    assert "zone_append" in names
    assert "locality" not in names
    for wrong in ({"pattern": "RW"}, {"benchmark": "locality"}):
        status, document = post(server, "begin", RW | {"device": "zns", "keys": {}} | wrong)
        assert status == 400, document
    options = {"io_size": "64KiB", "io_count": "50"}
    zone_writes = {"device": "zns", "keys": {}, "pattern": "SW", "options": options}
    post(server, "begin", RW | zone_writes)
    assert wait_for_last_run(server)["state"] == "done"


def test_card_runs_the_device_before_and_after_its_change(
    browser: "Browser", server: Serving
) -> None:
    watched = MonitoredPage(browser)
    page = watched.page
    page.goto(f"{server.url}#/play/demo")
    page.locator(".try", has_text="More spare space").click()
    assert page.locator(".try:enabled").count() == 0, "one experiment at a time"
    page.get_by_text("now: sim:demo?spare_factor=0.4").wait_for(timeout=60_000)
    page.locator(".try:enabled").first.wait_for()
    rows = page.get_by_role("region", name="Response times and device counters")
    amplification = rows.locator("tr", has_text="write amplification").locator("td")
    before, now = map(float, amplification.all_inner_texts()[:2])
    assert 1 < now < before, "a collection of emptier blocks copies fewer pages"
    assert page.get_by_role("slider", name="spare factor").get_attribute("aria-valuetext") == (
        "40.0 % of the flash"
    )
    # A slider changes the key of the form, and with it the command.
    slider = page.get_by_role("slider", name="spare factor")
    slider.focus()
    page.keyboard.press("ArrowLeft")
    page.get_by_text("sim:demo?spare_factor=0.3'").wait_for()
    assert page.get_by_role("textbox", name="spare_factor").input_value() == "0.3"
    assert page.get_by_role("slider").count() == 3
    # A field moves its slider.
    page.get_by_role("textbox", name="spare_factor").fill("0.2")
    page.get_by_text("sim:demo?spare_factor=0.2'").wait_for()
    assert slider.get_attribute("aria-valuetext") == "20.0 % of the flash"
    check_in_all_themes(page, "play")
    page.locator(".play .bar select").first.select_option("zns")
    page.wait_for_function(
        "() => [...document.querySelectorAll('select')].some(s => s.textContent.includes('Zone'))"
    )
    assert page.get_by_role("slider", name="spare factor").count() == 0, "zones have no spare"
    watched.context.close()
    assert watched.console_messages == []


# Bounds


def test_run_over_time_limit_fails(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "MAX_SECONDS", 0.01)
    one = wait_for_run(stage.begin(parse_request(LONG)))
    assert one.state == "failed"
    assert one.error is not None
    assert "too long" in one.error["what"]
    assert not one.folder.exists()


def test_memory_limit_ends_only_its_process() -> None:
    stage = Stage(memory_bytes=900 << 20)
    keys = {"page_bytes": "512", "spare_bytes": "16", "blocks_per_die": "245000", "state": "empty"}
    one = wait_for_run(stage.begin(parse_request(RW | {"keys": keys})))
    assert one.state == "failed"
    assert one.error is not None
    assert "memory" in " ".join(one.error.values())
    stage.close()


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"device": "/etc/passwd"}, "device"), ({"device": "../demo.toml"}, "device"),
    ({"device": "dfc"}, "device"), ({"device": None}, "device"), ({"device": "x" * 200}, "device"),
    ({"keys": {"no_such_key": "1"}}, "no_such_key"), ({"keys": {"channels": "-1"}}, "channels"),
    ({"keys": {"channels": 4}}, "channels"), ({"keys": []}, "keys"),
    ({"keys": {"blocks_per_die": "2000000"}}, "flash"),
    ({"benchmark": "oc0"}, "micro-benchmark"), ({"pattern": "XX"}, "pattern"),
    ({"options": {"io_count": str(MAX_IOS + 1)}}, "too long"),
    ({"keys": {"gc": "\ud800"}}, "strings"), ({"keys": {"\ud800": "1"}}, "strings"),
    ({"options": {"io_size": "4\udfff"}}, "strings"),
    ({"options": {"\udfff": "4"}}, "strings"),
    ({"options": {"spool": "/tmp/x"}}, "parameter"), ({"options": {"io_size": "0"}}, "io_size"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), WRONG, ids=[f"{c}"[:40] for c, _ in WRONG])
def test_invalid_request_runs_nothing(
    server: Serving, change: dict[str, Any], message: str
) -> None:
    before = ask(server, "api/played")[1]["played"]
    status, answer = post(server, "begin", RW | change)
    assert status == 400, answer
    assert message in json.dumps(answer)
    assert ask(server, "api/played")[1]["played"] == before


# Access control


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"Origin": ""}, 405), ({"Origin": "null"}, 403), ({"Origin": "http://evil.example"}, 403),
        ({"Content_Type": ""}, 405), ({"Content_Type": "text/plain"}, 405),
        ({"Content_Type": "application/x-www-form-urlencoded"}, 405),
        ({"Host": "evil.example"}, 421),
    ],
)  # fmt: skip
def test_unauthorized_request_runs_nothing(
    server: Serving, changes: dict[str, str], status: int
) -> None:
    before = ask(server, "api/played")[1]["played"]
    assert post(server, "begin", RW, **changes)[0] == status
    assert ask(server, "api/played")[1]["played"] == before


def test_only_actions_accept_post_with_token(server: Serving) -> None:
    headers = {
        "Origin": f"http://127.0.0.1:{server.port}", "Content_Type": "application/json",
    }  # fmt: skip
    body = json.dumps(RW).encode()
    base = urllib.parse.urlsplit(server.url).path
    for path, status in (
        ("/api/play/begin", 405), ("/wrong/api/play/begin", 403), (f"{base}api/results", 405),
        (f"{base}api/played", 405), (f"{base}api/play/other", 404), (f"{base}api/play/", 404),
        (base, 405), ("/", 405),
    ):  # fmt: skip
        assert ask(server, path, "POST", body, **headers)[0] == status, path
    assert ask(server, "api/play/begin")[0] == 405
    for content in (b"", b"{", b"[" * 5000, b"\xff", b"[]", b"x" * (1 << 17)):
        assert ask(server, "api/play/begin", "POST", content, **headers)[0] == 400


# In a browser


def played(number: int) -> str:
    return f"() => document.querySelector('.played')?.dataset.drawn === '{number}'"


def test_previous_and_new_run_share_axes(browser: "Browser", tmp_path: Path) -> None:
    with serving([tmp_path]) as running:
        watched = MonitoredPage(browser)
        page = watched.page
        page.goto(f"{running.url}#/play/demo?key.blocks_per_die=64&p.io_count=300")
        page.get_by_text("No run yet").wait_for()
        assert page.get_by_label("blocks_per_die").input_value() == "64"
        page.get_by_role("button", name="Run", exact=True).click()
        page.wait_for_function(played(1))
        page.get_by_role("textbox", name="spare_factor").fill("0.9999")
        alert = page.get_by_role("alert")
        alert.wait_for()
        assert "spare_factor" in alert.inner_text()
        page.get_by_role("textbox", name="spare_factor").fill("0.4")
        alert.wait_for(state="detached")
        page.get_by_role("button", name="Run", exact=True).click()
        page.wait_for_function(played(2))
        assert "spare_factor=0.4" in page.get_by_label("now").locator("option").first.inner_text()
        legend = page.locator(".played .legend").first.inner_text()
        assert re.search(r"before: sim:demo\S*64\s+now: sim:demo\S*spare_factor=0.4", legend)
        assert "write amplification" in page.locator(".played tbody").inner_text()
        check_in_all_themes(page, "play")
        shared = page.url
        page.locator(".played").get_by_role("link", name="now").click()
        page.get_by_role("heading", name="Inside the device").wait_for()
        page.get_by_role("heading", name="Valid pages").wait_for()
        with page.expect_download() as waiting:
            page.locator("article", has_text="Free blocks").get_by_role(
                "button", name="CSV"
            ).click()
        lines = waiting.value.path().read_text().splitlines()
        assert lines[0].startswith("ios,at_ns,erased_blocks")
        assert lines[-1].startswith("300,")
        check_in_all_themes(page, "inside")
        # A link that is shared has the form, and runs nothing.
        other = MonitoredPage(browser)
        other.page.goto(shared)
        other.page.wait_for_function(played(2))
        assert other.page.get_by_role("textbox", name="spare_factor").input_value() == "0.4"
        assert len(ask(running, "api/played")[1]["played"]) == 2
        assert watched.console_messages + other.console_messages == []
        for each in (watched, other):
            each.context.close()
