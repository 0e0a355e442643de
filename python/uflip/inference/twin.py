"""The twin: the profile of a simulated device with the inferred properties."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from uflip import _native
from uflip.data.device import TwinErrors
from uflip.device.cache import switched_off
from uflip.device.handle import Device
from uflip.errors import DeviceError, UsageError
from uflip.native_wait import CREATE_CANCEL_TIMEOUT_S, run_native
from uflip.profiles import TWIN_ERRORS

Value = int | float | str | bool
CANNOT_SIMULATE = (UsageError, DeviceError)
"""The errors of a twin that no simulated device can be; an interruption is not among them."""
NAME = "twin"

# Keys of a twin in the order of its file, with the value and the reason of those that no probe
# identifies.
ASSUMED: Mapping[str, Mapping[str, tuple[Value, str]]] = {
    "geometry": {
        "channels": (1, "not identified"),
        "dies_per_channel": (1, "not identified"),
        "blocks_per_die": (64, "not identified"),
        "pages_per_block": (128, "not identified; between the 64 of uFLIP §2.1 and today's 256"),
        "metadata_pages": (0, "no probe"),
        "page_bytes": (4096, "not identified; the unit of most hosts"),
        "spare_bytes": (224, "no probe; 5.5 % of a page, as in OFC §III"),
        "sector_bytes": (512, "the device's sector"),
    },
    "timing": {
        "read_ns": (50_000, "not identified; MLC"),
        "program_ns": (600_000, "not identified; MLC"),
        "program_high_ns": (600_000, "as program_ns"),
        "erase_ns": (3_000_000, "not identified; MLC"),
        "channel_bytes_per_s": (400_000_000, "not identified; ONFI 3"),
        "buses": (0, "no probe"),
        "bus_bytes_per_s": (1, "no probe"),
        "link_bytes_per_s": (550_000_000, "not identified; SATA at 6 Gbit/s"),
        "command_read_ns": (10_000, "not identified"),
        "command_write_ns": (10_000, "not identified"),
        "relocate_ns": (0, "no probe"),
        "collect_ns": (0, "no probe"),
        "partial_transfer": (False, "not identified"),
    },
    "ftl": {
        "ftl": ("page_map", "the family that all probes assume"),
        "spare_factor": (0.1, "not identified; usual for consumer drives"),
        "allocator": ("round_robin", "not identified; OFC §IV.C"),
    },
    "gc": {
        "gc": ("greedy", "not identified; the usual one"),
        "reserved_blocks": (1, "no probe; the minimum"),
        "idle_free_blocks": (0, "no probe"),
        "relocation": ("allocator", "no probe; OFC §IV.C"),
        "copy_back": (False, "no probe"),
        "separate_streams": (False, "no probe"),
        "relocate_at_least": (0, "no probe"),
    },
    "wear": {
        "dynamic_wear_levelling": (False, "no probe"),
        "static_wear_threshold": (0, "no probe"),
    },
    "cache": {
        "write_cache_bytes": (0, "writes take the time of a program"),
        "flush": ("when_needed", "no probe"),
    },
    "state": {
        "state": ("random", "no probe; as after long use"),
        "random_overwrites": (1.0, "no probe"),
        "seed": (1, "arbitrary"),
    },
}
KEYS = {key: table for table, keys in ASSUMED.items() for key in keys}
# Keys that a twin has only if a probe identifies them, with their tables.
OPTIONAL: Mapping[str, str] = {
    "planes_per_die": "geometry",
    "multi_plane": "geometry",
    "bits_per_cell": "timing",
    "read_middle_ns": "timing",
    "read_high_ns": "timing",
    "program_middle_ns": "timing",
    "die_queue": "timing",
    "program_suspend_ns": "suspend",
    "erase_suspend_ns": "suspend",
    "suspensions_max": "suspend",
    "mapping_unit_bytes": "ftl",
    "mapping_cache_bytes": "mapping",
    "mapping_cache_policy": "mapping",
    "mapping_batch_update": "mapping",
    "slc_blocks": "slc_cache",
    "slc_blocks_max": "slc_cache",
    "slc_read_ns": "slc_cache",
    "slc_program_ns": "slc_cache",
}
TABLES = tuple(dict.fromkeys([*ASSUMED, *OPTIONAL.values()]))


@dataclass(frozen=True)
class Twin:
    """The keys of a profile: inferred values with their sources; all others are assumed.

    Attributes
    ----------
    values : mapping of str to value
        The values that differ from `ASSUMED`.
    sources : mapping of str to str
        Key -> the probe and the interval; without an entry a key is assumed.
    reasons : mapping of str to str
        Assumed key -> why it is not identified, instead of the reason in `ASSUMED`.
    """

    values: Mapping[str, Value] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)

    def value(self, key: str) -> Value:
        """Return the value of a key."""
        return self.values[key] if key in self.values else ASSUMED[KEYS[key]][key][0]

    def number(self, key: str) -> float:
        """Return the value of a key as a number."""
        return float(self.value(key))

    def but(self, **values: Value) -> Self:
        """Return a copy with other values."""
        return replace(self, values={**self.values, **values})

    @property
    def unit_bytes(self) -> int:
        """Size of a mapping unit [bytes]."""
        return int(
            self.number("mapping_unit_bytes" if self.has("mapping_unit_bytes") else "page_bytes")
        )

    def has(self, key: str) -> bool:
        """Return whether a value is given."""
        return key in self.values

    @property
    def dies(self) -> int:
        """Number of dies."""
        return int(self.number("channels") * self.number("dies_per_channel"))

    def with_capacity(self, capacity_bytes: int, blocks_per_die: int) -> Self:
        """Return a copy with a number of blocks, and the spare factor that leaves a capacity."""
        per_block = int(self.number("pages_per_block") * self.number("page_bytes"))
        flash = self.dies * blocks_per_die * per_block
        # The capacity of a profile is rounded down to whole MiB, or to pages below 64 MiB.
        unit = 1 << 20 if flash >= 64 << 20 else int(self.number("page_bytes"))
        spare = 1 - (capacity_bytes + unit / 2) / flash
        return self.but(blocks_per_die=blocks_per_die, spare_factor=round(spare, 9))

    def text(self, description: str = "a twin", device: str | None = None) -> str:
        """Return the profile as TOML, with the source of every key.

        With `device`, the one that it represents, it is marked as a twin of unknown error.
        """
        lines = [f"description = {_toml(description)}", ""]
        optional = {key: table for key, table in OPTIONAL.items() if self.has(key)}
        for table in TABLES:
            keys = [*ASSUMED.get(table, ()), *(key for key in optional if optional[key] == table)]
            if keys:
                lines.append(f"[{table}]")
                lines += [f"{key} = {_toml(self.value(key))}" for key in keys]
                lines.append("")
        lines.append("[sources]")
        for assumed in ASSUMED.values():
            lines += [f"{key} = {self._source(key, why)}" for key, (_, why) in assumed.items()]
        lines += [f"{key} = {self._source(key, 'as other keys')}" for key in optional]
        if device is not None:
            lines += ["", errors_table(TwinErrors(device))]
        return "\n".join(lines).rstrip("\n") + "\n"

    def _source(self, key: str, assumed: str) -> str:
        kind, detail = "inferred", self.sources.get(key)
        if detail is None:
            kind, detail = "guess", f"assumed: {self.reasons.get(key, assumed)}"
        return f"{{ kind = {_toml(kind)}, detail = {_toml(detail)} }}"

    def open(self, **values: Value) -> Device:
        """Create the simulated device, with other values of some keys; it is not cached."""
        text = self.but(**values).text()

        def make() -> _native.Device:
            return run_native(
                lambda: _native.Device.sim(NAME, text, f"{NAME}.toml", "{}"),
                cancel_timeout_s=CREATE_CANCEL_TIMEOUT_S,
            )

        with switched_off():
            return Device(make(), f"sim:{NAME}.toml")


def errors_table(errors: TwinErrors) -> str:
    """Return the table of a profile with the errors of a twin."""
    lines = [f"[{TWIN_ERRORS}]", f"device = {_toml(errors.device)}", "patterns = ["]
    lines += [
        f"  {{ pattern = {_toml(one.pattern)}, mean_error = {_toml(round(one.mean_error, 5))}, "
        f"p99_error = {_toml(round(one.p99_error, 5))} }},"
        for one in errors.patterns
    ]
    return "\n".join([*lines, "]"]) + "\n"


def _toml(value: Value) -> str:
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False)
