"""NVMe drives by their own commands: run in a guest by `tests/python/test_zones.py`.

What the commands do is compared with what the block layer of the kernel returns for the same drive.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from uflip.device.catalogue import inspect_device
from uflip.device.handle import Device
from uflip.device.opener import open_device
from uflip.device.resolve import resolve
from uflip.errors import DeviceError, RefusedError, UflipError, UsageError
from uflip.results import Results
from uflip.spec import basic

PLAIN, ZONED = "nvme:/dev/ng1n1", "nvme:/dev/ng0n1"
PLAIN_DISK, ZONED_DISK = "/dev/nvme1n1", "/dev/nvme0n1"
KIB, MIB = 1 << 10, 1 << 20
ZONE, CAPACITY, ZONES = 16 * MIB, 12 * MIB, 64
OPEN, ACTIVE = 8, 12
PLAIN_TOKEN = f"QEMU_NVMe_Ctrl:plain:{256 * MIB}"
ZONED_TOKEN = f"QEMU_NVMe_Ctrl:guest:{ZONES * ZONE}"
NOBODY = 65534


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run uflip as a user would."""
    return subprocess.run(
        [str(Path(sys.executable).with_name("uflip")), *arguments],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def content(disk: str, offset: int, size: int) -> bytes:
    """Read from the block device, past the page cache of earlier reads."""
    with Path(disk).open("rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return os.pread(file.fileno(), size, offset)


@pytest.fixture
def plain() -> Iterator[Device]:
    with open_device(PLAIN, destroy=PLAIN_TOKEN) as device:
        yield device


@pytest.fixture
def zoned() -> Iterator[Device]:
    subprocess.run(["blkzone", "reset", ZONED_DISK], check=True)
    with open_device(ZONED, destroy=ZONED_TOKEN) as device:
        yield device


def test_both_names_describe_the_namespace_as_the_block_layer_does() -> None:
    for generic, disk in ((PLAIN, PLAIN_DISK), (ZONED, ZONED_DISK)):
        info, block = inspect_device(generic), inspect_device(disk)
        assert info == inspect_device(f"nvme:{disk}") == inspect_device(generic[5:])
        assert (info.kind, info.url) == ("nvme", f"nvme:{disk}")
        same = ("model", "serial", "firmware", "capacity_bytes", "sector_bytes")
        assert [getattr(info, name) for name in same] == [getattr(block, name) for name in same]
        zones, known = info.details.zones, block.details.zones
        assert (zones is None) == (known is None)
        if zones is not None and known is not None:
            # The block device of a multipath kernel has no limits; the drive has.
            assert (zones.zone_bytes, zones.zone_count) == (known.zone_bytes, known.zone_count)
            assert (zones.max_open_zones, zones.max_active_zones) == (OPEN, ACTIVE)
        namespace = info.details.namespace
        assert namespace is not None
        assert namespace.nsid == 1
        assert namespace.command_bytes_max % 4096 == 0
    assert inspect_device(ZONED).appends
    assert not inspect_device(ZONED_DISK).appends


@pytest.mark.parametrize("depth", [1, 8])
@pytest.mark.parametrize("size", [4 * KIB, 1024 * KIB])
def test_written_data_is_that_of_the_block_device(plain: Device, depth: int, size: int) -> None:
    """Longer I/Os than one command, and many at once."""
    plain.trim(0, 64 * MIB)
    count = 16
    begin = 8 * MIB
    spec = basic("write", "sequential", io_size=size, io_count=count, target_offset=begin,
                 queue_depth=depth)  # fmt: skip
    assert len(plain.run(spec)) == count
    written = content(PLAIN_DISK, begin, count * size)
    assert all(any(written[at : at + 512]) for at in range(0, len(written), 512))
    assert not any(content(PLAIN_DISK, begin - MIB, MIB))
    assert not any(content(PLAIN_DISK, begin + count * size, MIB))
    assert len(plain.run(basic("read", "random", io_size=size, io_count=count,
                               target_size=32 * MIB, queue_depth=depth))) == count  # fmt: skip


@pytest.mark.parametrize("durability", ["fua", "flush:2"])
def test_durable_writes_take_effect(durability: str) -> None:
    with open_device(PLAIN, destroy=PLAIN_TOKEN, durability=durability) as device:
        assert len(device.run(basic("write", "random", io_size=4 * KIB, io_count=20))) == 20


def test_queued_deallocations_empty_their_range(plain: Device) -> None:
    plain.run(basic("write", "sequential", io_size=MIB, io_count=8, target_offset=0))
    plain.run(basic("trim", "sequential", io_size=MIB, io_count=4, target_offset=2 * MIB,
                    queue_depth=4))  # fmt: skip
    left = [any(content(PLAIN_DISK, at * MIB, MIB)) for at in range(8)]
    assert left == [True, True, False, False, False, False, True, True]


def test_brand_of_the_data_is_found_by_either_way(plain: Device) -> None:
    plain.run(basic("write", "sequential", io_size=MIB, io_count=256, target_offset=0))
    assert inspect_device(PLAIN_DISK).details.brand == plain.info.details.brand


def test_guard_refuses_what_it_refuses_on_the_block_device() -> None:
    for token in (None, "QEMU_NVMe_Ctrl:plain:1"):
        with pytest.raises(RefusedError):
            open_device(PLAIN, destroy=token)
    with open_device(PLAIN, destroy=PLAIN_TOKEN), pytest.raises(UflipError) as held:
        open_device(PLAIN_DISK, destroy=PLAIN_TOKEN)
    assert "in use" in str(held.value)
    subprocess.run(["mkswap", PLAIN_DISK], check=True, capture_output=True)
    subprocess.run(["swapon", PLAIN_DISK], check=True)
    try:
        with pytest.raises(RefusedError, match="in use") as used:
            open_device(PLAIN, destroy=f"{PLAIN_TOKEN}+swap")
        assert "swapped to" in str(used.value.got)
        assert command("run", PLAIN, "--destroy", f"{PLAIN_TOKEN}+swap").returncode == 3
    finally:
        subprocess.run(["swapoff", PLAIN_DISK], check=True)
    with open_device(PLAIN, destroy=f"{PLAIN_TOKEN}+swap") as device:
        device.trim(0, MIB)


def test_missing_permission_is_named() -> None:
    Path("/dev/ng1n1").chmod(0o666)
    Path(PLAIN_DISK).chmod(0o666)
    try:
        # As a program of this interpreter: the folder of the script may belong to root.
        done = subprocess.run(
            ["setpriv", f"--reuid={NOBODY}", "--clear-groups",
             sys.executable, "-m", "uflip", "info", PLAIN],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    finally:
        Path("/dev/ng1n1").chmod(0o600)
        Path(PLAIN_DISK).chmod(0o600)
    assert done.returncode != 0
    assert "CAP_SYS_ADMIN" in done.stderr


def test_appends_move_the_pointer_at_any_depth(zoned: Device) -> None:
    for zone, depth in ((2, 1), (3, 16)):
        spec = basic("append", "sequential", io_size=64 * KIB, io_count=100,
                     target_offset=zone * ZONE, target_size=ZONE, queue_depth=depth)  # fmt: skip
        assert len(zoned.run(spec)) == 100
        found = zoned.zone(zone)
        assert (found.written_bytes, found.state) == (6400 * KIB, "implicitly_open")
    report = subprocess.run(["blkzone", "report", "-o", str(3 * ZONE // 512), "-c", "1",
                             ZONED_DISK], capture_output=True, text=True, check=True)  # fmt: skip
    assert f"wptr {hex(6400 * KIB // 512)[2:].zfill(6)}" in report.stdout.replace("0x", "")
    written = content(ZONED_DISK, 3 * ZONE, 6400 * KIB)
    assert all(any(written[at : at + 4096]) for at in range(0, len(written), 4096))


def test_zone_commands_and_failures(zoned: Device) -> None:
    for name, zone in (("open", 1), ("open", 4), ("close", 4), ("finish", 5)):
        if name == "close":
            zoned.append(zone, 4096)
        assert zoned.manage_zone(name, zone) > 0
    states = [zone.state for zone in zoned.zones().zones]
    assert {at: state for at, state in enumerate(states) if state != "empty"} == {
        1: "explicitly_open", 4: "closed", 5: "full",
    }  # fmt: skip
    astray = basic("write", "sequential", io_size=4096, io_count=1, target_offset=7 * ZONE + MIB)
    with pytest.raises(DeviceError, match="Zone Invalid Write"):
        zoned.run(astray)
    with pytest.raises(DeviceError, match="Zone Is Full"):
        zoned.append(5, 4096)


def test_block_device_still_refuses_appends() -> None:
    with open_device(ZONED_DISK, destroy=ZONED_TOKEN) as device, pytest.raises(UflipError):
        device.append(9, 4096)
    append = basic("append", "sequential", io_size=4096, io_count=1)
    with pytest.raises(UsageError, match="zone append") as refused:
        resolve(append, inspect_device(ZONED_DISK))
    assert "nvme:/dev/NAME" in refused.value.action


def test_suite_of_zones_includes_appends(tmp_path: Path) -> None:
    folder = tmp_path / "result"
    done = command(
        "run", ZONED, "--suite", "zones", "--only", "zone_append", "--scale", "quick",
        "--destroy", ZONED_TOKEN, "--out", str(folder),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert command("verify", str(folder)).returncode == 0
    results = Results.load(folder)
    appends = [entry.value for entry in results.manifest.plan if entry.pattern == "SA"]
    assert {1, 4} <= set(appends)
