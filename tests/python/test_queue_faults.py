"""Runs on a device that fails, with one I/O at a time and with a queue.

The server of a FUSE file returns errors as long as a trigger file exists: the run ends with an
error that names the failed I/O and the reason, whatever else was in flight. Without the trigger the
same open device works again.

The same with a block device over that file, 25 cases for each engine: each fault with each
operation (`CASES`), and a server that was killed.
"""

import errno
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from fuse_file import attached_loop, fuse_file, needs_fuse, stop_process, wait_until
from hanging_file import hanging_file

from uflip import signals
from uflip.device.catalogue import report_block
from uflip.device.handle import Device
from uflip.device.opener import open_device
from uflip.errors import DeviceError, RefusedError, UnavailableError
from uflip.spec import Basic, Mix, basic, mix

pytestmark = needs_fuse


@pytest.fixture(autouse=True)
def reset_hanging_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    """An I/O that was given up makes a command end its process at once: not that of other tests."""
    monkeypatch.setattr(signals._state, "hanging", False)


# Errors that the server can return; `make soak` tries all of them.
ERRORS = ("EPERM", "EIO", "ENOMEM", "EINVAL", "ENOSPC", "ESHUTDOWN")
ALL = [(name, rate) for name in ERRORS for rate in ("100%", "20%")]
DEPTHS = (1, 8)
COUNT = 40
# Each I/O reaches the server.
PAST_CACHE = "--direct-io=on"


