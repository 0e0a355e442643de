"""Resolving patterns and states for a device: checks, and all defaults filled in."""

import json
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from uflip import _native
from uflip.data.device import DeviceInfo
from uflip.data.spec import MODES, ZONE_MODES, Pattern, Spec, Totals, text_of
from uflip.data.state_record import StateRequest
from uflip.errors import UsageError, native_errors


class Resolved(NamedTuple):
    """A pattern with all defaults filled in, and its totals."""

    spec: Pattern
    totals: Totals


def resolve(spec: Spec, info: DeviceInfo) -> Resolved:
    """Check a specification against a device and fill in the defaults; nothing is touched.

    Examples
    --------
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


def repeats_state(spec: Spec, info: DeviceInfo) -> bool:
    """Return whether random I/Os repeat the addresses of the state's random writes, in their order.

    With the same seed, every other I/O has the address of a write of the state: data of one block
    is then rewritten in the order in which it came there. Known for simulated devices only.

    Examples
    --------
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

    Examples
    --------
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
