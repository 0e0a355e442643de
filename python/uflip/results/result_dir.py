"""Result directories: create one atomically, and check that it was not moved.

A folder appears whole: it is made beside its final name under a hidden name, filled with manifest
and run folder, synced, and renamed. After any interruption, its own name is either free or a folder
that can be resumed. The next benchmark of this name removes the hidden remains of a kill.

A folder that is moved away while a benchmark fills it, or that another one has replaced, must not
be filled half here and half there. So each commit first compares the name with the descriptor.

The lock of a folder distinguishes a running benchmark from a killed one.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from uflip import safe_files
from uflip.data.manifest import RUNS, refuse_results
from uflip.errors import ResultsError

RUN_SUFFIX = ".parquet"


def run_file(folder: Path, run: str) -> Path:
    """Return the path of the file of a run."""
    return folder / RUNS / f"{run}{RUN_SUFFIX}"


def refuse_existing(path: Path, *, subject: str = "Results are", option: str = "--out") -> None:
    """Raise if a result folder cannot be made here because the name is in use."""
    refuse_results(path, "results", str(path))
    if path.exists() or path.is_symlink():
        raise ResultsError(
            what=f"{subject} never overwritten",
            where=str(path),
            got="a folder that exists" if path.is_dir() else "a file that exists",
            allowed="an unused name",
            action=f"choose another {option}, or move it away",
        )


def why_not_writable(path: Path) -> str:
    """Return why nothing can be made at `path`; "" if no obstacle is known beforehand."""
    ancestor = next(folder for folder in path.absolute().parents if folder.exists())
    if not ancestor.is_dir():
        return f"{ancestor} is not a folder"
    return "" if os.access(ancestor, os.W_OK | os.X_OK) else f"{ancestor} is not writable"


@contextmanager
def create_atomically(
    folder: Path, *, kind: str = "result", option: str = "--out"
) -> Iterator[Path]:
    """Yield a new folder to be filled; rename it to `folder` on success."""
    hidden: Path | None = None
    try:
        with safe_files.new_folder(folder) as hidden:
            yield hidden
    except OSError as error:
        raise ResultsError(
            what=f"The {kind} folder could not be made",
            where=str(folder),
            got=error.strerror or str(error),
            allowed="an unused name, in a folder that can be written",
            action=f"choose another {option}",
        ) from error
    except ResultsError as error:
        if hidden is not None and str(hidden) in error.where:
            error.where = error.where.replace(str(hidden), str(folder))
            error.action = "free some space and begin again; nothing was left behind"
        raise


def check_not_moved(folder: Path, descriptor: int) -> None:
    """Refuse to continue if the folder of this name is not the one of the descriptor."""
    ours = os.fstat(descriptor)
    try:
        named = folder.stat()
    except OSError as error:
        named, got = None, error.strerror or str(error)
    else:
        got = "another folder of its name"
    if named is None or not os.path.samestat(ours, named):
        raise ResultsError(
            "The result folder was moved or deleted",
            where=str(folder),
            got=got,
            allowed="the folder that this benchmark began",
            action="put it back and continue with `uflip run --resume`; finished runs are in it, "
            "in its new location",
        )


# The writer holds a lock on the folder (flock) while it lives. The kernel releases it when the
# process ends, for any reason: so "running" in a manifest can be verified.

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
    """Hold the folder's lock, as `acquire_lock`."""
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
