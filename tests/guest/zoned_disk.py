"""What holds on a zoned block device: run in a guest by `tests/python/test_zones.py`.

What uflip says of zones is held against `blkzone report` of util-linux, which asks the kernel
itself; what becomes of zones, against a simulated drive as well.
"""

import json
import random
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import uflip
from uflip.device.handle import Device
from uflip.device.opener import open_device
from uflip.errors import DeviceError, UflipError
from uflip.results import Results
from uflip.spec import basic

DISK = "/dev/nvme0n1"
KIB, MIB = 1 << 10, 1 << 20
ZONE, CAPACITY, ZONES = 16 * MIB, 12 * MIB, 64
OPEN, ACTIVE = 8, 12
TOKEN = f"QEMU_NVMe_Ctrl:guest:{ZONES * ZONE}"
COMMANDS = ("open", "close", "finish", "reset")
# A simulated drive of the same zones.
TWIN = (
    "sim:zns?channels=2&dies_per_channel=2&blocks_per_die=16&pages_per_block=192&page_bytes=65536"
    f"&zone_bytes={ZONE}&max_open_zones={OPEN}&max_active_zones={ACTIVE}"
)
STATES = {
    "em": "empty", "oi": "implicitly_open", "oe": "explicitly_open", "cl": "closed", "fu": "full",
}  # fmt: skip


class Known(NamedTuple):
    """A zone as the kernel tells of it [bytes]."""

    start: int
    capacity: int
    written: int
    state: str


def kernel_tells() -> list[Known]:
    """Return what `blkzone` says of all zones."""
    told = subprocess.run(["blkzone", "report", DISK], capture_output=True, text=True, check=True)
    found = re.findall(
        r"start: (0x\w+), len 0x\w+, cap (0x\w+), wptr (0x\w+) .*zcond: ?\d+\((\w\w)\)", told.stdout
    )
    zones = []
    for start, capacity, pointer, state in found:
        at, most, written = (512 * int(number, 16) for number in (start, capacity, pointer))
        zones.append(Known(at, most, min(written, most), STATES[state]))
    return zones


