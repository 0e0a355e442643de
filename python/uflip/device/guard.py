"""Guard: refuses options and targets before any device is touched, and most modules are loaded.

The guard itself is native (crate `host`) and runs before every opening for writing. This module
calls it first, so that no other check, plan or import comes before.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from uflip import _native
from uflip.device.url import DeviceUrl, parse_url
from uflip.errors import UsageError, native_errors, unknown_name
from uflip.units import format_size, parse_size

DATA = ("random", "zeros")
COMPLETIONS = ("auto", "interrupt", "polled")
"""How completions of queued I/Os are detected (`crates/host/src/completions.rs`)."""
IO_TIMEOUT_NS = 60 * 10**9
"""Default time limit of an I/O on a real device [ns]: longer than any working device takes, and
than the kernel's own timeout (30 s) before it gives up or resets the device."""
# All sector sizes are multiples of this [bytes].
SMALLEST_SECTOR = 512


def check_options(
    target: DeviceUrl,
    size: str | int | None = None,
    data: str = DATA[0],
    destroy: str | None = None,
    *,
    buffered: bool = False,
    completion: str | None = None,
    power: str | None = None,
    io_timeout_ns: int = IO_TIMEOUT_NS,
) -> int | None:
    """Check options before any device is touched; return the size [bytes]."""
    if data not in DATA:
        raise unknown_name("data", data, DATA, where="--data")
    if completion is not None and completion not in COMPLETIONS:
        raise unknown_name("completion", completion, COMPLETIONS, where="--completion")
    _check_kinds(target, data, buffered, completion, io_timeout_ns, power=power)
    if power is not None:
        # Imported here: a refusal does not wait for msgspec.
        from uflip.device.power import check_power

        check_power(power)
    # The name of the file itself, followed by its content.
    names_file = target.kind == "file" and (destroy or "").startswith(target.name)
    is_own_file = names_file and (destroy or "").removeprefix(target.name)[:1] in ("", "+")
    if destroy is not None and target.kind not in ("block", "nvme", "nbd") and not is_own_file:
        raise UsageError(
            "--destroy applies to block devices, to exports, and to a file by its own name",
            where="--destroy",
            got=f"{target.text} with --destroy {destroy}",
            action="omit --destroy",
        )
    if size is None:
        return None
    if target.kind not in ("file", "null"):
        raise UsageError(
            "--size applies only to files",
            where="--size",
            got=f"{target.text} with --size {size}",
            allowed="file:PATH, null",
            action="omit --size: the device has a fixed size",
        )
    size_bytes = parse_size(size, where="--size")
    if size_bytes == 0 or size_bytes % SMALLEST_SECTOR:
        raise UsageError(
            "The size is not a whole number of sectors",
            where="--size",
            got=f"{size} ({size_bytes} bytes)",
            allowed=f"multiples of {SMALLEST_SECTOR} bytes, as in 64MiB, 1GiB",
            action="give another --size",
        )
    return size_bytes


def _check_kinds(
    target: DeviceUrl,
    data: str,
    buffered: bool,
    completion: str | None,
    io_timeout_ns: int,
    *,
    power: str | None,
) -> None:
    """Refuse options that have no effect on a device of this kind."""
    files = ("file", "block")
    stored = (*files, "nvme")
    forms = {
        "file": "file:PATH",
        "block": "/dev/NAME",
        "nvme": "nvme:/dev/NAME",
        "nbd": "nbd:ADDRESS",
    }
    for option, is_set, kinds, why in (
        ("--data", data != DATA[0], stored, "nothing is stored on this device"),
        ("--buffered", buffered, files, "this device has no page cache"),
        ("--completion", completion is not None, stored, "the kernel has no queue for this device"),
        ("--power", power is not None, (*stored, "nbd"), "its energy is computed, see `[energy]`"),
        ("--io-timeout", io_timeout_ns != IO_TIMEOUT_NS, (*stored, "nbd"), "its I/Os are computed"),
    ):
        if is_set and target.kind not in kinds:
            words = (
                "files, block devices and exports" if "nbd" in kinds else "files and block devices"
            )
            raise UsageError(
                f"{option} applies only to {words}",
                where=option,
                got=f"{target.text} with {option}",
                allowed=", ".join(forms[kind] for kind in kinds),
                action=f"omit {option}: {why}",
            )


# Unit of `st_blocks`, on every file system.
BLOCK_BYTES = 512


def check_target_allowed(
    url: str,
    *,
    size: int | None,
    buffered: bool,
    data: str,
    destroy: str | None,
    completion: str | None = None,
    power: str | None = None,
) -> None:
    """Refuse a target that must not be written to, before any other check."""
    target = parse_url(url)
    check_options(
        target, size, data, destroy, buffered=buffered, completion=completion, power=power
    )
    with native_errors():
        if target.kind == "file":
            _native.check_file(target.name, destroy)
            if completion == COMPLETIONS[-1]:
                _native.check_polled(target.name, buffered)
            check_free_space(target.name, size)
        elif target.kind in ("block", "nvme"):
            _native.check_block(target.name, destroy)


def check_free_space(path: str, size: int | None) -> None:
    """Refuse a file that exceeds the free space of its file system."""
    if size is None:
        return
    with suppress(OSError):
        real = Path(os.path.realpath(path))
        allocated = real.stat().st_blocks * BLOCK_BYTES if real.exists() else 0
        file_system = os.statvfs(real.parent)
        free = file_system.f_frsize * (
            file_system.f_bavail if os.geteuid() else file_system.f_bfree
        )
        if size > allocated + free:
            raise UsageError(
                "The file system has not enough free space",
                where="--size",
                got=f"{format_size(size)} for {path}",
                allowed=f"up to {format_size(allocated + free)}",
                action="give a smaller --size, or name a file elsewhere",
            )


def check_simulated(device: str) -> None:
    """Refuse a device without a device log."""
    if parse_url(device).kind != "sim":
        raise UsageError(
            "--inside needs a simulated device",
            where="--inside",
            got=device,
            allowed="sim:NAME",
            action="omit --inside: a real device does not report internal events",
        )
