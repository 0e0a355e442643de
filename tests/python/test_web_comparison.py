"""Does a comparison in the explorer agree with its data, and report undecided rows?"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import stored

from uflip.results.comparability import UNKNOWN_REASONS
from uflip.web.server import Serving

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

ROOT = Path(__file__).resolve().parents[2]
SMALL = "sim:demo?blocks_per_die=64"
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("compared") / "r"
    for name, patterns, changes in (
        ("one", ("SR", "RR", "SW", "RW"), ""),
        ("two", ("SR", "RR", "SW", "RW"), "&program_ns=900000"),
        ("reads", ("SR",), ""),
        ("writes", ("SW",), ""),
    ):
        runs = [stored.baseline_run(at, each) for at, each in enumerate(patterns, 1)]
        stored.results(root / name, runs, SMALL + changes)
    return root


def open_comparison(page: "Page", server: Serving, *names: str) -> None:
    listed = page.request.get(f"{server.url}api/results").json()["results"]
    keys = {row["name"]: row["key"] for row in listed}
    page.goto(f"{server.url}#/compare/{','.join(keys[f'r/{name}'] for name in names)}")
    page.get_by_role("heading", name="Comparison", exact=True).wait_for()


def patch_answer(page: "Page", change: Callable[[Rows], None]) -> None:
    """The server's answer, with rows that no small device makes."""

    def answer(route: "Route") -> None:
        document = route.fetch().json()
        for each in document["comparisons"]:
            change(each["rows"])
            verdicts = [row["verdict"] for row in each["rows"]]
            each["verdicts"] = {name: verdicts.count(name) for name in each["verdicts"]}
        route.fulfill(content_type="application/json", body=json.dumps(document))

    page.route("**/api/compare?*", answer)


def cells(page: "Page", column: int) -> list[str]:
    rows = page.get_by_role("region", name="Mean response times").locator("tbody tr")
    return rows.locator(f"td:nth-child({column})").all_inner_texts()


def test_largest_difference_is_first(page: "Page", server: Serving) -> None:
    def change(rows: Rows) -> None:
        for row, ratio in zip(rows, (1.1, 0.866, 1.01, 0.5), strict=True):
            row["ratio"] = ratio

    patch_answer(page, change)
    open_comparison(page, server, "one", "two")
    assert cells(page, 4) == ["×0.500", "×0.866", "×1.10", "×1.01"]
    caption = page.locator("caption", has_text="Mean response times").inner_text()
    assert caption == "Mean response times, the largest difference first"
    assert page.get_by_text("The 4 largest differences").count() == 1


def test_unknown_rows_are_counted_by_reason(page: "Page", server: Serving) -> None:
    verdicts: list[str] = ["same", "not_apart", "unknown", "unknown"]
    reasons: list[str | None] = [None, None, "inside_startup", "one_repetition"]

    def change(rows: Rows) -> None:
        for row, verdict, reason in zip(rows, verdicts, reasons, strict=True):
            row |= {"verdict": verdict, "unknown_because": reason}

    patch_answer(page, change)
    open_comparison(page, server, "one", "two")
    abstract = page.locator(".abstract").inner_text()
    counts = re.search(r"; 1 inconclusive, 2 unknown \((.+), (.+)\)\.$", abstract)
    assert counts is not None, abstract
    assert sorted(counts.groups()) == ["1 inside the start-up", "1 one repetition"]
    shown = [cell for cell in cells(page, 5) if cell.startswith("unknown")]
    assert sorted(shown) == ["unknown: inside the start-up", "unknown: one repetition"]
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Save CSV").click()
    header, *lines = waiting.value.path().read_text().splitlines()
    assert header.split(",")[-1] == "unknown_because"
    stored_reasons = {line.split(",")[-1] for line in lines}
    assert stored_reasons == {"", "inside_startup", "one_repetition"}
    verdicts[:] = ["same", "faster", "slower", "not_apart"]
    reasons[:] = [None] * 4
    page.reload()
    page.locator(".abstract").wait_for()
    abstract = page.locator(".abstract").inner_text()
    assert abstract.endswith("in 1 of 4 experiments, slower in 1, the same in 1; 1 inconclusive.")


