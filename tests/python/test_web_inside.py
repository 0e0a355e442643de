"""Is a stored inference shown in the explorer and the report, and used for its own runs only?"""

from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import stored
from browser_page import check_in_all_themes
from command_line import uflip

from uflip.data.inference import FILE, Property, StoredInference, TwinError
from uflip.results import Results
from uflip.results.stored_inference import read_inference, sources_of, store_inference
from uflip.web.server import Serving

if TYPE_CHECKING:
    from playwright.sync_api import Page

SMALL = "sim:demo?blocks_per_die=64"
FOUND = (
    Property("program_ns", 300_000.0, 299_000.0, 301_000.0, "write_size", ""),
    Property("page_bytes", 4096, 4096, 4096, "read_size", ""),
    Property("gc", "greedy", None, None, "write_size", ""),
    Property("channels", None, None, None, "read_size", "commands hide <b>transfers</b>"),
)
ERRORS = tuple(TwinError("read_size", "RR", 4096, error) for error in (0.01, -0.04, 0.02))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("inferred") / "r"
    runs = [
        stored.planned_run(
            at, probe, pattern, parameter="io_size", value=size, unit="bytes",
            spec=stored.baseline(pattern, io_size=size, io_count=60, target_size=8 << 20),
        )
        for at, (probe, pattern, size) in enumerate(
            (
                (probe, pattern, size)
                for probe, pattern in (("read_size", "RR"), ("write_size", "RW"))
                for size in (4096, 16384)
            ),
            1,
        )
    ]  # fmt: skip
    stored.results(path, runs, SMALL)
    return path


def store(folder: Path) -> None:
    results = Results.load(folder)
    store_inference(results, StoredInference("1", sources_of(results), FOUND, 12 << 20, "", ERRORS))


def test_page_names_the_command_until_it_was_run(
    page: "Page", server: Serving, folder: Path
) -> None:
    page.goto(f"{server.url}#/results")
    page.locator("tbody th a").click()
    page.get_by_role("link", name="What is inside this device").click()
    page.locator(".notice", has_text="uflip infer r").wait_for()
    store(folder)
    page.reload()
    table = page.get_by_role("region", name="Properties of the device")
    table.wait_for()
    rows = [row.locator("th, td").all_inner_texts() for row in table.locator("tbody tr").all()]
    assert [row[:3] for row in rows] == [
        ["program_ns", "300 µs", "299 µs to 301 µs"],
        ["page_bytes", "4 KiB", "exact"],
        ["gc", "greedy", ""],
        ["channels", "not identified", ""],
    ]
    assert rows[3][5] == "commands hide <b>transfers</b>", "text stays text"
    assert all(row[3] for row in rows), "each has a meaning"
    abstract = page.locator(".abstract").inner_text()
    assert "3 of 4 properties" in abstract
    assert "by 2.0% in the median of 3 runs, and by 4.0% at most" in abstract
    # The evidence: a figure for each probe, with what it identified.
    figures = page.locator(".multiples > div")
    assert figures.count() == 2
    written = figures.filter(has_text="program_ns")
    assert "gc = greedy" in written.inner_text()
    table.get_by_role("link", name="Write size").first.click()
    page.wait_for_function("() => document.activeElement.id === 'probe-write_size'")
    check_in_all_themes(page, "inside")


def test_report_has_the_section(folder: Path, tmp_path: Path) -> None:
    store(folder)
    out = tmp_path / "r.html"
    assert uflip("report", folder, "-o", out).code == 0
    text = unescape(out.read_text(encoding="utf-8"))
    assert "What is inside" in text
    for words in ("program_ns", "299 µs to 301 µs", "not identified"):
        assert words in text
    assert "hide &lt;b&gt;transfers" in out.read_text(encoding="utf-8")


def test_inference_of_other_runs_is_not_used(folder: Path, tmp_path: Path) -> None:
    store(folder)
    results = Results.load(folder)
    found = read_inference(results)
    assert found is not None
    assert found.properties == FOUND
    other = stored.results(tmp_path / "other", [stored.baseline_run(1, "RW")], SMALL)
    store_inference(other, found)
    assert read_inference(other) is None
    for damaged in (b"", b"{}", b"\xff"):
        (folder / FILE).write_bytes(damaged)
        assert read_inference(results) is None
