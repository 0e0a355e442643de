"""Is an I/O that hangs in a queue detected while others complete?"""

from pathlib import Path

import pytest
from fuse_file import needs_fuse
from hanging_file import hanging_file

from uflip import signals
from uflip.device.opener import open_device
from uflip.errors import DeviceError, UnavailableError
from uflip.spec import basic

pytestmark = needs_fuse

# The other I/Os outlast the hanging one.
HANG_S, PATIENCE_NS, COUNT = 2, 500_000_000, 50_000


def test_hanging_io_is_detected_while_others_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signals._state, "hanging", False)
    pattern = basic("read", "random", io_size=4096, io_count=COUNT, queue_depth=4)
    with (
        hanging_file(tmp_path, HANG_S) as (image, trigger),
        open_device(f"file:{image}", writable=False, io_timeout_ns=PATIENCE_NS) as device,
    ):
        trigger.mkdir()
        with pytest.raises((DeviceError, UnavailableError)) as caught:
            device.run(pattern)
        if isinstance(caught.value, UnavailableError):
            pytest.skip(str(caught.value))
        assert caught.value.what.endswith("does not end")
