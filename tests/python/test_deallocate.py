"""Is what was deallocated gone, on every kind of device, and nothing else?

What it does to a simulated device is held against theory: pages that nobody needs are spare, so
random writes to the rest cost what they cost on a device with so much more spare from the factory.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from nbd import Client, serving

from uflip.device.catalogue import report_block
from uflip.device.opening import open_device
from uflip.errors import DeviceError, UflipError, UsageError
from uflip.models import write_amplification as theory
from uflip.spec import basic

MIB = 1 << 20
BLOCKS, PAGES, RESERVED = 1024, 64, 1
SPARE = 0.1
SIMULATED = (
    f"sim:ofc?spare_factor={SPARE}&blocks_per_die={BLOCKS}&pages_per_block={PAGES}&channels=1"
    f"&dies_per_channel=1&metadata_pages=0&reserved_blocks={RESERVED}&gc=greedy&state=sequential"
)


@pytest.mark.parametrize("percent", [0, 10, 25, 50])
def test_what_is_deallocated_is_spare(percent: int) -> None:
    with open_device(SIMULATED) as device:
        page = device.info.page_bytes
        assert page is not None
        pages = device.info.capacity_bytes // page
        kept = pages * (100 - percent) // 100
        device.trim(kept * page, (pages - kept) * page)
        # Every block is collected some times before anything is counted.
        for seed, sizes in ((1, 6), (2, 6)):
            counted = device.apply(
                basic(
                    "write", "random", io_size=page, io_count=sizes * kept, seed=seed,
                    target_size=kept * page,
                )
            )  # fmt: skip
    spare = theory.pool_spare_factor(
        physical_blocks=BLOCKS, pages_per_block=PAGES, logical_pages=kept, held_blocks=RESERVED + 1
    )
    expected = theory.greedy(spare_factor=spare, pages_per_block=PAGES)
    found = counted["pages_programmed"] / counted["host_pages_written"]
    assert found == pytest.approx(expected, rel=0.015)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_file_gets_a_hole(here: Path) -> None:
    with open_device("file:f", size=8 * MIB, buffered=True) as device:
        before = Path("f").read_bytes()
        device.trim(2 * MIB, 3 * MIB)
    after = Path("f").read_bytes()
    assert after[2 * MIB : 5 * MIB] == bytes(3 * MIB) != before[2 * MIB : 5 * MIB]
    assert (after[: 2 * MIB], after[5 * MIB :]) == (before[: 2 * MIB], before[5 * MIB :])
    assert Path("f").stat().st_blocks * 512 <= 5 * MIB + 65536


def test_nothing_is_deallocated_of_what_was_opened_for_reading(here: Path) -> None:
    with open_device("file:f", size=MIB, buffered=True):
        pass
    before = Path("f").read_bytes()
    with (
        open_device("file:f", writable=False, buffered=True) as device,
        pytest.raises(DeviceError, match="could not be deallocated"),
    ):
        device.trim(0, MIB)
    assert Path("f").read_bytes() == before


@pytest.mark.parametrize("url", ["sim:demo?blocks_per_die=64", "null"])
def test_a_range_that_is_none_is_refused(url: str) -> None:
    with open_device(url) as device:
        capacity = device.info.capacity_bytes
        for offset, size in ((capacity, 4096), (0, capacity + 512), (2**64 - 512, 512), (7, 512)):
            with pytest.raises(UsageError, match="no range of the device"):
                device.trim(offset, size)


def test_a_server_is_told(here: Path) -> None:
    with serving("sim:demo?blocks_per_die=64", "--speed", "0", "--data", "disk"):
        with Client("s") as client:
            client.go()
            assert client.write(0, b"x" * MIB) == 0
        with open_device("nbd:unix:s", destroy="nbd:unix:s") as device:
            device.trim(4096, 65536)
        expected = b"x" * 4096 + bytes(65536) + b"x" * (MIB - 4096 - 65536)
        assert Path("disk").read_bytes()[:MIB] == expected
        with (
            open_device("nbd:unix:s", writable=False) as device,
            pytest.raises(UflipError, match="for reading only"),
        ):
            device.trim(0, 4096)
        assert Path("disk").read_bytes()[:MIB] == expected


@pytest.fixture
def loop(here: Path) -> Iterator[tuple[str, Path]]:
    """A block device, and the file below it."""
    if os.geteuid() != 0 or not shutil.which("losetup") or not Path("/dev/loop-control").exists():
        pytest.skip("loop devices need root, losetup and /dev/loop-control")
    disk = here / "disk"
    disk.write_bytes(b"x" * 8 * MIB)
    command = ["losetup", "-f", "--show", str(disk)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no loop device: {done.stderr.strip()}")
    yield done.stdout.strip(), disk
    subprocess.run(["losetup", "-d", done.stdout.strip()], check=True)


def test_a_block_device_discards(loop: tuple[str, Path]) -> None:
    name, disk = loop
    with (
        open_device(name, writable=False, buffered=True) as device,
        pytest.raises(DeviceError, match="could not be deallocated"),
    ):
        device.trim(0, 4096)
    assert disk.read_bytes() == b"x" * 8 * MIB
    token = str(report_block(name)["token"])
    with open_device(name, destroy=token, buffered=True) as device:
        device.trim(MIB, 2 * MIB)
    content = disk.read_bytes()
    assert content[MIB : 3 * MIB] == bytes(2 * MIB)
    # What was not named is as it was but for the marks that opening leaves.
    assert content[3 * MIB : 7 * MIB] == b"x" * 4 * MIB
