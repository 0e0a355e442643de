"""Is a device brought into the requested state once, and recognized afterwards?"""

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import start, uflip, unchanged

from uflip.benchmark import History, enforce_state, next_state_id, plan_state
from uflip.data.device import with_details
from uflip.device.opener import open_device
from uflip.device.resolve import resolve_state
from uflip.errors import ResultsError, UsageError
from uflip.results.state_record import default_path, open_record
from uflip.spec import baseline

MIB = 1 << 20
SMALL_SIM = "sim:demo?blocks_per_die=64"


@pytest.fixture
def scratch(make_file: Callable[..., Path]) -> Path:
    return make_file(8 * MIB, data="zeros")


class ProgressRecorder:
    """Remembers how far it got."""

    def __init__(self) -> None:
        self.made: list[int] = []

    def save_progress(self, done_ios: int) -> None:
        self.made.append(done_ios)


# Writes of a state


@pytest.mark.parametrize("state", ["random", "sequential"])
def test_state_fills_target_and_nothing_else(state: str, scratch: Path) -> None:
    with open_device("file:scratch.bin") as device:
        state_plan = plan_state(device.info, state, 6 * MIB)
        assert state_plan is not None
        enforce_state(device, state_plan, ProgressRecorder())
    content = scratch.read_bytes()
    sectors = [content[at : at + 512] for at in range(0, 8 * MIB, 512)]
    written = [any(sector) for sector in sectors]
    assert written == [True] * (6 * MIB // 512) + [False] * (2 * MIB // 512)


def test_empty_state_leaves_no_data_in_the_target_and_all_beyond(scratch: Path) -> None:
    with open_device("file:scratch.bin") as device:
        for state, size in (("sequential", 8 * MIB), ("empty", 6 * MIB)):
            state_plan = plan_state(device.info, state, size)
            assert state_plan is not None
            enforce_state(device, state_plan, ProgressRecorder())
        assert state_plan.bytes_written == 0
    content = scratch.read_bytes()
    sectors = [content[at : at + 512] for at in range(0, 8 * MIB, 512)]
    kept = [any(sector) for sector in sectors]
    assert kept == [False] * (6 * MIB // 512) + [True] * (2 * MIB // 512)


def test_emptied_simulated_device_has_no_write_amplification() -> None:
    device = open_device(SMALL_SIM)
    state_plan = plan_state(device.info, "empty")
    assert state_plan is not None
    enforce_state(device, state_plan, None)
    before = device.counters() or {}
    device.run(baseline("RW", io_size=4096, io_count=200))
    after = device.counters() or {}
    moved = (after["pages_programmed"] - before["pages_programmed"]) / 200
    assert moved == 1


def test_device_without_discards_cannot_be_emptied() -> None:
    fixed = with_details(open_device(SMALL_SIM).info, deallocates=False)
    with pytest.raises(UsageError, match="cannot be emptied"):
        plan_state(fixed, "empty")


def test_writes_of_a_state_are_counted_exactly() -> None:
    device = open_device(SMALL_SIM)
    state_plan = plan_state(device.info, "sequential", 6 * MIB)
    assert state_plan is not None
    assert (state_plan.total_ios, state_plan.bytes_written) == (48, 6 * MIB)
    keeper = ProgressRecorder()
    enforce_state(device, state_plan, keeper)
    assert keeper.made[-1] == 48
    assert (device.counters() or {})["host_pages_written"] == 6 * MIB // 4096


def test_counting_a_huge_state_can_be_interrupted() -> None:
    """Minutes of counting, which nothing but a signal ends."""

    def raise_it(*_: object) -> None:
        raise TimeoutError

    info = open_device("null", size="1000TiB").info
    before = signal.signal(signal.SIGALRM, raise_it)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(TimeoutError):
            resolve_state({"state": "random"}, info)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_completed_writes_are_not_repeated() -> None:
    device = open_device(SMALL_SIM)
    state_plan = plan_state(device.info, "sequential", 6 * MIB)
    assert state_plan is not None
    keeper = ProgressRecorder()
    enforce_state(device, state_plan, keeper, done_ios=40)
    assert keeper.made[-1] == 48
    assert (device.counters() or {})["host_pages_written"] == 8 * 128 * 1024 // 4096


@pytest.mark.parametrize(
    ("state", "target_size", "message"),
    [
        ("randon", None, "Unknown state"),
        ("random", 64 * 1024, "smaller than the largest write"),
        ("random", 1 << 40, "outside the device"),
        ("sequential", 1000, "whole number of sectors"),
        ("sequential", 0, "whole number of sectors"),
    ],
)
def test_invalid_state_is_an_error(state: str, target_size: int | None, message: str) -> None:
    info = open_device(SMALL_SIM).info
    with pytest.raises(UsageError, match=message):
        plan_state(info, state, target_size)


# State ids


def test_state_id_follows_writes() -> None:
    ids = []
    for location in ("random", "sequential"):
        with open_device(SMALL_SIM) as device:
            history = History("state")
            history.record_run(device.run(baseline("SR", io_count=10)))
            assert history.state_id == "state"
            spec = {"kind": "basic", "mode": "write", "location": location, "io_count": 10}
            history.record_run(device.run(spec))
            ids.append(history.state_id)
    assert len({"state", *ids}) == 3
    assert next_state_id(None, {}, 3) is None
    assert next_state_id("a", {"x": 1}, 3) != next_state_id("a", {"x": 1}, 4)


# State records


def test_record_is_valid_until_others_write(scratch: Path) -> None:
    info = open_device("file:scratch.bin").info
    record = open_record(scratch.parent / "record.json", info)
    assert record.state is None
    random_ = {"state": "random", "seed": 1, "target_offset": 0, "target_size": 1 << 20,
               "io_size_max": 1 << 17, "random_bytes": 1 << 20}  # fmt: skip
    assert record.begin(random_, 100) == 0
    record.save_progress(60)
    reopened = open_record(record.path, info)
    assert reopened.begin(random_, 100) == 60
    assert reopened.begin(random_ | {"state": "sequential"}, 10) == 0
    reopened.save_enforced("abc")
    reopened.save_run("abd", 4096, 8192)
    recorded = open_record(record.path, info).state
    assert recorded is not None
    assert (recorded.state_id, recorded.runs_since, recorded.bytes_written_since) == (
        "abd",
        1,
        4096,
    )
    assert open_record(record.path, with_details(info, inode=1)).state is None
    with scratch.open("r+b") as file:
        file.write(b"somebody else")
    assert open_record(record.path, info).state is None


@pytest.mark.parametrize("content", ["{", "[]", '{"format": "uflip-results"}',
                                     '{"format": "uflip-state", "format_version": 9}',
                                     '{"format": "uflip-state", "format_version": 1}'])  # fmt: skip
def test_file_that_is_no_record_is_kept(tmp_path: Path, content: str) -> None:
    path = tmp_path / "record.json"
    path.write_text(content)
    with unchanged(tmp_path), pytest.raises(ResultsError, match=r"cannot be read|another version"):
        open_record(path, open_device("null").info)


# The command


def test_prepare_and_run_share_a_record(scratch: Path) -> None:
    del scratch
    outcome = uflip("prepare", "file:scratch.bin", "--json")
    assert outcome.code == 0, outcome.err
    document = json.loads(outcome.out)
    assert (document["done"], document["bytes_written"] >= 16 * MIB) == ("enforced", True)
    assert json.loads(uflip("prepare", "file:scratch.bin", "--json").out)["done"] == "was"
    arguments = ("--scale", "quick", "--only", "baseline", "--pause", "0ms", "--json")
    first = json.loads(uflip("run", "file:scratch.bin", "--out", "one", *arguments).out)
    assert first["state"]["known_from"] == "record"
    assert first["state"]["state_id"] == document["state_id"]
    assert "state_not_enforced" not in {warning["code"] for warning in first["warnings"]}
    second = json.loads(uflip("run", "file:scratch.bin", "--out", "two", *arguments).out)
    assert second["state"]["state_id"] != document["state_id"]
    assert second["state"]["since_runs"] == 2  # SW and RW; reads leave no trace
    asis = ("--state", "as-is", *arguments)
    third = json.loads(uflip("run", "file:scratch.bin", "--out", "three", *asis).out)
    assert "state_not_enforced" in {warning["code"] for warning in third["warnings"]}


def test_interrupted_prepare_resumes(scratch: Path) -> None:
    with start("prepare", "file:scratch.bin", "--size", "512MiB", "--quiet") as process:
        record = scratch.parent / "results" / "states" / "file-scratch.bin.json"
        deadline = time.monotonic() + 60
        while not record.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        # Some of its thousands of writes, and not all of them.
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    cut = json.loads(record.read_text())
    assert cut["state_id"] is None
    assert 0 < cut["done_ios"] < cut["total_ios"]
    outcome = uflip("prepare", "file:scratch.bin")
    assert outcome.code == 0, outcome.err
    assert "resuming after" in outcome.err
    assert json.loads(record.read_text())["done_ios"] == cut["total_ios"]


def test_dry_run_touches_nothing(scratch: Path) -> None:
    with unchanged(scratch.parent):
        outcome = uflip("prepare", "file:scratch.bin", "--dry-run", "--target-size", "4MiB")
    assert "random state over 4 MiB: " in outcome.out
    assert outcome.code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--state", "as-is"), "Unknown state"),
        (("--target-size", "64KiB"), "smaller than the largest write"),
        (("--target-size", "1GiB"), "outside the device"),
    ],
)
def test_prepare_refuses_invalid_arguments(
    scratch: Path, arguments: tuple[str, ...], message: str
) -> None:
    with unchanged(scratch.parent):
        outcome = uflip("prepare", "file:scratch.bin", *arguments)
    assert (outcome.code, message in outcome.err) == (2, True), outcome.err


