"""Opening a device with progress events: a file gets its size, a simulated device its state."""

from typing import Any

from uflip.data.device import DeviceInfo
from uflip.device.handle import Device
from uflip.device.opener import CreationProgress, Report, open_device
from uflip.device.url import parse_url
from uflip.session.events import (
    DeviceBegins,
    DeviceProgress,
    FileBegins,
    FileProgress,
    OnEvent,
)


def open_watched(url: str, info: DeviceInfo, on_event: OnEvent, **options: Any) -> Device:
    """Open a device like `open_device`, and report progress if it takes long.

    Parameters
    ----------
    url : str
        The device.
    info : DeviceInfo
        From `inspect_device`, with the same options.
    on_event : callable
        Receives the events.
    **options
        For `open_device`.
    """
    if parse_url(url).kind == "sim":
        return open_device(url, on_progress=CreationProgress(_reporting(url, on_event)), **options)
    missing = info.details.to_be_written_bytes
    if not missing:
        return open_device(url, **options)
    on_event(FileBegins(url, missing, missing == info.capacity_bytes))
    return open_device(
        url,
        on_progress=lambda done, total, _last: on_event(FileProgress(url, done, total)),
        **options,
    )


def _reporting(url: str, on_event: OnEvent) -> Report:
    """Convert the progress of creating a simulated device into events."""
    begun = False

    def report(done: int, total: int, left_ns: int) -> None:
        nonlocal begun
        if not begun:
            on_event(DeviceBegins(url, left_ns))
            begun = True
        on_event(DeviceProgress(url, done, total, left_ns))

    return report
