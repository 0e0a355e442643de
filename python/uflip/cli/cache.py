"""`uflip cache`: the simulated devices that are kept for the next time."""

import time
from typing import Any

import click

from uflip.cli.common import echo_table, json_option
from uflip.cli.terminal import echo, echo_json
from uflip.device import cache
from uflip.device.simulated import inspect_snapshot
from uflip.errors import UflipError
from uflip.units import format_size

# So many names of what stays are read at a glance.
SHOWN = 5

EPILOG = """\b
Examples:
  uflip cache            what is kept, and where
  uflip cache --clear    remove all of it

\b
A simulated device that was brought into its state is kept, so that the next command begins at once.
UFLIP_CACHE_DIR names another folder, UFLIP_CACHE_SIZE another limit (0: keep nothing);
--no-cache of run, prepare and pattern builds a device instead.
"""


@click.command("cache", epilog=EPILOG)
@click.option(
    "--clear",
    is_flag=True,
    help="Remove every device from the cache; what else is in its folder stays.",
)
@json_option
def command(clear: bool, as_json: bool) -> None:
    """List or remove the simulated devices that are kept in their state."""
    kept, left = cache.clear() if clear else (cache.entries(), [])
    devices = [_describe(entry) for entry in reversed(kept)] if not clear else []
    document = {
        "folder": str(cache.folder()),
        "limit_bytes": cache.limit_bytes(),
        "size_bytes": sum(entry.size_bytes for entry in kept) if not clear else 0,
        "removed": len(kept) if clear else 0,
        "left": [path.name for path in left],
        "devices": devices,
    }
    if as_json:
        echo_json(document)
    elif clear:
        freed = format_size(sum(entry.size_bytes for entry in kept))
        echo(f"{len(kept)} devices removed from {document['folder']}, {freed}")
        if left:
            names = ", ".join(path.name for path in left[:SHOWN])
            more = f" and {len(left) - SHOWN} more" if len(left) > SHOWN else ""
            echo(f"{len(left)} others stay, which uflip did not keep there: {names}{more}")
    else:
        _print(document)


def _describe(entry: cache.Entry) -> dict[str, Any]:
    """Say what is in a file; one that cannot be read any more is rebuilt when it is needed."""
    known = {
        "name": entry.path.stem,
        "device": None,
        "capacity_bytes": None,
        "size_bytes": entry.size_bytes,
        "unused_s": max(0.0, time.time() - entry.used_s),
    }
    try:
        info = inspect_snapshot(str(entry.path))
    except UflipError:
        return known
    return known | {"device": info.url, "capacity_bytes": info.capacity_bytes}


def _print(document: dict[str, Any]) -> None:
    rows = [
        (
            device["device"] or "of another version",
            format_size(device["capacity_bytes"]) if device["capacity_bytes"] else "",
            format_size(device["size_bytes"]),
            f"{device['unused_s'] / 3600:.1f} h",
            device["name"],
        )
        for device in document["devices"]
    ]
    if rows:
        echo_table(("device", "capacity", "file", "unused for", "name"), rows)
    limit = document["limit_bytes"]
    echo(
        f"{len(rows)} devices, {format_size(document['size_bytes'])} "
        f"of at most {format_size(limit)}, in {document['folder']}"
        if limit
        else f"the cache is off; its folder is {document['folder']}"
    )
