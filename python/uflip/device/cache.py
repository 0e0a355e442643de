"""Cache of simulated devices in their initial state, on disk.

A simulated device is determined by its profile (overrides included), by the writes of the enforced
state, with their seed, and by the simulator version. The file name is a hash of all of these; the
same name means the same device, bit by bit. So files in the folder are never changed, only added,
and removed when the folder grows too large, least recently used first.

The folder may contain other files: only files with names of this module's form, and the magic of a
saved device, are listed and removed. Everything else stays where it is.

Several processes may use one folder: a file appears whole or not at all, and a process that finds
it missing or damaged rebuilds the device. The cache never makes a command fail.

Two environment variables::

    UFLIP_CACHE_DIR    the folder; $XDG_CACHE_HOME/uflip/devices, or ~/.cache/uflip/devices
    UFLIP_CACHE_SIZE   its size limit, 4GiB; 0 turns the cache off
"""

import hashlib
import json
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from uflip import _native
from uflip.errors import UflipError
from uflip.native_wait import (
    COMPUTE_CANCEL_TIMEOUT_S,
    CREATE_CANCEL_TIMEOUT_S,
    OnProgress,
    run_native,
)
from uflip.units import parse_size

FOLDER, SIZE = "UFLIP_CACHE_DIR", "UFLIP_CACHE_SIZE"
DEFAULT_SIZE = "4GiB"

ENDING = ".snapshot"
# A file that is being written ends in ".partial"; if it is older [s], its writer was killed.
ABANDONED_S = 3600.0
# Magic of a saved device; `crates/sim/src/snapshot.rs` writes it.
MAGIC = b"uflipsim"

_CACHED_NAME = re.compile(r"[0-9a-f]{32}\.snapshot")
_PARTIAL_NAME = re.compile(r"\.[0-9a-f]{32}\.snapshot\.[0-9]+\.partial")

_switched_off: ContextVar[bool] = ContextVar("switched_off", default=False)


@dataclass(frozen=True)
class CacheEntry:
    """A device in the cache."""

    path: Path  #: Its file.
    size_bytes: int  #: The length of the file.
    used_s: float  #: Time of its last use, or of its creation [s since 1970].


@contextmanager
def switched_off() -> Iterator[None]:
    """Disable the cache: neither read it nor add to it."""
    token = _switched_off.set(True)
    try:
        yield
    finally:
        _switched_off.reset(token)


def is_switched_off() -> bool:
    """Return whether the cache is disabled here by `switched_off`."""
    return _switched_off.get()


def folder() -> Path:
    """Return the folder of the cache, which may not exist."""
    if configured := os.environ.get(FOLDER):
        return Path(configured)
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "uflip" / "devices"


def limit_bytes() -> int:
    """Return the size limit of the cache; 0: no cache [bytes]."""
    return 0 if is_switched_off() else parse_size(os.environ.get(SIZE) or DEFAULT_SIZE, SIZE)


def cache_key(*content: Any) -> str:
    """Return the hash of everything that determines a device; the simulator version is added.

    >>> cache_key({"channels": 1}) == cache_key({"channels": 1}) != cache_key({"channels": 2})
    True
    """
    text = json.dumps([_native.SIMULATOR_VERSION, *content], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def cached_device(
    name: str, make: Callable[[], _native.Device], on_progress: OnProgress | None = None
) -> _native.Device:
    """Return the device of a name: from the cache, or created and cached."""
    limit = limit_bytes()
    if limit == 0:
        return make()
    path = folder() / (name + ENDING)
    restored = _load(path, on_progress)
    if restored is not None:
        return restored
    device = make()
    _store(device, path, limit, on_progress)
    return device


def entries() -> list[CacheEntry]:
    """Return the cached devices, least recently used first."""
    cached_devices = []
    with suppress(OSError):
        for path in folder().iterdir():
            with suppress(OSError):  # another process removed it
                status = path.lstat()
                if _is_cached_device(path, status.st_mode):
                    cached_devices.append(CacheEntry(path, status.st_size, status.st_mtime))
    return sorted(cached_devices, key=lambda entry: (entry.used_s, entry.path.name))


def clear() -> tuple[list[CacheEntry], list[Path]]:
    """Remove the cached devices; return them, and the files that stay."""
    removed = []
    for entry in entries():
        with suppress(OSError):
            entry.path.unlink()
            removed.append(entry)
    _remove_abandoned(0.0)
    remaining: list[Path] = []
    with suppress(OSError):
        remaining = sorted(folder().iterdir())
    return removed, remaining


def _is_cached_device(path: Path, mode: int) -> bool:
    """Return whether a file was written by `_store`."""
    if not stat.S_ISREG(mode) or not _CACHED_NAME.fullmatch(path.name):
        return False
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def _load(path: Path, on_progress: OnProgress | None) -> _native.Device | None:
    try:
        snapshot = partial(_native.Device.restore, str(path))
        device = run_native(snapshot, on_progress, cancel_timeout_s=CREATE_CANCEL_TIMEOUT_S)
    except UflipError:
        # Missing or damaged: rebuild it in both cases.
        with suppress(OSError):
            path.unlink(missing_ok=True)
        return None
    with suppress(OSError):
        os.utime(path)
    return device


def _store(device: _native.Device, path: Path, limit: int, on_progress: OnProgress | None) -> None:
    # A full disk, a folder without write permission, another process that was faster: this device
    # exists all the same, and only the next one must be created again.
    with suppress(OSError, UflipError):
        path.parent.mkdir(parents=True, exist_ok=True)
        save = partial(device.save, str(path))
        run_native(save, on_progress, cancel_timeout_s=COMPUTE_CANCEL_TIMEOUT_S)
    _remove_abandoned(ABANDONED_S)
    stored = entries()
    excess_bytes = sum(entry.size_bytes for entry in stored) - limit
    for entry in stored:
        if excess_bytes <= 0:
            break
        with suppress(OSError):
            entry.path.unlink(missing_ok=True)
        excess_bytes -= entry.size_bytes


def _remove_abandoned(older_s: float) -> None:
    with suppress(OSError):
        for path in folder().iterdir():
            with suppress(OSError):
                status = path.lstat()
                is_partial = stat.S_ISREG(status.st_mode) and _PARTIAL_NAME.fullmatch(path.name)
                if is_partial and time.time() - status.st_mtime > older_s:
                    path.unlink(missing_ok=True)
