"""Tasks for the tests of executors: in a small module, which workers import quickly."""

import os
import signal
import threading
import time
from pathlib import Path

from uflip.device import cache
from uflip.errors import DeviceError
from uflip.executors import on_all


def fails_at_7(point: int) -> int:
    if point == 7:
        raise DeviceError("There is no such flash", where=str(point))
    return point


def is_cached(_point: int) -> bool:
    return not cache.is_switched_off()


def squares(count: int) -> list[int]:
    return on_all(square, range(count))


def square(number: int) -> int:
    return number * number


def touch_numbered_file(folder: Path, number: int) -> None:
    (folder / str(number)).touch()
    time.sleep(0.005)


def kill_worker_once(folder: Path, tests_pid: int, point: int) -> int:
    """Kill the first worker that takes point 3; never the process of the tests."""
    assert os.getpid() != tests_pid, "only a worker may be killed"
    if point == 3:
        try:
            (folder / str(point)).touch(exist_ok=False)
        except FileExistsError:
            return point
        os.kill(os.getpid(), signal.SIGKILL)
    return point


def kill_worker_beside_long_task(folder: Path, tests_pid: int, point: int) -> int:
    """Kill the worker of point 0 while the other runs point 1, which ends only the second time."""
    assert os.getpid() != tests_pid, "only a worker may be killed"
    running = folder / "running"
    if point == 1 and not running.exists():
        running.touch()
        threading.Event().wait()
    if point == 0 and not (folder / "killed").exists():
        while not running.exists():
            time.sleep(0.01)
        (folder / "killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return point


def kill_worker(tests_pid: int, _point: int) -> None:
    assert os.getpid() != tests_pid
    os.kill(os.getpid(), signal.SIGKILL)


def own_pid(_point: int) -> int:
    time.sleep(0.002)
    return os.getpid()
