"""Does the explorer show a sweep as stored, and lead from all points to one?"""

import csv
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from browser_page import MonitoredPage, check_in_all_themes, monitored_page

from uflip import _native
from uflip.data import sweep as document
from uflip.errors import ResultsError
from uflip.spec import baseline
from uflip.sweeping import Range, Sample, SweepRow, sweep
from uflip.sweeping.ranking import measured, pareto_front
from uflip.web.open_results import Folders, key_of
from uflip.web.server import Serving, serving
from uflip.web.sweeps import Sweeps

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SMALL = "sim:demo?blocks_per_die=64"
WRITES = baseline("RW", io_size="4k", io_count=1100)
VARY: dict[str, Any] = {
    "spare_factor": Range(0.1, 0.4),
    "write_cache_bytes": Range(4096, 1 << 20, logarithmic=True),
    "gc": ["greedy", "cyclic"],
}
POINTS = 24
OBJECTIVES = ("spare_bytes", "memory_bytes", "p99")


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[SweepRow]]:
    root = tmp_path_factory.mktemp("explored") / "results"
    sample = Sample("lhs", POINTS, 3)
    return root, sweep(SMALL, WRITES, VARY, sample=sample, data=root / "rows")


@pytest.fixture(scope="module")
def server(swept: tuple[Path, list[SweepRow]]) -> Iterator[Serving]:
    with serving([swept[0]]) as running:
        yield running


@pytest.fixture
def watched(browser: "Browser", server: Serving) -> Iterator[MonitoredPage]:
    with monitored_page(browser, server.url, accept_downloads=True) as watcher:
        yield watcher


def open_sweep(watched: MonitoredPage, server: Serving) -> "Page":
    page = watched.page
    page.goto(server.url)
    page.get_by_role("link", name="results/rows").click()
    page.get_by_role("status").wait_for()
    assert page.get_by_text("random write of 4 KiB").is_visible()
    return page


def status_text(page: "Page") -> str:
    return page.get_by_role("status").inner_text()


def marked_rows(page: "Page") -> set[int]:
    rows = page.locator("tbody tr").all()
    return {
        int(row.locator("th").inner_text())
        for row in rows
        if row.locator("td").last.inner_text() == "yes"
    }


def test_front_matches_command_line(
    watched: MonitoredPage, server: Serving, swept: tuple[Path, list[SweepRow]]
) -> None:
    page = open_sweep(watched, server)
    on_front = pareto_front(swept[1], OBJECTIVES)
    assert 1 < len(on_front) < POINTS, "the front is a proper subset"
    assert status_text(page).startswith(
        f"{POINTS} of {POINTS} points; {len(on_front)} on the front"
    )
    assert marked_rows(page) == {*on_front}
    page.get_by_label("iops", exact=True).check()
    assert marked_rows(page) == {*pareto_front(swept[1], (*OBJECTIVES, "iops"))}, (
        "of a rate, more is better"
    )
    page.get_by_label("only the front").check()
    assert page.locator("tbody tr").count() == len(pareto_front(swept[1], (*OBJECTIVES, "iops")))


def test_brushed_axis_filters_lines(
    watched: MonitoredPage, server: Serving, swept: tuple[Path, list[SweepRow]]
) -> None:
    page = open_sweep(watched, server)
    canvas = page.locator(".parallel canvas")
    box = canvas.bounding_box()
    assert box is not None
    # The first axis is 64 pixels from the left, from 46 below the top to 22 above the bottom.
    foot, head = box["y"] + box["height"] - 22, box["y"] + 46
    middle = (foot + head) / 2
    page.mouse.move(box["x"] + 64, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + 64, foot)
    page.mouse.up()
    spare = [row.values["spare_factor"] for row in swept[1]]
    half = (min(spare) + max(spare)) / 2
    below = {index for index, value in enumerate(spare) if value <= half}
    page.get_by_role("button", name="spare factor:").wait_for()
    assert status_text(page).startswith(f"{len(below)} of {POINTS} points")
    listed = {int(cell.inner_text()) for cell in page.locator("tbody th").all()}
    assert listed == below
    remaining = [swept[1][index] for index in sorted(below)]
    remaining_front = {sorted(below)[index] for index in pareto_front(remaining, OBJECTIVES)}
    assert marked_rows(page) == remaining_front, "the front of the remaining points"
    page.reload()
    page.get_by_role("status").wait_for()
    assert status_text(page).startswith(f"{len(below)} of"), "the address holds it"
    page.get_by_role("button", name="spare factor:").click()
    assert status_text(page).startswith(f"{POINTS} of")


