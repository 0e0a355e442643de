"""Detection of virtual disks: what the kernel reports about a device number.

**Source** Linux: `/sys/dev/block/MAJOR:MINOR` leads to the position of a disk in the device tree,
which contains its bus; `device/vendor` and `device/model` are the disk's own identification.
**Faithful** A partition is judged by its disk.
**Simplified** A mapped device (LVM, RAID, encryption) gives no result: the disks behind it may be
real.
**Ambiguous** A file system on a virtual machine whose disk is passed through is on a real disk: the
disk counts, not the machine.
"""

import os
from pathlib import Path

from uflip.data.device import DeviceInfo
from uflip.device.url import parse_url

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


def virtual_disk_kind(major: int, minor: int, system: Path = Path("/sys")) -> str | None:
    """Return what a virtual disk is in reality; None without evidence for a virtual one.

    Parameters
    ----------
    major, minor : int
        Number of a block device, or of the one below a file system.
    system : Path
        The sysfs mount.
    """
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
    identification = " ".join(_text(disk / "device" / name) for name in ("vendor", "model")).lower()
    for word, provider in NAMES.items():
        if word in identification:
            return f"{disk.name} is a disk of {provider}"
    return None


def virtual_disk_of(info: DeviceInfo, system: Path = Path("/sys")) -> str | None:
    """Return what the disk of a device is in reality; None without evidence for a virtual one.

    Parameters
    ----------
    info : DeviceInfo
        The device, open or inspected.
    system : Path
        The sysfs mount.
    """
    number = device_number(info)
    return None if number is None else virtual_disk_kind(*number, system)


def device_number(info: DeviceInfo) -> tuple[int, int] | None:
    """Return the number of the block device of a target, or of the one below its file system."""
    if not info.real:
        return None
    try:
        status = Path(parse_url(info.url).name).stat()
    except OSError:
        return None
    number = status.st_rdev if info.kind == "block" else status.st_dev
    return os.major(number), os.minor(number)


def sysfs_path(major: int, minor: int, system: Path = Path("/sys")) -> Path | None:
    """Return the path of a block device in sysfs; None without one."""
    try:
        return (system / "dev" / "block" / f"{major}:{minor}").resolve(strict=True)
    except OSError:
        return None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
