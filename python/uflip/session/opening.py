"""Before the first byte: what must not be written to is refused early, and a file gets its size."""

from typing import Any

from uflip import _native
from uflip.data.device import DeviceInfo
from uflip.device.opened import Device
from uflip.device.opening import open_device
from uflip.device.options import check_options
from uflip.device.url import parse_url
from uflip.errors import native_errors
from uflip.session.events import FileBegins, FileProgress, OnEvent


def check_before_all(
    url: str, *, size: int | None, buffered: bool, data: str, destroy: str | None
) -> None:
    """Refuse what must not be written to before anything else is found fault with.

    Raises
    ------
    UflipError
        As `open_device`, for options that do not fit the device, and targets that must not be lost.
    """
    target = parse_url(url)
    check_options(target, size, data, destroy, buffered=buffered)
    with native_errors():
        if target.kind == "file":
            _native.check_file(target.name, destroy)
        elif target.kind == "block":
            _native.check_block(target.name, destroy)


def open_watched(url: str, info: DeviceInfo, on_event: OnEvent, **options: Any) -> Device:
    """Open a device as `open_device` does, and tell how far a file is that is made or grows.

    Parameters
    ----------
    url : str
        The device.
    info : DeviceInfo
        From `inspect_device`, with the same options.
    on_event : callable
        Told about it.
    **options
        Of `open_device`.
    """
    missing = info.details.to_be_written_bytes
    if not missing:
        return open_device(url, **options)
    on_event(FileBegins(url, missing, missing == info.capacity_bytes))
    return open_device(
        url,
        on_progress=lambda done, total, _last: on_event(FileProgress(url, done, total)),
        **options,
    )