def test_point_has_its_own_address(
    watched: MonitoredPage, server: Serving, swept: tuple[Path, list[SweepRow]]
) -> None:
    page = open_sweep(watched, server)
    page.get_by_role("button", name="p99", exact=True).click()
    times = [measured(row, "p99") for row in swept[1]]
    least = min(range(POINTS), key=lambda index: times[index] or 0)
    first = page.locator("tbody th button").first
    assert int(first.inner_text()) == least, "sorted"
    first.click()
    page.get_by_role("heading", name=f"Point {least}").wait_for()
    device = swept[1][least].device
    card = page.get_by_role("region", name="One point")
    assert device in card.inner_text()
    other = watched.context.new_page()
    other.goto(page.url)
    other.get_by_role("heading", name=f"Point {least}").wait_for()
    other.close()


def test_saved_files_match_the_view(
    watched: MonitoredPage, server: Serving, swept: tuple[Path, list[SweepRow]], tmp_path: Path
) -> None:
    page = open_sweep(watched, server)
    page.get_by_label("colour by").select_option("gc")
    assert page.locator(".legend").inner_text().split()[:2] == ["greedy", "cyclic"]
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").click()
    download.value.save_as(tmp_path / "rows.csv")
    records = [*csv.DictReader((tmp_path / "rows.csv").read_text().splitlines())]
    assert [float(row["spare_factor"]) for row in records] == [
        row.values["spare_factor"] for row in swept[1]
    ]
    assert [row["gc"] for row in records] == [row.values["gc"] for row in swept[1]]
    assert [float(row["p99"]) for row in records] == [measured(row, "p99") for row in swept[1]]
    with page.expect_download() as download:
        page.get_by_role("button", name="SVG").first.click()
    download.value.save_as(tmp_path / "rows.svg")
    assert (tmp_path / "rows.svg").read_text().count("<path") > POINTS


@pytest.mark.parametrize("pair", [("memory_bytes", "p99"), ("p99", "iops"), ("iops", "iops")])
def test_scatter_marks_front_of_two_measures(
    watched: MonitoredPage,
    server: Serving,
    swept: tuple[Path, list[SweepRow]],
    pair: tuple[str, str],
) -> None:
    page = open_sweep(watched, server)
    for label, name in zip(("horizontal", "vertical"), pair, strict=True):
        page.get_by_label(label).select_option(name)
    scatter = page.locator("[data-front]")
    front = {*pareto_front(swept[1], pair)} if len({*pair}) == 2 else set()
    assert {*map(int, (scatter.get_attribute("data-front") or "").split())} == front
    page.reload()
    page.get_by_role("status").wait_for()
    assert page.get_by_label("vertical").input_value() == pair[1], "the address holds it"
    assert {*map(int, (scatter.get_attribute("data-front") or "").split())} == front


def test_click_in_scatter_selects_point(
    watched: MonitoredPage, server: Serving, swept: tuple[Path, list[SweepRow]]
) -> None:
    page = open_sweep(watched, server)
    page.get_by_label("horizontal").select_option("p99")
    page.get_by_label("vertical").select_option("p99")
    times = [measured(row, "p99") or 0 for row in swept[1]]
    plane = page.locator("[data-front] .u-over")
    # Both axes have a margin of 4 % at each end; the slowest point is at the top right.
    box = plane.bounding_box()
    assert box is not None
    margin = 0.04 / 1.08
    position = {"x": box["width"] * (1 - margin), "y": box["height"] * margin}
    plane.hover(position=position)  # type: ignore[arg-type]
    plane.click(position=position)  # type: ignore[arg-type]
    page.get_by_role("heading", name=f"Point {times.index(max(times))}").wait_for()


