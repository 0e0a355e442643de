"""Available devices, their properties before use, and profiles of simulated ones as text.

Inspection opens nothing for writing, and creates or extends nothing.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from textwrap import wrap
from typing import Any

from msgspec.structs import replace

from uflip import _native
from uflip.data.device import BlockReport, DeviceDetails, DeviceInfo, KnownDevice, read_info
from uflip.device.disk import virtual_disk_of
from uflip.device.guard import SMALLEST_SECTOR, check_options
from uflip.device.handle import Device
from uflip.device.opener import check_medium, inspect_sim, open_null
from uflip.device.url import SNAPSHOT, DeviceUrl, parse_url, with_overrides
from uflip.errors import DeviceError, UsageError, native_errors
from uflip.profiles import ConstantSource, profile_names, profile_sources, read_profile
from uflip.profiles.keys import Key, known_keys

POWER_LOSS = {"power_loss_protection": "false", "spare_read_bytes": "16"}
"""Overrides that add `[power_loss]` to a profile without it."""
SILENT_ERRORS = "silent_errors_per_million"  # an optional key of that table


def inspect_device(
    url: str,
    *,
    size: str | int | None = None,
    buffered: bool = False,
    any_interface: bool = False,
) -> DeviceInfo:
    """Describe a device without opening it for writing, and without creating or growing anything.

    Parameters
    ----------
    url : str
        One of the forms in `uflip.device.url`.
    size : str or int, optional
        As for `open_device`: a file is described with this size.
    buffered : bool
        As for `open_device`: direct I/O may need a coarser alignment.
    any_interface : bool
        Also describe open-channel devices, and drives without a medium; without it they are an
        error, as for `open_device`.

    Returns
    -------
    DeviceInfo
        Capacity and sector [bytes], capabilities (`real`, `has_state`, ...), and its details.

    Raises
    ------
    UsageError
        For an unknown form, or options that do not fit it.
    DeviceError
        If the device does not exist, or cannot be inspected.

    Examples
    --------
    >>> inspect_device("sim:demo").sector_bytes
    512
    """
    target = parse_url(url)
    size_bytes = check_options(target, size, buffered=buffered)
    if target.kind == "sim":
        return inspect_sim(target, any_interface=any_interface)
    if target.kind == "null":
        return Device(open_null(size_bytes), url).info
    if target.kind == "file":
        return _inspect_file(target, size_bytes, buffered)
    with native_errors():
        if target.kind == "nbd":
            info = read_info(_native.Device.nbd(target.name, writable=False).info_json())
        elif target.kind == "nvme":
            info = read_info(_native.inspect_nvme(target.name))
        else:
            info = read_info(_native.inspect_block(target.name))
    if not any_interface:
        check_medium(info)
    return info


def _inspect_file(target: DeviceUrl, size_bytes: int | None, buffered: bool) -> DeviceInfo:
    path = Path(target.name)
    try:
        with native_errors():
            info = read_info(_native.inspect_file(target.name, buffered))
    except DeviceError:
        # A file with a given size may be missing; anything else stays an error.
        if size_bytes is None or path.exists() or path.is_symlink():
            raise
        info = _describe_new_file(target)
    aligned = info.details.direct_io_alignment_bytes or SMALLEST_SECTOR
    sector = SMALLEST_SECTOR if buffered else aligned
    requested_bytes = info.capacity_bytes if size_bytes is None else size_bytes
    capacity = requested_bytes // sector * sector
    if capacity == 0:
        raise DeviceError(
            "The file is shorter than one sector",
            where=target.text,
            got=f"{requested_bytes} bytes",
            allowed=f"{sector} bytes or more",
            action="give --size to let it grow",
        )
    grows = capacity - info.capacity_bytes
    details = replace(info.details, to_be_written_bytes=grows if grows > 0 else None)
    return replace(info, sector_bytes=sector, capacity_bytes=capacity, details=details)


def _describe_new_file(target: DeviceUrl) -> DeviceInfo:
    """Describe a file that `open_device` would create."""
    folder = Path(target.name).absolute().parent
    if not folder.is_dir():
        raise DeviceError(
            "The folder of the file does not exist",
            where=target.text,
            got=str(folder),
            allowed="a path in an existing folder",
            action="create the folder first",
        )
    sector = _sector_bytes_below(folder)
    return DeviceInfo(
        url=target.text,
        kind="file",
        simulated=False,
        model="file",
        capacity_bytes=0,
        sector_bytes=sector,
        clock="monotonic",
        details=DeviceDetails(direct_io_alignment_bytes=sector),
    )


def _sector_bytes_below(folder: Path) -> int:
    """Return the logical block size of the disk that a folder is on."""
    number = folder.stat().st_dev
    device = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    for queue in (device / "queue", device / ".." / "queue"):  # a partition: its disk has the queue
        try:
            return int((queue / "logical_block_size").read_text())
        except (OSError, ValueError):
            continue
    return SMALLEST_SECTOR


def with_power_loss(device: str, *, protection: bool = False) -> str:
    """Return the name of a simulated device with power loss; adds the table to its profile.

    Raises UsageError for a device that is not simulated, or cannot have the table.

    Examples
    --------
    >>> with_power_loss("sim:demo")
    'sim:demo?power_loss_protection=false&spare_read_bytes=16'
    """
    target = parse_url(device)
    if target.kind != "sim":
        raise UsageError(
            "Only the power of a simulated device can be cut",
            where="DEVICE",
            got=device,
            allowed="sim:NAME",
            action="name a simulated device; `uflip devices` lists them",
        )
    overrides = dict(target.overrides)
    table = POWER_LOSS | {"power_loss_protection": str(protection).lower()}
    if overrides.keys() & {*table, SILENT_ERRORS}:
        missing = {key: value for key, value in table.items() if key not in overrides}
        return with_overrides(target.text, missing)
    profile = inspect_device(device, any_interface=True).details.profile or {}
    if "power_loss" in profile:
        return device
    named = with_overrides(target.text, table)
    if target.name.endswith(SNAPSHOT):
        raise UsageError(
            "The device does not track the contents of its flash",
            where=device,
            got="a snapshot of a profile without [power_loss]",
            allowed="a snapshot of one that has it",
            action="name its profile, sim:NAME; or save a device that has "
            f"?{named.partition('?')[2]} with `uflip prepare --save`",
        )
    try:
        inspect_device(named, any_interface=True)
    except UsageError as error:
        raise UsageError(
            "This device cannot have [power_loss], and its profile does not",
            where=device,
            got=f"{error.what}: {error.got}",
            allowed=error.allowed,
            action="correct the overrides in its name, or choose another device",
        ) from error
    return named


def verifiable(device: str) -> str:
    """Return the name of `device` such that its data can be verified: a simulated one then tracks
    the contents of its flash.

    Examples
    --------
    >>> verifiable("file:scratch.bin"), verifiable("sim:demo?gc=greedy")[:33]
    ('file:scratch.bin', 'sim:demo?gc=greedy&power_loss_pro')
    """
    return with_power_loss(device, protection=True) if parse_url(device).kind == "sim" else device


def known_devices() -> list[KnownDevice]:
    """List the available devices: profiles, the null device, block devices.

    Returns
    -------
    list of dict
        Each with url, kind, description. Simulated devices also with capacity_bytes and verb,
        which measures them; block devices with capacity_bytes, model, serial, in_use (the user, ""
        if free), holds and token (for --destroy).

    Raises
    ------
    DeviceError
        If the system does not permit listing them.

    Examples
    --------
    >>> [each["url"] for each in known_devices() if each["kind"] == "null"]
    ['null']
    """
    devices = [_describe_sim(f"sim:{name}") for name in profile_names()]
    devices.append(
        {"url": "null", "kind": "null", "description": "does nothing: measures the harness"}
    )
    # In /sys, "/" in the name of a device is written "!".
    paths = ["/dev/" + name.replace("!", "/") for name in _block_names()]
    return devices + [_describe_block(*reports) for reports in _native.known_blocks(paths)]


def report_block(path: str) -> BlockReport:
    """Return the user of a block device, its content, and the token that permits overwriting.

    `path`: /dev/NAME. Returns `in_use` (the user, "" if free), holds (list of names), token.
    """
    with native_errors():
        report: BlockReport = json.loads(_native.report_block(path))
    return report


def _describe_sim(url: str) -> KnownDevice:
    """Describe a simulated device and how to measure it; nothing is created."""
    info = inspect_device(url, any_interface=True)
    with native_errors():
        profile = json.loads(_native.toml_to_json(read_profile(parse_url(url).name)[1]))
    return {
        "url": url,
        "kind": "sim",
        "description": profile["description"],
        "capacity_bytes": info.capacity_bytes,
        "verb": "oc"
        if info.addresses == "physical"
        else f"run{' --suite zones' if info.zoned else ''}",
    }


def _block_names() -> list[str]:
    folder = Path("/sys/block")
    # RAM, optical and floppy disks are not flash devices.
    skipped = ("ram", "zram", "sr", "fd")
    if not folder.is_dir():
        return []
    return sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith(skipped))


def _describe_block(info_json: str, report_json: str) -> KnownDevice:
    """Describe a block device from kernel data; nothing is opened."""
    info, report = read_info(info_json), json.loads(report_json)
    rotating = info.details.rotational == "1"
    medium = "rotating disk" if rotating else "solid-state or virtual"
    return {
        "url": info.url,
        "kind": info.kind,
        "model": info.model,
        "serial": info.serial,
        "capacity_bytes": info.capacity_bytes,
        "in_use": report["in_use"],
        "holds": report["holds"],
        "token": report["token"],
        "description": virtual_disk_of(info) or medium,
    }


WIDTH = 100

_SIZES = (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))
_DURATIONS = (("s", 10**9), ("ms", 10**6), ("us", 10**3))

NO_SOURCES: Mapping[str, ConstantSource] = {}
HEAD = """\
# A simulated device, made from {url}.
#
# Change the values that differ, give the source of each new number in [sources], and check it:
#   uflip profile check {path}
#   uflip pattern sim:{path} --pattern RW --io-count 1000
# Sizes and durations may have units in quotes ("16KiB", "50us"), as in the name of a device.

