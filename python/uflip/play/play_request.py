"""Requests of the play page, parsed and checked against the limits.

A request has three parts: the name of a profile, changed keys, and the run: one pattern with its
parameters, or one of the micro-benchmarks at the quick scale. It contains no path, so that only
built-in profiles are opened.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from uflip.data.device import DeviceInfo
from uflip.data.spec import Totals
from uflip.device.opener import inspect_sim
from uflip.device.resolve import resolve
from uflip.device.url import DeviceUrl, parse_url, with_overrides
from uflip.errors import UsageError, unknown_name
from uflip.microbench import varied_micro_benchmarks
from uflip.profiles import random_access_names
from uflip.spec import BASELINES, Spec, baseline
from uflip.units import format_count, format_size

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
    """A device, and a run on it.

    Attributes
    ----------
    url : str
        The device, with its overrides.
    benchmark : str
        `PATTERN`, or the name of a micro-benchmark.
    spec : Spec or None
        The pattern, complete; None for a micro-benchmark.
    label : str
        SR, RR, SW or RW; empty for a micro-benchmark.
    """

    url: str
    benchmark: str
    spec: Spec | None = None
    label: str = ""


def device_of(device: str, changes: Mapping[str, str]) -> DeviceUrl:
    """Return the URL of a simulated device with some keys changed.

    Raises
    ------
    UsageError
        If there is no such profile.
    """
    if device not in random_access_names():
        raise unknown_name("device", device, random_access_names(), where="device")
    return parse_url(with_overrides(f"sim:{device}", changes))


def parse_request(document: object) -> PlayRequest:
    """Parse a request.

    Parameters
    ----------
    document : object
        Fields: device, keys, benchmark, pattern, options.

    Raises
    ------
    UsageError
        If it is invalid, or exceeds the limits.
    """
    device, keys = _text_field(document, "device"), _text_fields(document, "keys")
    target = device_of(device, keys)
    info = inspect_sim(target)
    _check_flash(info)
    benchmark = _text_field(document, "benchmark")
    if benchmark != PATTERN:
        if benchmark not in varied_micro_benchmarks():
            raise unknown_name(
                "micro-benchmark", benchmark, [PATTERN, *varied_micro_benchmarks()], where="run"
            )
        return PlayRequest(target.text, benchmark)
    label, options = _text_field(document, "pattern"), _text_fields(document, "options")
    if label not in BASELINES:
        raise unknown_name("pattern", label, BASELINES, where="pattern")
    for name in options:
        if name not in OPTIONS:
            raise unknown_name("parameter", name, OPTIONS, where="options")
    complete = resolve(baseline(label, **options), info)
    _check_length(complete.totals)
    return PlayRequest(target.text, PATTERN, complete.spec, label)


def _check_flash(info: DeviceInfo) -> None:
    flash = info.details.flash_bytes or info.capacity_bytes
    if flash > MAX_FLASH_BYTES:
        raise UsageError(
            "The device is too large for the explorer",
            where=info.url,
            got=f"{format_size(flash)} of flash",
            allowed=f"at most {format_size(MAX_FLASH_BYTES)}",
            action="use fewer blocks per die, or `uflip run` on the command line",
        )


def _check_length(totals: Totals) -> None:
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


def _text_field(document: object, name: str) -> str:
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
        return {key: _text_field(values, key) for key in values}
    raise UsageError(
        "The overrides are not an object of strings",
        where=name,
        allowed="a name and a text for each",
        action="send an object of texts",
    )
