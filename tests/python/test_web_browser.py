"""Does the explorer lead from the list to the cause of a slow I/O, in a real browser?"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import stored
from browser_page import PHONE, WIDE, MonitoredPage, check_usable, monitored_page

from uflip.results import Results
from uflip.web.server import Serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SMALL = "sim:demo?blocks_per_die=64"
PROBE = "<img src=x onerror=document.title='ran'>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("explored") / "results"
    runs = [
        stored.baseline_run(number, pattern, io_count=800, io_ignore=60, io_size=size)
        for number, (pattern, size) in enumerate([("SR", 4096), ("RW", 4096), ("SW", 32768)], 1)
    ]
    sizes = [
        stored.planned_run(
            4 + index, "granularity", "RW", parameter="io_size", value=size, unit="bytes",
            spec=stored.baseline("RW", io_size=size, io_count=60, target_size=8 << 20),
        )
        for index, size in enumerate((4096, 16384, 65536))
    ]  # fmt: skip
    stored.results(root / "first", [*runs, *sizes], SMALL)
    stored.results(root / "second", [*runs, *sizes], f"{SMALL}&spare_factor=0.4")
    hostile = root / f"third {PROBE.replace('/', '_')}"
    stored.results(hostile, runs[:1], SMALL)
    return root


@pytest.fixture
def watched(browser: "Browser", server: Serving) -> Iterator[MonitoredPage]:
    with monitored_page(browser, server.url, accept_downloads=True) as watcher:
        yield watcher


def wait_until_drawn(page: "Page", drawings: int = 1) -> None:
    """Wait until a run is drawn `drawings` more times, and as a whole."""
    page.wait_for_function(
        "n => { const f = document.querySelector('.pad .figure');"
        " return f && Number(f.dataset.drawn ?? 0) >= n && f.dataset.complete === 'true'; }",
        arg=drawings,
    )


def drawing_count(page: "Page") -> int:
    return int(page.locator(".pad .figure").get_attribute("data-drawn") or 0)


def open_run(page: "Page", server: Serving) -> None:
    page.goto(server.url)
    page.wait_for_load_state("networkidle")  # a list that is drawn anew takes a click with it
    page.get_by_role("link", name="results/first").click()
    page.get_by_role("link", name=re.compile("^RW random write")).first.click()
    wait_until_drawn(page)


def test_click_from_list_to_cause_of_a_spike(
    watched: MonitoredPage, server: Serving, folder: Path
) -> None:
    page = watched.page
    open_run(page, server)
    stored_run = next(run for run in Results.load(folder / "first").runs if run.pattern == "RW")
    trace = stored_run.trace()
    times = np.asarray(trace.column("response_time_ns"))
    slowest = int(times.argmax())
    # One click on the slowest I/O of the table shows its card and its neighbours.
    before = drawing_count(page)
    page.get_by_role("button", name=f"{slowest:,}", exact=True).click()
    wait_until_drawn(page, before + 1)
    card = page.get_by_role("region", name="One I/O")
    assert f"I/O {slowest:,}" in card.inner_text()
    causes = {name: int(np.asarray(trace.column(name))[slowest]) for name in trace.causes}
    listed = card.locator(".causes li").all_inner_texts()
    assert len(listed) == sum(ns > 0 for ns in causes.values())
    page.wait_for_function(
        "io => location.hash.includes(`from=${io - 60}&to=${io + 60}`)", arg=slowest
    )
    assert f"io={slowest}" in page.url
    # Hovering shows the same without a click.
    box = page.locator(".pad .u-over").bounding_box()
    assert box is not None
    hovered = False
    for share in np.linspace(0.02, 0.98, 60):
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] * float(share))
        if f"I/O {slowest:,}" in page.locator(".readout").inner_text():
            hovered = True
            break
    assert hovered, "the mouse finds it where it is drawn"
    # The tooltip has the same words.
    assert page.locator(".pad .tip").inner_text() == page.locator(".readout").inner_text()
    assert "main cause" in page.locator(".readout").inner_text()


def test_wheel_drag_and_keys_zoom_and_pan(watched: MonitoredPage, server: Serving) -> None:
    page = watched.page
    open_run(page, server)
    status = page.get_by_role("status")
    assert status.inner_text().startswith("800 I/Os in view")
    box = page.locator(".pad .u-over").bounding_box()
    assert box is not None
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def status_after(act: Any) -> int:
        before = drawing_count(page)
        act()
        wait_until_drawn(page, before + 1)
        return int(status.inner_text().split()[0].replace(",", ""))

    page.mouse.move(*middle)
    assert 600 <= status_after(lambda: page.mouse.wheel(0, -100)) <= 680, "a fifth nearer"

    def drag() -> None:
        page.mouse.move(box["x"] + 0.25 * box["width"], middle[1])
        page.mouse.down()
        page.mouse.move(box["x"] + 0.75 * box["width"], middle[1], steps=4)
        page.mouse.up()

    assert 300 <= status_after(drag) <= 340, "half of it"
    page.locator(".pad").focus()
    assert 150 <= status_after(lambda: page.keyboard.press("+")) <= 170
    address = page.url
    status_after(lambda: page.keyboard.press("ArrowRight"))
    page.wait_for_function("url => location.href !== url", arg=address)
    assert status_after(lambda: page.keyboard.press("0")) == 800
    status_after(lambda: page.get_by_label("over time").check())
    assert "axis=time" in page.url
    assert status.inner_text().startswith("800 I/Os in view")


def test_shared_address_shows_the_same_view(
    watched: MonitoredPage, server: Serving, browser: "Browser"
) -> None:
    page = watched.page
    open_run(page, server)
    before = drawing_count(page)
    page.locator(".pad").focus()
    page.keyboard.press("+")
    wait_until_drawn(page, before + 1)
    assert page.get_by_label("colour by").input_value() == "cause", "of a simulated device"
    page.get_by_label("colour by").select_option("mode")
    page.wait_for_function(
        "() => location.hash.includes('from=') && location.hash.includes('colour=mode')"
    )
    page.keyboard.press("Tab")
    other = MonitoredPage(browser)
    other.page.goto(page.url)
    wait_until_drawn(other.page)
    for selector in (".legend >> nth=0", ".pad + .readout + div"):
        ours, theirs = (each.locator(selector).inner_text() for each in (page, other.page))
        assert ours == theirs
    assert other.console_messages == []
    other.context.close()


def test_two_results_are_compared(watched: MonitoredPage, server: Serving) -> None:
    page = watched.page
    page.goto(server.url)
    for name in ("first", "second"):
        page.get_by_label(f"Compare results/{name}").check()
    page.get_by_role("button", name="Compare 2").click()
    page.get_by_role("heading", name="Comparison", exact=True).wait_for()
    abstract = page.locator(".abstract").inner_text()
    numbers = [int(each) for each in re.findall(r"\d+", abstract)]
    assert numbers[1] == 6, abstract
    rows = page.get_by_role("region", name=re.compile("Mean response times")).locator("tbody tr")
    assert rows.count() == 6
    ratios = [float(re.search(r"×([\d.]+)\s", text)[1]) for text in rows.all_inner_texts()]  # type: ignore[index]
    distances = [abs(np.log(ratio)) for ratio in ratios]
    assert distances == sorted(distances, reverse=True), "the largest first"
    # Both distributions of one experiment in the same axes.
    rows.first.get_by_role("button", name=re.compile("^Overlay")).click()
    overlay = page.get_by_role("region", name="Overlay")
    overlay.locator(".plot canvas").wait_for()
    assert overlay.locator(".legend li").count() == 2
    with page.expect_download() as waiting:
        overlay.get_by_role("button", name="CSV").click()
    lines = waiting.value.path().read_text().splitlines()
    assert lines[0] == "run,response_time_ns,share_longer"
    assert {line.split(",")[0] for line in lines[1:]} == {"results/first", "results/second"}


def test_pinch_zooms_and_one_finger_pans(browser: "Browser", server: Serving) -> None:
    watcher = MonitoredPage(browser, viewport=PHONE, has_touch=True)
    open_run(watcher.page, server)
    status = watcher.page.get_by_role("status")
    touch = """
    ([name, id, x]) => {
      const over = document.querySelector('.pad .u-over');
      over.setPointerCapture = () => undefined;
      const box = over.getBoundingClientRect();
      over.dispatchEvent(new PointerEvent(name, { pointerType: 'touch', pointerId: id,
        clientX: box.left + box.width * x, clientY: box.top + 40, bubbles: true }));
    }
    """

    def status_after(*moves: tuple[str, int, float]) -> str:
        before = drawing_count(watcher.page)
        for move in moves:
            watcher.page.evaluate(touch, list(move))
        wait_until_drawn(watcher.page, before + 1)
        return status.inner_text().split()[0]

    spread = ("pointerdown", 1, 0.4), ("pointerdown", 2, 0.6), ("pointermove", 2, 0.8)
    assert 390 <= int(status_after(*spread)) <= 410, "twice as far apart, half as much to be seen"
    watcher.page.wait_for_function("() => location.hash.includes('from=')")
    start = int(watcher.page.url.split("from=")[1].split("&")[0])
    status_after(("pointerup", 2, 0.8), ("pointermove", 1, 0.2))
    watcher.page.wait_for_function(
        "from => Number(location.hash.match(/from=(\\d+)/)[1]) > from", arg=start
    )
    assert watcher.console_messages == []
    watcher.context.close()


def test_list_is_sorted_and_filtered(watched: MonitoredPage, server: Serving) -> None:
    page = watched.page
    page.goto(server.url)
    names = page.locator("tbody th a")
    page.get_by_role("button", name="Result", exact=True).click()
    page.get_by_role("button", name="Result").click()
    assert [name.split("/")[1][:5] for name in names.all_inner_texts()] == [
        "first",
        "secon",
        "third",
    ]
    page.get_by_label("Filter").fill("second")
    page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 1")
    assert "filter=second" in page.url
    assert names.all_inner_texts() == ["results/second"]


def test_markup_in_name_stays_text(watched: MonitoredPage, server: Serving) -> None:
    page = watched.page
    page.goto(server.url)
    page.get_by_role("link", name=re.compile("third <img")).click()
    page.locator(".crumbs", has_text="third <img").wait_for()
    wait_until_drawn(page)
    assert page.locator("img").count() == 0
    assert "ran" not in page.title().split()
    assert "<img src=x" in page.locator(".crumbs").inner_text()


def test_visible_data_is_saved(watched: MonitoredPage, server: Serving, tmp_path: Path) -> None:
    page = watched.page
    open_run(page, server)
    buttons = page.locator(".bar .buttons").nth(1)
    for name in ("SVG", "PNG", "CSV"):
        with page.expect_download() as waiting:
            buttons.get_by_role("button", name=name).click()
        path = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(path)
        content = path.read_bytes()
        if name == "CSV":
            lines = content.decode().splitlines()
            assert lines[0].startswith("number,submit_ns,response_time_ns")
            assert len(lines) == 1 + 800
        elif name == "PNG":
            assert content.startswith(b"\x89PNG")
        else:
            text = content.decode()
            assert text.count("<circle") == 800
            assert "<script" not in text
            assert "response time" in text


def test_errors_have_four_parts(browser: "Browser", server: Serving, folder: Path) -> None:
    page = MonitoredPage(browser).page
    for hash_ in ("#/result/0000000000000000", "#/run/x/y", "#/compare/a,b"):
        page.goto("about:blank")
        page.goto(server.url + hash_)
        page.get_by_role("alert").wait_for()
        assert "do" in page.get_by_role("alert").inner_text()
    page.get_by_role("link", name="To the list of results").click()
    page.get_by_role("heading", name="Results", exact=True).wait_for()
    page.context.close()


# Accessibility


def views(server: Serving, page: "Page") -> Iterator[str]:
    """Every view, one after the other; leaves the page there."""
    page.goto(server.url)
    page.get_by_role("link", name="results/first").wait_for()
    page.wait_for_function("() => !document.querySelector('main').innerText.includes('…')")
    yield "results"
    keys = page.eval_on_selector_all(
        "tbody th a", "links => links.map(each => each.hash.split('/')[2])"
    )
    page.get_by_role("link", name="results/first").click()
    page.get_by_role("heading", name="All runs").wait_for()
    yield "result"
    page.get_by_role("link", name=re.compile("^RW random write")).first.click()
    wait_until_drawn(page)
    page.locator(".runs a").first.wait_for()
    page.locator(".pad").focus()
    page.keyboard.press("Enter")
    page.get_by_role("region", name="One I/O").wait_for()
    page.get_by_text("Addresses").first.click()
    page.get_by_text("All 800 I/Os.").wait_for()
    yield "run"
    page.goto(f"{server.url}#/compare/{keys[0]},{keys[1]}")
    page.get_by_role("heading", name="Comparison", exact=True).wait_for()
    yield "compare"


@pytest.mark.parametrize("look", ["wide", "dark", "phone"])
def test_every_view_is_accessible(browser: "Browser", server: Serving, look: str) -> None:
    watcher = MonitoredPage(
        browser,
        viewport=PHONE if look == "phone" else WIDE,
        color_scheme="dark" if look == "dark" else "light",
    )
    for name in views(server, watcher.page):
        check_usable(watcher.page, name)
    assert watcher.console_messages == []
    watcher.context.close()
