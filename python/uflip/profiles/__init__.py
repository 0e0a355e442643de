"""Profiles of simulated devices: a TOML file for each, with the source of every number."""

import json
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from uflip import _native
from uflip.errors import DeviceError, native_errors, unknown_name

if TYPE_CHECKING:
    from uflip.data.device import TwinErrors

# The largest built-in profile has 7 KB.
MAX_PROFILE_BYTES = 1 << 20
_FOLDER = Path(__file__).parent
TWIN_ERRORS = "twin_errors"
"""The table of a profile with the errors of a twin."""


@dataclass(frozen=True)
class ConstantSource:
    """The source of a constant of a profile."""

    kind: str  #: "data_sheet", "paper", "inferred", "fitted", "chosen", "guess" or "off".
    detail: str = ""  #: The data sheet, the place in the paper, or the reasoning.
    #: Ids of the published values that it was set for; `*` matches several.
    values: tuple[str, ...] = ()


def profile_names(interface: str | None = None) -> list[str]:
    """Return the names of the simulated devices that come with uflip.

    `interface`: only those of this interface: "block" or "open_channel".
    """
    names = sorted(entry.stem for entry in _FOLDER.glob("*.toml"))
    if interface is None:
        return names
    return [name for name in names if profile_interface(name) == interface]


@cache
def zoned_names() -> tuple[str, ...]:
    """Return the names of zoned devices."""
    tables = {name: tomllib.loads(read_profile(name)[1]) for name in profile_names()}
    return tuple(name for name, table in tables.items() if "zones" in table)


def random_access_names() -> list[str]:
    """Return the names of block devices without zones, which accept writes anywhere."""
    return [name for name in profile_names("block") if name not in zoned_names()]


def profile_interface(name: str) -> str:
    """Return the interface of a simulated device: "block" or "open_channel"."""
    _, text, source = read_profile(name)
    with native_errors():
        return _native.profile_interface(text, source)


def read_profile(name: str) -> tuple[str, str, str]:
    """Read the profile of a simulated device: its name, text, and source.

    The text lacks the errors of a twin.
    """
    name, text, source = _read(name)
    return name, without_twin_errors(text), source


def without_twin_errors(text: str) -> str:
    """Return a profile without the errors of a twin, which describe no part of the device.

    Lines keep their numbers.
    """
    return "".join(line for line, is_error in _lines(text) if not is_error)


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the lines of a profile, and whether they belong to the errors of a twin.

    An empty line stands in the profile for each of them.
    """
    within = False
    for line in text.splitlines(keepends=True):
        if line.startswith("["):
            within = line.strip() == f"[{TWIN_ERRORS}]"
        yield line, within
        if within:
            yield "\n", False


def with_twin_errors(text: str, table: str) -> str:
    r"""Return the text of a profile with another table of the errors of a twin.

    >>> with_twin_errors("a = 1\n[twin_errors]\nold = 1\n", "[twin_errors]\nnew = 1\n")
    'a = 1\n\n[twin_errors]\nnew = 1\n'
    """
    own = "".join(line for line, is_error in _lines(text) if not is_error)
    return f"{own.rstrip()}\n\n{table}"


def _read(name: str) -> tuple[str, str, str]:
    if name.endswith(".toml"):
        # Imported here: a refusal of a command does not wait for msgspec.
        from uflip.data.document import DocumentKind, read_text

        path = Path(name)
        action = f"check the path, or use a built-in profile: {', '.join(profile_names())}"
        kind = DocumentKind("profile", MAX_PROFILE_BYTES, action, DeviceError)
        return path.stem, read_text(path, kind), str(path)
    if name not in profile_names():
        raise unknown_name("profile", name, profile_names(), where=f"sim:{name}")
    file = _FOLDER / f"{name}.toml"
    return name, file.read_text(encoding="utf-8"), f"profiles/{name}.toml"


def twin_errors(name: str) -> "TwinErrors | None":
    """Return the errors of a twin: the table `[twin_errors]` of a valid profile; None without it.

    Raises DeviceError if the table has another form.
    """
    if not name.endswith(".toml"):
        return None
    import msgspec

    from uflip.data.device import TwinErrors

    _, text, source = _read(name)
    own = "".join(line if is_error else "\n" for line, is_error in _lines(text))
    try:
        table = tomllib.loads(own).get(TWIN_ERRORS)
        return None if table is None else msgspec.convert(table, TwinErrors)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise DeviceError(
            "The errors of the twin have another form",
            where=f"{source}, [twin_errors]",
            got=str(error),
            allowed="device, and patterns with pattern, mean_error and p99_error",
            action="delete the table, and write it again: uflip infer --check DEVICE TWIN.toml",
        ) from error


def profile_sources(name: str) -> dict[str, ConstantSource]:
    """Return the source of each constant of a profile.

    Returns the reports by key, in alphabetical order.

    >>> profile_sources("fast-1gb")["read_ns"]
    ConstantSource(kind='paper', detail='Myers & Sinclair Table 1', values=())
    """
    _, text, source = read_profile(name)
    return dict(_sources(text, source))


@cache
def _sources(text: str, source: str) -> dict[str, ConstantSource]:
    with native_errors():
        sources = json.loads(_native.profile_sources(text, source))
    return {
        key: ConstantSource(one["kind"], one["detail"], tuple(one["values"]))
        for key, one in sources.items()
    }
