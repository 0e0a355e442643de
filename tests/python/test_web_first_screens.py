"""Do the first screens show key figures, causes and tails, at every width?"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import stored
from browser_page import PHONE, WIDE, check_in_all_themes, monitored_page
from command_line import uflip

from uflip.results import Results
from uflip.results.causes import cause_name
from uflip.web.open_run import OpenRun
from uflip.web.server import Serving, serving
from uflip.web.slow_ios import MAX_PARTS, PART, causes_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SMALL = "sim:demo?blocks_per_die=64"
IOS = 800
WARNINGS = [
    {"code": code, "message": f"The {code} of a drive " * 9, "numbers": {}, "advice": "wait"}
    for code in ("wide_spread", "skewed", "short")
]
DRAWN = "() => document.querySelector('.pad .figure')?.dataset.complete === 'true'"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("screens") / "r"
    runs = [
        stored.baseline_run(number, pattern, io_count=IOS, io_size=4096)
        for number, pattern in enumerate(("SR", "RW"), 1)
    ]
    stored.results(root / "both", runs, SMALL, warnings=WARNINGS)
    stored.results(root / "single", runs[1:], SMALL)
    return root


def response_times(folder: Path) -> np.ndarray:
    (run,) = Results.load(folder / "single").runs
    return np.asarray(run.trace().column("response_time_ns")).astype(np.int64)


def test_single_run_opens_directly(page: "Page", server: Serving) -> None:
    page.goto(server.url)
    page.get_by_role("link", name="r/single").click()
    page.wait_for_function(DRAWN)
    assert page.locator("h1").inner_text().startswith("RW")
    assert page.get_by_label("colour by").input_value() == "cause"
    page.locator(".runs", has_text="measured").wait_for()


def test_only_result_with_one_run_needs_no_click(browser: "Browser", folder: Path) -> None:
    with serving([folder / "single"]) as server, monitored_page(browser, server.url) as watcher:
        watcher.page.goto(server.url)
        watcher.page.wait_for_function(DRAWN)
        watcher.page.get_by_role("link", name="Results").first.click()
        watcher.page.get_by_role("heading", name="Results", exact=True).wait_for()


@pytest.mark.parametrize("size", [WIDE, PHONE])
def test_list_has_no_hidden_columns(
    browser: "Browser", server: Serving, folder: Path, size: dict[str, int]
) -> None:
    with monitored_page(browser, server.url, viewport=size) as watcher:
        watcher.page.goto(server.url)
        tail = watcher.page.locator("tr", has_text="r/single").locator(".spark")
        tail.wait_for()
        longest = response_times(folder).max() / 1e6
        assert f"max {longest:.3g} ms"[:8] in str(tail.get_attribute("aria-label"))
        points = tail.locator("polyline").get_attribute("points")
        assert points is not None
        heights = [float(point.split(",")[1]) for point in points.split()]
        assert heights == sorted(heights, reverse=True), "a percentile is no less than the last"
        wide = "() => { const t = document.querySelector('.scroll');"
        wide += " return t.scrollWidth - t.clientWidth; }"
        assert watcher.page.evaluate(wide) <= 0


def test_design_hints_fit_a_phone(browser: "Browser", tmp_path: Path) -> None:
    options = ("--scale", "quick", "--only", "baseline,order", "-q")
    assert uflip("run", SMALL, *options, "--out", tmp_path / "r").code == 0
    assert uflip("report", tmp_path / "r", "-o", tmp_path / "r.html").code == 0
    with serving([tmp_path]) as server:
        for url in (server.url, (tmp_path / "r.html").as_uri()):
            with monitored_page(browser, url, viewport=PHONE) as watcher:
                watcher.page.goto(url)
                if url == server.url:
                    watcher.page.locator("table.results tbody a").first.click()
                hints = watcher.page.locator(".hints .scroll, #design-hints .scroll")
                hints.locator("th", has_text="not measured").first.wait_for()
                assert hints.evaluate("each => each.scrollWidth <= each.clientWidth")


def test_key_figures_stand_above_doubts(page: "Page", server: Serving) -> None:
    page.goto(server.url)
    page.get_by_role("link", name="r/both").click()
    tiles, warnings = page.locator(".tiles"), page.locator(".warnings")
    warnings.wait_for()
    above, below = tiles.bounding_box(), warnings.bounding_box()
    assert above is not None
    assert below is not None
    assert above["y"] + above["height"] < below["y"]
    assert below["height"] < 60, "one line"
    assert below["y"] + below["height"] < WIDE["height"], "on the first screen"
    assert "3 warnings" in warnings.inner_text()
    warnings.locator("summary").click()
    page.locator(".warning").first.wait_for()


def test_causes_are_those_of_the_visible_range(page: "Page", server: Serving, folder: Path) -> None:
    (run,) = Results.load(folder / "single").runs
    trace = run.trace()
    low, high = 200, 300
    times = response_times(folder)[low:high]
    slow = int(np.argmax(times))
    page.goto(server.url)
    page.get_by_role("link", name="r/single").click()
    page.wait_for_function(DRAWN)
    page.goto(f"{page.url.split('?')[0]}?from={low}&to={high}")
    page.reload()
    region = page.get_by_role("region", name="Causes of all and of slow I/Os")
    region.wait_for()
    page.get_by_text(f"all {high - low} I/Os, mean").wait_for()
    shown = {
        row.locator("th").inner_text().strip(): row.locator("td").all_inner_texts()
        for row in region.locator("tbody tr").all()
    }
    spent = {name: np.asarray(trace.column(name))[low:high] for name in trace.causes}
    expected = {cause_name(name): ns for name, ns in spent.items() if ns.any()}
    assert shown.keys() == expected.keys()
    for name, ns in expected.items():
        every, slowest = (
            float(shown[name][at].split()[0].replace(",", "")) if shown[name][at] != "0" else 0.0
            for at in (0, 2)
        )
        scale = [1.0, 1e3, 1e6]
        assert any(every == pytest.approx(ns.mean() / unit, rel=6e-3) for unit in scale), name
        assert any(slowest == pytest.approx(ns[slow] / unit, rel=6e-3) for unit in scale), name
    widths = page.locator(".stack").first.locator("span").all()
    shares = [
        float(str(each.evaluate("e => e.style.getPropertyValue('--share')"))[:-1])
        for each in widths
    ]
    assert sum(shares) == pytest.approx(100)


def test_causes_of_a_long_range_are_sampled(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = Results.load(folder / "single")
    run = OpenRun(results, results.runs[0])
    exact = causes_of(run, 0, IOS)
    assert (exact["count"], exact["slow"], exact["sampled"]) == (IOS, IOS // 100, False)
    total = sum(each["every_ns"] for each in exact["causes"])
    assert total == pytest.approx(response_times(folder).mean()), "causes sum to response times"
    monkeypatch.setattr("uflip.web.slow_ios.PART", 50)
    sampled = causes_of(run, 0, IOS)
    assert (sampled["count"], sampled["sampled"]) == (MAX_PARTS * 50, True)
    assert PART > IOS


def test_question_mark_lists_the_keys(page: "Page", server: Serving) -> None:
    page.goto(server.url)
    page.get_by_role("link", name="r/single").wait_for()
    page.get_by_label("Filter").focus()
    page.keyboard.type("?")
    assert page.get_by_role("dialog").count() == 0, "a question mark is text in a field"
    page.get_by_label("Filter").fill("")
    page.locator("main").focus()
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keys")
    dialog.wait_for()
    assert "slowest visible I/O" in dialog.inner_text()
    check_in_all_themes(page, "keys")
    page.keyboard.press("Escape")
    dialog.wait_for(state="hidden")


def test_patterns_have_shapes(page: "Page", server: Serving, folder: Path) -> None:
    runs = [
        stored.planned_run(
            at, "granularity", pattern, parameter="io_size", value=size, unit="bytes",
            spec=stored.baseline(pattern, io_size=size, io_count=60, target_size=8 << 20),
        )
        for at, (pattern, size) in enumerate(
            ((pattern, size) for pattern in ("SR", "RR", "SW", "RW") for size in (4096, 16384)), 1
        )
    ]  # fmt: skip
    stored.results(folder / "sizes", runs, SMALL)
    page.goto(server.url)
    page.get_by_role("link", name="r/sizes").click()
    shapes = page.locator(".legend li.shape")
    shapes.first.wait_for()
    assert shapes.evaluate_all("all => all.map(e => e.dataset.shape)") == ["●", "■", "▲", "◆"]
    with page.expect_download() as waiting:
        page.locator("article details summary").first.click()
        page.locator("article").get_by_role("button", name="SVG").click()
    text = waiting.value.path().read_text(encoding="utf-8")
    assert (text.count("<circle"), text.count("<polygon")) == (2, 6)
    assert "size of an I/O (IOSize)" in text


@pytest.fixture(autouse=True)
def _no_leftovers(folder: Path) -> Iterator[None]:
    """Remove results that a test has added."""
    yield
    for path in (folder / "sizes").rglob("*") if (folder / "sizes").exists() else ():
        if path.is_file():
            path.unlink()
