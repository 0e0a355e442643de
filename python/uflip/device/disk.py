"""The disk below a target, and the limits of this process, as the kernel describes them.

    file ─▶ file system ─▶ partition ─▶ queue of the disk ─▶ disk
                           begins at    scheduler, splits    cache, blocks, temperature
                                        rates of a group     virtual or not

    /proc/self/cgroup       the control group of this process, in each hierarchy
    /proc/self/mountinfo    the mount point of a hierarchy
    group ─▶ its parent ─▶ … ─▶ root of the mount      the tightest limit on the way applies

**Source** Linux, `Documentation/ABI/stable/sysfs-block`; `hwmon` for temperatures;
`/sys/dev/block/MAJOR:MINOR` leads to the position of a disk in the device tree, which contains its
bus. `Documentation/admin-guide/cgroup-v2.rst` (`cpu.max`, `io.max`), `cgroup-v1/` and
`scheduler/sched-bwc.rst` (`cpu.cfs_quota_us`, `blkio.throttle.*`); proc(5).
**Faithful** A file is traced to the disk that its file system is on, a partition to its disk. Both
versions of control groups, also on a machine with both; limits of parent groups apply too.
**Simplified** For a mapped device (LVM, RAID, encryption) the queue of the mapping is reported,
which is the one that takes the I/Os; whether the disks behind it are virtual is not. Of several
temperatures the first, the composite one of NVMe. Weights, latency targets and memory limits of
groups are omitted: they only apply under contention.
**Ambiguous** A value that cannot be read is `unknown`, and gives no warning: it may not exist. An
unreadable limit counts as none: a group above the root of the mount may have one. A file system on
a virtual machine whose disk is passed through is on a real disk: the disk counts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict, replace

from uflip.data.device import DeviceInfo
from uflip.data.manifest import Disk
from uflip.device.url import parse_url

SECTOR = 512
"""Unit of the begin of a partition in sysfs [bytes]."""

# Part of the device path in sysfs -> transport of the disk.
TRANSPORTS = {"usb": "usb", "nvme": "nvme", "ata": "ata", "mmc": "mmc", "virtio": "virtio"}

# Part of the path in the device tree -> hypervisor.
BUSES = {
    "virtio": "virtio",
    "vbd-": "Xen",
    "xen": "Xen",
    "VMBUS": "Hyper-V",
    "vmbus": "Hyper-V",
}

# Words in the identification of a disk -> its provider.
NAMES = {
    "qemu": "QEMU",
    "vbox": "VirtualBox",
    "vmware": "VMware",
    "virtual": "a virtual machine",
    "msft": "Hyper-V",
    "amazon elastic block store": "Amazon EBS",
    "amazon ec2 nvme instance storage": "Amazon EC2",
    "google persistentdisk": "Google Cloud",
    "nvme_card-pd": "Google Cloud",
}

# Disks that are software of this kernel.
SOFTWARE = {"loop": "a loop device", "zram": "memory (zram)", "ram": "memory", "nbd": "a network"}


def disk_below(info: DeviceInfo, system: Path = Path("/sys")) -> Disk | None:
    """Describe the disk of a file or block device; None without one, or if nothing is known."""
    number = device_number(info)
    sysfs = None if number is None else sysfs_path(*number, system)
    if sysfs is None:
        return None
    is_partition = (sysfs / "partition").exists()
    disk = sysfs.parent if is_partition else sysfs
    queue = disk / "queue"
    report = Disk(
        name=disk.name,
        model=_line(disk / "device" / "model") or None,
        transport=_transport(disk),
        scheduler=_scheduler(_line(queue / "scheduler")),
        partition_begin_bytes=_number(sysfs / "start", SECTOR) if is_partition else 0,
        temperature_celsius=_temperature(disk),
        write_cache=_line(queue / "write_cache") or None,
        zoned=_line(queue / "zoned") or None,
        logical_block_bytes=_number(queue / "logical_block_size", 1),
        physical_block_bytes=_number(queue / "physical_block_size", 1),
        io_bytes_max=_number(queue / "max_sectors_kb", 1 << 10),
        queue_requests=_number(queue / "nr_requests", 1),
        group_rates=limits_of_group(_device_number(disk)).disk,
    )
    unknown = sorted(name for name, value in asdict(report).items() if value is None)
    return replace(report, unknown=tuple(unknown))


def temperature_of(info: DeviceInfo, system: Path = Path("/sys")) -> float | None:
    """Return the temperature of the disk of a file or block device [°C]; None if unknown.

    >>> from uflip import open_device
    >>> temperature_of(open_device("null").info)
    """
    report = disk_below(info, system)
    return None if report is None else report.temperature_celsius


def _device_number(disk: Path) -> tuple[int, int] | None:
    major, _, minor = _line(disk / "dev").partition(":")
    return (int(major), int(minor)) if major.isdigit() and minor.isdigit() else None


def _transport(disk: Path) -> str | None:
    for part in disk.parts:
        for prefix, name in TRANSPORTS.items():
            if re.fullmatch(rf"{prefix}[\d-]+.*", part):
                return name
    return None


def _scheduler(line: str) -> str | None:
    """Return the name in brackets; a line without brackets contains the only one."""
    chosen = re.search(r"\[([\w-]+)\]", line)
    return chosen[1] if chosen else line or None


def _temperature(disk: Path) -> float | None:
    for pattern in ("device/hwmon*/temp1_input", "device/hwmon/hwmon*/temp1_input"):
        for path in sorted(disk.glob(pattern)):
            if (millidegrees := _number(path, 1)) is not None:
                return millidegrees / 1000
    return None


def virtual_disk_of(info: DeviceInfo) -> str | None:
    """Return what the disk of a device is in reality; None without evidence for a virtual one."""
    number = device_number(info)
    return None if number is None else virtual_disk_kind(*number)


def virtual_disk_kind(major: int, minor: int, system: Path = Path("/sys")) -> str | None:
    """Return what a virtual disk is in reality; None without evidence for a virtual one."""
    disk_path = sysfs_path(major, minor, system)
    if disk_path is None:
        return None
    disk = disk_path.parent if (disk_path / "partition").exists() else disk_path
    for prefix, kind in SOFTWARE.items():
        if disk.name.startswith(prefix) and disk.name[len(prefix) :].isdigit():
            return f"{disk.name} is {kind}"
    for part in disk_path.parts:
        for bus, provider in BUSES.items():
            if part.startswith(bus):
                return f"{disk.name} is a disk of {provider}"
    identification = " ".join(_line(disk / "device" / name) for name in ("vendor", "model")).lower()
    for word, provider in NAMES.items():
        if word in identification:
            return f"{disk.name} is a disk of {provider}"
    return None


def device_number(info: DeviceInfo) -> tuple[int, int] | None:
    """Return the number of the block device of a target, or of the one below its file system."""
    if not info.real:
        return None
    try:
        status = Path(parse_url(info.url).name).stat()
    except OSError:
        return None
    number = status.st_rdev if info.is_disk else status.st_dev
    return os.major(number), os.minor(number)


def sysfs_path(major: int, minor: int, system: Path = Path("/sys")) -> Path | None:
    """Return the path of a block device in sysfs; None without one."""
    try:
        return (system / "dev" / "block" / f"{major}:{minor}").resolve(strict=True)
    except OSError:
        return None


def _number(path: Path, unit: int) -> int | None:
    line = _line(path)
    return int(line) * unit if line.isdigit() else None


def _line(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


# Name of a rate in `io.max` -> its file in version 1.
RATES = {
    "rbps": "blkio.throttle.read_bps_device",
    "wbps": "blkio.throttle.write_bps_device",
    "riops": "blkio.throttle.read_iops_device",
    "wiops": "blkio.throttle.write_iops_device",
}

Number = tuple[int, int]


class GroupLimits(Struct, frozen=True):
    """Limits of a control group; None, or no entry, without a limit."""

    cpus: float | None = None  #: Processor time, in processors.
    disk: dict[str, int] = {}  #: `rbps`, `wbps` [bytes/s], `riops`, `wiops` [I/Os/s] of the disk.


def limits_of_group(disk: Number | None, process: Path = Path("/proc/self")) -> GroupLimits:
    """Read the limits of this process, and of its I/Os to a disk.

    `disk`: major and minor number of the disk; None for no disk. `process`: the process in procfs.

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
