"""Do figures name their axes and marks, and show all of their data?"""

import csv
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import stored
from browser_page import PHONE, WIDE, MonitoredPage, check_in_all_themes
from command_line import uflip

from uflip.results import Results
from uflip.web.server import Serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SMALL = "sim:demo?blocks_per_die=64"
IGNORED = 60
# Record the texts that each canvas contains since it was last cleared.
LISTENING = """
  const drawn = CanvasRenderingContext2D.prototype.fillText;
  const cleared = CanvasRenderingContext2D.prototype.clearRect;
  CanvasRenderingContext2D.prototype.clearRect = function (...box) {
    this.written = [];
    return cleared.apply(this, box);
  };
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
    const { e, f, b } = this.getTransform();
    const wide = this.measureText(text).width;
    (this.written ??= []).push({ text, x: x + e, y: y + f, wide, turned: b !== 0 });
    return drawn.call(this, text, x, y);
  };
"""
WRITTEN = """figure => figure.querySelector('canvas').getContext('2d').written"""
DRAWN_ROUNDS = """() => [...document.querySelectorAll('.thirds canvas')].every(
  canvas => canvas.getContext('2d').written?.some(each => each.text === 'written [MiB]'))"""
OF_PANEL = "details:has(h2:text-is('{}')) .figure, article:has(h3:text-is('{}')) .figure"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("figures") / "r"
    for name, changes in (("one", ""), ("two", "&spare_factor=0.4")):
        stored.results(root / name, list(runs()), SMALL + changes)
    for name in ("RW", "SR"):
        options = ("--pattern", name, "--io-count", 200, "--inside", root / f"inside {name}")
        assert uflip("pattern", SMALL, *options).code == 0
    steady = ("--suite", "today", "--only", "steady_state", "--scale", "quick")
    assert uflip("run", SMALL, *steady, "--out", root / "steady").code == 0
    return root


def runs() -> Iterator[Any]:
    """Three micro-benchmarks with the same pattern and value, and one run twice."""
    for number, name in enumerate(("baseline", "alignment", "granularity", "granularity"), 1):
        changes = {"io_count": 800, "io_ignore": IGNORED, "seed": number}
        spec = stored.baseline("SW", io_size=32768, target_size=8 << 20, **changes)
        one = stored.planned_run(
            number, name, "SW", parameter="io_size", value=32768, unit="bytes", spec=spec
        )
        yield replace(one, repetition=2 if number == 4 else 1)


@pytest.fixture
def page(browser: "Browser", request: pytest.FixtureRequest) -> Iterator["Page"]:
    watcher = MonitoredPage(
        browser, accept_downloads=True, viewport=getattr(request, "param", None) or PHONE
    )
    watcher.page.add_init_script(LISTENING)
    yield watcher.page
    watcher.context.close()
    assert watcher.console_messages == []


WIDE_ONLY = pytest.mark.parametrize("page", [WIDE], indirect=True)


def key_of(page: "Page", server: Serving, name: str) -> str:
    listed = page.request.get(f"{server.url}api/results").json()["results"]
    return next(row["key"] for row in listed if row["name"] == f"r/{name}")


def open_run(page: "Page", server: Serving, name: str, query: str = "") -> None:
    key = key_of(page, server, name)
    run_id = page.request.get(f"{server.url}api/result?key={key}").json()["runs"][0]["id"]
    page.goto(f"{server.url}#/run/{key}/{run_id}{query}")
    page.wait_for_function(
        "() => document.querySelector('.pad .figure')?.dataset.complete === 'true'"
    )


def figure_texts(page: "Page", panel: str) -> list[dict[str, Any]]:
    """Return the texts on the figure of a panel, or of the run itself."""
    where = OF_PANEL.format(panel, panel) if panel else ".pad .figure"
    texts: list[dict[str, Any]] = page.locator(where).first.evaluate(WRITTEN)
    return texts


def wait_for_words(page: "Page", panel: str, words: str) -> None:
    for _ in range(50):
        if words in [each["text"] for each in figure_texts(page, panel)]:
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"{panel} does not say {words}: {figure_texts(page, panel)}")


def compare(page: "Page", server: Serving) -> None:
    keys = ",".join(key_of(page, server, name) for name in ("one", "two"))
    page.goto(f"{server.url}#/compare/{keys}")
    page.get_by_role("heading", name="Comparison", exact=True).wait_for()


def check_apart(words: list[dict[str, Any]]) -> None:
    assert len(words) > 1
    at = sorted((each["x"], each["wide"]) for each in words)
    for (x, wide), (after, wide_after) in pairwise(at):
        assert after - wide_after / 2 > x + wide / 2 + 4


def test_axis_labels_do_not_overlap(page: "Page", server: Serving) -> None:
    open_run(page, server, "one")
    wait_for_words(page, "Distribution", "response time")
    texts = figure_texts(page, "Distribution")
    check_apart([each for each in texts if re.search(r"\d [nµm]?s$", each["text"])])
    compare(page, server)
    ratios = page.locator("main .figure").first
    ratios.evaluate("figure => figure.scrollIntoView()")
    texts = ratios.evaluate(WRITTEN)
    check_apart([each for each in texts if each["text"].startswith("×")])
    assert "×1.00" in [each["text"] for each in texts]


