"""Preparing a device: enforce a state and leave the device in it, for `uflip prepare`."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypedDict, Unpack

from uflip import signals
from uflip.data.device import DeviceInfo
from uflip.device.handle import Device
from uflip.methodology import Enforcement
from uflip.results.state_record import StateRecord
from uflip.session.events import OnEvent
from uflip.session.open_device import open_watched
from uflip.session.state import bring_into_state, record_of

Done = Literal["was", "enforced"]


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

    Parameters
    ----------
    url : str
        The device.
    info : DeviceInfo
        From `inspect_device`, with the same options.
    enforcement : Enforcement
        The state.
    on_event : callable
        Receives events.
    record : Path or None
        Path of the state record; None: the default path.
    again : bool
        Enforce the state even if the device is in it.
    afterwards : callable
        Called with the device after the state was enforced.
    **opening
        See `Opening`.

    Returns
    -------
    PreparedDevice
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
