"""A file gets its size, and whoever watches is told how far it is."""

from typing import Any

from uflip.data.device import DeviceInfo
from uflip.device.opened import Device
from uflip.device.opening import open_device
from uflip.session.events import FileBegins, FileProgress, OnEvent


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
