"""Files and folders that appear under their names whole, or not at all.

Content is written under a temporary name in the same folder, synced, and renamed or linked, and the
folder is synced: after a crash, a power failure or a full disk the name holds what it held before,
or all of the new content.

=====================  ==========================================================================
`write_file`           replace a file by some bytes; `write_new_file` fails if it exists
`replaced_file`        the same for a file that other code writes; one process owns the folder
`temporary_file`       a file with a unique name, for `publish` or `publish_new`
`new_folder`           a folder that is filled before it has its name
`sync_paths`           sync files, or the names in folders, without renaming
=====================  ==========================================================================
"""

import errno
import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

SYNC_THREADS = 8
# The longest file name on any file system of Linux [bytes].
MAX_NAME_BYTES = 255
NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}
BEING_MADE = ".being-made"
"""Ending of a hidden folder that is being filled."""

_numbers = count()


def sync_path(path: Path) -> None:
    """Make a file, or the names in a folder, durable: a rename is safe only after this."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_paths(paths: Iterable[Path]) -> None:
    """Sync many files, or the names in folders, at once."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(SYNC_THREADS) as pool:
        for _ in pool.map(sync_path, dict.fromkeys(paths)):
            pass


def make_folders(path: Path) -> None:
    """Make a folder and those above it that are missing, with durable names."""
    missing = [each for each in (path, *path.parents) if not each.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for each in missing:
        sync_path(each.parent)


def temporary_name(path: Path) -> Path:
    """Return the temporary name of `path` during writing; a leading dot hides it from `*` globs."""
    return path.with_name(f".{path.name}.tmp")


def publish(temporary: Path, path: Path) -> None:
    """Give a complete, synced file its final name, durably; replace a file of this name."""
    temporary.rename(path)
    sync_path(path.absolute().parent)


def publish_new(temporary: Path, path: Path) -> None:
    """Give a complete, synced file a name that must be free, durably."""
    # A hard link fails if the name exists; a rename would replace the file. A file system without
    # hard links needs a check beforehand.
    try:
        os.link(temporary, path, follow_symlinks=False)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
        temporary.rename(path)
    sync_path(path.absolute().parent)


@contextmanager
def replaced_file(path: Path, *, durable: bool = True) -> Iterator[Path]:
    """Yield the temporary name of a file, and `publish` the file that was written and synced there.

    On failure the old file stays, and the temporary one is removed. Without `durable`, the new name
    is not synced either: for what can be made again.
    """
    temporary = temporary_name(path)
    try:
        yield temporary
        if durable:
            publish(temporary, path)
        else:
            temporary.rename(path)
    except BaseException:
        with suppress(OSError):  # the cause of a failed write often prevents removal too
            temporary.unlink(missing_ok=True)
        raise


def write_file(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Replace `path` by `content`; a failure leaves the old file and no temporary one.

    Without `durable`, nothing is synced: for what can be made again.
    """
    with replaced_file(path, durable=durable) as temporary, temporary.open("wb") as file:
        file.write(content)
        if durable:
            file.flush()
            os.fsync(file.fileno())


@contextmanager
def temporary_file(path: Path, mode: int | None = None) -> Iterator[Path]:
    """Yield an empty file of a unique name beside `path`; remove it if it still exists at the end.

    `mode` are its permissions, by default those of new files.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    stem = os.fsencode(path.name)[: MAX_NAME_BYTES - 60]
    while True:
        name = os.fsdecode(b".%s.%d-%d.tmp" % (stem, os.getpid(), next(_numbers)))
        # The same ending: some writers derive the format from it.
        temporary = path.absolute().with_name(name + path.suffix[:16])
        try:
            descriptor = os.open(temporary, flags, 0o666)
            break
        except FileExistsError:  # left by a killed process
            continue
    try:
        try:
            if mode is not None:
                os.fchmod(descriptor, mode)
        finally:
            os.close(descriptor)
        yield temporary
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_new_file(path: Path, content: bytes) -> None:
    """Write a file whose name must be free."""
    with temporary_file(path) as temporary:
        temporary.write_bytes(content)
        sync_path(temporary)
        publish_new(temporary, path)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield a hidden folder beside `path` to be filled; at the end sync it and give it its name.

    After an interruption, the name is either free or a whole folder. Hidden folders of `path` that
    killed processes left are removed first.
    """
    make_folders(path.parent)
    _remove_abandoned(path)
    while True:
        name = f".{path.name[-200:]}-{next(_numbers)}-{os.getpid()}{BEING_MADE}"
        hidden = path.with_name(name)
        with suppress(FileExistsError):  # not removable
            hidden.mkdir()
            break
    try:
        yield hidden
        sync_paths(each for each in (hidden, *hidden.rglob("*")) if not each.is_symlink())
        if os.path.lexists(path):
            raise FileExistsError(None, "another process created this name meanwhile")
        hidden.rename(path)
        sync_path(path.absolute().parent)
    except BaseException:
        shutil.rmtree(hidden, ignore_errors=True)
        raise


def _remove_abandoned(path: Path) -> None:
    """Remove the remains of killed processes; a live process holds a lock on its folder."""
    literal = "".join(f"[{letter}]" if letter in "*?[" else letter for letter in path.name[-200:])
    for hidden in path.parent.glob(f".{literal}-*{BEING_MADE}"):
        maker = hidden.name.removesuffix(BEING_MADE).rpartition("-")[2]
        with suppress(OSError):
            descriptor = os.open(hidden, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not Path(f"/proc/{maker}").exists():
                    shutil.rmtree(hidden, ignore_errors=True)
            finally:
                os.close(descriptor)
