"""Resolving patterns and states for a device: checks, and all defaults filled in."""

import json
from collections.abc import Mapping
from typing import NamedTuple

import msgspec
from msgspec import structs

from uflip import _native
from uflip.data.device import DeviceInfo
from uflip.data.spec import MODES, ZONE_MODES, Pattern, Spec, Totals, text_of
from uflip.data.state_record import StateRequest
from uflip.errors import UsageError, native_errors
from uflip.spec import MIX_ARRIVALS, OPEN_TIMES, Basic, Functions, basic, mix


class Resolved(NamedTuple):
    """A pattern with all defaults filled in, and its totals."""

    spec: Pattern
    totals: Totals


def resolve(spec: Spec, info: DeviceInfo) -> Resolved:
    """Check a specification against a device and fill in the defaults; nothing is touched.

    >>> from uflip.device.opener import open_device
    >>> from uflip.spec import baseline
    >>> resolve(baseline("RR"), open_device("null").info).spec.io_size
    32768
    """
    _check_commands(spec, info)
    with native_errors():
        text = _native.resolve_pattern(
            text_of(spec), info.capacity_bytes, info.sector_bytes, info.kind
        )
    content = msgspec.json.decode(text)
    totals = msgspec.convert(content.pop("totals"), Totals)
    return Resolved(msgspec.convert(content, Pattern), totals)


def _check_commands(spec: Spec, info: DeviceInfo) -> None:
    """Refuse commands that a device of this kind does not support, as the open device does.

    Without this check a file would be created, and written in full, before the error.
    """
    modes = [part.mode for part in spec.parts if part.mode in ZONE_MODES]
    if modes and not info.null and info.addresses == "sectors":
        if not info.zoned:
            raise UsageError(
                "The device has no zones",
                where=info.url,
                got=modes[0],
                allowed=", ".join(mode for mode in MODES if mode not in ZONE_MODES),
                action="name a device with zones, like sim:zns",
            )
        if "append" in modes and not info.appends:
            raise UsageError(
                "Linux does not support zone append on block devices",
                where=info.url,
                got="append",
                allowed="write: it goes to the write pointer",
                action="write instead, or send the drive's own commands: nvme:/dev/NAME",
            )
    stream = max((max(each.write_stream or 0, each.hot_write_stream or 0) for each in spec.parts),
                 default=0)  # fmt: skip
    if stream >= info.write_streams and not info.simulated:  # a simulated device checks it itself
        raise UsageError(
            "The device has no such write stream",
            where="write_stream",
            got=f"{stream} on {info.url}",
            allowed=f"0 to {info.write_streams - 1}"
            if info.write_streams > 1
            else "0: it does not separate writes",
            action="name a device with write_streams or placement handles, or omit write_stream",
        )


def with_resets(spec: Functions, info: DeviceInfo) -> Functions:
    """Return writes at `zones` with the zones of the device, and a reset of each before its writes.

    Each zone is reset while the set before it is written, so the first set must be empty. Any other
    pattern, and one that states its own zones, stays as it is.

    >>> from uflip.device.catalogue import inspect_device
    >>> from uflip.spec import basic
    >>> writes = basic("write", "zones", io_size="32k", io_count=100)
    >>> pattern = with_resets(writes, inspect_device("sim:zns"))
    >>> pattern.weights, pattern.parts[1].mode
    ((3072, 1), 'reset')
    """
    limits = info.details.zones
    own = ("zone_ios", "zone_capacity_ios", "stop", "parallel_degree")
    if (
        limits is None
        or not isinstance(spec, Basic)
        or (spec.mode, spec.location) != ("write", "zones")
        or any(getattr(spec, name) for name in own)
    ):
        return spec
    zone_bytes, size = limits.zone_bytes, spec.io_bytes
    if zone_bytes % size:
        raise UsageError(
            "The zones of the device are no multiple of the I/O size",
            where="io_size",
            got=f"{size} bytes, in zones of {zone_bytes}",
            allowed="a size that divides the zones",
            action="change the I/O size",
        )
    capacity = (limits.zone_capacity_bytes or zone_bytes) // size
    arrivals = MIX_ARRIVALS if spec.time in OPEN_TIMES else ()
    whole = ("io_count", "io_ignore", "queue_depth", "seed", *arrivals)
    of_mix = {name: getattr(spec, name) for name in whole}
    if spec.io_count is not None:
        of_mix["io_count"] = spec.io_count + spec.io_count // capacity
    writes = structs.replace(
        spec, io_size=size, zone_ios=zone_bytes // size, zone_capacity_ios=capacity,
        **dict.fromkeys(whole),
    )  # fmt: skip
    resets = basic(
        "reset", "zones", io_size=zone_bytes, zone_ios=1, open_zones=spec.open_zones,
        target_offset=spec.target_offset, target_size=spec.target_size,
    )  # fmt: skip
    return mix(writes, resets, weights=[capacity, 1], **of_mix)


def repeats_state(spec: Spec, info: DeviceInfo) -> bool:
    """Return whether random I/Os repeat the addresses of the state's random writes, in their order.

    With the same seed, every other I/O has the address of a write of the state: data of one block
    is then rewritten in the order in which it came there. Known for simulated devices only.

    >>> from uflip.device.catalogue import inspect_device
    >>> from uflip.spec import baseline
    >>> info = inspect_device("sim:demo")
    >>> [repeats_state(baseline("RW", seed=seed), info) for seed in (1, 2)]
    [True, False]
    """
    state = info.profile.state
    is_random = any(part.location == "random" for part in spec.parts)
    return is_random and state.state == "random" and spec.seed == state.seed


class ResolvedState(NamedTuple):
    """A state with all defaults filled in, and the totals of its enforcement."""

    request: StateRequest
    totals: Totals


def resolve_state(state: Mapping[str, object], info: DeviceInfo) -> ResolvedState:
    """Check a state against a device and fill in the defaults; nothing is touched.

    `state`: state ("random" or "sequential"); optional target_offset, target_size, io_size_max,
    random_bytes [bytes], seed. `info`: the device.

    >>> from uflip.device.opener import open_device
    >>> info = open_device("null", size="1MiB").info
    >>> resolve_state({"state": "sequential"}, info).totals.bytes_written
    1048576
    """
    with native_errors():
        text = _native.resolve_state(json.dumps(state), info.capacity_bytes, info.sector_bytes)
    content = msgspec.json.decode(text)
    totals = msgspec.convert(content.pop("totals"), Totals)
    return ResolvedState(msgspec.convert(content, StateRequest), totals)
