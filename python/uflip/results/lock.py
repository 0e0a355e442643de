"""Is a benchmark still at work in this folder, or was it killed?

The writer holds a lock on the folder (flock) while it lives. The system drops it when the process
dies, however it dies: so "running" in a manifest can be checked against the truth.
"""

import fcntl
import os
from pathlib import Path

from uflip.errors import ResultsError

NONE = -1  # in place of a descriptor, where no lock is held


def acquire(folder: Path) -> int:
    """Hold the folder's lock until `release`; `NONE` where the file system has no locks."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # some network file systems have none; then "running" cannot be checked
        os.close(descriptor)
        return NONE
    return descriptor


def acquire_alone(folder: Path) -> int:
    """Hold the folder's lock, as `acquire`.

    Raises
    ------
    ResultsError
        If somebody else holds it.
    """
    held = acquire(folder)
    if held == NONE and is_held(folder):
        raise ResultsError(
            what="Another process is at work in these results",
            where=str(folder),
            got="a folder that is locked",
            allowed="a folder whose benchmark has ended",
            action="wait for its end, or stop it",
        )
    return held


def release(descriptor: int) -> None:
    """Give up a lock from `acquire`; releasing `NONE` does nothing."""
    if descriptor != NONE:
        os.close(descriptor)


def is_held(folder: Path) -> bool:
    """Is a writer at work in this folder?"""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False