def opened() -> Device:
    """Open the disk for writing."""
    return open_device(DISK, destroy=TOKEN)


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run uflip as a user would."""
    return subprocess.run(
        [str(Path(sys.executable).with_name("uflip")), *arguments],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture(autouse=True)
def _empty() -> None:
    subprocess.run(["blkzone", "reset", DISK], check=True)


def agree(device: Device) -> list[Known]:
    """Check that uflip and the kernel say the same of every zone; return it."""
    known = kernel_tells()
    report = device.zones()
    ours = [
        Known(zone.start_bytes, zone.capacity_bytes, zone.written_bytes, zone.state)
        for zone in report.zones
    ]
    assert ours == known
    assert (report.zone_bytes, report.max_open_zones, report.max_active_zones) == (
        ZONE, OPEN, ACTIVE,
    )  # fmt: skip
    return known


def test_zones_are_those_that_the_kernel_knows() -> None:
    with opened() as device:
        known = agree(device)
    assert known == [Known(at * ZONE, CAPACITY, 0, "empty") for at in range(ZONES)]


def test_commands_change_the_state_that_they_name_and_no_other() -> None:
    with opened() as device:
        for name, zone in (("open", 3), ("open", 4), ("close", 4), ("finish", 5)):
            assert device.manage_zone(name, zone) > 0
        states = [zone.state for zone in agree(device)]
        assert {at: state for at, state in enumerate(states) if state != "empty"} == {
            3: "explicitly_open", 4: "closed", 5: "full",
        }  # fmt: skip
        device.run(basic("write", "sequential", io_size=4096, io_count=2, target_offset=7 * ZONE))
        device.manage_zone("close", 7)
        assert agree(device)[7] == Known(7 * ZONE, CAPACITY, 8192, "closed")
        for zone in (3, 4, 5, 7):
            device.manage_zone("reset", zone)
        assert {zone.state for zone in agree(device)} == {"empty"}


@pytest.mark.parametrize("depth", [1, 4])
def test_writes_move_the_pointer_by_what_they_write(depth: int) -> None:
    """One at a time and with a queue: then the scheduler of the kernel keeps them in order."""
    with opened() as device:
        trace = device.run(
            basic(
                "write", "sequential", io_size=32 * KIB, io_count=100, target_offset=2 * ZONE,
                target_size=CAPACITY, queue_depth=depth,
            )
        )  # fmt: skip
        assert len(trace) == 100
        assert agree(device)[2] == Known(2 * ZONE, CAPACITY, 3200 * KIB, "implicitly_open")
        read = device.run(
            basic(
                "read", "random", io_size=4 * KIB, io_count=50, target_offset=2 * ZONE,
                target_size=3200 * KIB,
            )
        )  # fmt: skip
        assert len(read) == 50


def test_a_write_that_is_not_at_the_pointer_fails_in_words() -> None:
    with opened() as device:
        wrong = basic(
            "write", "sequential", io_size=4096, io_count=1, target_offset=ZONE + 64 * KIB
        )
        with pytest.raises(UflipError) as caught:
            device.run(wrong)
        assert caught.value.action
        assert agree(device)[1] == Known(ZONE, CAPACITY, 0, "empty")


def test_no_more_zones_are_open_than_the_device_allows() -> None:
    with opened() as device:
        for zone in range(OPEN):
            device.manage_zone("open", zone)
        with pytest.raises(DeviceError) as caught:
            device.manage_zone("open", OPEN)
        assert str(caught.value).startswith(f"An open of 16 MiB at byte {OPEN * ZONE} failed")
        assert "close or finish one" in str(caught.value.action)
        with pytest.raises(DeviceError, match="A write of 4 KiB") as caught:
            device.run(
                basic("write", "sequential", io_size=4096, io_count=1, target_offset=9 * ZONE)
            )
        assert "close or finish one" in str(caught.value.action)
        assert [zone.state for zone in agree(device)].count("explicitly_open") == OPEN
        device.manage_zone("close", 0)
        device.manage_zone("open", OPEN)


def interrupts() -> int:
    """Count how often the drive's I/O queues have interrupted a processor."""
    lines = Path("/proc/interrupts").read_text(encoding="utf-8").splitlines()
    queues = [line.split() for line in lines if re.search(r"nvme0q[1-9]", line)]
    assert queues
    return sum(int(word) for line in queues for word in line[1:] if word.isdigit())


@pytest.mark.parametrize("mode", ["read", "write"])
def test_who_polls_is_interrupted_by_nobody(mode: str) -> None:
    """By the kernel's own count; and who does not, is, once at least for all that are under way."""
    assert Path("/sys/block/nvme0n1/queue/io_poll").read_text(encoding="utf-8").strip() == "1"
    happened = {}
    for completion in ("interrupt", "polled", "auto", None):
        subprocess.run(["blkzone", "reset", DISK], check=True)
        spec = basic(
            mode, "sequential", io_size=8 * KIB, io_count=400, target_size=CAPACITY, queue_depth=4
        )
        with open_device(DISK, destroy=TOKEN, completion=completion) as device:
            assert device.info.completion == (
                "interrupt" if completion == "interrupt" else "polled"
            )
            before = interrupts()
            trace = device.run(spec)
            happened[completion] = interrupts() - before
        assert len(trace) == 400
        assert trace.column("response_time_ns")
    assert happened["interrupt"] >= 400 // 4
    # Whatever else the kernel does with the drive meanwhile.
    assert all(happened[name] < 10 for name in ("polled", "auto", None))


def test_an_open_loop_is_polled_until_the_next_io_is_due() -> None:
    with opened() as device:
        spec = basic(
            "read", "random", io_size=8 * KIB, io_count=100, queue_depth=8, time="fixed",
            interval=5_000_000,
        )  # fmt: skip
        trace = device.run(spec)
    assert len(trace) == 100


