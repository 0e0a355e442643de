"""What the verbs that write share: opening a device, with what it takes to make a file shown."""

from typing import Any

import click

from uflip.cli.progress import file_display
from uflip.run import Device, DeviceInfo, open_device
from uflip.units import format_size


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
        click.echo(f"{what} {url}: {format_size(missing)} to write ...", err=True)
    with file_display(url, quiet=quiet) as show:
        return open_device(url, on_progress=show, **options)
