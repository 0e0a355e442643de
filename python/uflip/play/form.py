"""The form of the play page, and its requests.

The form has the editable keys of a simulated device and its possible runs. Names, units, allowed
values and meanings of keys come from the table of keys of the docs (`uflip.profiles.keys`); values
are those of the profile, for every key.

A request has three parts: the name of a profile, changed keys, and the run: one pattern with its
parameters, or one of the micro-benchmarks at the quick scale. It contains no path, so that only
built-in profiles are opened, and the twins that the user named when the explorer began. It is
checked against the limits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NotRequired, TypedDict

from uflip import _native
from uflip.benchmark_options import SUITE
from uflip.data.device import DeviceInfo, twin_text
from uflip.data.spec import Totals
from uflip.device.catalogue import plain_text, with_unit
from uflip.device.opener import inspect_sim
from uflip.device.resolve import resolve
from uflip.device.url import DeviceUrl, parse_url, with_overrides
from uflip.errors import UsageError, unknown_name
from uflip.microbench import varied_micro_benchmarks
from uflip.microbench.labels import PATTERN_NAMES
from uflip.profiles import profile_names
from uflip.profiles.keys import Key, known_keys
from uflip.spec import BASELINES, Spec, baseline
from uflip.units import format_count, format_size

ZONES = "zones"
PATTERN = "pattern"
"""The run that is not a micro-benchmark."""
OPTIONS = (
    "io_size", "io_count", "io_ignore", "target_size", "io_shift", "time", "pause", "burst",
    "parallel_degree", "queue_depth", "seed",
)  # fmt: skip
"""Parameters of a pattern that can be given."""
MAX_IOS = 200_000
MAX_BYTES = 64 << 30
MAX_FLASH_BYTES = 64 << 30
MAX_SECONDS = 120
MAX_MEMORY_BYTES = 3 << 30
"""Address space: the largest device takes 1 GiB, and libraries reserve more than they use."""
LIMITS = {
    "ios": MAX_IOS,
    "bytes": MAX_BYTES,
    "flash_bytes": MAX_FLASH_BYTES,
    "seconds": MAX_SECONDS,
    "memory_bytes": MAX_MEMORY_BYTES,
}
"""Limits of a run, which runs next to the explorer while the user waits."""


@dataclass(frozen=True)
class PlayRequest:
    """A device, and a run on it."""

    url: str  #: The device, with its overrides.
    benchmark: str  #: `PATTERN`, or the name of a micro-benchmark.
    spec: Spec | None = None  #: The pattern, complete; None for a micro-benchmark.
    label: str = ""  #: SR, RR, SW or RW; empty for a micro-benchmark.
    suite: str = SUITE  #: The suite of the micro-benchmark.


Twins = Mapping[str, Path]
"""Name of a twin -> its profile."""
NO_TWINS: Twins = {}


def device_of(device: str, changes: Mapping[str, str], twins: Twins = NO_TWINS) -> DeviceUrl:
    """Return the URL of a simulated device with some keys changed."""
    names = [*twins, *profile_names("block")]
    if device not in names:
        raise unknown_name("device", device, names, where="device")
    return parse_url(with_overrides(f"sim:{twins.get(device, device)}", changes))


def named_twins(paths: Sequence[Path]) -> Twins:
    """Return twins by the names of their files; each must be the profile of a block device."""
    twins: dict[str, Path] = {}
    for path in paths:
        inspect_sim(parse_url(f"sim:{path}"))
        if path.stem in (*twins, *profile_names("block")):
            raise UsageError(
                "Two devices of the explorer have the same name",
                where="--twin",
                got=str(path),
                allowed="a file whose name is no built-in device and no other twin",
                action="rename the file",
            )
        twins[path.stem] = path
    return twins


def parse_request(document: object, twins: Twins = NO_TWINS) -> PlayRequest:
    """Parse a request.

    `document`: fields: device, keys, benchmark, pattern, options. `twins`: further devices.
    """
    device, keys = text_field(document, "device"), _text_fields(document, "keys")
    target = device_of(device, keys, twins)
    info = inspect_sim(target)
    check_flash(info)
    benchmark = text_field(document, "benchmark")
    if benchmark != PATTERN:
        known = varied_micro_benchmarks(_suite(info))
        if benchmark not in known:
            raise unknown_name("micro-benchmark", benchmark, [PATTERN, *known], where="run")
        return PlayRequest(target.text, benchmark, suite=_suite(info))
    label, options = text_field(document, "pattern"), _text_fields(document, "options")
    if label not in _patterns(info):
        raise unknown_name("pattern", label, _patterns(info), where="pattern")
    for name in options:
        if name not in OPTIONS:
            raise unknown_name("parameter", name, OPTIONS, where="options")
    complete = resolve(baseline(label, **options), info)
    check_length(complete.totals)
    return PlayRequest(target.text, PATTERN, complete.spec, label)


def _suite(info: DeviceInfo) -> str:
    """Return the suite whose micro-benchmarks a device supports."""
    return ZONES if info.zoned else SUITE


def _patterns(info: DeviceInfo) -> list[str]:
    """Return the patterns that a device supports: a zone is written in order."""
    return [name for name in BASELINES if not (info.zoned and name == "RW")]


def check_flash(info: DeviceInfo) -> None:
    """Refuse a device with more flash than the limit."""
    flash = info.details.flash_bytes or info.capacity_bytes
    if flash > MAX_FLASH_BYTES:
        raise UsageError(
            "The device is too large for the explorer",
            where=info.url,
            got=f"{format_size(flash)} of flash",
            allowed=f"at most {format_size(MAX_FLASH_BYTES)}",
            action="use fewer blocks per die, or `uflip run` on the command line",
        )


def check_length(totals: Totals) -> None:
    """Refuse a pattern that is longer than the limits."""
    moved = totals.bytes_read + totals.bytes_written
    if totals.total_ios > MAX_IOS or moved > MAX_BYTES:
        raise UsageError(
            "The run is too long for the explorer",
            where="io_count",
            got=f"{format_count(totals.total_ios)} I/Os, {format_size(moved)}",
            allowed=f"at most {format_count(MAX_IOS)} I/Os and {format_size(MAX_BYTES)}",
            action="use a smaller io_count, or `uflip pattern` on the command line",
        )


MAX_TEXT = 100
MAX_PAIRS = 100


def text_field(document: object, name: str) -> str:
    """Return a text of a request."""
    value = document.get(name) if isinstance(document, dict) else None
    if isinstance(value, str) and 0 < len(value) <= MAX_TEXT:
        return value
    raise UsageError(
        "The request lacks a field",
        where=name,
        got="nothing" if value is None else "another value",
        allowed=f"a text of at most {MAX_TEXT} characters",
        action="send it with the others",
    )


def _text_fields(document: object, name: str) -> dict[str, str]:
    values = document.get(name, {}) if isinstance(document, dict) else None
    if isinstance(values, dict) and len(values) <= MAX_PAIRS:
        return {key: text_field(values, key) for key in values}
    raise UsageError(
        "The overrides are not an object of strings",
        where=name,
        allowed="a name and a text for each",
        action="send an object of texts",
    )


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


def form(device: str, changes: Mapping[str, str], twins: Twins = NO_TWINS) -> Form:
    """Return the form of a device with some keys changed."""
    plain = inspect_sim(device_of(device, {}, twins))
    target = device_of(device, changes, twins)
    info = inspect_sim(target)
    return {
        "device": device,
        "url": target.text,
        "devices": [
            {"name": name, "description": _description(device_of(name, {}, twins))}
            for name in (*twins, *profile_names("block"))
        ],
        "facts": _facts(info),
        "tables": _tables(info, plain),
        "others": _others(info),
        "patterns": [{"name": name, "words": PATTERN_NAMES[name]} for name in _patterns(info)],
        "options": OPTIONS,
        "benchmarks": [
            {"name": PATTERN, "title": "One pattern", "question": "What does it cost?"},
            *_benchmarks(_suite(info)),
        ],
        "limits": LIMITS,
    }


def _benchmarks(suite: str) -> Iterator[Runnable]:
    for name, micro_benchmark in varied_micro_benchmarks(suite).items():
        yield {"name": name, "title": micro_benchmark.title, "question": micro_benchmark.question}


def _description(target: DeviceUrl) -> str:
    return inspect_sim(target).profile.description


def _facts(info: DeviceInfo) -> list[tuple[str, str]]:
    """Return properties that follow from the keys."""
    shape = info.profile.geometry
    flash = info.details.flash_bytes or 0
    dies = shape.channels * shape.dies_per_channel
    twin = [] if info.details.twin is None else [("this is", twin_text(info.details.twin))]
    return [
        *twin,
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
