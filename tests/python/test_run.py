"""Are devices found by their URL, driven through a run, and refused where they must be?"""

import os
import signal
import stat
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import unchanged
from fuse_file import attached_loop

from uflip.data.spec import table_of
from uflip.device.catalogue import inspect_device, known_devices
from uflip.device.handle import Device
from uflip.device.opener import open_device
from uflip.device.resolve import resolve
from uflip.device.url import parse_url
from uflip.errors import (
    DeviceError,
    InterruptedRun,
    RefusedError,
    UflipError,
    UsageError,
)
from uflip.profiles import profile_names, read_profile
from uflip.spec import baseline, basic, mix, read_spec

SIZE = 8 << 20


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder on a file system with direct I/O."""
    try:
        open_device(f"file:{tmp_path / 'probe'}", size=4096)
    except DeviceError as error:
        pytest.skip(f"no direct I/O in the folder for temporary files: {error.got}")
    (tmp_path / "probe").unlink()
    return tmp_path


def column(trace: Any, name: str) -> np.ndarray:
    return np.asarray(trace.column(name))


# URLs


@pytest.mark.parametrize(
    ("url", "kind", "name"),
    [
        ("null", "null", ""),
        ("sim:demo", "sim", "demo"),
        ("sim:./my.toml?channels=2", "sim", "./my.toml"),
        ("file:a:b c", "file", "a:b c"),
        ("/dev/nvme0n1", "block", "/dev/nvme0n1"),
        ("block:/dev/sda", "block", "/dev/sda"),
    ],
)
def test_urls_are_parsed(url: str, kind: str, name: str) -> None:
    parsed = parse_url(url)
    assert (parsed.kind, parsed.name) == (kind, name)


@pytest.mark.parametrize(
    "url", ["", "demo", "sim:", "file:", "nul", "http://x", "block:sda", "sim"]
)
def test_unknown_device_lists_known_forms(url: str) -> None:
    with pytest.raises(UsageError, match="Unknown device") as caught:
        open_device(url)
    forms = "sim:NAME, file:PATH, /dev/NAME, nvme:/dev/NAME, nbd:unix:PATH, null"
    assert forms in caught.value.allowed


def test_bare_profile_or_path_gets_a_hint(tmp_path: Path) -> None:
    path = tmp_path / "scratch.bin"
    path.write_bytes(b"")
    with pytest.raises(UsageError, match=r"sim:demo\?"):
        parse_url("demo")
    with pytest.raises(UsageError, match="did you mean file:"):
        parse_url(str(path))


def test_unknown_profile_lists_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Unknown profile") as caught:
        open_device("sim:demmo")
    assert "demo" in caught.value.allowed
    assert "did you mean demo?" in caught.value.action
    with pytest.raises(DeviceError, match="cannot be read"):
        open_device(f"sim:{tmp_path / 'no.toml'}")


def test_overrides_change_profile_and_url() -> None:
    small = "sim:demo?blocks_per_die=64&page_bytes=8KiB&read_ns=100us&state=empty"
    info = inspect_device(small)
    profile = info.profile_table
    assert info.url == small
    assert profile["geometry"]["page_bytes"] == 8192
    assert profile["timing"]["read_ns"] == 100_000
    with pytest.raises(UsageError) as caught:
        inspect_device("sim:demo?chanels=2")
    assert "channels" in caught.value.allowed


def test_profile_can_be_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(read_profile("demo")[1], encoding="utf-8")
    assert inspect_device(f"sim:{path}?blocks_per_die=64").model == "mine"


def test_catalogue_lists_existing_devices() -> None:
    devices = known_devices()
    urls = [device["url"] for device in devices]
    assert {f"sim:{name}" for name in profile_names()} | {"null"} <= set(urls)
    for device in devices:
        if device["kind"] == "block":
            assert device["capacity_bytes"] > 0
            assert f":{device['capacity_bytes']}" in device["token"]


# Runs


def test_null_device_run_records_every_io() -> None:
    with open_device("null") as device:
        trace = device.run(baseline("RR", io_size="4k", io_count=1000, io_ignore=10))
    assert len(trace) == 1000
    assert (column(trace, "offset_bytes") % 4096 == 0).all()
    assert column(trace, "ignored").sum() == 10
    assert device.info.kind == "null"


def test_file_runs_read_and_write(folder: Path) -> None:
    path = folder / "scratch.bin"
    with open_device(f"file:{path}", size="8MiB") as device:
        assert path.stat().st_size == SIZE
        before = path.read_bytes()
        assert len(set(before[:4096])) > 200, "a new file is filled with incompressible data"
        device.run(baseline("RR", io_count=50))
        assert path.read_bytes() == before
        trace = device.run(basic("write", "ordered", incr=2, io_size="64KiB", io_count=10))
        after = path.read_bytes()
    assert device.info.capacity_bytes == SIZE
    assert device.info.clock == "monotonic"
    assert (column(trace, "response_time_ns") > 0).all()
    changed = {at // 65536 for at in range(0, SIZE, 4096) if before[at:][:8] != after[at:][:8]}
    assert changed == set(range(0, 20, 2))


def flags_of_open(path: Path) -> list[int]:
    """Flags of this process's descriptors of a file, as the kernel stores them."""
    flags = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            if entry.readlink() != path:
                continue
        except OSError:
            continue  # the descriptor of the listing itself
        info = Path("/proc/self/fdinfo", entry.name).read_text(encoding="ascii")
        flags.append(int(info.split("flags:")[1].split()[0], 8))
    return flags


