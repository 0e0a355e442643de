"""Identity of a target: is it the same device and medium, and did others use it during a run?

Before and after each run the status of a file or block device is read (`Device.target_status`). If
the target is gone, shorter, or another one has its name, after a run or since the one before, the
benchmark ends: its measurements are invalid. If another process opened, read or wrote it, during a
run or in the pause before it, a warning with the numbers is stored with the run.

Undetectable: a process that had a file open before the run and writes to it without closing it,
while the run writes as well; other users of the disk below a file. Reads and writes through a page
cache are not those of the run, so sectors are counted for direct I/O only, and only during the run:
between two runs uflip writes its results, possibly to another partition of the disk.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Literal, TypedDict

from uflip._native import Trace
from uflip.data.device import DeviceInfo, Identity
from uflip.errors import DeviceError

MODEL = ("kind", "model", "serial", "capacity_bytes", "sector_bytes")
FILE = ("inode", "file_system_device")
MEDIUM = ("brand", "diskseq", "boot_id")


def model_identity(info: DeviceInfo) -> Identity:
    """Return the identity of a device for plans: model, serial number, sizes.

    >>> from uflip.device.opener import open_device
    >>> model_identity(open_device("null", size="1MiB").info)
    {'kind': 'null', 'model': 'null', 'capacity_bytes': 1048576, 'sector_bytes': 512}
    """
    properties: Identity = {name: value for name in MODEL if (value := getattr(info, name))}
    if info.simulated:
        profile = json.dumps(info.profile_table, sort_keys=True)
        properties["profile"] = hashlib.blake2b(profile.encode(), digest_size=8).hexdigest()
        if info.details.snapshot is not None:
            properties["snapshot"] = json.dumps(info.details.snapshot)
    return properties


def identity(info: DeviceInfo) -> Identity:
    """Return the identity of a device with its data: for a file also its inode."""
    properties = model_identity(info)
    if info.kind == "file":
        properties |= {name: getattr(info.details, name) for name in FILE}
    return properties


def medium(info: DeviceInfo) -> Identity:
    """Return the identity of the medium in a device: the brand of the data that uflip wrote, and
    the number from the kernel, which is valid until the machine is rebooted.

    >>> from uflip.device.opener import open_device
    >>> from uflip.data.device import with_details
    >>> info = open_device("null").info
    >>> medium(with_details(info, brand="0123456789abcdef", inode=7))
    {'brand': '0123456789abcdef'}
    """
    return {name: value for name in MEDIUM if (value := getattr(info.details, name))}


def medium_difference(earlier: Mapping[str, object], now: DeviceInfo) -> tuple[str, str] | None:
    """Return the difference between the earlier and the current medium of a device.

    >>> from uflip.device.opener import open_device
    >>> from uflip.data.device import with_details
    >>> medium_difference({"brand": "a"}, with_details(open_device("null").info, brand="b"))
    ('brand b', 'brand a')
    """
    current = medium(now)
    # A brand that was just created is on no medium yet.
    brand = None if now.details.brand_is_new else current.get("brand")
    if earlier.get("brand") and brand == earlier["brand"]:
        return None
    if earlier.get("brand") and brand:
        return f"brand {brand}", f"brand {earlier['brand']}"
    if earlier.get("diskseq") and earlier.get("boot_id") == current.get("boot_id"):
        if earlier["diskseq"] == current.get("diskseq"):
            return None
        return f"diskseq {current.get('diskseq', 'none')}", f"diskseq {earlier['diskseq']}"
    if earlier.get("brand"):
        return "no data of uflip on it", f"data of the brand {earlier['brand']}"
    return None


class TargetStatus(TypedDict):
    """The status of a target; see `crates/host/src/watch.rs`."""

    size_bytes: int
    found_by_name: bool
    exists: bool
    modified_ns: int | None
    opened: int | None
    closed_by_writers: int | None
    changed_by_others: int | None
    sectors_read: int | None
    sectors_written: int | None


Counted = Literal[
    "opened", "closed_by_writers", "changed_by_others", "sectors_read", "sectors_written"
]


SECTOR_BYTES = 512

WRITTEN = frozenset({"closed_by_writers", "modified"})
"""Counters of `count_disturbances` that show changes of the target by other processes."""


def check_target(before: TargetStatus | None, after: TargetStatus | None, url: str) -> None:
    """Refuse a run whose target has changed."""
    if before is None or after is None:
        return
    got = ""
    if not after["exists"]:
        got = "it was deleted, or detached"
    elif after["size_bytes"] < before["size_bytes"]:
        got = f"{after['size_bytes']} bytes, and {before['size_bytes']} before"
    elif before["found_by_name"] and not after["found_by_name"]:
        got = "it was moved, or replaced: its name leads elsewhere"
    if got:
        raise DeviceError(
            "The target has changed",
            where=url,
            got=got,
            allowed="the same target from the first run to the last",
            action="do not change it during the benchmark; the I/Os of this run are not stored",
        )


def check_not_shrunk(status: TargetStatus | None, info: DeviceInfo) -> None:
    """Refuse a target that has become shorter since it was opened."""
    if status is None or status["size_bytes"] >= info.capacity_bytes:
        return
    raise DeviceError(
        "The target shrank after it was opened",
        where=info.url,
        got=f"{status['size_bytes']} bytes",
        allowed=f"{info.capacity_bytes} bytes",
        action="find the other user, and restore the state of the device",
    )


def undisturbed_since_open(status: TargetStatus | None) -> TargetStatus | None:
    """Return the status of a target as if no other process had used it since it was opened."""
    if status is None:
        return None
    untouched = TargetStatus(**status)
    for key in ("opened", "closed_by_writers", "changed_by_others"):
        untouched[key] = None if status[key] is None else 0
    return untouched


def count_disturbances(
    before: TargetStatus | None,
    after: TargetStatus | None,
    traces: list[Trace],
    *,
    buffered: bool,
    since: TargetStatus | None = None,
) -> dict[str, int]:
    """Return counters of other processes' activity on the target during runs; empty without any.

    `before`, `after`: the status at the begin and at the end of the runs. `traces`: the I/Os in
    between. `buffered`: whether the I/Os go through a page cache. `since`: the status at the end of
    the previous run; without it, activity in between is omitted.
    """
    if before is None or after is None:
        return {}
    since = since or before
    # Block devices are opened by every scan for file systems; there the sectors show real use.
    is_file = after["modified_ns"] is not None
    counters: tuple[Counted, ...] = (
        ("opened", "closed_by_writers") if is_file else ("closed_by_writers",)
    )
    counts: dict[str, int] = {key: _increase(since, after, key) for key in counters}
    read, written = _sectors(traces)
    if not buffered:
        counts["sectors_read"] = _increase(before, after, "sectors_read") - read
        counts["sectors_written"] = _increase(before, after, "sectors_written") - written
    counts["modified"] = _increase(since, after, "changed_by_others")
    return {key: count for key, count in counts.items() if count > 0}


def _increase(before: TargetStatus, after: TargetStatus, key: Counted) -> int:
    earlier, now = before[key], after[key]
    return 0 if earlier is None or now is None else now - earlier


def _sectors(traces: list[Trace]) -> tuple[int, int]:
    """Count the sectors read and written by runs."""
    read = sum(trace.bytes_read for trace in traces)
    written = sum(trace.bytes_written for trace in traces)
    return read // SECTOR_BYTES, written // SECTOR_BYTES
