"""`uflip zones`: list the zones of a device, and reset, finish, open or close some."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from uflip.cli.options import (
    Decorator,
    check_saving,
    check_target,
    device_argument,
    force_option,
    json_option,
    open_options,
    save_device,
    save_option,
)
from uflip.cli.terminal import echo_table
from uflip.errors import UsageError

if TYPE_CHECKING:
    from uflip.data.device import DeviceInfo, Zone, ZoneReport

EPILOG = """\b
Examples:
  uflip zones sim:zns
  uflip zones /dev/nvme1n2 --all
  uflip zones /dev/nvme1n2 --reset 3 --destroy "TOKEN"
  uflip zones /dev/nvme1n2 --reset 0-127 --destroy "TOKEN" --dry-run
  uflip zones sim:zns --open 0 --finish 1,2 --save opened.snapshot

\b
Resetting a zone loses its data. blkzone and nvme-cli do the same. Zones and their costs are
explained in docs/explanation/zones.md
"""
COMMANDS = ("reset", "finish", "open", "close")
"""In the order in which they are carried out."""


class ZoneCommand(NamedTuple):
    """A command for a zone."""

    command: str
    zone: int


def _zones_option(command: str, effect: str) -> Decorator:
    return click.option(
        f"--{command}",
        metavar="ZONES",
        help=f"{effect}: numbers and ranges, as in 0,4-7; or all.",
    )


@click.command("zones", epilog=EPILOG)
@device_argument
@_zones_option("reset", "Empty zones")
@_zones_option("finish", "Mark zones as full")
@_zones_option("open", "Keep zones open")
@_zones_option("close", "Close zones")
@click.option("--all", "everything", is_flag=True, help="List empty zones as well.")
@save_option
@force_option
@open_options
@click.option("--dry-run", is_flag=True, help="Print what would be done; touch nothing.")
@json_option
def command(
    *,
    device: str,
    reset: str | None,
    finish: str | None,
    open: str | None,  # noqa: A002 - the name of the option
    close: str | None,
    everything: bool,
    save: Path | None,
    force: bool,
    dry_run: bool,
    as_json: bool,
    **opening: Any,
) -> None:
    """List the zones of DEVICE with write pointers and states; change their states.

    Without a command nothing is changed. Commands are carried out in the order reset, finish, open,
    close, zone by zone, and each is timed.
    """
    requests = dict(zip(COMMANDS, (reset, finish, open, close), strict=True))
    changes = any(zones is not None for zones in requests.values())
    check_target(device, opening, write=changes and not dry_run)
    from uflip.cli.terminal import echo, echo_json
    from uflip.device.catalogue import inspect_device
    from uflip.device.opener import open_device

    info = inspect_device(device, size=opening["size"], buffered=opening["buffered"])
    commands = _zone_commands(info, requests)
    check_saving(info, save, force=force)
    with open_device(device, writable=changes and not dry_run, **opening) as opened:
        took_ns = [] if dry_run else [opened.manage_zone(*each) for each in commands]
        report = opened.zones()
        if save is not None:
            save_device(opened, save, force=force)
    if as_json:
        echo_json(_document(device, report, commands, took_ns))
    else:
        for line in _summary_lines(commands, took_ns, dry_run=dry_run):
            echo(line)
        _echo_zones(report, everything=everything)


def _zone_commands(info: "DeviceInfo", requests: dict[str, str | None]) -> list[ZoneCommand]:
    """Return the requested commands, one for each zone."""
    limits = info.details.zones
    if limits is None:
        raise UsageError(
            "The device has no zones",
            where="DEVICE",
            got=info.url,
            allowed="a simulated device with zones, like sim:zns, a zoned disk or NVMe namespace",
            action="choose another device; `uflip info DEVICE` prints the properties of one",
        )
    return [
        ZoneCommand(command, zone)
        for command, zones in requests.items()
        if zones is not None
        for zone in _numbers(zones, f"--{command}", limits.zone_count)
    ]


def _numbers(text: str, option: str, count: int) -> list[int]:
    """Parse numbers and ranges of zones; return them in order, each once."""
    if text == "all":
        return [*range(count)]
    numbers: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        ends = [first, last] if dash else [first]
        # Longer numbers cannot be zones, and take time to parse.
        if not all(end.isascii() and end.isdigit() and len(end) < 20 for end in ends):
            raise _no_zones(text, option, count)
        begin, end = int(ends[0]), int(ends[-1])
        if begin > end or end >= count:
            raise _no_zones(text, option, count)
        numbers.update(range(begin, end + 1))
    return sorted(numbers)


def _no_zones(text: str, option: str, count: int) -> UsageError:
    return UsageError(
        "The device has no such zones",
        where=option,
        got=text,
        allowed=f"numbers from 0 to {count - 1}, ranges of them as in 4-7, or all",
        action="name zones that the device has",
    )


def _document(
    device: str, report: "ZoneReport", commands: list[ZoneCommand], took_ns: list[int]
) -> dict[str, object]:
    from uflip.device.handle import zone_rows

    rows: list[dict[str, object]] = [dict(one._asdict()) for one in commands]
    for one, response_ns in zip(rows, took_ns, strict=False):
        one["response_time_ns"] = response_ns
    return {
        "device": device,
        "zone_bytes": report.zone_bytes,
        "max_open_zones": report.max_open_zones,
        "max_active_zones": report.max_active_zones,
        "commands": rows,
        "zones": zone_rows(report),
    }


def _summary_lines(commands: list[ZoneCommand], took_ns: list[int], *, dry_run: bool) -> list[str]:
    """Return for each command its number of zones, and its time."""
    from uflip.units import format_duration_ns

    lines = []
    for command in dict.fromkeys(one.command for one in commands):
        count = sum(one.command == command for one in commands)
        zones = f"{count} zone{'s' * (count != 1)}"
        if dry_run:
            lines.append(f"{command}: {zones}, not carried out")
            continue
        times_ns = [ns for one, ns in zip(commands, took_ns, strict=True) if one.command == command]
        lines.append(
            f"{command}: {zones} in {format_duration_ns(sum(times_ns))}, the longest "
            f"{format_duration_ns(max(times_ns))}"
        )
    return lines


def _limit(most: int) -> str:
    return str(most) if most else "no limit"


def _echo_zones(report: "ZoneReport", *, everything: bool) -> None:
    """Print the properties of all zones, and a table of the zones that are not empty."""
    from uflip.cli.terminal import echo_pairs
    from uflip.units import format_size

    states = ", ".join(f"{count} {_in_words(state)}" for state, count in report.states.items())
    resets = report.resets
    echo_pairs(
        [
            ("zones", f"{len(report.zones)} of {format_size(report.zone_bytes)}: {states}"),
            ("open at most", _limit(report.max_open_zones)),
            ("active at most", _limit(report.max_active_zones)),
            ("resets", "" if resets is None else str(resets)),
        ]
    )
    listed = [
        (number, zone)
        for number, zone in enumerate(report.zones)
        if everything or zone.state != "empty"
    ]
    if listed:
        head = ("zone", "state", "begins at", "capacity", "written", "resets")
        echo_table(head, [_row(number, zone) for number, zone in listed], left=2)


def _row(number: int, zone: "Zone") -> tuple[str, ...]:
    from uflip.units import format_size

    return (
        str(number),
        _in_words(zone.state),
        format_size(zone.start_bytes),
        format_size(zone.capacity_bytes),
        format_size(zone.written_bytes),
        "" if zone.resets is None else str(zone.resets),
    )


def _in_words(state: str) -> str:
    return state.replace("_", " ").replace("read only", "read-only")
