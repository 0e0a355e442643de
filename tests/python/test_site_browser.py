"""From a measurement to a citation, in a real browser with a real site.

submit → verify → publish → browse → compare → cite: what a person does, as one way.
"""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest
from browser_page import MonitoredPage, check_in_all_themes
from command_line import PACKAGE_ROOT, Outcome, uflip
from site_server import SiteServer, site_server

import uflip as package

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

DEVICE = "sim:demo?blocks_per_die=64"


@pytest.fixture(scope="module")
def result_dirs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two results of one device, with different random addresses."""
    folder = tmp_path_factory.mktemp("measured")
    for seed in ("1", "2"):
        options = ("--scale", "quick", "--only", "order", "--seed", seed, "-q")
        outcome = uflip("run", DEVICE, *options, "--out", folder / seed)
        assert outcome.code == 0, outcome.err
    return [folder / "1", folder / "2"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SiteServer]:
    with site_server(tmp_path_factory.mktemp("served") / "site") as site:
        yield site


@pytest.fixture
def monitored_page(browser: "Browser", server: SiteServer) -> Iterator[MonitoredPage]:
    watcher = MonitoredPage(browser)
    yield watcher
    watcher.context.close()
    assert [
        url for url in watcher.requested_urls if not url.startswith((server.url, "data:", "blob:"))
    ] == []


def submit(server: SiteServer, folder: Path, *options: str) -> dict[str, Any]:
    token = server.token("alice")
    outcome = uflip("submit", folder, server.url, "--token", token, "--json", *options)
    assert outcome.code == 0, outcome.err + outcome.out
    document: dict[str, Any] = json.loads(outcome.out)
    return document


def submit_forged(server: SiteServer, folder: Path, forged: Path) -> Outcome:
    """Submit a copy with one bit of a run changed."""
    shutil.copytree(folder, forged)
    run = next((forged / "runs").glob("*.parquet"))
    content = bytearray(run.read_bytes())
    content[len(content) // 2] ^= 1
    run.write_bytes(content)
    token = server.token("alice")
    return uflip("submit", forged, server.url, "--token", token, "--publish")


def rows(page: "Page") -> int:
    return page.locator("tbody tr").count()


def test_measurement_is_submitted_compared_and_cited(
    monitored_page: MonitoredPage, server: SiteServer, result_dirs: list[Path], tmp_path: Path
) -> None:
    page = monitored_page.page
    # Submitted, but private: neither the list nor its address shows it.
    first = submit(server, result_dirs[0])
    page.goto(server.url)
    assert page.get_by_text("Nothing matches").is_visible()
    response = page.goto(first["url"])
    assert response is not None
    assert response.status == 404
    # A result changed by hand does not verify, and is not there either.
    refused = submit_forged(server, result_dirs[0], tmp_path / "forged")
    assert refused.code != 0
    # Published: the same again makes it so.
    assert submit(server, result_dirs[0], "--publish")["id"] == first["id"]
    second = submit(server, result_dirs[1], "--publish")
    monitored_page.console_messages.clear()  # the console reports the 404
    # Browsed: searched, and by its device.
    page.goto(server.url)
    assert rows(page) == 2
    check_in_all_themes(page, "list")
    page.get_by_label("Search").fill("no such model")
    page.get_by_role("button", name="Show").click()
    page.get_by_text("Nothing matches").wait_for()
    page.get_by_label("Search").fill("demo")
    page.get_by_role("button", name="Show").click()
    page.locator("tbody th a").first.click()
    page.get_by_role("heading", name="Over time").wait_for()
    assert page.url.startswith(f"{server.url}/devices/")
    assert page.get_by_role("region", name="Results over time").locator("tbody tr").count() == 2
    check_in_all_themes(page, "device")
    # Compared, in the axes of the explorer.
    page.get_by_role("link", name="Compare the newest in the same axes").click()
    page.get_by_role("heading", level=1).wait_for()
    page.locator("table tbody tr").first.wait_for()
    assert {first["id"], second["id"]} == set(unquote(page.url).rpartition("/")[2].split(","))
    ours = package.compare(result_dirs[0], result_dirs[1])
    assert page.locator("table").last.locator("tbody tr").count() == len(ours.rows)
    assert page.evaluate("!document.body.dataset.busy")
    # Cited: the citation has the address, the address has the result.
    page.goto(first["url"])
    page.get_by_text("BibTeX").click()
    cited = page.locator(".cite").inner_text()
    assert first["url"] in cited
    assert "alice" in cited
    assert first["url"] in page.locator("pre").inner_text()
    check_in_all_themes(page, "result")
    address = cited.rpartition(", ")[2]
    assert package.load(address).frame() == package.load(result_dirs[0]).frame()
    # From the citation down to every I/O.
    page.get_by_role("link", name="Explore its I/Os").click()
    page.get_by_role("heading", name="All runs").wait_for()
    page.locator(".rail summary").first.click()
    page.locator(".rail details[open] a").first.click()
    page.wait_for_function("() => document.querySelector('.pad .figure')?.dataset.complete")
    assert monitored_page.console_messages == [], "the console is empty"


def test_markup_in_device_name_stays_text(
    monitored_page: MonitoredPage, server: SiteServer, tmp_path: Path
) -> None:
    """The name of any user's profile is shown on every page, and runs on none."""
    probe = "<img src=x onerror=document.title='ran'>"
    text = (PACKAGE_ROOT / "uflip" / "profiles" / "demo.toml").read_text()
    path = tmp_path / f"own {probe.replace('/', '_')}.toml"
    path.write_text(text.replace("a 4 GiB page-mapped SSD", probe))
    device = f"sim:{path}"
    outcome = uflip(
        "run", device, "--scale", "quick", "--only", "order", "-q", "--out", tmp_path / "own"
    )
    assert outcome.code == 0, outcome.err
    document = submit(server, tmp_path / "own", "--publish")
    page = monitored_page.page
    for address in (server.url, f"{server.url}/devices", document["url"], f"{server.url}/explore/"):
        page.goto(address)
        page.wait_for_load_state("networkidle")
        assert page.locator("img").count() == 0, address
        assert page.title() != "ran", address
    assert monitored_page.console_messages == []


def test_chosen_results_are_compared_and_requests_described(
    server: SiteServer, tmp_path: Path
) -> None:
    client = server.client()
    address = client.get("/compare?id=a1&id=b2&id=/evil", follow_redirects=False)
    assert (address.status_code, address.headers["location"]) == (303, "/explore/#/compare/a1,b2")
    assert client.get("/compare?id=a1", follow_redirects=False).headers["location"] == "/"
    about = client.get("/about").text
    for path in client.get("/api/v1/openapi.json").json()["paths"]:
        assert f" {path}</code>" in about
    assert f"uflip submit results/mine {server.url} --dry-run" in about
    (days,) = re.findall(r"uflip site token SITE NAME --expires (\S+)</code>", about)
    issued = uflip("site", "token", tmp_path, "alice", "--expires", days)
    assert issued.code == 0, issued.err
