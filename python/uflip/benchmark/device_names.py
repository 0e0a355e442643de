"""Names of several devices: the host of each, and the name of its folder."""

import re
from collections.abc import Sequence

from uflip.data.multi_device import MAX_DEVICES
from uflip.device.url import parse_url
from uflip.errors import UsageError


def split_host(device: str) -> tuple[str, str]:
    """Split a name into the label of the device's host (empty without one) and its URL.

    Examples
    --------
    >>> split_host("rack3@/dev/nvme1n1"), split_host("file:a@b")
    (('rack3', '/dev/nvme1n1'), ('', 'file:a@b'))
    """
    host, at, url = device.partition("@")
    return (host, url) if at and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", host) else ("", device)


def folder_names(devices: Sequence[str]) -> list[str]:
    """Return a folder name for each device, derived from the device.

    Examples
    --------
    >>> folder_names(["sim:demo", "file:a/b", "file:a-b", "null"])
    ['sim-demo', 'file-a-b', 'file-a-b-2', 'null']
    """
    names: list[str] = []
    for device in devices:
        slug = re.sub(r"[^A-Za-z0-9.]+", "-", device).strip("-.")[-60:].strip("-.") or "device"
        name = next(
            name
            for name in (slug, *(f"{slug}-{number}" for number in range(2, len(devices) + 2)))
            if name not in names
        )
        names.append(name)
    return names


def check_names(devices: list[str]) -> None:
    """Refuse an empty list, too many devices, repeated and invalid names.

    Raises
    ------
    UsageError
    """
    twice = next((name for name in devices if devices.count(name) > 1), None)
    if twice is not None or not 0 < len(devices) <= MAX_DEVICES:
        raise UsageError(
            "Each device is measured once" if twice else "There are too many devices",
            where="DEVICE",
            got=f"{twice} twice" if twice else str(len(devices)),
            allowed=f"1 to {MAX_DEVICES} devices, each named once",
            action="name it once; --repetitions makes each run more often",
        )
    for name in devices:
        parse_url(split_host(name)[1])
