"""Was the target of a run the same at its end, and was anybody else there meanwhile?

Before and after each run a file or block device is asked how it stands (`Device.standing`). A
target that is gone, shorter, or another one under its name, after a run or since the one before,
ends the benchmark: what was measured is nobody's. That somebody else opened, read or wrote it, in
a run or in the pause before it, is a doubt, which is stored with the run and its numbers.

What cannot be seen: who had a file open before the run and writes to it without closing it, while
the run writes as well; other users of the disk below a file. Reads and writes through a page cache
are not those of the run, so sectors are counted for direct I/O only, and in the run only: between
two runs uflip writes its results, which may be on another partition of the disk.
"""

from typing import Literal, TypedDict

from uflip._native import Trace
from uflip.data.device import DeviceInfo
from uflip.errors import DeviceError


class Standing(TypedDict):
    """How a target stands; see `crates/host/src/standing.rs`."""

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
"""What of `disturbed` says that others may have changed what is on the target."""


def check_target(before: Standing | None, after: Standing | None, url: str) -> None:
    """Refuse what a run has measured, or would, where its target is not what it was.

    Raises
    ------
    DeviceError
        If it is gone, shorter, or another one under its name.
    """
    if before is None or after is None:
        return
    got = ""
    if not after["exists"]:
        got = "it was deleted, or detached"
    elif after["size_bytes"] < before["size_bytes"]:
        got = f"{after['size_bytes']} bytes, and {before['size_bytes']} before"
    elif before["found_by_name"] and not after["found_by_name"]:
        got = "it was moved, or replaced: another one has its name, or none"
    if got:
        raise DeviceError(
            "The target has changed",
            where=url,
            got=got,
            allowed="the same target from the first run to the last",
            action="leave it alone until all runs are made; what this one measured is not kept",
        )


def check_whole(standing: Standing | None, info: DeviceInfo) -> None:
    """Refuse a target that shrank after it was opened.

    Raises
    ------
    DeviceError
        If it is.
    """
    if standing is None or standing["size_bytes"] >= info.capacity_bytes:
        return
    raise DeviceError(
        "The target shrank after it was opened",
        where=info.url,
        got=f"{standing['size_bytes']} bytes",
        allowed=f"{info.capacity_bytes} bytes",
        action="see who else uses it, and bring it into its state again",
    )


def as_opened(standing: Standing | None) -> Standing | None:
    """Return how a target stands, as if nobody else had used it since it was opened."""
    if standing is None:
        return None
    untouched = Standing(**standing)
    for key in ("opened", "closed_by_writers", "changed_by_others"):
        untouched[key] = None if standing[key] is None else 0
    return untouched


def disturbed(
    before: Standing | None,
    after: Standing | None,
    traces: list[Trace],
    *,
    buffered: bool,
    since: Standing | None = None,
) -> dict[str, int]:
    """Say what others did to the target during runs, in numbers; empty for nothing.

    Parameters
    ----------
    before, after
        How it stood when the runs began, and ended.
    traces : list of Trace
        What was done to it in between.
    buffered : bool
        Whether a page cache lies between the I/Os and the target.
    since : Standing, optional
        How it stood when the run before was over; without it what others did in between is left
        out.

    Returns
    -------
    dict
        opened, closed_by_writers: by others; sectors_read, sectors_written: of 512 bytes, beyond
        those of the run; modified: how often it was not as uflip had left it.
    """
    if before is None or after is None:
        return {}
    since = since or before
    # Block devices are opened by whoever looks for file systems; there sectors tell who used one.
    is_file = after["modified_ns"] is not None
    told: tuple[Counted, ...] = (
        ("opened", "closed_by_writers") if is_file else ("closed_by_writers",)
    )
    found: dict[str, int] = {key: _more(since, after, key) for key in told}
    read, written = _sectors(traces)
    if not buffered:
        found["sectors_read"] = _more(before, after, "sectors_read") - read
        found["sectors_written"] = _more(before, after, "sectors_written") - written
    found["modified"] = _more(since, after, "changed_by_others")
    return {key: count for key, count in found.items() if count > 0}


def _more(before: Standing, after: Standing, key: Counted) -> int:
    was, now = before[key], after[key]
    return 0 if was is None or now is None else now - was


def _sectors(traces: list[Trace]) -> tuple[int, int]:
    """Count the sectors that runs read and wrote."""
    read = sum(trace.bytes_read for trace in traces)
    written = sum(trace.bytes_written for trace in traces)
    return read // SECTOR_BYTES, written // SECTOR_BYTES
