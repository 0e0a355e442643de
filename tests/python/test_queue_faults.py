"""What becomes of a run whose device fails, one I/O at a time and with a queue?

A file behind FUSE, whose server answers with an error as long as a file is there: the run ends with
an error of the device that says which I/O failed and why, whatever else was under way, and when the
errors are over the same open device works as if nothing had been.
"""

import errno
import os
from pathlib import Path

import pytest
from fused import fused, needed

from uflip.device.opening import open_device
from uflip.errors import DeviceError, UnavailableError
from uflip.spec import basic

pytestmark = needed

# What the server can say; `make soak` tries all of them.
ERRORS = ("EPERM", "EIO", "ENOMEM", "EINVAL", "ENOSPC", "ESHUTDOWN")
ALL = [(name, rate) for name in ERRORS for rate in ("100%", "20%")]
DEPTHS = (1, 8)
COUNT = 40


@pytest.mark.parametrize(
    ("name", "rate"), ALL if "UFLIP_SOAK" in os.environ else [("EIO", "20%"), ("ENOSPC", "100%")]
)
def test_a_fault_ends_a_run_in_order_and_is_forgotten(name: str, rate: str, tmp_path: Path) -> None:
    trigger = tmp_path / "trigger"
    wrong = (f"error={name}", f"error-rate={rate}", f"error-file={trigger}")
    with (
        fused(tmp_path, "--filter=error", "memory", "16M", *wrong) as (image, _),
        open_device(f"file:{image}", destroy=str(image)) as device,
    ):
        for depth in DEPTHS:
            for mode in ("read", "write"):
                pattern = basic(
                    mode, "random", io_size=4096, io_count=COUNT, queue_depth=depth, seed=3
                )
                trigger.touch()
                with pytest.raises((DeviceError, UnavailableError)) as caught:
                    device.run(pattern)
                if isinstance(caught.value, UnavailableError):
                    pytest.skip(str(caught.value))
                trigger.unlink()
                assert str(caught.value).startswith(f"A {mode} of 4 KiB at byte ")
                assert os.strerror(getattr(errno, name)) in str(caught.value.got)
                assert caught.value.action
                assert len(device.run(pattern)) == COUNT
