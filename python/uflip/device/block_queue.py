"""The disk below a target, as the kernel describes it: its queue, and its effects on I/Os.

    file ─▶ file system ─▶ partition ─▶ queue of the disk ─▶ disk
                           begins at    scheduler, splits    cache, blocks, temperature
                                        rates of a group

**Source** Linux, `Documentation/ABI/stable/sysfs-block`; `hwmon` for temperatures.
**Faithful** A file is traced to the disk that its file system is on, a partition to its disk.
**Simplified** For a mapped device (LVM, RAID, encryption) the queue of the mapping is reported,
which is the one that takes the I/Os. Of several temperatures the first, the composite one of NVMe.
**Ambiguous** A value that cannot be read is `unknown`, and gives no warning: it may not exist.
"""

import re
from pathlib import Path

from msgspec.structs import asdict, replace

from uflip.data.device import DeviceInfo
from uflip.data.manifest import Disk
from uflip.device.control_group import limits_of_group
from uflip.device.virtual import device_number, sysfs_path

SECTOR = 512
"""Unit of the begin of a partition in sysfs [bytes]."""
# Part of the device path in sysfs -> transport of the disk.
TRANSPORTS = {"usb": "usb", "nvme": "nvme", "ata": "ata", "mmc": "mmc", "virtio": "virtio"}


def disk_below(info: DeviceInfo, system: Path = Path("/sys")) -> Disk | None:
    """Describe the disk of a file or block device; None without one, or if nothing is known.

    Parameters
    ----------
    info : DeviceInfo
        The device, open or inspected.
    system : Path
        The sysfs mount.

    Returns
    -------
    Disk or None
        I/Os longer than its `io_bytes_max` are split; `unknown` lists missing values.
    """
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

    Examples
    --------
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


def _number(path: Path, unit: int) -> int | None:
    line = _line(path)
    return int(line) * unit if line.isdigit() else None


def _line(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