@pytest.mark.parametrize(
    ("name", "rate"), ALL if "UFLIP_SOAK" in os.environ else [("EIO", "20%"), ("ENOSPC", "100%")]
)
def test_fault_ends_run_with_error_and_clears(name: str, rate: str, tmp_path: Path) -> None:
    trigger = tmp_path / "trigger"
    wrong = (f"error={name}", f"error-rate={rate}", f"error-file={trigger}")
    with (
        fuse_file(tmp_path, "--filter=error", "memory", "16M", *wrong) as (image, _),
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


# Linux reports a full block device; all other errors of a server become one
# (blk_status_to_errno).
REPORTED_ERRNO = {"is full": errno.ENOSPC}
FAILING = {
    "fails": ("error=EIO", "error-rate=100%"),
    "fails now and then": ("error=EIO", "error-rate=20%"),
    "is full": ("error=ENOSPC", "error-rate=100%"),
    "is shut down": ("error=ESHUTDOWN", "error-rate=20%"),
}
OPERATIONS = ("read", "write", "durable write", "reads and writes")
SLOW_MS, PATIENCE_NS = 3, 200_000_000
FAULTS = (*FAILING, "is slow", "hangs")
CASES = {(fault, operation) for fault in FAULTS for operation in OPERATIONS}


def pattern(operation: str, depth: int, count: int = COUNT) -> Basic | Mix:
    """Make a pattern of an operation at a queue depth."""
    reads, writes = (basic(mode, "random", io_size=4096) for mode in ("read", "write"))
    if operation == "reads and writes":
        return mix(reads, writes, 1, io_count=count, queue_depth=depth, seed=3)
    return (reads if operation == "read" else writes).but(io_count=count, queue_depth=depth, seed=3)


@contextmanager
def block_device(folder: Path, *filters: str) -> Iterator[tuple[str, int]]:
    """Make a block device that nbdkit serves, with some of its filters."""
    with fuse_file(folder, *filters) as (image, pid), attached_loop(image, PAST_CACHE) as name:
        yield name, pid


@contextmanager
def opened(name: str, operation: str) -> Iterator[Device]:
    """Open it for an operation."""
    durability = "fua" if operation == "durable write" else "cached"
    token = str(report_block(name)["token"])
    with open_device(
        name, destroy=token, durability=durability, io_timeout_ns=PATIENCE_NS
    ) as device:
        yield device


def run_error(device: Device, name: str, spec: Basic | Mix) -> DeviceError:
    """Return the error of a run; it must be a complete device error."""
    with pytest.raises((DeviceError, UnavailableError)) as caught:
        device.run(spec)
    if isinstance(caught.value, UnavailableError):
        pytest.skip(str(caught.value))
    assert caught.value.what.startswith(("A read of 4 KiB at byte ", "A write of 4 KiB at byte "))
    assert caught.value.where == name
    assert caught.value.action
    return caught.value


def test_at_least_two_dozen_cases_per_engine() -> None:
    assert len(CASES) >= 24
    assert DEPTHS == (1, 8), "synchronous I/O, and io_uring"


@pytest.mark.parametrize("fault", FAILING)
def test_failing_block_device_ends_run_and_works_again(fault: str, tmp_path: Path) -> None:
    trigger = tmp_path / "trigger"
    wrong = (*FAILING[fault], f"error-file={trigger}")
    with block_device(tmp_path, "--filter=error", "memory", "16M", *wrong) as (name, _):
        for operation in OPERATIONS:
            with opened(name, operation) as device:
                for depth in DEPTHS:
                    trigger.touch()
                    error = run_error(device, name, pattern(operation, depth))
                    trigger.unlink()
                    assert os.strerror(REPORTED_ERRNO.get(fault, errno.EIO)) in error.got
                    assert len(device.run(pattern(operation, depth))) >= COUNT


def test_slow_block_device_is_measured(tmp_path: Path) -> None:
    """No I/O takes less than the server waits; how much more depends on the machine."""
    waits = (f"rdelay={SLOW_MS}ms", f"wdelay={SLOW_MS}ms")
    with (
        block_device(tmp_path, "--filter=delay", "memory", "1M", *waits) as (name, _),
        opened(name, "read") as device,
    ):
        for operation in OPERATIONS:
            device.durability = "fua" if operation == "durable write" else "cached"
            for depth in DEPTHS:
                trace = device.run(pattern(operation, depth))
                times = np.asarray(trace.column("response_time_ns"))
                assert len(times) >= COUNT
                assert times.min() >= SLOW_MS * 1e6


def test_hanging_block_device_times_out(tmp_path: Path) -> None:
    with block_device(tmp_path, "memory", "16M") as (name, pid):
        for operation in OPERATIONS:
            for depth in DEPTHS:
                with opened(name, operation) as device:
                    stop_process(pid)
                    try:
                        error = run_error(device, name, pattern(operation, depth))
                    finally:
                        os.kill(pid, signal.SIGCONT)
                    assert error.what.endswith("does not end")
                assert wait_until(partial(works_again, name, operation, depth))


def works_again(name: str, operation: str, depth: int) -> bool:
    """Return whether the device opens again and works; a hung I/O releases it in its own time."""
    try:
        with opened(name, operation) as device:
            return len(device.run(pattern(operation, depth))) >= COUNT
    except RefusedError:
        return False


@pytest.mark.parametrize("depth", DEPTHS)
def test_vanished_server_ends_every_run(tmp_path: Path, depth: int) -> None:
    with (
        block_device(tmp_path, "memory", "16M") as (name, pid),
        opened(name, "read") as device,
    ):
        assert len(device.run(pattern("read", depth))) == COUNT
        killer = threading.Timer(0.1, os.kill, (pid, signal.SIGKILL))
        killer.start()
        run_error(device, name, pattern("reads and writes", depth, 10**6))
        run_error(device, name, pattern("read", depth))


# Is an I/O that hangs in a queue detected while others complete?


# The other I/Os outlast the hanging one.
HANG_S, SHORT_PATIENCE_NS, FEW_COUNT = 2, 500_000_000, 50_000


def test_hanging_io_is_detected_while_others_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signals._state, "hanging", False)
    pattern = basic("read", "random", io_size=4096, io_count=FEW_COUNT, queue_depth=4)
    with (
        hanging_file(tmp_path, HANG_S) as (image, trigger),
        open_device(f"file:{image}", writable=False, io_timeout_ns=SHORT_PATIENCE_NS) as device,
    ):
        trigger.mkdir()
        with pytest.raises((DeviceError, UnavailableError)) as caught:
            device.run(pattern)
        if isinstance(caught.value, UnavailableError):
            pytest.skip(str(caught.value))
        assert caught.value.what.endswith("does not end")
