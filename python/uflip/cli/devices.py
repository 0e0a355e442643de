"""`uflip devices`: list the devices of this machine that can be measured."""

import textwrap
from collections.abc import Iterator

import click

from uflip.cli.options import json_option
from uflip.cli.terminal import echo, echo_json, echo_table
from uflip.data.device import KnownDevice
from uflip.device.catalogue import known_devices
from uflip.units import format_size

EPILOG = """\b
Any regular file can be measured too:
  uflip plan file:scratch.bin --size 1GiB --scale quick
"""
DESCRIPTION_WIDTH = 50


@click.command("devices", epilog=EPILOG)
@json_option
def command(as_json: bool) -> None:
    """List simulated devices, block devices, and the null device."""
    devices = known_devices()
    if as_json:
        echo_json(devices)
        return
    simulated = [row for device in devices if "token" not in device for row in _rows(device)]
    echo_table(("device", "size", "uflip verb", "description"), simulated, left=4)
    blocks = [
        (device["url"], _size(device), device["description"], _erase_confirmation(device))
        for device in devices
        if "token" in device
    ]
    if blocks:
        echo("")
        echo_table(("device", "size", "description", "erase confirmation"), blocks, left=4)


def _rows(device: KnownDevice) -> Iterator[tuple[str, ...]]:
    first, *others = textwrap.wrap(device["description"], DESCRIPTION_WIDTH)
    yield device["url"], _size(device), device.get("verb", "run"), first
    yield from (("", "", "", line) for line in others)


def _size(device: KnownDevice) -> str:
    return format_size(device["capacity_bytes"]) if "capacity_bytes" in device else ""


def _erase_confirmation(device: KnownDevice) -> str:
    """Return the erase confirmation, or the reason why the device cannot be erased."""
    if device["in_use"]:
        return f"in use: {device['in_use']}"
    return f"--destroy '{device['token']}'"
