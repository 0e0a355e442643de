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
    page.get_by_role("heading", name="One by one").wait_for()


def slowest(folder: Path) -> list[int]:
    (run,) = Results.load(folder).runs
    found: list[int] = np.argsort(-run.response_time_ns().astype(float), kind="stable").tolist()
    return found


def press(page: "Page", key: str, wanted: int) -> None:
    page.keyboard.press(key)
    page.wait_for_function(
        "io => location.hash.includes(`from=${io - 60}&to=${io + 60}`)"
        " && location.hash.includes(`io=${io}`)",
        arg=wanted,
    )
    page.wait_for_timeout(600)  # whatever follows the stretch has followed it


def test_keys_go_from_one_slow_io_to_the_next(page: "Page", server: Serving, folder: Path) -> None:
    middle = [io for io in slowest(folder) if 60 <= io <= COUNT - 60]
    assert middle[:6] == slowest(folder)[:6], "none is so near an end that the stretch is moved"
    open_run(page, server)
    page.locator(".pad").focus()
    listed = page.get_by_role("region", name=f"The slowest I/Os from 0 to {COUNT - 1}")
    for io in middle[:5]:
        press(page, "n", io)
        assert listed.is_visible(), "the list stays while one goes through it"
    press(page, "p", middle[3])
    # A click in the list goes on from there.
    listed.get_by_role("button", name=str(middle[1]), exact=True).click()
    page.locator(".pad").focus()
    press(page, "n", middle[2])
    # Who moves by himself sees the slowest of what is seen then.
    page.keyboard.press("ArrowRight")
    page.get_by_role("region", name="The slowest I/Os from").and_(
        page.locator(f"[aria-label*='from {middle[2] - 36} to']")
    ).wait_for()


def test_keys_go_on_from_what_was_chosen_in_the_picture(
    page: "Page", server: Serving, folder: Path
) -> None:
    first, second, third = slowest(folder)[:3]
    open_run(page, server)
    page.locator(".pad").focus()
    page.keyboard.press("Enter")
    page.wait_for_function("io => location.hash.includes(`io=${io}`)", arg=first)
    press(page, "n", second)
    # Nor does a list of another stretch begin anew.
    page.keyboard.press("0")
    page.get_by_role("region", name=f"The slowest I/Os from 0 to {COUNT - 1}").wait_for()
    page.wait_for_timeout(600)
    press(page, "n", third)


def test_keys_begin_with_the_slowest_where_another_is_chosen(
    page: "Page", server: Serving, folder: Path
) -> None:
    order = slowest(folder)
    open_run(page, server, f"?io={order[-1]}")
    page.get_by_role("region", name="One I/O").wait_for()
    page.locator(".pad").focus()
    press(page, "n", order[0])


@pytest.mark.parametrize("view", ["nowhere", "served", "constructor"])
def test_a_view_that_is_not_there_is_told(page: "Page", server: Serving, view: str) -> None:
    """And one that this server does not offer."""
    page.goto(f"{server.url}#/{view}")
    told = page.get_by_role("alert")
    told.wait_for()
    for said in ("no such view", f"#/{view}", "#/results, #/play, and", "open the page"):
        assert said in told.inner_text()
    page.get_by_role("link", name="To the list of results").click()
    page.get_by_role("heading", name="Results", exact=True).wait_for()
    assert page.get_by_role("alert").count() == 0


def test_what_skips_to_the_content_stays_in_the_view(page: "Page", server: Serving) -> None:
    open_run(page, server)
    left = page.url
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.activeElement.id === 'main'")
    assert page.url == left
    assert page.locator(".pad").count() == 1


def test_a_run_without_neighbours_names_none(page: "Page", server: Serving) -> None:
    open_run(page, server)
    assert re.fullmatch(r"Baseline · demo[^·]*", page.locator("h1 + p").inner_text())


def test_a_run_leads_to_its_neighbours(browser: "Browser", tmp_path: Path) -> None:
    runs = [stored.baseline_run(at, "SR") for at in (1, 2, 3)]
    stored.results(tmp_path / "r", runs, "sim:demo?blocks_per_die=64")
    with serving([tmp_path / "r"]) as server, monitored_page(browser, server.url) as found:
        open_run(found.page, server)
        for ends in ("next run", "previous run next run", "previous run"):
            line = found.page.locator("h1 + p", has_text=re.compile(f"· {ends}$"))
            line.wait_for()
            line.get_by_role("link").last.click()


@pytest.mark.parametrize("io", ["99999", "-1", "1.5", "x"])
def test_an_io_that_is_not_there_is_told(page: "Page", server: Serving, io: str) -> None:
    open_run(page, server, f"?io={io}")
    card = page.get_by_role("region", name="One I/O")
    assert f"from 0 to {COUNT - 1}" in card.get_by_role("alert").inner_text()


def test_a_number_that_is_too_large_is_not_called_missing(server: Serving, page: "Page") -> None:
    key = page.request.get(f"{server.url}api/results").json()["results"][0]["key"]
    run = page.request.get(f"{server.url}api/result?key={key}").json()["runs"][0]["id"]
    for given, said in (("1e300", "is not valid"), ("x", "is not valid"), ("", "is missing")):
        asked = f"api/window?key={key}&run={run}&from={given}&to=9&columns=9"
        error = page.request.get(server.url + asked).json()["error"]
        assert said in error["what"]
        assert error["got"] == (given or "nothing")