def test_sweep_is_usable_by_keyboard(watched: MonitoredPage, server: Serving) -> None:
    page = open_sweep(watched, server)
    page.locator("tbody th button").first.focus()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Point 0").wait_for()
    check_in_all_themes(page, "sweep")


# Sweeps on disk


def sweeps_of(root: Path) -> Sweeps:
    return Sweeps(Folders([root]))


def test_unfinished_sweep_is_shown_partially(
    swept: tuple[Path, list[SweepRow]], tmp_path: Path
) -> None:
    from pyarrow import parquet

    cut = tmp_path / "cut"
    shutil.copytree(swept[0] / "rows", cut)
    content = json.loads((cut / document.FILE_NAME).read_bytes())
    (cut / document.FILE_NAME).write_text(json.dumps(content | {"rows": None}))
    (cut / "parts").mkdir(exist_ok=True)
    part = parquet.read_table(cut / "points.parquet").slice(5, 7)
    parquet.write_table(part, cut / "part")
    digest = _native.digest((cut / "part").read_bytes())
    (cut / "part").rename(cut / "parts" / f"000000-{digest}.parquet")
    (cut / "points.parquet").unlink()
    response = sweeps_of(tmp_path).get(key_of(cut))
    assert (response["complete"], response["places"]) == (False, [*range(5, 12)])
    axis = next(index for index, each in enumerate(response["axes"]) if each["name"] == "p99")
    assert [row[axis] for row in response["rows"]] == [
        measured(row, "p99") for row in swept[1][5:12]
    ]


def test_damaged_or_foreign_sweep_is_harmless(
    swept: tuple[Path, list[SweepRow]], tmp_path: Path
) -> None:
    import pyarrow
    from pyarrow import parquet

    for name in ("linked", "long", "broken"):
        shutil.copytree(swept[0] / "rows", tmp_path / name)
    (tmp_path / "linked" / "points.parquet").unlink()
    (tmp_path / "linked" / "points.parquet").symlink_to(swept[0] / "rows" / "points.parquet")
    table = parquet.read_table(tmp_path / "long" / "points.parquet")
    parquet.write_table(pyarrow.concat_tables([table] * 2000), tmp_path / "long" / "points.parquet")
    (tmp_path / "broken" / document.FILE_NAME).write_text('{"format": "uflip-sweep"')
    sweeps = sweeps_of(tmp_path)
    with pytest.raises(ResultsError, match="links"):
        sweeps.get(key_of(tmp_path / "linked"))
    with pytest.raises(ResultsError, match="damaged"):
        sweeps.get(key_of(tmp_path / "long"))
    stored = json.loads((tmp_path / "long" / document.FILE_NAME).read_bytes())
    stored["rows"] = _native.digest((tmp_path / "long" / "points.parquet").read_bytes())
    (tmp_path / "long" / document.FILE_NAME).write_text(json.dumps(stored))
    assert sweeps.get(key_of(tmp_path / "long"))["rows"] == [], "more rows than points"
    with pytest.raises(ResultsError):
        sweeps.get(key_of(tmp_path / "broken"))
    listed = {each["name"].rpartition("/")[2]: "error" in each for each in sweeps.listed()}
    assert listed == {"linked": False, "long": False, "broken": True}
    with pytest.raises(ResultsError, match="no such sweep"):
        sweeps.get("0" * 16)


def test_sweep_list_is_plain_data(swept: tuple[Path, list[SweepRow]]) -> None:
    (glance,) = sweeps_of(swept[0]).listed()
    assert msgspec.json.decode(json.dumps(glance)) == glance
    assert glance["vary"] == [*VARY]  # type: ignore[typeddict-item]
