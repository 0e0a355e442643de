"""Guard: refuses targets that must not be written to, before most modules are loaded.

The guard itself is native (crate `host`) and runs before every opening for writing. This module
calls it first, so that no other check, plan or import comes before.
"""

import os
from contextlib import suppress
from pathlib import Path

from uflip import _native
from uflip.device.options import COMPLETIONS, check_options
from uflip.device.url import parse_url
from uflip.errors import UsageError, native_errors
from uflip.units import format_size

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
) -> None:
    """Refuse a target that must not be written to, before any other check.

    Raises
    ------
    UflipError
        From `open_device`, for options that do not fit the device, and for protected targets.
    """
    target = parse_url(url)
    check_options(target, size, data, destroy, buffered=buffered, completion=completion)
    with native_errors():
        if target.kind == "file":
            _native.check_file(target.name, destroy)
            if completion == COMPLETIONS[-1]:
                _native.check_polled(target.name, buffered)
            check_free_space(target.name, size)
        elif target.kind == "block":
            _native.check_block(target.name, destroy)


def check_free_space(path: str, size: int | None) -> None:
    """Refuse a file that exceeds the free space of its file system.

    Raises
    ------
    UsageError
    """
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
    """Refuse a device without a device log.

    Raises
    ------
    UsageError
        If it is a real device.
    """
    if parse_url(device).kind != "sim":
        raise UsageError(
            "--inside needs a simulated device",
            where="--inside",
            got=device,
            allowed="sim:NAME",
            action="omit --inside: a real device does not report internal events",
        )