def test_no_common_experiment_is_stated(page: "Page", server: Serving) -> None:
    open_comparison(page, server, "reads", "writes")
    abstract = page.locator(".abstract").inner_text()
    assert abstract == "r/reads and r/writes have no experiment in common."
    assert page.get_by_text("Only in the first: 1; only in the second: 1.").count() == 1
    assert page.get_by_label("Show").count() == 0
    assert page.get_by_role("button").all_inner_texts() == ["?"]
    assert page.get_by_role("region", name="Mean response times").count() == 0


def test_every_reason_for_a_missing_verdict_has_words() -> None:
    source = (ROOT / "web" / "src" / "compare.ts").read_text(encoding="utf-8")
    words = re.search(r"const REASONS.*?= \{(.*)\};", source)
    assert words is not None
    assert {*re.findall(r"(\w+): \"", words[1])} == {*UNKNOWN_REASONS}


@pytest.mark.parametrize("low", [0.0, -0.7, None])
def test_interval_from_0_reaches_the_edge(page: "Page", server: Serving, low: float | None) -> None:
    ends = [(1.5, low, 3.52), (1.4, None, None), (1.3, 1.2, 1.45), (0.9, 0.8, 1.1)]

    def change(rows: Rows) -> None:
        for row, (ratio, begin, end) in zip(rows, ends, strict=True):
            row |= {"ratio": ratio, "low": begin, "high": end}

    patch_answer(page, change)
    open_comparison(page, server, "one", "two")
    assert cells(page, 6) == ["0 – ×3.52", "–", "×1.20 – ×1.45", "×0.800 – ×1.10"]
    assert page.get_by_text("An arrow: the interval begins at 0.").count() == 1
    with page.expect_download() as waiting:
        page.get_by_role("button", name="SVG").first.click()
    saved = waiting.value.path().read_text()
    edge = min(float(at) for at in re.findall(r'd="M([\d.]+) [^"]*"[^>]*stroke-width="1"', saved))
    drawn = re.findall(r'd="M([\d.]+) ([\d.]+)([^"]*)"[^>]*stroke-width="2"', saved)
    begins = [float(x) for x, _, _ in drawn]
    assert begins[0] == edge
    assert drawn[1][2].count("L") == 2, "the tip of an arrow"
    assert f"L{edge:g} {drawn[0][1]}" in drawn[1][2]
    assert len(drawn) == 4, "two other rows, and none for the row without an interval"
    assert min(begins[1:]) > edge


def test_unknown_verdict_filters_nothing(page: "Page", server: Serving) -> None:
    open_comparison(page, server, "one", "two")
    whole = page.locator("table tbody tr").count()
    for verdict in ("nonsense", "toString"):
        page.goto(f"{page.url.partition('?')[0]}?verdict={verdict}")
        page.reload()  # another query alone would not open the view anew
        page.get_by_role("heading", name="Comparison", exact=True).wait_for()
        assert page.locator("table tbody tr").count() == whole, verdict
        assert page.locator("select").first.input_value() == ""


def test_all_results_are_one_figure(page: "Page", server: Serving) -> None:
    def change(rows: Rows) -> None:
        for row, value in zip(rows, (512, 4096, 512, 4096), strict=True):
            row["title"], row["pattern"] = (
                "Granularity",
                "RW" if row["pattern"] in "SR RR" else "SW",
            )
            row["value"], row["label"], row["axis"] = value, f"{value} B", "IOSize"

    patch_answer(page, change)
    open_comparison(page, server, "one", "two")
    figures = page.locator("section", has=page.get_by_role("heading", name="All results"))
    assert figures.get_by_role("heading", level=3).all_inner_texts() == [
        "Granularity",
    ]
    assert figures.get_by_role("heading", level=4).all_inner_texts() == ["SW", "RW"]
    assert figures.locator("ul.legend li").all_inner_texts() == ["r/one", "r/two"]
    assert figures.locator("canvas").count() == 2
    assert page.get_by_text("times as long for").count() > 0
