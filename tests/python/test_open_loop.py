"""Does an open loop on a real device count the wait of all I/Os that arrive during a stall?

A file of FUSE, served by nbdkit over a socket, is a device that can be stopped: while the server is
stopped for S nothing completes. I/Os go on arriving every τ, so that of those that arrive t after
the stop each waits S − t at least: S / τ of them are late, the first by nearly all of S. A closed
loop would have told of as many as its queue is deep. These are lower bounds, whatever the machine
does besides; how near the sum of all waits comes to S² / 2τ is a row of `make bench`.
"""

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from fuse_file import fuse_file, needs_fuse, stop_process

from uflip.device.opener import open_device
from uflip.errors import UnavailableError
from uflip.spec import basic

pytestmark = needs_fuse

INTERVAL_S, STALL_S, COUNT = 0.002, 0.3, 400


def stop_for(pid: int, stopped: list[float]) -> None:
    """Stop a process for a while; note for how long it was stopped, at least."""
    time.sleep(0.2)
    stop_process(pid)
    began = time.monotonic()
    time.sleep(STALL_S)
    stopped.append(time.monotonic() - began)
    os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("depth", [1, 4, 256])
def test_stall_delays_every_io_that_arrives_in_it(tmp_path: Path, depth: int) -> None:
    stopped: list[float] = []
    pattern = basic(
        "read",
        "random",
        io_size=4096,
        io_count=COUNT,
        queue_depth=depth,
        time="fixed",
        interval=round(INTERVAL_S * 1e9),
    )
    with (
        fuse_file(tmp_path, "memory", "16M") as (image, pid),
        open_device(f"file:{image}", destroy=str(image)) as device,
    ):
        stopper = threading.Thread(target=stop_for, args=(pid, stopped))
        stopper.start()
        try:
            trace = device.run(pattern)
        except UnavailableError as error:
            pytest.skip(str(error))
        finally:
            stopper.join(timeout=30)
    (stall_s,) = stopped
    assert len(trace) == COUNT
    arrived = np.asarray(trace.column("submit_ns")) / 1e9
    np.testing.assert_allclose(np.diff(arrived), INTERVAL_S, rtol=0, atol=1e-9)
    waited = np.sort(np.asarray(trace.column("response_time_ns")) / 1e9)[::-1]
    min_waits = stall_s - INTERVAL_S * np.arange(1, int(stall_s / INTERVAL_S))
    assert (waited[: len(min_waits)] >= min_waits).all()
    assert waited.sum() >= min_waits.sum()
    # Waiting for room in the queue and the time of the device make up the whole.
    causes = [np.asarray(trace.column(cause)) for cause in trace.causes]
    np.testing.assert_array_equal(sum(causes), np.asarray(trace.column("response_time_ns")))