def outcome(do: Callable[[], object]) -> str:
    """Do it; return what became of it: nothing, or what was refused."""
    try:
        do()
    except UflipError as error:
        return str(error)
    return ""


def write(device: Device, zone: int, offset: int, count: int) -> None:
    """Write 256 KiB so many times, from `offset` of a zone on."""
    size = 256 * KIB
    device.run(
        basic(
            "write", "sequential", io_size=size, io_count=count, target_size=count * size,
            target_offset=zone * ZONE + offset,
        )
    )  # fmt: skip


def test_commands_at_random_end_as_on_the_simulated_drive() -> None:
    """QEMU follows the specification, and so does `sim:zns`: neither knows of the other."""
    draw = random.Random(20261124)
    allowed, refused = set(), set()
    with opened() as device, open_device(TWIN) as twin:
        for number in range(250):
            # More zones than may be active, so that every limit is met.
            zone, count = draw.randrange(ACTIVE + 2), draw.choice((1, 4, 20))
            name = draw.choice(("write", "write", "write", "astray", *COMMANDS))
            at = twin.zone(zone)
            pointer = min(at.write_pointer_bytes - at.start_bytes, CAPACITY - MIB)
            if name in COMMANDS:
                act = partial(Device.manage_zone, command=name, number=zone)
            elif name == "write":
                act = partial(write, zone=zone, offset=pointer, count=count)
            else:
                act = partial(write, zone=zone, offset=(pointer + MIB) % CAPACITY, count=1)
            ended = outcome(partial(act, device)), outcome(partial(act, twin))
            assert bool(ended[0]) == bool(ended[1]), (number, name, zone, ended)
            (refused if ended[0] else allowed).add(name)
            simulated = [
                Known(zone.start_bytes, zone.capacity_bytes, zone.written_bytes, zone.state)
                for zone in twin.zones().zones
            ]
            assert agree(device) == simulated, (number, name, zone, ended)
    assert allowed == {"write", *COMMANDS}
    assert refused >= {"write", "astray", "open", "close"}


def test_nothing_is_changed_without_the_token_or_for_a_dry_run() -> None:
    with opened() as device:
        device.run(basic("write", "sequential", io_size=4096, io_count=3, target_offset=0))
        before = agree(device)
    for arguments in (
        ("zones", DISK, "--reset", "all"),
        ("zones", DISK, "--reset", "all", "--destroy", f"{TOKEN}1"),
        ("run", DISK, "--suite", "zones", "--scale", "quick", "--out", "/var/tmp/refused"),
        ("pattern", DISK, "--pattern", "SW", "--io-count", "1"),
    ):
        assert command(*arguments).returncode == 3, arguments
    assert command("zones", DISK, "--reset", "all", "--dry-run").returncode == 0
    assert kernel_tells() == before


def test_the_verb_prints_what_the_kernel_knows() -> None:
    done = command("zones", DISK, "--open", "0-2", "--finish", "5", "--destroy", TOKEN, "--json")
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    states = [zone["state"] for zone in document["zones"]]
    assert states == [zone.state for zone in kernel_tells()]
    assert {state: states.count(state) for state in sorted(set(states))} == {
        "empty": 60, "explicitly_open": 3, "full": 1,
    }  # fmt: skip


def test_the_suite_of_zones_runs_and_proves_itself(tmp_path: Path) -> None:
    """All six micro-benchmarks, their runs written into zones that are prepared for each."""
    folder = tmp_path / "result"
    done = command(
        "run", DISK, "--suite", "zones", "--scale", "quick", "--destroy", TOKEN,
        "--out", str(folder),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert command("verify", str(folder)).returncode == 0
    results = Results.load(folder)
    ran = {entry.micro_benchmark for entry in results.manifest.plan}
    assert ran == {
        "zone_parallelism", "zone_append", "zone_distance", "zone_reset", "zone_finish",
        "zone_wear",
    }  # fmt: skip
    assert "Zone reset" in command("show", str(folder)).stdout
    assert uflip.load(folder).frame().num_rows > 0
