"""Does the card of a slow I/O give its causal chain, and run the same I/Os with a change?"""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import stored
from browser_page import check_in_all_themes

from uflip.device.opener import inspect_sim, open_device
from uflip.device.url import parse_url
from uflip.errors import UsageError
from uflip.play.remedies import SlowIo, built_in, changed, remedies
from uflip.results import Results
from uflip.results.device_log import NAMES_BY_PURPOSE, read_device_log
from uflip.web.server import Serving

if TYPE_CHECKING:
    from playwright.sync_api import Page

SMALL = "sim:demo?blocks_per_die=64"
RUN = stored.baseline_run(1, "RW", io_count=1200, io_ignore=0, io_size=4096)
ERASED = SlowIo("write", {"erase_ns": 900, "cell_program_ns": 100})
DRAWN = "() => document.querySelector('.pad .figure')?.dataset.complete === 'true'"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("remedies") / "r"
    with open_device(SMALL) as device:
        device.looks_inside = True
        filled = stored.writer(path, [RUN], device)
        filled.commit(RUN, device.run(RUN.spec))
        filled.finish("complete")
    return path


def response_times(url: str) -> np.ndarray:
    """Run the same I/Os on a device without the explorer."""
    with open_device(url) as device:
        return np.asarray(device.run(RUN.spec).column("response_time_ns")).astype(np.int64)


def milliseconds(text: str) -> float:
    number, unit = re.match(r"([\d.,]+) (ms|µs|ns)", text).groups()  # type: ignore[union-attr]
    return float(number.replace(",", "")) * {"ms": 1, "µs": 1e-3, "ns": 1e-6}[unit]


def test_card_leads_from_chain_to_remedy(page: "Page", server: Serving, folder: Path) -> None:
    before = response_times(SMALL)
    slowest = int(before.argmax())
    page.goto(server.url)
    page.wait_for_function(DRAWN)
    page.get_by_role("region", name="The slowest I/Os").locator("button").first.click()
    chain = page.locator(".card .chain")
    chain.wait_for()
    block, copied = re.search(
        r"collection of block ([\d,]+): (\d+) valid pages copied", chain.inner_text()
    ).groups()  # type: ignore[union-attr]
    log = read_device_log(Results.load(folder).runs[0])
    assert log is not None
    ops = log.operations
    erase = list(NAMES_BY_PURPOSE.values()).index("erase")
    program = list(NAMES_BY_PURPOSE.values()).index("valid-page program")
    (job,) = set(ops.job[(ops.code == erase) & (ops.block == int(block.replace(",", "")))])
    copies = np.count_nonzero((ops.job == job) & (ops.code == program))
    assert copies == int(copied)
    page.get_by_role("button", name="What would have helped?").click()
    choice = page.locator(".remedy .buttons button", has_text="spare factor 0.3")
    choice.click()
    table = page.get_by_role("region", name="The same I/Os on the device")
    table.wait_for(timeout=60_000)
    url = page.locator(".remedy .legend code").last.inner_text()
    after = response_times(url)
    assert (
        inspect_sim(parse_url(url)).capacity_bytes >= inspect_sim(parse_url(SMALL)).capacity_bytes
    )
    rows = [row.locator("td").all_inner_texts() for row in table.locator("tbody tr").all()]
    for cells, times in zip(rows, (before, after), strict=True):
        p50, p99 = (float(np.percentile(times, share, method="inverted_cdf")) for share in (50, 99))
        for cell, expected in zip(
            (cells[0], cells[1], cells[2], cells[4]),
            (times[slowest], p50, p99, times.max()),
            strict=True,
        ):
            assert milliseconds(cell) == pytest.approx(expected / 1e6, rel=0.02)
    check_in_all_themes(page, "remedy")


def test_remedies_act_on_causes_and_keep_capacity() -> None:
    before = inspect_sim(parse_url(SMALL)).capacity_bytes
    offered = {each["name"]: each for each in remedies(SMALL, ERASED)}
    assert offered.keys() == {"spare", "policy", "cache"}
    for each in offered.values():
        info = inspect_sim(changed(parse_url(SMALL), each["keys"]))
        assert info.capacity_bytes >= before
        assert "blocks_per_die=64" in info.url or "blocks_per_die" in each["keys"]
    reads = remedies("sim:tlc-nvme", SlowIo("read", {"program_wait_ns": 9, "erase_ns": 90}))
    assert "suspend" in {each["name"] for each in reads}
    merged = remedies("sim:mtron", SlowIo("write", {"merge_ns": 100}))
    assert "policy" not in {each["name"] for each in merged}
    assert remedies(SMALL, SlowIo("read", {"cell_read_ns": 100})) == []


@pytest.mark.parametrize(
    "url", ["/dev/sda", "file:/tmp/x", "sim:/tmp/x.toml", "sim:dfc", "nbd:unix:/tmp/x", "null"]
)
def test_only_built_in_devices_run_again(url: str) -> None:
    with pytest.raises(UsageError, match="cannot be repeated"):
        built_in(url)


def test_unknown_remedy_lists_the_known_ones(server: Serving, page: "Page") -> None:
    key = page.request.get(f"{server.url}api/results").json()["results"][0]["key"]
    document = {"key": key, "run": RUN.id, "number": "1", "remedy": "more"}
    origin = {"Origin": server.url.split("/", 3)[0] + "//" + server.url.split("/", 3)[2]}
    answer = page.request.post(f"{server.url}api/play/remedy", data=document, headers=origin)
    assert answer.status >= 400
    assert "remedy" in answer.json()["error"]["what"]
