"""Do `n` and `p` step through the slowest I/Os, and is a wrong address reported?"""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import stored
from browser_page import monitored_page

from uflip.results import Results
from uflip.web.server import Serving, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

COUNT = 800


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("steps") / "r"
    run = stored.baseline_run(1, "RW", io_count=COUNT, io_size=4096)
    stored.results(path, [run], "sim:demo?blocks_per_die=64")
    return path


def open_run(page: "Page", server: Serving, query: str = "") -> None:
    key = page.request.get(f"{server.url}api/results").json()["results"][0]["key"]
    run = page.request.get(f"{server.url}api/result?key={key}").json()["runs"][0]["id"]
    page.goto(f"{server.url}#/run/{key}/{run}{query}")
    page.get_by_role("heading", name="Each I/O").wait_for()


def slowest(folder: Path) -> list[int]:
    (run,) = Results.load(folder).runs
    order: list[int] = np.argsort(-run.response_time_ns().astype(float), kind="stable").tolist()
    return order


def press(page: "Page", key: str, io: int) -> None:
    page.keyboard.press(key)
    page.wait_for_function(
        "io => location.hash.includes(`from=${io - 60}&to=${io + 60}`)"
        " && location.hash.includes(`io=${io}`)",
        arg=io,
    )
    page.wait_for_timeout(600)  # whatever follows the stretch has followed it


def test_keys_step_through_slowest_ios(page: "Page", server: Serving, folder: Path) -> None:
    middle = [io for io in slowest(folder) if 60 <= io <= COUNT - 60]
    assert middle[:6] == slowest(folder)[:6], "none is so near an end that the stretch is moved"
    open_run(page, server)
    page.locator(".pad").focus()
    listed = page.get_by_role("region", name=f"The slowest I/Os from 0 to {COUNT - 1}")
    for io in middle[:5]:
        press(page, "n", io)
        assert listed.is_visible(), "the list stays while one goes through it"
    press(page, "p", middle[3])
    # After a click in the list the keys continue from there.
    listed.get_by_role("button", name=str(middle[1]), exact=True).click()
    page.locator(".pad").focus()
    press(page, "n", middle[2])
    # After a move by keys the list shows the slowest I/Os of the visible range.
    page.keyboard.press("ArrowRight")
    page.get_by_role("region", name="The slowest I/Os from").and_(
        page.locator(f"[aria-label*='from {middle[2] - 36} to']")
    ).wait_for()


def test_keys_continue_from_chosen_io(page: "Page", server: Serving, folder: Path) -> None:
    first, second, third = slowest(folder)[:3]
    open_run(page, server)
    page.locator(".pad").focus()
    page.keyboard.press("Enter")
    page.wait_for_function("io => location.hash.includes(`io=${io}`)", arg=first)
    press(page, "n", second)
    # A list of another range continues from the same I/O.
    page.keyboard.press("0")
    page.get_by_role("region", name=f"The slowest I/Os from 0 to {COUNT - 1}").wait_for()
    page.wait_for_timeout(600)
    press(page, "n", third)


def test_late_answer_does_not_replace_a_later_selection(
    page: "Page", server: Serving, folder: Path
) -> None:
    first, second = slowest(folder)[:2]
    open_run(page, server)
    listed = page.get_by_role("region", name=f"The slowest I/Os from 0 to {COUNT - 1}")
    page.route(re.compile(rf"api/io\?.*number={first}$"), lambda route: None)  # never answered
    listed.get_by_role("button", name=str(first), exact=True).click()
    page.locator(".pad").focus()
    with page.expect_event("requestfailed", lambda request: f"number={first}" in request.url):
        press(page, "n", second)
    assert f"io={second}" in page.url


def test_left_view_does_not_change_the_address(page: "Page", server: Serving) -> None:
    open_run(page, server)
    drawn = "() => Number(document.querySelector('.figure').dataset.drawn)"
    before = page.evaluate(drawn)
    page.locator(".pad").focus()
    page.keyboard.press("+")
    page.wait_for_function(
        f"before => ({drawn})() > before && (location.hash = '#/results', true)", arg=before
    )
    page.get_by_role("heading", name="Results", exact=True).wait_for()
    page.wait_for_timeout(400)  # longer than the run waits with the address of its new range
    assert page.url.endswith("#/results")


def test_keys_start_with_slowest_if_another_io_is_open(
    page: "Page", server: Serving, folder: Path
) -> None:
    order = slowest(folder)
    open_run(page, server, f"?io={order[-1]}")
    page.get_by_role("region", name="One I/O").wait_for()
    page.locator(".pad").focus()
    press(page, "n", order[0])


@pytest.mark.parametrize("view", ["nowhere", "served", "constructor"])
def test_unknown_view_is_reported(page: "Page", server: Serving, view: str) -> None:
    """And one that this server does not offer."""
    page.goto(f"{server.url}#/{view}")
    alert = page.get_by_role("alert")
    alert.wait_for()
    for text in ("no such view", f"#/{view}", "#/results, #/play, and", "open the page"):
        assert text in alert.inner_text()
    page.get_by_role("link", name="To the list of results").click()
    page.get_by_role("heading", name="Results", exact=True).wait_for()
    assert page.get_by_role("alert").count() == 0


def test_skip_link_stays_in_view(page: "Page", server: Serving) -> None:
    open_run(page, server)
    address = page.url
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.activeElement.id === 'main'")
    assert page.url == address
    assert page.locator(".pad").count() == 1


def test_run_without_neighbours_has_no_links(page: "Page", server: Serving) -> None:
    open_run(page, server)
    assert re.fullmatch(r"Baseline · demo[^·]*", page.locator("h1 + p").inner_text())


def test_run_links_to_neighbours(browser: "Browser", tmp_path: Path) -> None:
    runs = [stored.baseline_run(at, "SR") for at in (1, 2, 3)]
    stored.results(tmp_path / "r", runs, "sim:demo?blocks_per_die=64")
    with serving([tmp_path / "r"]) as server, monitored_page(browser, server.url) as watcher:
        open_run(watcher.page, server)
        for ends in ("next run", "previous run next run", "previous run"):
            line = watcher.page.locator("h1 + p", has_text=re.compile(f"· {ends}$"))
            line.wait_for()
            line.get_by_role("link").last.click()


@pytest.mark.parametrize("io", ["99999", "-1", "1.5", "x"])
def test_unknown_io_is_reported(page: "Page", server: Serving, io: str) -> None:
    open_run(page, server, f"?io={io}")
    card = page.get_by_role("region", name="One I/O")
    assert f"0 to {COUNT - 1}" in card.get_by_role("alert").inner_text()


def test_too_large_number_is_not_reported_as_missing(server: Serving, page: "Page") -> None:
    key = page.request.get(f"{server.url}api/results").json()["results"][0]["key"]
    run = page.request.get(f"{server.url}api/result?key={key}").json()["runs"][0]["id"]
    for number, text in (("1e300", "is not valid"), ("x", "is not valid"), ("", "is missing")):
        query = f"api/window?key={key}&run={run}&from={number}&to=9&columns=9"
        error = page.request.get(server.url + query).json()["error"]
        assert text in error["what"]
        assert error["got"] == (number or "nothing")
