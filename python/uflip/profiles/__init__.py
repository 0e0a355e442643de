"""Simulated devices, one TOML file each, and where every number in it comes from."""

import json
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from uflip import _native
from uflip.data.bounded_read import DocumentKind, read_text
from uflip.errors import DeviceError, native_errors, unknown_name

# The largest of ours has 7 KB.
LARGEST_PROFILE = 1 << 20
_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class ConstantSource:
    """Where a constant of a profile comes from.

    Attributes
    ----------
    kind : str
        "data_sheet", "paper", "inferred", "fitted", "chosen", "guess" or "off".
    detail : str
        Which data sheet, where in the paper, how it was concluded.
    values : tuple of str
        Ids of published values with an eye to which it was set; `*` stands for several.
    """

    kind: str
    detail: str = ""
    values: tuple[str, ...] = ()


def profile_names(interface: str | None = None) -> list[str]:
    """Return the names of the simulated devices that come with uflip.

    Parameters
    ----------
    interface : str, optional
        Only those of this interface: "block" or "open_channel".
    """
    names = sorted(entry.stem for entry in _FOLDER.glob("*.toml"))
    if interface is None:
        return names
    return [name for name in names if profile_interface(name) == interface]


@cache
def zoned_names() -> tuple[str, ...]:
    """Return the names of those that are written in zones."""
    tables = {name: tomllib.loads(read_profile(name)[1]) for name in profile_names()}
    return tuple(name for name, table in tables.items() if "zones" in table)


def random_access_names() -> list[str]:
    """Return the names of block devices that can be written anywhere: of all without zones."""
    return [name for name in profile_names("block") if name not in zoned_names()]


def profile_interface(name: str) -> str:
    """Return how a simulated device is addressed: "block" or "open_channel".

    Raises
    ------
    UsageError
        For an unknown name, or an interface that does not exist.
    DeviceError
        For a path that cannot be read.
    """
    _, text, source = read_profile(name)
    with native_errors():
        return _native.profile_interface(text, source)


def read_profile(name: str) -> tuple[str, str, str]:
    """Read the profile of a simulated device.

    Parameters
    ----------
    name : str
        A name in `profile_names`, or a path ending in .toml.

    Returns
    -------
    tuple of str
        Name, TOML text, and where it comes from.

    Raises
    ------
    UsageError
        For an unknown name.
    DeviceError
        For a path that cannot be read.
    """
    if name.endswith(".toml"):
        path = Path(name)
        return path.stem, read_text(path, _kind()), str(path)
    if name not in profile_names():
        raise unknown_name("profile", name, profile_names(), where=f"sim:{name}")
    file = _FOLDER / f"{name}.toml"
    return name, file.read_text(encoding="utf-8"), f"profiles/{name}.toml"


def _kind() -> DocumentKind:
    action = f"check the path, or use a built-in profile: {', '.join(profile_names())}"
    return DocumentKind("profile", LARGEST_PROFILE, action, DeviceError)


def profile_sources(name: str) -> dict[str, ConstantSource]:
    """Return where each constant of a profile comes from.

    Parameters
    ----------
    name : str
        A name in `profile_names`, or a path ending in .toml.

    Returns
    -------
    dict of str to Source
        By key, in alphabetical order.

    Raises
    ------
    UsageError
        For an unknown name, or a key without a source.
    DeviceError
        For a path that cannot be read.

    Examples
    --------
    >>> profile_sources("fast-1gb")["read_ns"]
    Source(kind='paper', detail='Myers & Sinclair Table 1', values=())
    """
    _, text, source = read_profile(name)
    return dict(_sources(text, source))


@cache
def _sources(text: str, source: str) -> dict[str, ConstantSource]:
    with native_errors():
        found = json.loads(_native.profile_sources(text, source))
    return {
        key: ConstantSource(one["kind"], one["detail"], tuple(one["values"]))
        for key, one in found.items()
    }
