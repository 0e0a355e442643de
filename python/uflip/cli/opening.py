"""What the verbs that write share: refusing early, and opening with what that takes shown."""

from typing import Any

from uflip import _native
from uflip.cli.progress import file_display
from uflip.cli.terminal import echo
from uflip.device_url import parse_url
from uflip.errors import native_errors
from uflip.run import Device, DeviceInfo, check_options, open_device
from uflip.units import format_size


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


def open_shown(url: str, info: DeviceInfo, *, quiet: bool, **options: Any) -> Device:
    """Open a device as `open_device` does, and show how far a file is that is made or grows.

    Parameters
    ----------
    url : str
        The device.
    info : DeviceInfo
        From `inspect_device`, with the same options.
    quiet : bool
        Show nothing.
    **options
        Of `open_device`.
    """
    missing = info["details"].get("to_be_written_bytes")
    if not missing:
        return open_device(url, **options)
    if not quiet:
        whole = missing == info["capacity_bytes"]
        what = "creating" if whole else "enlarging"
        echo(f"{what} {url}: {format_size(missing)} to write ...", err=True)
    with file_display(url, quiet=quiet) as show:
        return open_device(url, on_progress=show, **options)
