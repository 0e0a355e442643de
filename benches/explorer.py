"""Latency of the explorer: runs of 10⁷ and 10⁸ I/Os in a browser, and a list of many results.

A server in a process of its own, and headless Chromium on the same machine: the times are those
that a user waits for, from the click to the picture.
"""

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uflip import _native
from uflip.device.opener import open_device
from uflip.microbench.experiment import PlannedRun
from uflip.results import ResultsWriter, host_provenance
from uflip.results.initial_manifest import manifest_of
from uflip.spec import baseline

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = Path(__file__).resolve().parent.parent
IOS = 10_000_000
LARGEST_IOS = 100_000_000
FOLDERS = 1000
ZOOMS = 24
Row = Callable[[str, float, str, float | None, str], dict[str, Any]]


def explorer(row: Row) -> list[dict[str, Any]]:
    """Time the explorer; return nothing without a browser."""
    with tempfile.TemporaryDirectory() as folder:
        big, largest = Path(folder) / "big", Path(folder) / "largest"
        _store_run(big / "result", IOS)
        _store_run(largest / "result", LARGEST_IOS)
        return [
            *_in_a_browser(row, big, largest),
            _list_of_many(row, Path(folder) / "many"),
        ]


def _store_run(path: Path, ios: int) -> None:
    """Store a run of `ios` I/Os of the null device, the cheapest one."""
    spec = baseline("RR", io_size=4096, io_count=ios, seed=1)
    planned = PlannedRun("0001-baseline-RR", "baseline", "RR", "io_size", 4096, "bytes", spec)
    with open_device("sim:demo?blocks_per_die=64" if ios < IOS else "null") as device:
        content = manifest_of(
            device=device.info,
            host=host_provenance(["uflip", "bench"]),
            harness={"null_ns_per_io": 55.0, "clock_ns": _native.clock_ns()},
            scale="quick",
            seed=1,
            pause_ns=0,
            plan=[planned],
        )
        filled = ResultsWriter.create(path, content)
        filled.commit(planned, device.run(spec))
        filled.finish("complete")


@contextmanager
def _run_server(path: Path) -> Iterator[tuple[str, int]]:
    """Serve a folder from a process of its own; yield its address and its process id."""
    command = [sys.executable, "-m", "uflip", "explore", str(path), "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip(), process.pid
    finally:
        process.terminate()
        process.wait()


DRAWN = "n => Number(document.querySelector('.pad .figure')?.dataset.drawn ?? 0) >= n"
WHOLE = "() => document.querySelector('.pad .figure')?.dataset.complete === 'true'"
ZOOM = """
async share => {
  const figure = document.querySelector('.pad .figure');
  const over = figure.querySelector('.u-over');
  const box = over.getBoundingClientRect();
  const before = Number(figure.dataset.drawn);
  const begin = performance.now();
  over.dispatchEvent(new WheelEvent('wheel', {
    deltaY: share < 0 ? 100 : -100, clientX: box.left + box.width * Math.abs(share), clientY: 300,
    bubbles: true, cancelable: true }));
  while (Number(figure.dataset.drawn) === before) await new Promise(requestAnimationFrame);
  await new Promise(requestAnimationFrame);
  return performance.now() - begin;
}
"""


def _first_picture(page: "Page", url: str) -> tuple[float, float]:
    """Open the only run; return the times to the first picture and to the complete one [s]."""
    page.goto(f"{url}#/results")
    link = page.locator("tbody th a").first
    link.wait_for()
    begin = time.perf_counter()
    link.click()
    page.wait_for_function(DRAWN, arg=1)
    first = time.perf_counter() - begin
    page.wait_for_function(WHOLE, timeout=120_000)
    return first, time.perf_counter() - begin


def _in_a_browser(row: Row, path: Path, largest: Path) -> list[dict[str, Any]]:
    chromium = shutil.which("chromium")
    if chromium is None:
        return []
    from playwright.sync_api import sync_playwright

    with _run_server(path) as (url, pid), sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        first, whole = _first_picture(page, url)
        # Zoom in on one place, then on others: every kind of picture is among them.
        shares = [0.31] * (ZOOMS // 2) + [-0.5, -0.5, 0.9, 0.1] * (ZOOMS // 8)
        zooms_ms = [float(page.evaluate(ZOOM, share)) for share in shares]
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
        peak_kib = next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]
        with _run_server(largest) as (other, _):
            largest_first, largest_whole = _first_picture(page, other)
        browser.close()
    return [
        row("explorer, 10⁷ I/Os, first picture", first, "s", None, "< 0.5"),
        row("explorer, 10⁷ I/Os, all of it read", whole, "s", None, ""),
        row("explorer, 10⁸ I/Os, first picture", largest_first, "s", None, "< 3"),
        row("explorer, 10⁸ I/Os, all of it read", largest_whole, "s", None, ""),
        row("explorer, zoom, median", statistics.median(zooms_ms), "ms", None, "< 80"),
        row("explorer, zoom, worst", max(zooms_ms), "ms", None, "< 250"),
        row("explorer, memory of the server", int(peak_kib) / 1024, "MiB", None, "< 500"),
    ]


def _list_of_many(row: Row, path: Path) -> dict[str, Any]:
    """List a thousand folders: copies of one under different names."""
    _store_run(path / "0000", 100)
    for number in range(1, FOLDERS):
        shutil.copytree(path / "0000", path / f"{number:04d}")
    with _run_server(path) as (url, _):
        begin = time.perf_counter()
        with urllib.request.urlopen(f"{url}api/results") as response:
            response.read()
        return row("explorer, 1,000 results listed", time.perf_counter() - begin, "s", None, "< 1")
