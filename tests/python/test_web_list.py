"""Are list rows sorted by their values, and are their numbers shown in full?"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
import stored
from browser_page import MonitoredPage

from uflip.report.key_row import COLUMNS
from uflip.web.server import Serving, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

SMALL = "sim:demo?blocks_per_die=64"
PAUSE, REVERSE = COLUMNS.index("Pause"), COLUMNS.index("Reverse")
# The displayed text, and its number.
PAUSES = {"a": ("900 µs", 900_000), "b": ("1.2 s", 1.2e9), "c": ("no", None), "d": ("30 ms", 3e7)}
REVERSES = {"a": ("x1.5", 1.5), "b": ("=", 1.1), "c": ("–", None), "d": ("x0.6", 0.6)}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    root = tmp_path_factory.mktemp("listed") / "r"
    for name in PAUSES:
        stored.results(root / name, [stored.baseline_run(1, "SR", io_size=4096)], SMALL)
    with serving([root]) as running:
        yield running


@pytest.fixture
def page(browser: "Browser", server: Serving) -> Iterator["Page"]:
    """The list, with pauses and factors that these small results do not have."""
    watcher = MonitoredPage(browser)

    def answer_rows(route: "Route") -> None:
        document = route.fetch().json()
        keys = {row["key"]: row["name"][-1] for row in listed["results"]}
        for row in document["rows"]:
            for column, values in ((PAUSE, PAUSES), (REVERSE, REVERSES)):
                cell, number = values[keys[row["key"]]]
                row["cells"][column], row["numbers"][column] = cell, number
        route.fulfill(json=document)

    listed = watcher.page.request.get(f"{server.url}api/results").json()
    watcher.page.route("**/api/rows?*", answer_rows)
    watcher.page.goto(f"{server.url}#/results?columns=all")
    watcher.page.get_by_text("900 µs").wait_for()
    yield watcher.page
    watcher.context.close()
    assert watcher.console_messages == []


@pytest.mark.parametrize(
    ("column", "down"), [("Pause", "bdac"), ("Reverse", "abdc"), ("Converged", "abcd")]
)
def test_column_is_sorted_by_number_with_missing_last(page: "Page", column: str, down: str) -> None:
    names = page.locator("tbody th a")
    for expected in (down, down if column == "Converged" else down[2::-1] + down[3]):
        page.get_by_role("button", name=column).click()
        assert "".join(name[-1] for name in names.all_inner_texts()) == expected


def test_times_have_three_digits_and_unit(page: "Page") -> None:
    heads = page.locator("thead th").all_inner_texts()
    assert [head.strip() for head in heads if "[ms]" in head] == list(COLUMNS[:4])
    at = [head.strip() for head in heads].index("SR [ms]")
    text = page.locator("tbody tr").first.locator("> *").nth(at).inner_text()
    assert len(text.replace(".", "").lstrip("0")) == 3, text