"""


def profile_text(
    url: str,
    *,
    comments: bool = False,
    description: str | None = None,
    sources: Mapping[str, ConstantSource] = NO_SOURCES,
) -> str:
    """Return the profile of a simulated device: every key, including omitted ones.

    `url`: a simulated device; its overrides are written into the profile. `comments`: add a comment
    to each key with its meaning and its allowed values. `description`: another description.
    `sources`: sources of overrides; without one an override is a guess. Returns TOML that creates
    the same device. Raises UsageError if it is not a simulated device with a profile.
    """
    target = parse_url(url)
    if target.kind != "sim" or target.name.endswith(SNAPSHOT):
        raise UsageError(
            "Only a simulated device has a profile",
            where="DEVICE",
            got=url,
            allowed=f"sim:NAME, with a name of {', '.join(profile_names())}; or sim:PATH.toml",
            action="name a profile to start from",
        )
    profile = inspect_sim(target, any_interface=True).profile_table
    if description is not None:
        profile = {**profile, "description": description}
    key_tables = known_keys(profile.get("interface", "block"))
    top = [f"{name} = {_value(name, profile[name])}" for name in ("interface", "description")
           if name in profile]  # fmt: skip
    tables = [_table(name, profile[name], key_tables[name], comments) for name in key_tables
              if profile.get(name)]  # fmt: skip
    keys = [
        key for name in key_tables for key in key_tables[name] if key in (profile.get(name) or {})
    ]
    return "\n".join([*top, "", *tables, _sources(keys, target, sources)])


def _table(name: str, values: Mapping[str, object], keys: Mapping[str, Key], comments: bool) -> str:
    lines = [f"[{name}]"]
    for key, key_info in keys.items():
        if values.get(key) is None:
            continue
        if comments:
            lines += wrap(
                plain_text(f"{key_info.meaning} ({key_info.allowed})"),
                WIDTH,
                initial_indent="# ",
                subsequent_indent="# ",
            )
        lines.append(f"{key} = {_value(key, values[key])}")
    return "\n".join(lines) + "\n"


def plain_text(markdown: str) -> str:
    """Remove Markdown links and code marks.

    Examples
    --------
    >>> plain_text("`true`, see [merges](merges.md)")
    'true, see merges'
    """
    return re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", markdown).replace("`", "")


def with_unit(key: str, value: Any) -> str | None:
    """Return a size or a duration with a unit; None for other keys, or if no unit divides it.

    Examples
    --------
    >>> with_unit("page_bytes", 16384), with_unit("read_ns", 50_000), with_unit("channels", 4)
    ('16KiB', '50us', None)
    """
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        units = _SIZES if key.endswith("_bytes") else _DURATIONS if key.endswith("_ns") else ()
        for unit, factor in units:
            if value % factor == 0:
                return f"{value // factor}{unit}"
    return None


def _value(key: str, value: Any) -> str:
    written = with_unit(key, value)
    if written is not None:
        return f'"{written}"'
    # JSON strings are valid TOML, except for one character that TOML needs escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _sources(keys: list[str], target: DeviceUrl, given: Mapping[str, ConstantSource]) -> str:
    sources, overrides = profile_sources(target.name), dict(target.overrides)
    lines = ["[sources]"]
    for key in keys:
        if key in given:
            source = given[key]
        elif key in overrides:
            source = ConstantSource("guess", f"set by {target.text}")
        else:
            source = sources.get(key) or ConstantSource("off", "omitted: the default applies")
        pairs = [f"kind = {_value('', source.kind)}"]
        if source.detail:
            pairs.append(f"detail = {_value('', source.detail)}")
        if source.values:
            pairs.append(f"values = {_value('', list(source.values))}")
        lines.append(f"{key} = {{ {', '.join(pairs)} }}")
    return "\n".join(lines) + "\n"
