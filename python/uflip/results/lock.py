"""Lock of a result folder: distinguishes a running benchmark from a killed one.

The writer holds a lock on the folder (flock) while it lives. The kernel releases it when the
process ends, for any reason: so "running" in a manifest can be verified.
"""

import fcntl
import os
from pathlib import Path

from uflip.errors import ResultsError

NO_DESCRIPTOR = -1  # in place of a descriptor, if no lock is held


def acquire(folder: Path) -> int:
    """Lock a folder until `release`; return `NO_DESCRIPTOR` if the file system has no locks."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # some network file systems lack locks; then "running" cannot be checked
        os.close(descriptor)
        return NO_DESCRIPTOR
    return descriptor


def acquire_exclusively(folder: Path) -> int:
    """Hold the folder's lock, as `acquire`.

    Raises
    ------
    ResultsError
        If another process holds it.
    """
    descriptor = acquire(folder)
    if descriptor == NO_DESCRIPTOR and is_held(folder):
        raise ResultsError(
            what="Another process is using these results",
            where=str(folder),
            got="a folder that is locked",
            allowed="a folder whose benchmark has ended",
            action="wait for its end, or stop it",
        )
    return descriptor


def release(descriptor: int) -> None:
    """Release a lock from `acquire`; do nothing for `NO_DESCRIPTOR`."""
    if descriptor != NO_DESCRIPTOR:
        os.close(descriptor)


def is_held(folder: Path) -> bool:
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