def test_simulated_device_is_prepared_without_elapsed_time() -> None:
    with open_device(SMALL_SIM) as device:
        state_plan = plan_state(device.info, "random")
        assert state_plan is not None
        device.enforce(state_plan.request)
        first = device.run(baseline("SR", io_count=1))
        assert first.elapsed_ns() < 10_000_000


def test_each_device_has_its_own_record() -> None:
    """Names that differ only in what no name of a file keeps share none."""
    urls = ["file:ä.bin", "file:ö.bin", "file:d/x.bin", "file:d-x.bin", "file:d--x.bin", "file:x",
            "file:x.", "file:./x", "file:-x", "file:/dev/x", "/dev/x", "block:/dev/x",
            "/dev/disk/by-id/x", "file:" + "a" * 200, "file:" + "b" + "a" * 199,
            "file:" + "a" * 75, "file:" + "b" + "a" * 75]  # fmt: skip
    paths = [default_path(url) for url in urls]
    assert len(set(paths)) == len(urls)
    assert all(path.name.isascii() and len(path.name) < 100 for path in paths)
    # Plain names have the records that they always had.
    expected = {"file:scratch.bin": "file-scratch.bin", "/dev/nvme1n1": "dev-nvme1n1",
            "block:/dev/nvme1n1": "block-dev-nvme1n1", "file:d-x.bin": "file-d-x.bin"}  # fmt: skip
    assert {url: default_path(url).stem for url in expected} == expected
