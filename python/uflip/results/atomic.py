"""Files that are either the old or the new version, never half of one.

Write under a temporary name in the same folder, fsync, rename, fsync the folder: after a crash or a
full disk the final name holds what it held before, or all of the new content.
"""

import os
from contextlib import suppress
from pathlib import Path


def temporary_name(path: Path) -> Path:
    """Return the temporary name of `path` during writing; a leading dot hides it from `*` globs."""
    return path.with_name(f".{path.name}.tmp")


def fsync_directory(path: Path) -> None:
    """Make the names in a folder durable: a rename is safe only after this."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folders(path: Path) -> None:
    """Make a folder and those above it that are missing, with durable names."""
    missing = [each for each in (path, *path.parents) if not each.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for each in missing:
        fsync_directory(each.parent)


def fsync_tree(path: Path) -> None:
    """Make all files below a folder durable, and their names in it."""
    for each in (path, *path.rglob("*")):
        descriptor = os.open(each, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def publish(temporary: Path, path: Path) -> None:
    """Give a complete, fsynced file its final name, durably."""
    temporary.rename(path)
    fsync_directory(path.parent)


def write_file(path: Path, content: bytes) -> None:
    """Replace `path` by `content`; a failure leaves the old file and no temporary one.

    Raises
    ------
    OSError
        From the operating system (no space, no permission).
    """
    temporary = temporary_name(path)
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        publish(temporary, path)
    except BaseException:
        with suppress(OSError):  # the cause of a failed write often prevents removal too
            temporary.unlink(missing_ok=True)
        raise
