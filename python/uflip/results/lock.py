"""Lock of a result folder: distinguishes a running benchmark from a killed one.

The writer holds a lock on the folder (flock) while it lives. The kernel releases it when the
process ends, for any reason: so "running" in a manifest can be verified.
"""

import fcntl
import os
from pathlib import Path

from uflip.errors import ResultsError

NO_LOCK = -1  # in place of a descriptor, if no lock is held


def acquire_lock(folder: Path) -> int:
    """Lock a folder until `release_lock`; return `NO_LOCK` if the file system has no locks."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # some network file systems lack locks; then "running" cannot be checked
        os.close(descriptor)
        return NO_LOCK
    return descriptor


def acquire_exclusive_lock(folder: Path) -> int:
    """Hold the folder's lock, as `acquire_lock`.

    Raises
    ------
    ResultsError
        If another process holds it.
    """
    descriptor = acquire_lock(folder)
    if descriptor == NO_LOCK and is_locked(folder):
        raise ResultsError(
            what="Another process is using these results",
            where=str(folder),
            got="a folder that is locked",
            allowed="a folder whose benchmark has ended",
            action="wait for its end, or stop it",
        )
    return descriptor


def release_lock(descriptor: int) -> None:
    """Release a lock from `acquire_lock`; do nothing for `NO_LOCK`."""
    if descriptor != NO_LOCK:
        os.close(descriptor)


def is_locked(folder: Path) -> bool:
    """Return whether a writer holds the lock of this folder."""
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
