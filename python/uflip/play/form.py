"""The editable keys of a simulated device, and its possible runs.

Names, units, allowed values and meanings of keys come from the table of keys of the docs
(`uflip.profiles.keys`); values are those of the profile, for every key.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NotRequired, TypedDict

from uflip import _native
from uflip.data.device import DeviceInfo
from uflip.device.catalogue import plain_text, with_unit
from uflip.device.opener import inspect_sim
from uflip.device.url import DeviceUrl
from uflip.microbench import varied_micro_benchmarks
from uflip.microbench.labels import PATTERN_NAMES
from uflip.play.play_request import LIMITS, OPTIONS, PATTERN, device_of
from uflip.profiles import random_access_names
from uflip.profiles.keys import Key, known_keys
from uflip.units import format_size

# A list of words in backticks, and nothing else: a choice.
CHOICES = re.compile(r"`([a-z0-9_]+)`(?:, |$)")
# Keys that determine the other keys: a registry has their values.
REGISTERED = ("ftl", "gc", "allocator")


class DeviceChoice(TypedDict):
    """A device to choose."""

    name: str
    description: str


class NamedPattern(TypedDict):
    """A pattern, and its full name."""

    name: str
    words: str


class Runnable(TypedDict):
    """A possible run, and the question that it answers."""

    name: str
    title: str
    question: str


class KeyRow(TypedDict):
    """A key of the device: its value, the value in its profile, and the allowed values."""

    name: str
    value: str
    usual: str | None
    unit: str
    allowed: str
    meaning: str
    choices: list[str] | None


class KeyTable(TypedDict):
    """The keys of a table of the profile."""

    name: str
    keys: list[KeyRow]


class Form(TypedDict):
    """A device with changes, its editable keys, and its possible runs."""

    device: str
    url: str
    devices: list[DeviceChoice]
    facts: list[tuple[str, str]]
    tables: list[KeyTable]
    others: list[str]
    patterns: list[NamedPattern]
    options: Sequence[str]
    benchmarks: list[Runnable]
    limits: Mapping[str, int]
    problem: NotRequired[dict[str, str] | None]


def form(device: str, changes: Mapping[str, str]) -> Form:
    """Return the form of a device with some keys changed.

    Parameters
    ----------
    device : str
        The name of a profile.
    changes : mapping of str to str
        Keys and their values, as in a device URL.

    Raises
    ------
    UsageError
        For an unknown name or key, or a value that is not allowed.
    """
    plain = inspect_sim(DeviceUrl(f"sim:{device}", "sim", device_of(device, {}).name))
    target = device_of(device, changes)
    info = inspect_sim(target)
    return {
        "device": device,
        "url": target.text,
        "devices": [
            {"name": name, "description": _description(name)} for name in random_access_names()
        ],
        "facts": _facts(info),
        "tables": _tables(info, plain),
        "others": _others(info),
        "patterns": [{"name": name, "words": words} for name, words in PATTERN_NAMES.items()],
        "options": OPTIONS,
        "benchmarks": [
            {"name": PATTERN, "title": "One pattern", "question": "What does it cost?"},
            *_benchmarks(),
        ],
        "limits": LIMITS,
    }


def _benchmarks() -> Iterator[Runnable]:
    for name, micro_benchmark in varied_micro_benchmarks().items():
        yield {"name": name, "title": micro_benchmark.title, "question": micro_benchmark.question}


def _description(name: str) -> str:
    return inspect_sim(DeviceUrl(f"sim:{name}", "sim", name)).profile.description


def _facts(info: DeviceInfo) -> list[tuple[str, str]]:
    """Return properties that follow from the keys."""
    shape = info.profile.geometry
    flash = info.details.flash_bytes or 0
    dies = shape.channels * shape.dies_per_channel
    return [
        ("for the host", format_size(info.capacity_bytes)),
        ("flash", format_size(flash)),
        ("spare", f"{1 - info.capacity_bytes / flash:.1%}" if flash else ""),
        ("dies", str(dies)),
        ("erase block", format_size(shape.pages_per_block * (shape.page_bytes or 0))),
    ]


def _tables(info: DeviceInfo, plain: DeviceInfo) -> list[KeyTable]:
    all_keys, registry = known_keys("block"), json.loads(_native.registry_json())
    tables: list[KeyTable] = []
    for table, keys in all_keys.items():
        values = info.profile_table.get(table) or {}
        usual = plain.profile_table.get(table) or {}
        rows = [
            _row(key, key_info, values[key], usual.get(key), registry)
            for key, key_info in keys.items()
            if values.get(key) is not None
        ]
        if rows:
            tables.append({"name": table, "keys": rows})
    return tables


def _others(info: DeviceInfo) -> list[str]:
    """Return the keys that this device lacks, and could have."""
    return [
        key
        for table, keys in known_keys("block").items()
        for key in keys
        if (info.profile_table.get(table) or {}).get(key) is None
    ]


def _row(
    key: str, key_info: Key, value: object, usual: object, registry: Mapping[str, list[str]]
) -> KeyRow:
    return {
        "name": key,
        "value": _text(key, value),
        "usual": None if usual is None else _text(key, usual),
        "unit": key_info.unit,
        "allowed": plain_text(key_info.allowed),
        "meaning": plain_text(key_info.meaning),
        "choices": _choices(key, key_info, value, registry),
    }


def _text(key: str, value: object) -> str:
    if isinstance(value, str):
        return value
    return with_unit(key, value) or json.dumps(value)


def _choices(
    key: str, key_info: Key, value: object, registry: Mapping[str, list[str]]
) -> list[str] | None:
    if key in REGISTERED:
        return [*registry[key]]
    if isinstance(value, bool):
        return ["true", "false"]
    words = CHOICES.findall(key_info.allowed)
    return words if words and value in words else None
