"""`uflip info`: print the properties of a device before any I/O; touches nothing."""

import json
from dataclasses import asdict
from typing import Any

import click

from uflip import _native
from uflip.benchmark import describe_used, wear_of
from uflip.cli.options import add_options, device_argument, json_option
from uflip.cli.terminal import echo, echo_json, echo_pairs, echo_table
from uflip.data.counters import DriveCounters
from uflip.data.device import DeviceInfo
from uflip.data.document import Table, plain
from uflip.device.catalogue import inspect_device, report_block
from uflip.device.counters import CounterReader
from uflip.device.power import PowerState, power_sources
from uflip.device.url import SNAPSHOT, DeviceUrl, parse_url
from uflip.errors import UsageError
from uflip.escape import escape_line
from uflip.microbench import micro_benchmarks_for
from uflip.options import BUFFERED, SIZE
from uflip.profiles import ConstantSource, profile_names, profile_sources
from uflip.report.drive_counters import counters_tables
from uflip.units import format_duration_ns, format_size

EPILOG = """\b
Examples:
  uflip info sim:mtron --sources
  uflip info file:scratch.bin --size 1GiB
  uflip info /dev/nvme0n1 --json
"""


@click.command("info", epilog=EPILOG)
@device_argument
@add_options(SIZE, BUFFERED)
@click.option(
    "--sources",
    is_flag=True,
    help="For a simulated device: print the source of each constant of its profile.",
)
@json_option
def command(device: str, size: int | None, buffered: bool, sources: bool, as_json: bool) -> None:
    """Print the properties of DEVICE: identity, size, sector, clock, wear, counters, and the
    micro-benchmarks that it supports. Touches nothing.

    The counters are those that the drive itself reports: bytes written by the host and to flash,
    temperature, available spare, used endurance. Reading them needs root. A simulated device lists
    the names of its own.
    """
    if sources:
        _print_sources(device, as_json)
        return
    info = inspect_device(device, size=size, buffered=buffered, any_interface=True)
    document = plain(info)
    if info.is_disk:
        report = report_block(parse_url(device).name)
        # A device that is in use gets no token that could be pasted.
        document |= report if not report["in_use"] else {"in_use": report["in_use"]}
    if info.real:
        wear = wear_of(info)
        document["wear"] = plain(wear) if as_json else describe_used(wear)
        document |= _power(info, as_json=as_json)
    counters = _counters(info, document) if info.real or info.simulated else None
    if info.zoned:
        # The others write at random, or overwrite data.
        document["micro_benchmarks"] = [*micro_benchmarks_for(info.addresses, "zones")]
    else:
        document["micro_benchmarks"] = [*micro_benchmarks_for(info.addresses)]
        suites = ("today", "iq", *(("streams",) if info.write_streams > 1 else ()), "inside")
        for suite in suites:
            if names := [*micro_benchmarks_for(info.addresses, suite)]:
                document[f"micro_benchmarks_of_{suite}"] = names
    if as_json:
        if counters is not None:
            document["counters"] = plain(counters)
        echo_json(document)
    else:
        _echo_tree(document, "")
        for table in [] if counters is None else counters_tables(counters):
            echo()
            echo(table.text())


def _counters(info: DeviceInfo, document: Table) -> DriveCounters | None:
    """Add the counters to the document; return those that are printed as tables."""
    if info.simulated:
        if info.addresses == "sectors":
            document["counters"] = json.loads(_native.registry_json())["counters"]
        return None
    counters = CounterReader(info).read()
    drive = counters.drive or "the drive"
    document["counters"] = f"unknown: {counters.problem}" if counters.problem else f"of {drive}:"
    return counters


def _power(info: DeviceInfo, *, as_json: bool) -> Table:
    """Return the power meters of this machine, and the power states that the drive declares."""
    meters = {each.name: each.problem or each.measures for each in power_sources()}
    meters["csv:FILE"] = "the log of another meter"
    states = CounterReader(info).power_states()
    if as_json:
        return {"power_meters": meters, "power_states": [asdict(each) for each in states]}
    document: Table = {"power_meters": meters}
    if states:
        document["power_states"] = {str(each.number): _state_text(each) for each in states}
    return document


def _state_text(state: PowerState) -> str:
    powers = (("maximum", state.max_watts), ("active", state.active_watts),
              ("idle", state.idle_watts))  # fmt: skip
    texts = [f"{name} {watts:.4g} W" for name, watts in powers if watts is not None]
    if not state.operational:
        texts.append(f"not operational, {state.exit_us} µs to leave it")
    return ", ".join(texts) or "no power declared"


def _print_sources(device: str, as_json: bool) -> None:
    """Print every constant of a profile with its value and its source."""
    info = inspect_device(device, any_interface=True)
    profile = info.details.profile
    target = parse_url(device)
    if profile is None or target.name.endswith(SNAPSHOT):
        raise UsageError(
            "--sources needs a profile",
            where=f"info {device} --sources",
            got=f"a {info.kind} device" if profile is None else "a snapshot",
            allowed=f"sim:NAME, with a name of {', '.join(profile_names())}; or sim:PATH.toml",
            action="name the profile",
        )
    sources = profile_sources(target.name)
    values = {key: value for table in profile.values() if isinstance(table, dict)
              for key, value in table.items()}  # fmt: skip
    rows = [
        (key, values[key], _constant_source(key, target, sources.get(key)))
        for key in values
        if key in sources or key in dict(target.overrides)
    ]
    if as_json:
        echo_json([{"key": key, "value": value, **asdict(source)} for key, value, source in rows])
        return
    cells = [
        (key, _plain(value), source.kind, ", ".join(source.values), source.detail)
        for key, value, source in rows
    ]
    echo_table(("key", "value", "source", "published values", "detail"), cells, left=5)


def _constant_source(key: str, target: DeviceUrl, source: ConstantSource | None) -> ConstantSource:
    """Return the source of a constant; an override in the URL is its own source."""
    if source is None or key in dict(target.overrides):
        return ConstantSource(kind="override", detail=target.text, values=())
    return source


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _echo_tree(tree: Table, indent: str) -> None:
    """Print values first, then nested tables with an indent."""
    branches = {key: value for key, value in tree.items() if isinstance(value, dict) and value}
    leaves = {key: value for key, value in tree.items() if not isinstance(value, dict)}
    echo_pairs(((key, _format(key, value)) for key, value in leaves.items()), indent)
    for key, branch in branches.items():
        echo(f"{indent}{escape_line(key)}")
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
