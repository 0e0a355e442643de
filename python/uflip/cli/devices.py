"""`uflip devices`: list the devices of this machine that can be measured."""

import click

from uflip.cli.options import json_option
from uflip.cli.terminal import echo_json, echo_table
from uflip.data.device import KnownDevice
from uflip.device.catalogue import known_devices
from uflip.units import format_size

EPILOG = """\b
Any regular file can be measured too:
  uflip plan file:scratch.bin --size 1GiB --scale quick
"""


@click.command("devices", epilog=EPILOG)
@json_option
def command(as_json: bool) -> None:
    """List simulated devices, block devices, and the null device."""
    devices = known_devices()
    if as_json:
        echo_json(devices)
        return
    rows = [
        (
            device["url"],
            format_size(device["capacity_bytes"]) if "capacity_bytes" in device else "",
            device["description"],
            _erase_confirmation(device),
        )
        for device in devices
    ]
    echo_table(("device", "size", "description", "erase confirmation"), rows, left=4)


def _erase_confirmation(device: KnownDevice) -> str:
    """Return the erase confirmation, or the reason why the device cannot be erased."""
    if "token" not in device:
        return ""
    if device["in_use"]:
        return f"in use: {device['in_use']}"
    return f"--destroy '{device['token']}'"
