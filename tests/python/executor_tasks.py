"""Tasks for the tests of executors: in a small module, which workers import quickly."""

import os
import signal
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


def leave_a_mark(folder: Path, number: int) -> None:
    (folder / str(number)).touch()
    time.sleep(0.005)


def die_once(folder: Path, tests: int, point: int) -> int:
    """Kill the worker that is the first to take up point 3; never the process of the tests."""
    assert os.getpid() != tests, "it is no worker that would die"
    if point == 3:
        try:
            (folder / str(point)).touch(exist_ok=False)
        except FileExistsError:
            return point
        os.kill(os.getpid(), signal.SIGKILL)
    return point


def die(tests: int, _point: int) -> None:
    assert os.getpid() != tests
    os.kill(os.getpid(), signal.SIGKILL)


def own_pid(_point: int) -> int:
    time.sleep(0.002)
    return os.getpid()