@WIDE_ONLY
def test_axis_is_named_after_its_quantity(page: "Page", server: Serving) -> None:
    open_run(page, server, "inside RW", "?axis=time")
    panels = {"": "submitted, since the first", "Free blocks": "since the run began",
              "Write amplification": "since the run began"}  # fmt: skip
    for panel, words in panels.items():
        wait_for_words(page, panel, words)
    page.get_by_label("over number").check()
    for panel, words in panels.items():
        wait_for_words(page, panel, "number of the I/O")
        assert words not in [each["text"] for each in figure_texts(page, panel)]


@WIDE_ONLY
def test_unknown_series_is_not_drawn(page: "Page", server: Serving) -> None:
    open_run(page, server, "inside SR")
    page.get_by_role("heading", name="Free blocks").wait_for()
    assert page.get_by_role("heading", name="Write amplification").count() == 0


@WIDE_ONLY
def test_saved_histogram_names_all_axes(page: "Page", server: Serving) -> None:
    open_run(page, server, "one")
    with page.expect_download() as waiting:
        page.locator("details:has(h2:text-is('Distribution'))").get_by_role(
            "button", name="SVG"
        ).click()
    saved = waiting.value.path().read_text()
    assert re.findall("response time|I/Os<|share at most this slow", saved)[-3:] == [
        "response time", "I/Os<", "share at most this slow",
    ]  # fmt: skip


@WIDE_ONLY
def test_rows_of_comparison_have_unique_names(page: "Page", server: Serving) -> None:
    compare(page, server)
    texts: list[dict[str, Any]] = page.locator("main .figure").first.evaluate(WRITTEN)
    names = Counter(each["text"] for each in texts if "SW 32 KiB" in each["text"])
    assert names == {f"{name} SW 32 KiB": 1 for name in ("Baseline", "Alignment", "Granularity")}
    with page.expect_download() as waiting:
        page.get_by_role("button", name="SVG").first.click()
    saved = re.findall(
        r'<text x="([\d.]+)"[^>]*>(\w+ SW 32 KiB)<', waiting.value.path().read_text()
    )
    assert len(saved) == 3
    assert all(float(right_end) > 6 * len(name) for right_end, name in saved), "none is cut"


@WIDE_ONLY
def test_overlay_shows_runs_of_its_row(page: "Page", server: Serving, folder: Path) -> None:
    compare(page, server)
    page.get_by_role("button", name=re.compile("^Overlay Granularity")).click()
    overlay = page.get_by_role("region", name="Overlay")
    overlay.locator(".plot canvas").wait_for()
    counted = 2 * (800 - IGNORED)
    assert overlay.locator(".legend li").all_inner_texts() == [
        f"r/{name}: {counted:,} I/Os of 2 runs" for name in ("one", "two")
    ]
    with page.expect_download() as waiting:
        overlay.get_by_role("button", name="CSV").click()
    lines = [line.split(",") for line in waiting.value.path().read_text().splitlines()[1:]]
    for name in ("one", "two"):
        repeated_runs = [
            run for run in Results.load(folder / name).runs if run.micro_benchmark == "granularity"
        ]
        assert len(repeated_runs) == 2
        times = np.concatenate([run.response_time_ns() for run in repeated_runs]).astype(float)
        steps = [(float(at), float(share)) for run, at, share in lines if run == f"r/{name}"]
        assert steps[-1] == (times.max(), 0)
        for at, share in steps[:-1]:
            assert share == pytest.approx((times >= at).mean())


@pytest.mark.parametrize("page", [WIDE, PHONE], indirect=True)
def test_steady_state_is_drawn_over_the_bytes_written(
    page: "Page", server: Serving, folder: Path
) -> None:
    page.goto(f"{server.url}#/result/{key_of(page, server, 'steady')}")
    section = page.get_by_role("region", name="Steady state over the bytes written")
    section.wait_for()
    page.wait_for_function(DRAWN_ROUNDS)
    figures = {
        "Rate": "I/Os per second",
        "Write amplification": "write amplification",
        "p99": "response time",
    }
    for heading, label in figures.items():
        figure = section.locator("article", has_text=heading).locator(".figure")
        assert label in [each["text"] for each in figure.evaluate(WRITTEN)]
    with page.expect_download() as waiting:
        section.get_by_role("button", name="CSV").click()
    rows = list(csv.DictReader(waiting.value.path().read_text("utf-8").splitlines()))
    # The last round ends with the run: its I/Os times their size.
    steady = [
        run for run in Results.load(folder / "steady").runs if run.micro_benchmark == "steady_state"
    ]
    assert {row["run"] for row in rows} == {run.id for run in steady}
    for run in steady:
        trace = run.trace()
        own = [row for row in rows if row["run"] == run.id]
        written = [int(row["written_bytes"]) for row in own]
        assert written == sorted(written)
        assert written[-1] == np.asarray(trace.column("io_size_bytes")).sum(dtype=np.int64)
        # The times of the rounds, from their rates, add up to that of the run.
        sizes = np.diff([0, *written])
        seconds = sizes / run.spec.io_size / [float(row["ios_per_s"]) for row in own]
        begins, times = (
            np.asarray(trace.column(f"{name}_ns")) for name in ("submit", "response_time")
        )
        whole_ns = (begins.astype(np.int64) + times).max() - begins.min()
        assert seconds.sum() == pytest.approx(whole_ns / 1e9, rel=0.01)
    check_in_all_themes(page, "steady state")
