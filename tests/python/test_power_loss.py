"""Does a simulated device lose and recover data at a power loss as its profile defines?"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from command_line import uflip

from uflip import Device, UflipError, baseline, open_device
from uflip.cli.powercut import MAX_IOS
from uflip.device.resolve import resolve
from uflip.errors import EXIT_CODES

READ_NS, SPARE_NS = 25_000, 400  # 16 bytes at 40 MB/s
BLOCKS, PAGES = 64, 16
DEVICE = (
    "sim:demo?channels=2&dies_per_channel=1&planes_per_die=1&metadata_pages=0&state=sequential"
    f"&blocks_per_die={BLOCKS}&pages_per_block={PAGES}&read_ns={READ_NS}&spare_factor=0.5&buses=0"
    "&channel_bytes_per_s=40000000&spare_bytes=0"
)
POWER = "&power_loss_protection=false&spare_read_bytes=16"


def test_idle_device_recovers_all_programmed_pages() -> None:
    with open_device(DEVICE + POWER) as device:
        loss = device.cut_power(1_000_000)
        pages = device.info.capacity_bytes // 4096
    assert loss.cut.at_ns == 1_000_000 == loss.recovery.began_ns
    assert (loss.ios_completed, loss.cut.pages_torn, loss.cut.pages_lost) == (0, 0, 0)
    # Half of each die was written in order; of every other block the first page is erased.
    assert loss.recovery.pages_found == pages == BLOCKS * PAGES
    read = BLOCKS * PAGES // 2 + BLOCKS // 2
    assert loss.recovery.spare_areas_read == 2 * read
    assert loss.recovery.took_ns == loss.recovery.reading_ns == read * (READ_NS + SPARE_NS)


def test_volatile_cache_is_lost_unless_flushed_or_protected() -> None:
    spec = baseline("RW", io_size=4096, io_count=100_000)
    cache = "&write_cache_bytes=65536&flush=when_needed"

    def cut(url: str, durability: str) -> tuple[int, int, int]:
        with open_device(url, durability=durability) as device:
            loss = device.cut_power(50_000_000, spec)
        assert loss.cut.ios_under_way == 1
        return loss.cut.pages_in_cache, loss.cut.pages_lost, loss.recovery.pages_put_back

    in_cache, lost, put_back = cut(DEVICE + POWER + cache, "cached")
    assert in_cache == 16, "the cache is full"
    assert (lost >= 15, put_back) == (True, 0)
    # Of flushed data, only writes in flight are lost.
    assert cut(DEVICE + POWER + cache, "flush:1")[1] <= 1
    protected = DEVICE + POWER.replace("false", "true") + cache
    in_cache, lost, put_back = cut(protected, "cached")
    assert (in_cache, lost <= 1) == (16, True)
    assert 14 <= put_back <= 16, "except for pages being programmed, which were finished"


def test_device_works_after_power_cut() -> None:
    with open_device(DEVICE + POWER) as device:
        spec = baseline("RW", io_size=4096, io_count=2_000)
        for number in range(1, 4):
            assert device.cut_power(7_000_000, spec, queue_depth=4).ios_completed > 0, number
        trace = device.run(spec)
    assert len(trace) == 2_000


def test_command_prints_library_results() -> None:
    options = ("--after", "5ms", "--queue-depth", "4", "--io-size", "4KiB")
    printed = uflip("powercut", DEVICE, *options)
    assert printed.code == 0, printed.err
    losses = json.loads(uflip("powercut", DEVICE, *options, "--json").out)
    assert len(losses) == 1
    assert f"{losses[0]['cut']['pages_torn']} torn" in printed.out
    assert f"{losses[0]['recovery']['spare_areas_read']} spare areas" in printed.out
    rows = uflip("powercut", DEVICE, *options, "--cuts", "3").out.splitlines()
    assert [row.split()[0] for row in rows] == ["cut", "1", "2", "3"]
    one = rows[1].split()
    assert int(one[1]) == losses[0]["ios_completed"]


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("null", "simulated device"),
        ("sim:fast-1gb?compat=flashsim2010&blocks_per_die=4300", "loses data when it merges"),
        ("sim:demo?cache_program=true", "power_loss_protection"),
        ("sim:demo?spare_read_bytes=0", "1 to page_bytes + spare_bytes"),
        # The error names the device, not keys that the user did not type.
        ("sim:mtron", "where    sim:mtron\n"),
        ("sim:tlc-nvme", "where    sim:tlc-nvme\n"),
        ("sim:zns", "where    sim:zns\n"),
    ],
)
def test_device_without_power_loss_model_is_refused(device: str, message: str) -> None:
    outcome = uflip("powercut", device)
    assert outcome.code == EXIT_CODES["usage"][0]
    assert message in outcome.err


def test_snapshot_without_power_loss_model_suggests_new_snapshot(workdir: Path) -> None:
    small = "sim:demo?blocks_per_die=64"
    assert uflip("prepare", small, "--state", "sequential", "--save", "a.snapshot").code == 0
    outcome = uflip("powercut", "sim:a.snapshot")
    assert (outcome.code, "uflip prepare --save" in outcome.err) == (2, True), outcome.err


def test_second_cut_accepts_largest_seed() -> None:
    outcome = uflip("powercut", DEVICE, "--seed", 2**64 - 1, "--cuts", 2, "--after", "1ms")
    assert outcome.code == 0, outcome.err


def test_host_writes_until_power_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    specs: list[Any] = []
    cut_power = Device.cut_power

    def watched(self: Device, after: int, spec: Any, *options: Any) -> Any:
        specs.append(spec)
        return cut_power(self, after, spec, *options)

    monkeypatch.setattr(Device, "cut_power", watched)
    assert uflip("powercut", DEVICE, "--after", "1ms").code == 0
    (spec,) = specs
    with open_device(DEVICE) as device, pytest.raises(UflipError, match="io_count"):
        resolve(baseline("RW", io_count=MAX_IOS + 1), device.info)
    assert spec.io_count == MAX_IOS


def test_cut_beyond_clock_range_is_refused() -> None:
    outcome = uflip("powercut", DEVICE, "--after", f"{2**63 - 1}ns")
    assert (outcome.code, "clock" in outcome.err) == (4, True), outcome.err


def test_device_without_power_loss_model_cannot_be_cut() -> None:
    with open_device(DEVICE) as device, pytest.raises(UflipError, match="does not track"):
        device.cut_power()


def test_progress_is_printed_without_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("UFLIP_PROGRESS", "0.000001")
    device = "sim:demo?gc=cyclic&blocks_per_die=600"  # not in the cache: it must be made
    log = uflip("powercut", device, "--after", "2s", "--cuts", 2).err
    lines = re.findall(r"^\[(\d+)/2\]  (.*)$", log, re.M)
    assert [text for _, text in lines if text.startswith(f"creating {device}")]
    for cut in (1, 2):
        matches = [re.fullmatch(rf"cut {cut} of 2  ([\d,]+) I/Os", text) for _, text in lines]
        made = [int(each[1].replace(",", "")) for each in matches if each]
        assert made == sorted(made)
        assert made[0] == 0 < made[-1], log
