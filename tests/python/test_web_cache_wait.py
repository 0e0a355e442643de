"""Does the explorer lead in three clicks to the cause of the slowest write on a cached drive?"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import stored
from browser_page import check_in_all_themes, check_usable, monitored_page

from uflip.device.opener import open_device
from uflip.results import Results
from uflip.results.causes import cause_name
from uflip.results.device_log import (
    CAUSE_OF,
    HOST_READ,
    HOST_WRITE,
    NAMES_BY_PURPOSE,
    WAITS,
    Operations,
    read_device_log,
)
from uflip.web.gantt import io_operations, lanes_of
from uflip.web.open_results import Folders, OpenResults, key_of
from uflip.web.server import Serving, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# Two dies and a small cache, which a few hundred writes fill.
SMALL = "channels=2&dies_per_channel=1&blocks_per_die=128&spare_factor=0.3&write_cache_bytes=262144"
DRIVES = {
    "tlc-nvme": SMALL,
    "qlc-nvme": f"{SMALL}&slc_blocks=4&slc_blocks_max=8",
    "enterprise-nvme": SMALL,
    "dramless-nvme": SMALL,
}
TLC = next(iter(DRIVES))
RUN = stored.baseline_run(1, "RW", io_size=16384, io_count=1500, target_size=64 << 20)
WORDS_OF = list(NAMES_BY_PURPOSE)
PURPOSES = [purpose for purpose, _ in NAMES_BY_PURPOSE]
OF_HOST = (HOST_READ, HOST_WRITE)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cached") / "results"
    for drive, small in DRIVES.items():
        with open_device(f"sim:{drive}?{small}") as device:
            device.looks_inside = True
            filled = stored.writer(path / drive, [RUN], device)
            filled.commit(RUN, device.run(RUN.spec))
            filled.finish("complete")
    return path


@pytest.fixture(scope="module")
def server(root: Path) -> Iterator[Serving]:
    with serving([root]) as running:
        yield running


def slowest_of(root: Path, drive: str) -> tuple[dict[str, int], int, Operations]:
    """The parts of the slowest write, its number, and what the dies did."""
    run = Results.load(root / drive).runs[0]
    trace = run.trace()
    number = int(np.asarray(trace.column("response_time_ns")).argmax())
    inside = read_device_log(run)
    assert inside is not None
    parts = {name: int(np.asarray(trace.column(name))[number]) for name in trace.causes}
    return parts, number, inside.operations


def cache_wait_of(operations: Operations, number: int) -> int:
    rows = np.flatnonzero(
        (operations.waits.io == number) & (operations.waits.kind == WAITS.index("write cache"))
    )
    assert len(rows) == 1, "its last page waited for the write cache"
    return int(rows[0])


def charged(operations: Operations, wait: int) -> Counter[str]:
    """Return the parts of a wait by the consecutive operations of its die."""
    begin, end = int(operations.waits.begin[wait]), int(operations.waits.end[wait])
    on_die = np.flatnonzero(
        operations.clocks[operations.die] == operations.clocks[operations.waits.die[wait]]
    )
    parts: Counter[str] = Counter()
    covered_until = begin
    for row in sorted(
        on_die.tolist(), key=lambda row: (operations.begin[row], operations.end[row])
    ):
        low, high = (
            max(int(operations.begin[row]), covered_until),
            min(int(operations.end[row]), end),
        )
        if low >= high:
            continue
        covered_until = high
        purpose = PURPOSES[operations.code[row]]
        if purpose == HOST_WRITE and operations.end[row] == end:
            cells = min(high - low, int(operations.cells[row]))
            sent = min(high - low - cells, int(operations.sent_until[row] - operations.sent[row]))
            parts["cell_program_ns"] += cells
            parts["transfer_ns"] += sent
            parts["channel_wait_ns"] += high - low - cells - sent
        elif purpose in OF_HOST:
            parts["die_wait_ns"] += high - low
        else:
            parts[CAUSE_OF[WORDS_OF[operations.code[row]]]] += high - low
    return parts


@pytest.mark.parametrize("drive", DRIVES)
def test_cache_wait_is_split_by_die_activity(root: Path, drive: str) -> None:
    parts, number, operations = slowest_of(root, drive)
    wait = cache_wait_of(operations, number)
    expected = charged(operations, wait)
    excluded = {"controller_ns", "link_ns"}
    idle = {"cache_wait_ns", "free_page_wait_ns"}
    waited = {name: ns for name, ns in parts.items() if ns and name not in excluded | idle}
    assert waited == {name: ns for name, ns in expected.items() if ns}
    whole = int(operations.waits.end[wait] - operations.waits.begin[wait])
    assert sum(parts[name] for name in idle) == whole - sum(expected.values())
    assert parts["cache_wait_ns"] < whole / 2


@pytest.mark.parametrize("drive", DRIVES)
def test_three_clicks_lead_to_the_cause(
    browser: "Browser", server: Serving, root: Path, drive: str
) -> None:
    parts, number, operations = slowest_of(root, drive)
    wait = cache_wait_of(operations, number)
    die, page_number = (
        int(operations.clocks[operations.waits.die[wait]]),
        int(operations.waits.page[wait]),
    )
    with monitored_page(browser, server.url) as watched:
        page = watched.page
        page.goto(server.url)
        page.wait_for_load_state("networkidle")
        page.get_by_role("link", name=f"results/{drive}").click()
        page.get_by_role("button", name=f"{number:,}", exact=True).click()
        card = page.get_by_role("region", name="One I/O")
        card.wait_for()
        assert f"I/O {number:,}" in card.inner_text()
        # Why it took so long: all its parts, the longest first, which is something that flash does.
        listed = card.locator(".causes .what").all_inner_texts()
        ordered = sorted(parts, key=lambda name: -parts[name])
        assert listed == [cause_name(name) for name in ordered if parts[name]]
        assert ordered[0] not in ("cache_wait_ns", "controller_ns", "link_ns")
        text = card.locator(".flash").inner_text()
        assert "Flash operations" in text
        assert re.search(rf"host program on die {die}\b", text)
        assert "Waits" in text
        assert f"until page {page_number:,}, which was flushed to die {die}, was programmed" in text
        # The chart of the dies shows it: its band, its wait, the program that ended it.
        page.wait_for_function(
            "io => document.querySelector('.gantt .figure')?.dataset.marked === io", arg=str(number)
        )
        page.wait_for_function("() => location.hash.includes('from=')")
        page.get_by_text("waits for the write cache", exact=True).wait_for()
        if drive == TLC:
            check_usable(page, "a write that waited for the cache")
            check_in_all_themes(page, "a write that waited for the cache")


def test_collection_reports_its_valid_pages(root: Path) -> None:
    """The block that a die collects while a write waits, and how many valid pages it had."""
    drive = TLC
    *_, operations = slowest_of(root, drive)
    opened = OpenResults(Folders([root / drive]))
    _, lanes = lanes_of(opened, key_of(root / drive), RUN.id)
    collections: list[Any] = []
    for number in np.unique(operations.waits.io).tolist():
        flash = io_operations(lanes, number)
        assert flash is not None
        collections += [
            each for wait in flash["waits"] for each in wait["waited_for"] if "valid" in each
        ]
    assert collections, "writes waited for collections"
    for each in collections:
        assert each["made"] == "collection"
        # A page that is read may hold several valid units, and pages become stale meanwhile.
        reads = np.flatnonzero((operations.job == each["job"]) & operations.is_read)
        assert len(reads) <= each["valid"] <= 256 * 4


def test_zooming_keeps_selected_write_in_view(
    browser: "Browser", server: Serving, root: Path
) -> None:
    drive = TLC
    _, number, _ = slowest_of(root, drive)
    with monitored_page(browser, server.url) as watched:
        page = watched.page
        page.goto(f"{server.url}#/run/{key_of(root / drive)}/{RUN.id}?io={number}")
        page.get_by_role("region", name="One I/O").wait_for()
        for axis in ("number", "time"):
            page.locator(f"input[name=axis][value={axis}]").check()
            page.locator(".pad").focus()
            for _ in range(5):
                page.keyboard.press("+")
            page.wait_for_function("() => location.hash.includes('from=')")
            page.wait_for_timeout(400)  # the address follows when zooming has ended
            low, high = (float(re.search(rf"{name}=(\d+)", page.url)[1]) for name in ("from", "to"))  # type: ignore[index]
            trace = Results.load(root / drive).runs[0].trace()
            submitted = np.asarray(trace.column("submit_ns"))
            at = number if axis == "number" else int(submitted[number] - submitted.min())
            whole = len(submitted) if axis == "number" else int(submitted.max() - submitted.min())
            assert low <= at <= high
            assert high - low < whole / 8
