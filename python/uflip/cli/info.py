"""`uflip info`: what is known about a device before any I/O; touches nothing."""

from typing import Any

import click

from uflip.catalogue import inspect_device
from uflip.cli.common import (
    buffered_option,
    device_argument,
    echo_pairs,
    json_option,
    size_option,
)
from uflip.cli.terminal import echo, echo_json, in_line
from uflip.methodology import describe_used, wear_of
from uflip.units import format_duration_ns, format_size


@click.command("info")
@device_argument
@size_option
@buffered_option
@json_option
def command(device: str, size: int | None, buffered: bool, as_json: bool) -> None:
    """Say what is known about DEVICE: identity, size, sector, clock, wear. Touches nothing."""
    info = inspect_device(device, size=size, buffered=buffered, any_interface=True)
    real = info["kind"] in ("file", "block")
    if as_json:
        echo_json(info | ({"wear": wear_of(info).as_dict()} if real else {}))
        return
    _echo_tree(info | ({"wear": describe_used(wear_of(info))} if real else {}), "")


def _echo_tree(tree: dict[str, Any], indent: str) -> None:
    """Print what has a value, then what has names of its own, indented."""
    branches = {key: value for key, value in tree.items() if isinstance(value, dict) and value}
    leaves = {key: value for key, value in tree.items() if not isinstance(value, dict)}
    echo_pairs(((key, _format(key, value)) for key, value in leaves.items()), indent)
    for key, branch in branches.items():
        echo(f"{indent}{in_line(key)}")
        _echo_tree(branch, indent + "  ")


def _format(key: str, value: Any) -> str:
    """Print a value; the last word of its key is the unit."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and key.endswith("_bytes"):
        size = format_size(value)
        return size if size.endswith(" B") else f"{size} ({value} bytes)"
    if isinstance(value, int) and key.endswith("_ns"):
        return format_duration_ns(value)
    if isinstance(value, list):
        return ", ".join(_format(key, inner) for inner in value)
    return str(value)
