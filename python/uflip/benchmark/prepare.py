"""A device before its first run: open it, look up its state, enforce the requested one."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

from msgspec.structs import replace

from uflip import signals
from uflip.benchmark.events import (
    DeviceBegins,
    DeviceProgress,
    FileBegins,
    FileProgress,
    OnEvent,
    StateBegins,
    StateProgress,
)
from uflip.benchmark.state import FEWEST_OVERWRITES, Enforcement, History, state_of_profile
from uflip.data.device import DeviceInfo
from uflip.data.manifest import DeviceState, KnownFrom
from uflip.data.spec import Basic
from uflip.data.state_record import StateRequest
from uflip.device.handle import Device
from uflip.device.opener import CreationProgress, Report, open_device
from uflip.device.url import parse_url
from uflip.errors import UsageError
from uflip.results.state_record import StateRecord, default_path, open_record
from uflip.units import format_size

AS_IS = DeviceState("as-is", None, None, None)
"""The state of a device that is measured as-is."""
Done = Literal["was", "enforced"]
MAX_TRIM_BYTES = 128 << 20
"""Length limit of a trim, as of any I/O [bytes]."""


def open_watched(url: str, info: DeviceInfo, on_event: OnEvent, **options: Any) -> Device:
    """Open a device like `open_device`, and report progress if it takes long."""
    if parse_url(url).kind == "sim":
        return open_device(url, on_progress=CreationProgress(_reporting(url, on_event)), **options)
    missing = info.details.to_be_written_bytes
    if not missing:
        return open_device(url, **options)
    on_event(FileBegins(url, missing, missing == info.capacity_bytes))
    return open_device(
        url,
        on_progress=lambda done, total, _last: on_event(FileProgress(url, done, total)),
        **options,
    )


def _reporting(url: str, on_event: OnEvent) -> Report:
    """Convert the progress of creating a simulated device into events."""
    begun = False

    def report(done: int, total: int, left_ns: int) -> None:
        nonlocal begun
        if not begun:
            on_event(DeviceBegins(url, left_ns))
            begun = True
        on_event(DeviceProgress(url, done, total, left_ns))

    return report


def record_of(info: DeviceInfo, url: str, record_path: Path | None) -> StateRecord | None:
    """Open the record of a device; return None if the device ends with the process."""
    if not info.outlives_process:
        if record_path is not None:
            raise UsageError(
                "--record applies only to persistent devices",
                where="--record",
                got=f"{url} with --record {record_path}",
                allowed="file:PATH, /dev/NAME, nvme:/dev/NAME",
                action="omit --record: this device does not outlive the process",
            )
        return None
    return open_record(default_path(url) if record_path is None else record_path, info)


def valid_record(info: DeviceInfo, url: str) -> StateRecord | None:
    """Return the valid record of a device, to be forgotten after changes; None without one."""
    record = record_of(info, url, None)
    return record if record is not None and record.state is not None else None


def known_state(
    info: DeviceInfo, enforcement: Enforcement | None, record: StateRecord | None
) -> DeviceState | None:
    """Return the current state of a device."""
    if info.simulated:
        return _state_of_simulated(info, enforcement)
    if enforcement is None:
        return AS_IS
    recorded = record.state if record else None
    if recorded is None or recorded.state_id is None or not enforcement.is_met_by(recorded.request):
        return None
    return replace(
        _device_state(recorded.request, recorded.state_id, "record"),
        since_runs=recorded.runs_since,
        since_bytes_written=recorded.bytes_written_since,
    )


def _state_of_simulated(info: DeviceInfo, enforcement: Enforcement | None) -> DeviceState | None:
    """Return the state of a device that was just created or restored."""
    profile, snapshot = info.profile_table, info.details.snapshot
    if enforcement is None:
        if snapshot is None:
            return AS_IS
        restored_id = state_of_profile(profile, snapshot)
        return replace(AS_IS, state_id=restored_id, known_from="snapshot")
    request = enforcement.request
    covers_device = request["target_offset"] == 0 and request["target_size"] == info.capacity_bytes
    is_same_state = info.profile.state.state == request["state"]
    overwrites = max(info.profile.state.random_overwrites, FEWEST_OVERWRITES)
    is_random_enough = overwrites * info.capacity_bytes >= request["random_bytes"]
    if snapshot is not None or not (is_same_state and covers_device and is_random_enough):
        return None
    return _device_state(enforcement.request, state_of_profile(profile), "profile")


def used_bytes(enforcement: Enforcement | None, record: StateRecord | None) -> int:
    """Return the end of the space that earlier plans wrote sequentially in the wanted state."""
    recorded = record.state if record else None
    if enforcement is None or recorded is None or not enforcement.is_met_by(recorded.request):
        return 0
    return recorded.used_bytes if recorded.state_id is not None else 0


def bring_into_state(
    device: Device, enforcement: Enforcement, record: StateRecord | None, on_event: OnEvent
) -> DeviceState:
    """Enforce a state, continuing an earlier attempt, and describe it."""
    recorded = record.state if record else None
    continues = (
        recorded is not None
        and recorded.state_id is None
        and recorded.request == enforcement.request
    )
    on_event(StateBegins(enforcement, recorded.done_ios if recorded and continues else 0))
    History(None, record).enforce(
        device, enforcement, lambda done, total: on_event(StateProgress(done, total))
    )
    return _device_state(enforcement.request, enforcement.state_id, "enforced")


def _device_state(request: StateRequest, state_id: str, known_from: KnownFrom) -> DeviceState:
    return DeviceState(request["state"], state_id, known_from, request)


class Opening(TypedDict):
    """Options for opening it; see `uflip.open_device`."""

    size: int | None
    buffered: bool
    data: str
    destroy: str | None
    io_timeout_ns: int


@dataclass(frozen=True)
class PreparedDevice:
    """The result: whether the device was in that state already, and the record of its state."""

    done: Done
    record: StateRecord | None


def prepare(
    url: str,
    info: DeviceInfo,
    enforcement: Enforcement,
    on_event: OnEvent,
    *,
    record: Path | None,
    again: bool,
    afterwards: Callable[[Device], None],
    **opening: Unpack[Opening],
) -> PreparedDevice:
    """Bring a device into a state, unless it is in it already.

    `url`: the device. `info`: from `inspect_device`, with the same options. `enforcement`: the
    state. `on_event`: receives events. `record`: path of the state record; None: the default path.
    `again`: enforce the state even if the device is in it. `afterwards`: called with the device
    after the state was enforced. `**opening`: see `Opening`.
    """
    record_of(info, url, record)  # an invalid record must be an error before anything is written
    with (
        signals.shielded(),
        open_watched(url, info, on_event, **opening) as opened,
    ):
        state_record = record_of(opened.info, url, record)
        recorded = state_record.state if state_record else None
        in_state = (
            recorded
            and recorded.request == enforcement.request
            and recorded.state_id == enforcement.state_id
        )
        if in_state and not again:
            return PreparedDevice("was", state_record)
        bring_into_state(opened, enforcement, state_record, on_event)
        afterwards(opened)
    return PreparedDevice("enforced", state_record)


def split_into_trims(info: DeviceInfo, begin: int, size: int | None) -> list[Basic]:
    """Split a range into trims of one size, and a shorter one for the remainder.

    `info`: the device. `begin`: begin of the range [bytes]. `size`: length of the range [bytes];
    None: up to the end of the device.

    >>> from uflip import inspect_device
    >>> trims = split_into_trims(inspect_device("sim:demo"), 0, 300 << 20)
    >>> [(trim.io_bytes, trim.ios) for trim in trims]
    [(134217728, 2), (46137344, 1)]
    """
    end = info.capacity_bytes if size is None else begin + size
    if info.zoned:
        raise UsageError(
            "The device deallocates by whole zones: it has no command for less",
            where="DEVICE",
            got=info.url,
            allowed="a device without zones",
            action="reset its zones: `uflip zones DEVICE --reset ZONES`",
        )
    if not info.details.deallocates:
        raise UsageError(
            "The device has no command to deallocate",
            where="DEVICE",
            got=info.url,
            allowed="a disk with discard_max_bytes above 0, a file, or a simulated device",
            action="choose another device",
        )
    if begin >= end or end > info.capacity_bytes or (begin | end) % info.sector_bytes:
        raise UsageError(
            "This is not a sector range of the device",
            where="--target-offset, --target-size",
            got=f"bytes {begin} to {end}",
            allowed=f"whole sectors of {info.sector_bytes} bytes, up to byte "
            f"{info.capacity_bytes} ({format_size(info.capacity_bytes)})",
            action="choose another range",
        )
    full_trims = (end - begin) // MAX_TRIM_BYTES
    pieces = [(begin, MAX_TRIM_BYTES, full_trims)] if full_trims else []
    if remainder := end - begin - full_trims * MAX_TRIM_BYTES:
        pieces.append((end - remainder, remainder, 1))
    return [
        Basic(
            "trim", "sequential", io_size=each, target_offset=at, target_size=each * count,
            io_count=count, io_ignore=0,
        )
        for at, each, count in pieces
    ]  # fmt: skip
