"""Data that left the write cache and is not on flash yet: still read there, gone once trimmed.

The judge is what a host sees of any device: a read of what it has just written needs no flash, and
of what it has deallocated nothing is written any more, read from flash, or lost with the power.
"""

from pathlib import Path

import numpy as np
import pytest

from uflip import _native
from uflip.device.handle import Device
from uflip.device.opener import open_device
from uflip.spec import basic, parallel

NVME = ("tlc-nvme", "dramless-nvme", "qlc-nvme", "enterprise-nvme")
SMALL = (
    "sim:demo?channels=1&dies_per_channel=1&blocks_per_die=32&gc=greedy&spare_factor=0.25"
    "&state=random&idle_free_blocks=0&write_cache_bytes=1MiB&flush=eager"
)
CACHED = (
    SMALL,
    f"{SMALL}&power_loss_protection=false&spare_read_bytes=16",
    f"{SMALL}&page_bytes=16384&mapping_unit_bytes=4096",
    f"{SMALL}&page_bytes=16384&mapping_unit_bytes=4096&power_loss_protection=true&spare_read_bytes=16",
    "sim:dftl?blocks_per_die=64&write_cache_bytes=1MiB&flush=eager&idle_free_blocks=0",
)


def counted(device: Device) -> dict[str, int]:
    return dict(device.counters() or {})


@pytest.mark.parametrize("name", NVME)
def test_just_written_data_is_read_from_cache(name: str) -> None:
    with open_device(f"sim:{name}?state=empty") as device:
        device.run(basic("write", "sequential", io_size=16384, io_count=1))
        before = counted(device)
        read = device.run(basic("read", "sequential", io_size=16384, io_count=1))
        assert counted(device)["pages_read"] == before["pages_read"]
        for cause in ("cell_read_ns", "die_wait_ns", "channel_wait_ns"):
            assert not np.asarray(read.column(cause)).any(), cause
        device.idle(10**9)
        later = device.run(basic("read", "sequential", io_size=16384, io_count=1))
        assert np.asarray(later.column("cell_read_ns")).any(), "by then it is on flash"


@pytest.mark.parametrize("url", CACHED)
@pytest.mark.parametrize("io_size", [4096, 2048])
def test_deallocated_data_is_neither_written_nor_read(url: str, io_size: int) -> None:
    with open_device(url) as device:
        capacity = device.info.capacity_bytes
        device.run(basic("write", "random", io_size=io_size, io_count=200, seed=3))
        before = counted(device)
        device.trim(0, capacity)
        device.idle(5 * 10**9)
        after = counted(device)
        for name in ("host_pages_written", "pages_relocated"):
            assert after[name] == before[name], name
        device.run(basic("read", "sequential", io_size=65536, io_count=capacity // 65536))
        read = counted(device)["pages_read"] - after["pages_read"]
        # Units that wait for others of their flash page are there already, and stay.
        assert read == 0


def test_data_written_after_trim_is_on_flash() -> None:
    """Against the pages that a host knows it has written since."""
    for url in CACHED:
        with open_device(url) as device:
            capacity = device.info.capacity_bytes
            device.run(basic("write", "random", io_size=4096, io_count=300, seed=3))
            device.trim(0, capacity)
            written = device.run(basic("write", "random", io_size=4096, io_count=100, seed=4))
            offsets = np.unique(np.asarray(written.column("offset_bytes")))
            device.idle(5 * 10**9)
            before = counted(device)["pages_read"]
            device.run(basic("read", "sequential", io_size=4096, io_count=capacity // 4096))
            reads = counted(device)["pages_read"] - before
            mapping = counted(device).get("mapping_pages_read", 0)
            assert reads >= len(offsets) or mapping, url


@pytest.mark.parametrize("protected", ["true", "false"])
def test_deallocated_data_is_not_lost_at_power_cut(protected: str) -> None:
    url = (
        "sim:demo?channels=1&dies_per_channel=1&blocks_per_die=64&spare_factor=0.3&gc=greedy"
        f"&state=random&power_loss_protection={protected}&spare_read_bytes=16"
    )
    with open_device(url, durability="fua") as device:
        half = device.info.capacity_bytes // 2 // 4096 * 4096
        device.trim(0, half)
        # Blocks with what was trimmed are erased meanwhile.
        device.run(
            basic(
                "write",
                "random",
                io_size=4096,
                io_count=8000,
                seed=4,
                target_offset=half,
                target_size=half,
            )
        )
        device.idle(10**10)
        assert device.cut_power(after_ns=1000).cut.pages_lost == 0
        # It counts on from there.
        device.run(basic("write", "random", io_size=4096, io_count=500, seed=5))
        device.idle(10**10)
        assert device.cut_power(after_ns=1000).cut.pages_lost == 0


@pytest.mark.parametrize("url", ["sim:demo", "sim:demo?blocks_per_die=128&spare_factor=0.4"])
def test_idle_collection_reaches_its_goal_on_every_die(url: str, tmp_path: Path) -> None:
    for seed in range(3):
        with open_device(url) as device:
            device.run(basic("write", "random", io_size=32768, io_count=1000, seed=seed + 2))
            device.idle(10**12)
            assert least_erased(device, tmp_path / str(seed)) >= 3, "idle_free_blocks"


def least_erased(device: Device, path: Path) -> int:
    """Erased blocks of the die that has fewest."""
    device.looks_inside = True
    device.run(basic("read", "random", io_size=4096, io_count=1)).write_inside(str(path), "{}")
    columns, _ = _native.read_inside(str(path))
    return int(np.asarray(dict(columns)["sample_least_erased_blocks"])[0])


def test_concurrent_zone_commands_pad_once() -> None:
    """Each pads what is missing when its turn has come."""
    url = (
        "sim:zns?channels=2&dies_per_channel=2&blocks_per_die=4&pages_per_block=8&page_bytes=16384"
        "&dies_per_zone=2&zone_bytes=1MiB&cache_program=false"
    )

    def padded(*modes: str) -> int:
        with open_device(url) as device:
            device.append(0, 4096)
            report = device.zones()
            assert report is not None
            size = report.zone_bytes
            commands = [
                basic(mode, "sequential", io_size=size, target_size=size, io_count=1)
                for mode in modes
            ]
            device.run(parallel(*commands) if len(commands) > 1 else commands[0])
            pages = counted(device)["pages_padded"]
            device.manage_zone("reset", 0)
            device.append(0, 16384)
            return pages

    single = padded("finish")
    assert single > 0
    assert padded("finish", "finish") == single
    assert padded("finish", "reset") == single
    assert padded("reset", "finish") in (single + 1, 0)
    assert padded("finish", "reset", "finish") in (2 * single + 1, single)
