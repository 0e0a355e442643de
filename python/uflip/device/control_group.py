"""Limits of the control group of this process: a share of the processors, a rate of the disk.

::

    /proc/self/cgroup       the group of this process, in each hierarchy
    /proc/self/mountinfo    the mount point of a hierarchy
    group ─▶ its parent ─▶ … ─▶ root of the mount      the tightest limit on the way applies

**Source** Linux, `Documentation/admin-guide/cgroup-v2.rst` (`cpu.max`, `io.max`), `cgroup-v1/` and
`scheduler/sched-bwc.rst` (`cpu.cfs_quota_us`, `blkio.throttle.*`); proc(5).
**Faithful** Both versions, also on a machine with both; limits of parent groups apply too.
**Simplified** Weights, latency targets and memory limits are omitted: they only apply under
contention.
**Ambiguous** A value that cannot be read counts as no limit: a group above the root of the mount
may have one.
"""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

# Name of a rate in `io.max` -> its file in version 1.
RATES = {
    "rbps": "blkio.throttle.read_bps_device",
    "wbps": "blkio.throttle.write_bps_device",
    "riops": "blkio.throttle.read_iops_device",
    "wiops": "blkio.throttle.write_iops_device",
}
Number = tuple[int, int]


class GroupLimits(Struct, frozen=True):
    """Limits of a control group; None, or no entry, without a limit.

    Attributes
    ----------
    cpus : float or None
        Processor time, in processors.
    disk : dict of str to int
        `rbps`, `wbps` [bytes/s], `riops`, `wiops` [I/Os/s] of the disk.
    """

    cpus: float | None = None
    disk: dict[str, int] = {}


def limits_of_group(disk: Number | None, process: Path = Path("/proc/self")) -> GroupLimits:
    """Read the limits of this process, and of its I/Os to a disk.

    Parameters
    ----------
    disk : tuple of int or None
        Major and minor number of the disk; None for no disk.
    process : Path
        The process in procfs.

    Examples
    --------
    >>> limits_of_group(None).disk
    {}
    """
    cpus: list[float] = []
    rates: dict[str, list[int]] = {name: [] for name in RATES}
    for group in _groups(process):
        cpus += _cpus(group)
        if disk is not None:
            for name, rate in _rates(group, disk):
                rates[name].append(rate)
    return GroupLimits(
        min(cpus, default=None), {name: min(each) for name, each in rates.items() if each}
    )


def _groups(process: Path) -> Iterator[Path]:
    """Yield the groups of a process and their parents, of every mounted hierarchy."""
    mounts = list(_mounts(process))
    for line in _lines(process / "cgroup"):
        _, controllers, path = line.split(":", 2)
        hierarchy = set(controllers.split(",")) if controllers else {"cgroup2"}
        for root, mount_point, mounted in mounts:
            if not hierarchy & mounted:
                continue
            inside = Path(path).relative_to(root) if Path(path).is_relative_to(root) else Path()
            group = mount_point / inside
            yield group
            yield from (above for above in group.parents if above.is_relative_to(mount_point))
            break


def _mounts(process: Path) -> Iterator[tuple[str, Path, set[str]]]:
    """Yield root, mount point and controllers of each mount of control groups."""
    for line in _lines(process / "mountinfo"):
        before, _, after = line.partition(" - ")
        words, file_system = before.split(), after.split()
        if file_system[:1] == ["cgroup2"]:
            yield words[3], Path(words[4]), {"cgroup2"}
        elif file_system[:1] == ["cgroup"]:
            yield words[3], Path(words[4]), set(file_system[2].split(","))


def _cpus(group: Path) -> Iterator[float]:
    quota, period = _words(group / "cpu.max", 2)
    if not quota:
        (quota,) = _words(group / "cpu.cfs_quota_us", 1)
        (period,) = _words(group / "cpu.cfs_period_us", 1)
    if quota.isdigit() and period.isdigit() and int(period):
        yield int(quota) / int(period)


def _rates(group: Path, disk: Number) -> Iterator[tuple[str, int]]:
    number = f"{disk[0]}:{disk[1]}"
    for line in _lines(group / "io.max"):
        device, *limits = line.split()
        for name, _, rate in (limit.partition("=") for limit in limits if device == number):
            if name in RATES and rate.isdigit():
                yield name, int(rate)
    for name, file in RATES.items():
        for line in _lines(group / file):
            device, _, rate = line.partition(" ")
            if device == number and rate.isdigit():
                yield name, int(rate)


def _words(path: Path, count: int) -> list[str]:
    """Return `count` words of a file's first line, padded with empty ones."""
    words = next(iter(_lines(path)), "").split()
    return (words + [""] * count)[:count]


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
