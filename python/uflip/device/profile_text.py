"""The complete profile text of a simulated device, with sources and optional comments."""

import json
import re
from collections.abc import Mapping
from textwrap import wrap
from typing import Any

from uflip.device.opener import inspect_sim
from uflip.device.url import SNAPSHOT, DeviceUrl, parse_url
from uflip.errors import UsageError
from uflip.profiles import ConstantSource, profile_names, profile_sources
from uflip.profiles.keys import Key, known_keys

WIDTH = 100

_SIZES = (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))
_DURATIONS = (("s", 10**9), ("ms", 10**6), ("us", 10**3))

HEAD = """\
# A simulated device, made from {url}.
#
# Change the values that differ, give the source of each new number in [sources], and check it:
#   uflip profile check {path}
#   uflip pattern sim:{path} --pattern RW --io-count 1000
# Sizes and durations may have units in quotes ("16KiB", "50us"), as in the name of a device.

"""


def profile_text(url: str, *, comments: bool = False) -> str:
    """Return the profile of a simulated device: every key, including omitted ones.

    Parameters
    ----------
    url : str
        A simulated device; its overrides are written into the profile.
    comments : bool
        Add a comment to each key with its meaning and its allowed values.

    Returns
    -------
    str
        TOML that creates the same device.

    Raises
    ------
    UsageError
        If it is not a simulated device with a profile.
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
    key_tables = known_keys(profile.get("interface", "block"))
    top = [f"{name} = {_value(name, profile[name])}" for name in ("interface", "description")
           if name in profile]  # fmt: skip
    tables = [_table(name, profile[name], key_tables[name], comments) for name in key_tables
              if profile.get(name)]  # fmt: skip
    keys = [
        key for name in key_tables for key in key_tables[name] if key in (profile.get(name) or {})
    ]
    return "\n".join([*top, "", *tables, _sources(keys, target)])


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


def _sources(keys: list[str], target: DeviceUrl) -> str:
    sources, overrides = profile_sources(target.name), dict(target.overrides)
    lines = ["[sources]"]
    for key in keys:
        if key in overrides:
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
