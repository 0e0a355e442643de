"""The state of a device at the beginning: look it up, and enforce the requested one."""

from pathlib import Path

from msgspec.structs import replace

from uflip.data.device import DeviceInfo
from uflip.data.manifest import DeviceState, KnownFrom
from uflip.data.state_record import StateRequest
from uflip.device.handle import Device
from uflip.errors import UsageError
from uflip.methodology import Enforcement, History, state_of_profile
from uflip.methodology.state import FEWEST_OVERWRITES
from uflip.results.state_record import StateRecord, default_path, open_record
from uflip.session.events import OnEvent, StateBegins, StateProgress

AS_IS = DeviceState("as-is", None, None, None)
"""The state of a device that is measured as-is."""


def record_of(info: DeviceInfo, url: str, given: Path | None) -> StateRecord | None:
    """Open the record of a device; return None if the device ends with the process.

    Raises
    ------
    UsageError
        If a record was named for such a device.
    """
    if not info.outlives_process:
        if given is not None:
            raise UsageError(
                "--record applies only to persistent devices",
                where="--record",
                got=f"{url} with --record {given}",
                allowed="file:PATH, /dev/NAME, nbd://...",
                action="omit --record: this device does not outlive the process",
            )
        return None
    return open_record(default_path(url) if given is None else given, info)


def valid_record(info: DeviceInfo, url: str) -> StateRecord | None:
    """Return the valid record of a device, to be forgotten after changes; None without one."""
    record = record_of(info, url, None)
    return record if record is not None and record.state is not None else None


def known_state(
    info: DeviceInfo, wanted: Enforcement | None, record: StateRecord | None
) -> DeviceState | None:
    """Return the current state of a device.

    Returns
    -------
    DeviceState or None
        None if the wanted state has to be enforced.
    """
    if info.simulated:
        return _known_of_simulated(info, wanted)
    if wanted is None:
        return AS_IS
    known = record.state if record else None
    if known is None or known.state_id is None or not wanted.is_met_by(known.request):
        return None
    return replace(
        _described(known.request, known.state_id, "record"),
        since_runs=known.runs_since,
        since_bytes_written=known.bytes_written_since,
    )


def _known_of_simulated(info: DeviceInfo, wanted: Enforcement | None) -> DeviceState | None:
    """Return the state of a device that was just created or restored."""
    profile, snapshot = info.profile_table, info.details.snapshot
    if wanted is None:
        if snapshot is None:
            return AS_IS
        left_in = state_of_profile(profile, snapshot)
        return replace(AS_IS, state_id=left_in, known_from="snapshot")
    request = wanted.request
    whole = request["target_offset"] == 0 and request["target_size"] == info.capacity_bytes
    is_it = info.profile.state.state == request["state"]
    if snapshot is not None or not (is_it and whole and _is_random_enough(info, request)):
        return None
    return _described(wanted.request, state_of_profile(profile), "profile")


def _is_random_enough(info: DeviceInfo, request: StateRequest) -> bool:
    overwrites = info.profile.state.random_overwrites
    enough = max(overwrites, FEWEST_OVERWRITES) * info.capacity_bytes
    return enough >= request["random_bytes"]


def used_bytes(wanted: Enforcement | None, record: StateRecord | None) -> int:
    """Return the end of the space that earlier plans wrote sequentially in the wanted state."""
    known = record.state if record else None
    if wanted is None or known is None or not wanted.is_met_by(known.request):
        return 0
    return known.used_bytes if known.state_id is not None else 0


def bring_into_state(
    device: Device, wanted: Enforcement, record: StateRecord | None, on_event: OnEvent
) -> DeviceState:
    """Enforce a state, continuing an earlier attempt, and describe it."""
    known = record.state if record else None
    goes_on = known is not None and known.state_id is None and known.request == wanted.request
    on_event(StateBegins(wanted, known.done_ios if known and goes_on else 0))
    History(None, record).enforce(
        device, wanted, lambda done, total: on_event(StateProgress(done, total))
    )
    return _described(wanted.request, wanted.state_id, "enforced")


def _described(request: StateRequest, state_id: str, known_from: KnownFrom) -> DeviceState:
    return DeviceState(request["state"], state_id, known_from, request)
