"""Does the device receive exactly the requested I/Os, at any queue depth?

The kernel counts for each block device the requests that it completed and those that it merged
with another one first (Documentation/block/stat.rst). Neighbours that are handed over together are
merged, so these are sequential I/Os, in closed loops and in open ones that are behind at once.
"""

from pathlib import Path
from typing import Any

import pytest

from uflip.device.catalogue import report_block
from uflip.device.opener import open_device
from uflip.errors import UnavailableError
from uflip.spec import basic

COUNT, IO_SIZE = 1024, 4096
# Fields of the kernel's statistics: requests, those merged into others, and sectors of 512 bytes.
FIELDS = {"read": (0, 1, 2), "write": (4, 5, 6)}
LOOPS: dict[str, dict[str, Any]] = {"closed": {}, "open": {"time": "fixed", "interval": 1000}}


def counted(name: str, mode: str) -> list[int]:
    fields = Path("/sys/block", Path(name).name, "stat").read_text().split()
    return [int(fields[index]) for index in FIELDS[mode]]


@pytest.mark.parametrize("mode", FIELDS)
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("depth", [8, 32])
def test_each_io_reaches_device_as_one_request(
    loop_device: str, mode: str, loop: str, depth: int
) -> None:
    pattern = basic(
        mode, "sequential", io_size=IO_SIZE, io_count=COUNT, queue_depth=depth, **LOOPS[loop]
    )
    token = str(report_block(loop_device)["token"])
    with open_device(loop_device, destroy=token) as device:
        before = counted(loop_device, mode)
        try:
            device.run(pattern)
        except UnavailableError as error:
            pytest.skip(str(error))
        made = [now - then for now, then in zip(counted(loop_device, mode), before, strict=True)]
    assert made == [COUNT, 0, COUNT * IO_SIZE // 512]
