"""Trims over a range of a device, for `uflip deallocate`."""

from uflip.data.device import DeviceInfo
from uflip.data.spec import Basic
from uflip.errors import UsageError
from uflip.units import format_size

MAX_TRIM_BYTES = 128 << 20
"""Length limit of a trim, as of any I/O [bytes]."""


def split_into_trims(info: DeviceInfo, begin: int, size: int | None) -> list[Basic]:
    """Split a range into trims of one size, and a shorter one for the remainder.

    Parameters
    ----------
    info : DeviceInfo
        The device.
    begin : int
        Begin of the range [bytes].
    size : int or None
        Length of the range [bytes]; None: up to the end of the device.

    Raises
    ------
    UsageError
        If the device cannot deallocate, or has no such range.

    Examples
    --------
    >>> from uflip import inspect_device
    >>> trims = split_into_trims(inspect_device("sim:demo"), 0, 300 << 20)
    >>> [(trim.io_bytes, trim.ios) for trim in trims]
    [(134217728, 2), (46137344, 1)]
    """
    end = info.capacity_bytes if size is None else begin + size
    if info.zoned:
        raise UsageError(
            "The device deallocates by whole zones: it has no command for less",
            where="DEVICE",
            got=info.url,
            allowed="a device without zones",
            action="reset its zones: `uflip zones DEVICE --reset ZONES`",
        )
    if not info.details.deallocates:
        raise UsageError(
            "The device has no command to deallocate",
            where="DEVICE",
            got=info.url,
            allowed="a disk with discard_max_bytes above 0, a file, or a simulated device",
            action="choose another device",
        )
    if begin >= end or end > info.capacity_bytes or (begin | end) % info.sector_bytes:
        raise UsageError(
            "This is not a sector range of the device",
            where="--target-offset, --target-size",
            got=f"bytes {begin} to {end}",
            allowed=f"whole sectors of {info.sector_bytes} bytes, up to byte "
            f"{info.capacity_bytes} ({format_size(info.capacity_bytes)})",
            action="choose another range",
        )
    full_trims = (end - begin) // MAX_TRIM_BYTES
    pieces = [(begin, MAX_TRIM_BYTES, full_trims)] if full_trims else []
    if remainder := end - begin - full_trims * MAX_TRIM_BYTES:
        pieces.append((end - remainder, remainder, 1))
    return [
        Basic(
            "trim", "sequential", io_size=each, target_offset=at, target_size=each * count,
            io_count=count, io_ignore=0,
        )
        for at, each, count in pieces
    ]  # fmt: skip
