"""Renews docs/images/explorer-*.png and report.png, the tutorial's pictures. Needs chromium.

The result is that of the tutorial, `uflip run sim:demo --scale quick`; the script follows the steps
of the tutorial.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.sync_api import sync_playwright

from uflip.web.server import serving

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
DRAWN = "() => document.querySelector('.pad .figure')?.dataset.complete === 'true'"


# Spare capacity and memory against the slowest hundredth of random writes.
SWEEP = [
    "sim:demo?blocks_per_die=64", "--vary", "spare_factor=0.1..0.5",
    "--vary", "write_cache_bytes=4096..2097152:log", "--vary", "gc=greedy,cyclic,random",
    "--pattern", "RW", "--io-size", "4k", "--io-count", "4k", "--sample", "lhs:32", "--quiet",
]  # fmt: skip


def main() -> None:
    """Make all pictures."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results"
        _uflip("run", "sim:demo", "--scale", "quick", "--quiet", "--out", results / "demo")
        _uflip("report", results / "demo", "-o", report := Path(folder) / "report.html")
        options = ("--io-count", "1000", "--inside", results / "writes")
        _uflip("pattern", "sim:demo", "--pattern", "RW", *options)
        _uflip("sweep", *SWEEP, "--data", results / "space")
        with serving([results]) as server, sync_playwright() as started:
            browser = started.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox"]
            )
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.goto(server.url)
            picture_of_result(page)
            pictures_of_a_run(page)
            picture_of_dies(page, server.url)
            picture_of_play(page)
            picture_of_sweep(page, server.url)
            page.set_viewport_size({"width": 1200, "height": 1500})
            page.goto(report.as_uri())
            page.screenshot(path=IMAGES / "report.png")
            browser.close()


def _uflip(*arguments: str | Path) -> None:
    command = [sys.executable, "-m", "uflip", *map(str, arguments)]
    subprocess.run(command, check=True, capture_output=True)


def picture_of_result(page: "Page") -> None:
    """Take the picture of the result, opened from the list."""
    page.get_by_role("link", name="results/demo").click()
    page.get_by_role("heading", name="All runs").wait_for()
    page.wait_for_timeout(300)  # figures get their width when they are visible
    page.screenshot(path=IMAGES / "explorer-result.png")


def pictures_of_a_run(page: "Page") -> None:
    """Take the pictures of the random writes, and of the slowest one among its neighbours."""
    page.get_by_role("link", name=re.compile("^RW random write")).first.click()
    page.wait_for_function(DRAWN)
    page.locator(".runs a").first.wait_for()
    page.get_by_role("region", name="The slowest I/Os").wait_for()
    page.screenshot(path=IMAGES / "explorer-run.png")
    page.get_by_role("region", name="The slowest I/Os").locator("button").first.click()
    page.get_by_role("region", name="One I/O").wait_for()
    page.wait_for_function("() => location.hash.includes('from=')")
    page.set_viewport_size({"width": 1280, "height": 970})  # the chart and the card below it
    page.evaluate("scrollTo(0, document.querySelector('.pad').offsetTop - 40)")
    page.wait_for_timeout(300)
    page.screenshot(path=IMAGES / "explorer-cause.png")
    page.set_viewport_size({"width": 1280, "height": 800})


def picture_of_dies(page: "Page", url: str) -> None:
    """Take the picture of dies and channels around the slowest write."""
    page.goto(url)
    page.get_by_role("link", name="results/writes").click()
    page.wait_for_function(DRAWN)
    page.get_by_role("region", name="The slowest I/Os").locator("button").first.click()
    page.get_by_role("region", name="One I/O").wait_for()
    page.wait_for_function("() => location.hash.includes('from=')")
    page.locator(".pad").focus()
    for _ in range(3):
        page.keyboard.press("+")
    page.wait_for_timeout(500)  # the answer to the last stretch is drawn
    page.locator(".gantt").evaluate("panel => scrollTo(0, panel.offsetTop - 60)")
    page.screenshot(path=IMAGES / "explorer-dies.png")


def picture_of_play(page: "Page") -> None:
    """Take the picture of random writes on the device, and with more spare space."""
    page.get_by_role("link", name="Play").click()
    for number, spare in enumerate(("", "0.4"), 1):
        page.get_by_role("textbox", name="spare_factor").fill(spare)
        page.get_by_role("button", name="Run", exact=True).click()
        page.wait_for_function(
            "n => document.querySelector('.played')?.dataset.drawn === n", arg=str(number)
        )
    page.evaluate("scrollTo(0, 0)")
    page.screenshot(path=IMAGES / "explorer-play.png")


def picture_of_sweep(page: "Page", url: str) -> None:
    """Take the picture of all points and the Pareto front, for little spare capacity."""
    page.set_viewport_size({"width": 960, "height": 800})  # lines make large files
    page.goto(url)
    page.get_by_role("link", name="results/space").click()
    canvas = page.locator(".parallel canvas")
    canvas.wait_for()
    box = canvas.bounding_box()
    assert box is not None, "it is drawn"
    page.mouse.move(box["x"] + 64, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + 64, box["y"] + box["height"] - 22)
    page.mouse.up()
    page.wait_for_timeout(300)
    page.screenshot(path=IMAGES / "explorer-sweep.png")


if __name__ == "__main__":
    main()
