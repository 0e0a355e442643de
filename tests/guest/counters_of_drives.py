"""Are the counters of drives read through a kernel? Run in a guest.

`tests/python/test_zones.py` starts it, with drives that QEMU emulates. QEMU counts the host's
bytes and no physical ones.
"""

import os
from pathlib import Path

import pytest

from uflip.data.counters import change_of
from uflip.device.catalogue import inspect_device
from uflip.device.counters import CounterReader

NVME, ATA = "/dev/nvme1n1", "/dev/sda"
UNIT = 512_000
MIB = 1 << 20


def write(count: int) -> int:
    """Write so many MiB to the NVMe drive; return the number of bytes."""
    descriptor = os.open(NVME, os.O_WRONLY | os.O_DSYNC)
    written = sum(os.write(descriptor, bytes(MIB)) for _ in range(count))
    os.close(descriptor)
    return written


def test_data_units_count_what_was_written() -> None:
    reader = CounterReader(inspect_device(NVME))
    before = reader.read()
    written = write(50)
    change = change_of(before, reader.read(), written)
    assert change.host_written == pytest.approx(written, abs=2 * UNIT)
    assert (change.write_amplification, change.marks) == (None, ())


def test_drive_without_physical_counters_has_none() -> None:
    counters = CounterReader(inspect_device(NVME)).read()
    status = {each.id: each.problem for each in counters.sources}
    assert status["smart"] == ""
    assert status["ocp"] == "the drive does not have it"
    assert not any("physical" in each.name for each in counters.counters)


def test_attributes_of_an_ata_drive_are_read_and_not_guessed() -> None:
    """QEMU's disk has attribute 12, and others whose meaning depends on the model."""
    counters = CounterReader(inspect_device(ATA)).read()
    assert counters.drive.startswith("QEMU HARDDISK")
    assert set(counters.values) == {"ata.power_cycles"}
    assert {"attribute 5", "attribute 9"} <= {each.name for each in counters.unknown}


def test_counters_survive_a_reset_of_the_controller() -> None:
    reader = CounterReader(inspect_device(NVME))
    write(1)
    before = reader.read()
    Path("/sys/class/nvme/nvme1/reset_controller").write_text("1", encoding="ascii")
    after = reader.read()
    assert after.problem == ""
    assert change_of(before, after, 0).marks == ()


def test_user_without_permission_gets_the_reason() -> None:
    info = inspect_device(NVME)
    receiver, sender = os.pipe()
    if os.fork() == 0:
        os.setuid(65534)
        os.write(sender, CounterReader(info).read().problem.encode())
        os._exit(0)
    os.close(sender)
    os.wait()
    problem = os.read(receiver, 1000).decode()
    assert "Permission denied" in problem
    assert problem.endswith("needs root")