@pytest.mark.parametrize("buffered", [False, True])
def test_kernel_opens_file_for_direct_io(folder: Path, buffered: bool) -> None:
    path = folder / "direct.bin"
    with open_device(f"file:{path}", size="1MiB", buffered=buffered):
        writable = [flags for flags in flags_of_open(path) if flags & os.O_ACCMODE != os.O_RDONLY]
    assert writable
    # The ownership mark has a descriptor of its own, which does no I/O.
    assert any(flags & os.O_DIRECT for flags in writable) != buffered


@pytest.mark.parametrize("buffered", [False, True])
def test_kernel_opens_block_device_for_direct_io(loop_device: str, buffered: bool) -> None:
    with open_device(loop_device, writable=False, buffered=buffered):
        flags = flags_of_open(Path(loop_device))
    assert flags
    assert any(one & os.O_DIRECT for one in flags) != buffered


def test_zeros_are_written_if_requested(folder: Path) -> None:
    path = folder / "scratch.bin"
    with open_device(f"file:{path}", size=SIZE, data="zeros") as device:
        device.run(baseline("SW", io_count=4))
    assert not any(path.read_bytes())
    assert device.info.data == "zeros"


def test_parallel_processes_stay_in_their_parts(folder: Path) -> None:
    with open_device(f"file:{folder / 'scratch.bin'}", size=SIZE) as device:
        trace = device.run(baseline("RW", io_size="4k", io_count=50, parallel_degree=4))
    stream, offset = column(trace, "stream"), column(trace, "offset_bytes")
    assert (offset // (SIZE // 4) == stream).all()


def test_simulated_device_is_deterministic(tmp_path: Path) -> None:
    url = "sim:demo?blocks_per_die=64"
    files = []
    for number in range(2):
        trace = open_device(url).run(baseline("RW", io_count=500, seed=7))
        files.append(tmp_path / f"{number}.parquet")
        trace.write_parquet(str(files[-1]), "{}")
        assert sum(column(trace, cause).sum() for cause in trace.causes) == (
            column(trace, "response_time_ns").sum()
        )
    assert files[0].read_bytes() == files[1].read_bytes()


def test_queued_ios_are_in_submission_order_and_explained() -> None:
    device = open_device("sim:demo?blocks_per_die=64")
    pattern = mix(baseline("SR", io_size="64KiB"), baseline("RW", io_size="4k"), 2, queue_depth=12)
    trace = device.run(pattern)
    submitted, response = column(trace, "submit_ns"), column(trace, "response_time_ns")
    assert (np.diff(submitted.astype(np.int64)) >= 0).all()
    completed = submitted + response
    assert (np.diff(completed.astype(np.int64)) < 0).any(), "some overtake others"
    for i in range(12, len(trace)):
        assert (completed[:i] > submitted[i]).sum() <= 11, "room for the one that is submitted"
        assert (completed[:i] >= submitted[i]).sum() >= 12, "not before another one ends"
    causes = sum(column(trace, cause).astype(np.int64) for cause in trace.causes)
    assert (causes == response).all()


def test_idle_is_real_time_or_virtual_time() -> None:
    began = time.monotonic()
    open_device("null").idle(150_000_000)
    assert time.monotonic() - began >= 0.15
    simulated = open_device("sim:demo?blocks_per_die=64")
    began = time.monotonic()
    simulated.idle(3600 * 10**9)
    assert time.monotonic() - began < 5


def test_only_simulated_devices_have_counters() -> None:
    assert open_device("null").counters() is None
    counters = open_device("sim:demo?blocks_per_die=64").counters()
    assert counters is not None
    assert counters["host_pages_written"] == 0


def test_progress_is_reported_until_the_end() -> None:
    reports: list[tuple[int, int, int]] = []
    device = open_device("null")
    device.run(
        baseline("RR", time="pause", pause="10ms", io_count=50), lambda *now: reports.append(now)
    )
    done = [now[0] for now in reports]
    assert len(reports) >= 3
    assert done == sorted(done)
    assert reports[-1][:2] == (50, 50)


def test_interrupt_stops_run_and_device_stays_usable() -> None:
    device = open_device("null")
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    with pytest.raises(InterruptedRun):
        device.run(baseline("RR", time="pause", pause="1ms", io_count=60_000))
    assert time.monotonic() - began < 5
    assert len(device.run(baseline("RR", io_count=10))) == 10


def test_failing_progress_display_stops_run() -> None:
    def broken(*_: int) -> None:
        raise RuntimeError("no terminal")

    device = open_device("null")
    with pytest.raises(RuntimeError, match="no terminal"):
        device.run(baseline("RR", time="pause", pause="1ms", io_count=60_000), broken)


# Bad input: each is a clear error, and nothing changes


def test_missing_file_needs_a_size(tmp_path: Path) -> None:
    with unchanged(tmp_path), pytest.raises(DeviceError, match="does not exist") as caught:
        open_device(f"file:{tmp_path / 'no.bin'}")
    assert "--size" in caught.value.action


def test_missing_folder_is_not_created(tmp_path: Path) -> None:
    url = f"file:{tmp_path / 'no' / 'no.bin'}"
    for look in (inspect_device, open_device):
        with unchanged(tmp_path), pytest.raises(DeviceError):
            look(url, size=SIZE)


def test_directory_is_refused_as_device(tmp_path: Path) -> None:
    with unchanged(tmp_path), pytest.raises(DeviceError, match="regular file"):
        open_device(f"file:{tmp_path}", size=SIZE)


@pytest.mark.parametrize("path", ["/dev/null", "/dev/no-such-device", "/dev/../dev/zero"])
def test_path_under_dev_is_not_used_as_file(path: str) -> None:
    for look in (inspect_device, open_device):
        with pytest.raises(RefusedError, match="under /dev"):
            look(f"file:{path}", size=SIZE)
    assert not Path("/dev/no-such-device").exists()


@pytest.mark.parametrize("url", ["/dev/no-such-device", "block:/dev/no-such-device"])
def test_missing_block_device_is_an_error(url: str) -> None:
    with pytest.raises(DeviceError) as caught:
        open_device(url)
    assert "uflip devices" in caught.value.action


def test_character_device_is_not_a_block_device() -> None:
    with pytest.raises(DeviceError, match="not a block device"):
        open_device("/dev/null")


# Our own block devices: those of other tests come into use and are gone between two looks.


def entry_of(url: str) -> dict[str, Any]:
    return next(device for device in known_devices() if device["url"] == url)


@pytest.mark.parametrize("destroy", [None, "", "MODEL:SERIAL:1"])
def test_block_device_needs_its_exact_token(loop_device: str, destroy: str | None) -> None:
    with pytest.raises(RefusedError) as caught:
        open_device(loop_device, destroy=destroy)
    assert entry_of(loop_device)["token"] in caught.value.allowed


def test_block_device_in_use_is_refused_despite_token(loop_device: str) -> None:
    token = entry_of(loop_device)["token"]
    with attached_loop(Path(loop_device)):
        assert entry_of(loop_device)["in_use"]
        with pytest.raises(RefusedError) as caught:
            open_device(loop_device, destroy=token)
    assert "in use" in caught.value.what


def test_read_only_file_is_not_written(folder: Path) -> None:
    path = folder / "kept.bin"
    path.write_bytes(bytes(1 << 20))
    path.chmod(0o444)
    with unchanged(folder), pytest.raises(DeviceError, match="read-only"):
        open_device(f"file:{path}")
    with unchanged(folder):
        device = open_device(f"file:{path}", writable=False)
        device.run(baseline("RR", io_count=5))


def test_data_beyond_size_is_preserved(folder: Path) -> None:
    path = folder / "long.bin"
    path.write_bytes(b"x" * (4 << 20))
    with unchanged(folder), pytest.raises(RefusedError) as caught:
        open_device(f"file:{path}", size="1MiB")
    assert caught.value.allowed == f"--destroy {path}"
    with unchanged(folder):
        open_device(f"file:{path}", writable=False)
    with open_device(f"file:{path}", size="1MiB", destroy=str(path)) as device:
        assert device.info.capacity_bytes == 1 << 20
        device.run(baseline("SW", io_count=32))
    assert path.read_bytes()[1 << 20 :] == b"x" * (3 << 20)
    open_device(f"file:{path}")  # expendable from then on


def test_file_system_without_direct_io_suggests_buffered() -> None:
    shared = Path("/dev/shm")
    if not shared.is_dir() or not os.access(shared, os.W_OK):
        pytest.skip("no memory file system here")
    path = shared / f"uflip-test-{os.getpid()}.bin"
    try:
        with pytest.raises(UflipError, match="O_DIRECT") as caught:
            open_device(f"file:{path}", size="1MiB")
        assert "--buffered" in caught.value.action
        assert not path.exists()
        with open_device(f"file:{path}", size="1MiB", buffered=True) as device:
            device.run(baseline("RW", io_count=5))
        assert device.info.buffered
    finally:
        path.unlink(missing_ok=True)


@pytest.mark.parametrize("size", ["-1MiB", "0", 0, "100", "1000", "x", "2^20"])
def test_invalid_size_is_refused(tmp_path: Path, size: str | int) -> None:
    for look in (inspect_device, open_device):
        with unchanged(tmp_path), pytest.raises(UsageError) as caught:
            look(f"file:{tmp_path / 'new.bin'}", size=size)
        assert caught.value.where == "--size"


def test_options_of_other_devices_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--size applies only to files"):
        open_device("sim:demo", size="1GiB")
    with pytest.raises(UsageError, match="--destroy applies to block devices, to exports, and"):
        open_device("null", destroy="a:b:1")
    for url in ("sim:demo", "null"):
        for ask in (open_device, inspect_device):
            with pytest.raises(UsageError, match="--buffered applies only to files"):
                ask(url, buffered=True)
    with unchanged(tmp_path), pytest.raises(UsageError, match="Unknown data") as caught:
        open_device(f"file:{tmp_path / 'new.bin'}", size=SIZE, data="noise")
    assert caught.value.allowed == "random, zeros"


BAD_SPECS: list[dict[str, Any]] = [
    {"io_size": 0},
    {"io_size": 1000},
    {"io_size": -512},
    {"io_size": 16 << 20},
    {"io_shift": 100},
    {"target_size": 0},
    {"target_size": 16 << 20},
    {"target_offset": 8 << 20},
    {"target_offset": 4 << 20, "target_size": 5 << 20},
    {"io_count": 0},
    {"io_count": -1},
    {"io_count": 5, "io_ignore": 5},
    {"parallel_degree": 0},
    {"parallel_degree": 100_000},
    {"queue_depth": 0},
    {"queue_depth": 100_000},
    {"time": "sometimes"},
    {"burst": 5},
    {"pause": 5},
    {"incr": 5},
    {"location": "partitioned", "partitions": 0},
    {"location": "partitioned", "partitions": 1000},
    {"location": "circular"},
    {"mode": "erase"},
    {"kind": "circular"},
    {"unheard_of": 1},
]


@pytest.mark.parametrize("change", BAD_SPECS, ids=str)
def test_invalid_pattern_never_reaches_device(folder: Path, change: dict[str, Any]) -> None:
    path = folder / "scratch.bin"
    device = open_device(f"file:{path}", size=SIZE)
    spec = {"kind": "basic", "mode": "write", "location": "random"} | change
    assert_never_reaches(device, spec, folder)


@pytest.mark.parametrize("ratio", [0, -1])
def test_ratio_below_one_never_reaches_device(folder: Path, ratio: int) -> None:
    device = open_device(f"file:{folder / 'scratch.bin'}", size=SIZE)
    spec = table_of(mix(baseline("RW"), baseline("SW"), 1)) | {"ratio": ratio}
    assert_never_reaches(device, spec, folder)


@pytest.mark.parametrize("spec", [{}, {"kind": "parallel", "patterns": []}, {"kind": "mix"}])
def test_empty_pattern_never_reaches_device(folder: Path, spec: dict[str, Any]) -> None:
    device = open_device(f"file:{folder / 'scratch.bin'}", size=SIZE)
    assert_never_reaches(device, spec, folder)


def assert_never_reaches(device: Device, spec: dict[str, Any], folder: Path) -> None:
    with unchanged(folder):
        with pytest.raises(UsageError) as refused:
            device.run(read_spec(spec))
        with pytest.raises(UsageError):
            resolve(read_spec(spec), device.info)
    assert refused.value.what
    assert refused.value.action


# Looking at a device


def test_inspection_creates_and_grows_nothing(folder: Path) -> None:
    existing = folder / "there.bin"
    existing.write_bytes(bytes(1 << 20))
    new = f"file:{folder / 'new.bin'}"
    with unchanged(folder):
        described = inspect_device(new, size="64MiB")
        assert inspect_device(f"file:{existing}").capacity_bytes == 1 << 20
        assert inspect_device(f"file:{existing}", size="4MiB").capacity_bytes == 4 << 20
    assert described.details.to_be_written_bytes == described.capacity_bytes
    # The predicted properties of a file are those of the file once made.
    opened = open_device(new, size="64MiB").info
    for key in ("url", "kind", "model", "capacity_bytes", "sector_bytes", "clock", "simulated"):
        assert getattr(described, key) == getattr(opened, key), key


def test_file_shorter_than_a_sector_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "short.bin"
    path.write_bytes(b"x")
    assert stat.S_ISREG(path.stat().st_mode)
    with unchanged(tmp_path), pytest.raises(DeviceError, match="shorter than one sector"):
        inspect_device(f"file:{path}")


# Functions of simulated devices only


def test_clone_is_independent() -> None:
    spec = baseline("RW", io_count=50, io_size="4KiB")
    with open_device("sim:demo") as device:
        copy = device.clone()
        first = np.asarray(device.run(spec).column("response_time_ns"))
        device.run(spec)
        cloned = np.asarray(copy.run(spec).column("response_time_ns"))
    assert first.tolist() == cloned.tolist()


def test_untimed_apply_counts_without_time() -> None:
    with open_device("sim:demo?state=empty") as device:
        counted = device.apply(baseline("SW", io_count=64, io_size="4KiB"))
        assert counted["host_pages_written"] == 64
        assert device.counters() == counted
        # Written pages are read from flash, the controller answers reads of others.
        written = device.run(baseline("SR", io_count=1, io_size="4KiB"))
        device.trim(0, 4096)
        trimmed = device.run(baseline("SR", io_count=1, io_size="4KiB"))
    assert int(np.asarray(written.column("cell_read_ns"))[0]) == 50_000
    assert int(np.asarray(trimmed.column("cell_read_ns"))[0]) == 0


@pytest.mark.parametrize(
    "use",
    [
        Device.clone,
        lambda device: device.apply(baseline("SW")),
    ],
)
def test_real_device_cannot_be_cloned_or_applied_to(use: Any) -> None:
    with open_device("null") as device, pytest.raises(UsageError, match="Only a simulated device"):
        use(device)
