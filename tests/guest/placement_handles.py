"""Placement handles of an NVMe drive (FDP): run in a guest by `tests/python/test_zones.py`."""

from collections import Counter
from collections.abc import Mapping

import pytest

from uflip import _native
from uflip.device.catalogue import inspect_device
from uflip.device.opener import open_device
from uflip.errors import UsageError
from uflip.spec import basic

PLACED = "nvme:/dev/ng2n1"
MIB, HANDLES, SIZE_MIB = 1 << 20, 4, 128
TOKEN = f"QEMU_NVMe_Ctrl:placed:{SIZE_MIB * MIB}"
WRITTEN = "fdp.host_bytes_written"
EVENTS_PAGE, USAGE_PAGE = 0x23, 0x21


def counters() -> Mapping[str, int]:
    """Return the counters of the drive by id."""
    with open_device(PLACED, writable=False) as device:
        read = device.drive_counters()
    assert not read.problem
    return {counter.id: int(counter.value) for counter in read.counters}


def test_handles_are_listed_and_limit_the_streams() -> None:
    info = inspect_device(PLACED)
    assert info.details.namespace is not None
    assert info.details.namespace.placement_handles == info.write_streams == HANDLES
    with open_device(PLACED, destroy=TOKEN) as device, pytest.raises(UsageError, match="stream"):
        device.run(basic("write", "sequential", io_count=4, write_stream=HANDLES))


def test_writes_of_each_stream_are_counted_by_the_drive() -> None:
    found: Counter[int] = Counter()
    for stream in range(HANDLES):
        before = counters()[WRITTEN]
        with open_device(PLACED, destroy=TOKEN) as device:
            device.run(basic("write", "sequential", io_size=64 << 10, io_count=32,
                             write_stream=stream))  # fmt: skip
        found[stream] = counters()[WRITTEN] - before
    assert found == Counter(dict.fromkeys(range(HANDLES), 2 * MIB))


def test_usage_page_shows_handles_that_the_host_named() -> None:
    """The attribute of a handle in the usage page is 1 once a host has named it."""
    page, problem = _native.query_drive("/dev/nvme2n1", "nvme_log", USAGE_PAGE, 1, 8 + 8 * HANDLES)
    assert not problem
    assert int.from_bytes(page[:2], "little") == HANDLES
    assert [page[8 + 8 * handle] for handle in range(HANDLES)].count(1) >= 1
