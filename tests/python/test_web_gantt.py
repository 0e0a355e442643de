"""Does the explorer show operations of dies and channels, and their waits, in a real browser?"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import stored
from browser_page import PHONE, MonitoredPage, check_in_all_themes, check_usable

from uflip.device.opener import open_device
from uflip.results import Results
from uflip.results.die_lanes import Lanes
from uflip.web.gantt import gantt, lanes_of, operation
from uflip.web.open_results import Folders, OpenResults, key_of
from uflip.web.open_run import OpenRun
from uflip.web.server import Serving, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

RUN = stored.baseline_run(1, "RW", io_size=4096, io_count=2000)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    path = tmp_path_factory.mktemp("gantt") / "r"
    with open_device("sim:demo?blocks_per_die=64&die_queue=collection_first") as device:
        device.looks_inside = True
        filled = stored.writer(path, [RUN], device)
        filled.commit(RUN, device.run(RUN.spec))
        filled.finish("complete")
    return Results.load(path)


@pytest.fixture(scope="module")
def server(results: Results) -> Iterator[Serving]:
    with serving([results.path]) as running:
        yield running


@pytest.fixture(scope="module")
def lanes(results: Results) -> tuple[OpenRun, Lanes]:
    return lanes_of(OpenResults(Folders([results.path])), key_of(results.path), RUN.id)


def slowest_wait(lanes: Lanes) -> int:
    """The operation of the host that waited longest for its die."""
    operations = lanes.operations
    return int(np.argmax(np.where(lanes.io >= 0, operations.begin - operations.requested, -1)))


def wait_until_drawn(page: "Page", times: int) -> None:
    page.wait_for_function(
        "n => Number(document.querySelector('.gantt .figure')?.dataset.drawn ?? 0) >= n", arg=times
    )


def show(page: "Page", server: Serving, results: Results, query: str) -> None:
    page.goto(f"{server.url}#/run/{key_of(results.path)}/{RUN.id}?{query}")
    wait_until_drawn(page, 1)


def position_of(page: "Page", picture: Any, lanes: Lanes, row: int) -> tuple[float, float]:
    """Return the position of the middle of an operation on the screen."""
    over = page.locator(".gantt .u-over")
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    assert box is not None
    operations, header = lanes.operations, picture.header
    low, high = header["from_ns"], header["until_ns"]
    middle = (int(operations.begin[row]) + int(operations.end[row])) / 2 - lanes.begin_ns
    names = [lane["die"] for lane in header["lanes"]]
    at = (names.index(int(operations.die[row])) + 0.5) / len(names)
    return box["x"] + box["width"] * (middle - low) / (high - low), box["y"] + box["height"] * at


def test_hover_shows_operation_and_its_wait(
    browser: "Browser", server: Serving, results: Results, lanes: tuple[OpenRun, Lanes]
) -> None:
    run, opened_lanes = lanes
    row = slowest_wait(opened_lanes)
    number = int(opened_lanes.io[row])
    watched = MonitoredPage(browser)
    page = watched.page
    low, high = max(number - 3, 0), number + 4
    show(page, server, results, f"from={low}&to={high}")
    picture = gantt(run, opened_lanes, "number", (low, high), 800)
    page.mouse.move(*position_of(page, picture, opened_lanes, row))
    page.wait_for_function(
        "row => document.querySelector('.gantt .readout')?.dataset.row === row", arg=str(row)
    )
    text = page.locator(".gantt .readout").inner_text()
    assert text.startswith(
        f"host program for I/O {number:,}: die {opened_lanes.operations.die[row]}, "
    )
    expected = operation(opened_lanes, row)
    first = expected["waited_for"][0]
    assert f"{first['what']} on die {first['die']}" in text
    assert f"of block {first['block']:,}" in text
    assert expected["waited_ns"] > 0
    # A click opens the I/O, whose card shows the same.
    page.mouse.click(*position_of(page, picture, opened_lanes, row))
    card = page.get_by_role("region", name="One I/O")
    card.wait_for()
    assert f"I/O {number:,}" in card.inner_text()
    assert "Waits" in card.inner_text()
    assert f"{first['what']} on die {first['die']}" in card.inner_text()
    check_usable(page, "dies and channels")
    check_in_all_themes(page, "dies and channels")
    assert watched.console_messages == []
    watched.context.close()


def test_gantt_follows_and_drives_the_zoom(
    browser: "Browser", server: Serving, results: Results
) -> None:
    watched = MonitoredPage(browser)
    page = watched.page
    show(page, server, results, "")
    panel = page.locator(".gantt")
    assert "drawn as shares of time" in panel.inner_text()
    page.locator(".pad").focus()
    for _ in range(6):
        page.keyboard.press("+")
    page.wait_for_function(
        "() => !document.querySelector('.gantt').innerText.includes('shares of time')"
    )
    # Dragged over it, a stretch of time is what the response times are drawn of.
    box = page.locator(".gantt .u-over").bounding_box()
    assert box is not None
    status = page.get_by_role("status")
    before = int(status.inner_text().split()[0].replace(",", ""))
    page.locator(".gantt .u-over").scroll_into_view_if_needed()
    box = page.locator(".gantt .u-over").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 30)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 40, steps=4)
    page.mouse.up()
    page.wait_for_function("() => location.hash.includes('axis=time')")
    page.wait_for_function(
        "n => Number(document.querySelector('[role=status]').innerText.split(' ')[0]) < n",
        arg=before,
    )
    assert page.get_by_label("over time").is_checked()
    assert watched.console_messages == []
    watched.context.close()


def test_drawn_operations_are_saved(
    browser: "Browser", server: Serving, results: Results, lanes: tuple[OpenRun, Lanes]
) -> None:
    watched = MonitoredPage(browser, viewport=PHONE, accept_downloads=True)
    page = watched.page
    show(page, server, results, "from=100&to=130")
    run, opened_lanes = lanes
    picture = gantt(run, opened_lanes, "number", (100, 130), 800)
    texts = {}
    for name in ("SVG", "CSV"):
        with page.expect_download() as waiting:
            page.locator(".gantt").get_by_role("button", name=name).click()
        texts[name] = waiting.value.path().read_text()
    lines = texts["CSV"].splitlines()
    assert lines[0].startswith("operation,row,die,io,job,block,asked_ns,begin_ns")
    assert len(lines) == 1 + picture.header["operations"] == 1 + len(picture.arrays["row"])
    assert "die 7" in texts["SVG"]
    assert watched.console_messages == []
    watched.context.close()


def test_run_without_recording_has_no_gantt(browser: "Browser", tmp_path: Path) -> None:
    results = stored.results(tmp_path / "r", [RUN], "sim:demo?blocks_per_die=64")
    watched = MonitoredPage(browser)
    with serving([results.path]) as server:
        watched.page.goto(f"{server.url}#/run/{key_of(results.path)}/{RUN.id}")
        watched.page.wait_for_function(
            "() => document.querySelector('.pad .figure')?.dataset.complete === 'true'"
        )
        assert watched.page.locator(".gantt").count() == 0
    assert watched.console_messages == []
    watched.context.close()
