"""The state of a device at the beginning: what is known of it, and enforcing what is wanted."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from uflip.data.device import DeviceInfo
from uflip.device.opened import Device
from uflip.methodology import Enforcement, History, state_of_profile
from uflip.methodology.state import FEWEST_OVERWRITES
from uflip.results.state_record import StateRecord, default_path, open_record
from uflip.session.events import OnEvent, StateBegins, StateProgress

AS_IS = {"state": "as-is", "state_id": None, "known_from": None, "request": None}
"""A device that is measured as it was found, in the manifest."""


def record_of(info: DeviceInfo, url: str, given: Path | None) -> StateRecord | None:
    """Open the record of a device; None where the device does not outlive the process."""
    if not info.outlives_process:
        return None
    return open_record(default_path(url) if given is None else given, info)


def known_state(
    info: DeviceInfo, wanted: Enforcement | None, record: StateRecord | None
) -> dict[str, Any] | None:
    """Describe the state that a device is in already, as the manifest holds it.

    Returns
    -------
    dict or None
        None where the wanted state has to be enforced.
    """
    if info.simulated:
        return _known_of_simulated(info, wanted)
    if wanted is None:
        return dict(AS_IS)
    known = record.state if record else None
    if known is None or known.state_id is None or not wanted.is_met_by(known.request):
        return None
    since = {"since_runs": known.runs_since, "since_bytes_written": known.bytes_written_since}
    return _document(known.request, known.state_id, "record") | since


def _known_of_simulated(info: DeviceInfo, wanted: Enforcement | None) -> dict[str, Any] | None:
    """Describe a device that was just made or restored."""
    profile, snapshot = info.profile_table, info.details.snapshot
    if wanted is None:
        if snapshot is None:
            return dict(AS_IS)
        return AS_IS | {"state_id": state_of_profile(profile, snapshot), "known_from": "snapshot"}
    request = wanted.request
    whole = request["target_offset"] == 0 and request["target_size"] == info.capacity_bytes
    is_it = info.profile.state.state == request["state"]
    if snapshot is not None or not (is_it and whole and _is_random_enough(info, request)):
        return None
    return _document(wanted.request, state_of_profile(profile), "profile")


def _is_random_enough(info: DeviceInfo, request: Mapping[str, Any]) -> bool:
    overwrites = info.profile.state.random_overwrites
    enough = max(overwrites, FEWEST_OVERWRITES) * info.capacity_bytes
    return enough >= int(request["random_bytes"])


def used_bytes(wanted: Enforcement | None, record: StateRecord | None) -> int:
    """Return up to where earlier plans have written sequentially in the state that is wanted."""
    known = record.state if record else None
    if wanted is None or known is None or not wanted.is_met_by(known.request):
        return 0
    return known.used_bytes if known.state_id is not None else 0


def bring_into_state(
    device: Device, wanted: Enforcement, record: StateRecord | None, on_event: OnEvent
) -> dict[str, Any]:
    """Enforce a state from where an earlier attempt stopped; describe it for the manifest."""
    known = record.state if record else None
    goes_on = known is not None and known.state_id is None and known.request == wanted.request
    on_event(StateBegins(wanted, known.done_ios if known and goes_on else 0))
    History(None, record).enforce(
        device, wanted, lambda done, total: on_event(StateProgress(done, total))
    )
    return _document(wanted.request, wanted.state_id, "enforced")


def _document(request: Mapping[str, Any], state_id: str, known_from: str) -> dict[str, Any]:
    return {
        "state": request["state"],
        "state_id": state_id,
        "known_from": known_from,
        "request": dict(request),
    }
