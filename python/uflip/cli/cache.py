"""`uflip cache`: the cache of simulated devices."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from uflip.cli.options import json_option
from uflip.cli.terminal import echo, echo_json, echo_table
from uflip.device import cache
from uflip.device.opener import inspect_snapshot
from uflip.errors import UflipError
from uflip.units import format_size

# Maximum number of file names in a message.
MAX_NAMES = 5

EPILOG = """\b
Examples:
  uflip cache            list the cached devices
  uflip cache --clear    remove all of them

\b
A simulated device in its initial state is cached, so that the next command begins at once.
UFLIP_CACHE_DIR selects another folder, UFLIP_CACHE_SIZE another limit (0: no cache);
with --no-cache a command builds its devices instead.
"""


@click.command("cache", epilog=EPILOG)
@click.option(
    "--clear",
    is_flag=True,
    help="Remove every device from the cache; other files in its folder stay.",
)
@json_option
def command(clear: bool, as_json: bool) -> None:
    """List or clear the cache of simulated devices."""
    entries, other_files = cache.clear() if clear else (cache.entries(), [])
    size_bytes = sum(entry.size_bytes for entry in entries)
    devices = [] if clear else [_describe(entry) for entry in reversed(entries)]
    if as_json:
        echo_json(
            {
                "folder": str(cache.folder()),
                "limit_bytes": cache.limit_bytes(),
                "size_bytes": 0 if clear else size_bytes,
                "removed": len(entries) if clear else 0,
                "left": [path.name for path in other_files],
                "devices": devices,
            }
        )
    elif clear:
        _print_removed(len(entries), size_bytes, other_files)
    else:
        _print(devices, size_bytes)


@dataclass(frozen=True)
class CachedDevice:
    """A cached device; an unreadable one is rebuilt when it is needed."""

    name: str
    device: str | None
    capacity_bytes: int | None
    size_bytes: int
    unused_s: float


def _describe(entry: cache.CacheEntry) -> CachedDevice:
    """Describe a cache entry."""
    unused_s = max(0.0, time.time() - entry.used_s)
    try:
        info = inspect_snapshot(str(entry.path))
    except UflipError:
        return CachedDevice(entry.path.stem, None, None, entry.size_bytes, unused_s)
    return CachedDevice(entry.path.stem, info.url, info.capacity_bytes, entry.size_bytes, unused_s)


def _print_removed(removed: int, size_bytes: int, other_files: Sequence[Path]) -> None:
    echo(f"{removed} devices removed from {cache.folder()}, {format_size(size_bytes)}")
    if other_files:
        names = ", ".join(path.name for path in other_files[:MAX_NAMES])
        more = f" and {len(other_files) - MAX_NAMES} more" if len(other_files) > MAX_NAMES else ""
        echo(f"{len(other_files)} other files are not from the cache and stay: {names}{more}")


def _print(devices: Sequence[CachedDevice], size_bytes: int) -> None:
    rows = [
        (
            device.device or "of another version",
            format_size(device.capacity_bytes) if device.capacity_bytes else "",
            format_size(device.size_bytes),
            f"{device.unused_s / 3600:.1f} h",
            device.name,
        )
        for device in devices
    ]
    if rows:
        echo_table(("device", "capacity", "file", "unused for", "name"), rows)
    limit = cache.limit_bytes()
    echo(
        f"{len(rows)} devices, {format_size(size_bytes)} of at most {format_size(limit)}, "
        f"in {cache.folder()}"
        if limit
        else f"the cache is off; its folder is {cache.folder()}"
    )
