"""Device URLs: the name of a device, parsed without looking at any device.

sim:NAME[?key=value&...]    a simulated device; NAME is a profile, or a path ending in .toml
sim:PATH.snapshot           a simulated device saved by `Device.save`
file:PATH                   a regular file, through direct and synchronous I/O
/dev/NAME, block:/dev/NAME  a block device of this machine
nvme:/dev/NAME              an NVMe namespace by its own commands: /dev/ng0n1 or /dev/nvme0n1
nbd:unix:PATH               an export of an NBD server, such as `uflip serve`; nbd:HOST:PORT
null                        does nothing: measures the harness itself
"""

import math
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath
from urllib.parse import parse_qsl, urlencode

from uflip.errors import UsageError
from uflip.profiles import profile_names
from uflip.units import parse_duration, parse_size

SNAPSHOT = ".snapshot"
"""Ending of the name of a saved device."""

MAX_NUMBER_LENGTH = 100
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_REAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)

URL_FORMS = "sim:NAME, file:PATH, /dev/NAME, nvme:/dev/NAME, nbd:unix:PATH, null"

_GENERIC = re.compile(r"/dev/ng(\d+n\d+)", re.ASCII)


@dataclass(frozen=True)
class DeviceUrl:
    """A parsed device URL: `kind` sim, file, block, nvme, nbd or null; `name` profile or path."""

    text: str
    kind: str
    name: str = ""
    overrides: tuple[tuple[str, str], ...] = ()


def parse_url(url: str) -> DeviceUrl:
    """Parse a device URL without looking at any device.

    >>> parse_url("sim:demo?spare_factor=0.2").overrides
    (('spare_factor', '0.2'),)
    >>> parse_url("nvme:/dev/ng0n1").name
    '/dev/nvme0n1'
    """
    if not isinstance(url, str):
        raise UsageError(
            "The device must be a string",
            where="DEVICE",
            got=repr(url),
            allowed=URL_FORMS,
            action=f"did you mean {str(url)!r}?"
            if isinstance(url, PurePath)
            else "name one device at a time"
            if isinstance(url, list | tuple)
            else "name a device",
        )
    scheme, colon, location = url.partition(":")
    if url == "null":
        return DeviceUrl(url, "null")
    if disk := _parse_disk(url):
        return disk
    if colon and scheme == "file" and location:
        return DeviceUrl(url, "file", location)
    if colon and scheme == "nbd" and ":" in location:
        return DeviceUrl(url, "nbd", location)
    if colon and scheme == "sim" and location:
        name, question, query = location.partition("?")
        pairs = tuple(parse_qsl(query, keep_blank_values=True)) if question else ()
        _refuse_twice(url, pairs)
        return DeviceUrl(url, "sim", name, pairs)
    raise UsageError(
        "Unknown device",
        where="DEVICE",
        got=f"'{url}'",
        allowed=URL_FORMS + f"; simulated: {', '.join(profile_names())}",
        action=_nearest_url(url),
    )


def _parse_disk(url: str) -> DeviceUrl | None:
    """Parse the name of a block device, or of an NVMe namespace."""
    path = url.partition(":")[2] if url.startswith(("block:", "nvme:")) else url
    if not path.startswith("/dev/"):
        return None
    generic = _GENERIC.fullmatch(path)
    if generic or url.startswith("nvme:"):
        # The guard examines the block device of the namespace; commands go to the generic one.
        name = f"/dev/nvme{generic[1]}" if generic else path
        return DeviceUrl(f"nvme:{name}", "nvme", name)
    return DeviceUrl(f"block:{path}", "block", path)


def _refuse_twice(url: str, pairs: tuple[tuple[str, str], ...]) -> None:
    """Refuse a key with two values."""
    keys = [key for key, _ in pairs]
    for twice in (key for key in keys if keys.count(key) > 1):
        raise UsageError(
            "A key of the device is given twice",
            where=url,
            got="&".join(f"{key}={value}" for key, value in pairs if key == twice),
            allowed="each key once",
            action="keep one of them; `uflip sweep` varies a key",
        )


def with_overrides(url: str, overrides: Mapping[str, str | int | float | bool]) -> str:
    """Return the name of a simulated device with some keys of its profile changed.

    >>> with_overrides("sim:demo?gc=greedy", {"write_cache_bytes": "1MiB", "copy_back": True})
    'sim:demo?gc=greedy&write_cache_bytes=1MiB&copy_back=true'
    """
    if not overrides:
        return url
    words = {
        key: str(value).lower() if isinstance(value, bool) else value
        for key, value in overrides.items()
    }
    return url + ("&" if "?" in url else "?") + urlencode(words, safe=":/")


def is_device(text: str) -> bool:
    """Return whether a text begins like the URL of a device.

    >>> is_device("sim:demo"), is_device("trace.iolog")
    (True, False)
    """
    return text.startswith(("sim:", "file:", "/dev/", "block:", "nvme:", "nbd:"))


def _nearest_url(url: str) -> str:
    """Return a suggestion for a malformed URL."""
    host, at, device_url = url.partition("@")
    if at and is_device(device_url):
        reach = "is reached with --scheduler, see `uflip run --help`"
        return f"{device_url} on the machine {host} {reach}"
    if url in profile_names():
        return f"did you mean sim:{url}?"
    if namespace := re.fullmatch(r"(?:nvme:)?((?:ng|nvme)\d+n\d+)", url, re.ASCII):
        return f"did you mean nvme:/dev/{namespace[1]}?"
    with suppress(OSError, ValueError):  # the text may be too long for a path
        if Path(url).is_file():
            return f"did you mean file:{url}?"
    return "`uflip devices` lists the available ones"


def read_override(key: str, value: str) -> str | int | float | bool:
    """Return the value of an override; the last word of its key may be a unit.

    >>> read_override("page_bytes", "16KiB"), read_override("read_ns", "50us")
    (16384, 50000)
    >>> read_override("channels", "4"), read_override("spare_factor", "0.1")
    (4, 0.1)
    """
    if value in ("true", "false"):
        return value == "true"
    if len(value) <= MAX_NUMBER_LENGTH and _INTEGER.fullmatch(value):
        return int(value)
    # Infinity and not-a-number stay words, which no numeric key accepts.
    if len(value) <= MAX_NUMBER_LENGTH and _REAL.fullmatch(value) and math.isfinite(float(value)):
        return float(value)
    if key.endswith("_bytes"):
        return parse_size(value, where=key)
    if key.endswith("_ns"):
        return parse_duration(value, where=key)
    return value


def check_snapshot_name(path: str | Path) -> None:
    """Refuse a name that does not identify a snapshot."""
    if not str(path).endswith(SNAPSHOT):
        raise UsageError(
            "The name of a snapshot must end in .snapshot",
            where=str(path),
            allowed=f"FILE{SNAPSHOT}",
            action=f"call it {path}{SNAPSHOT}",
        )
