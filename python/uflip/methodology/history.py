"""What has been written to a device since its state was enforced, run by run."""

from typing import Protocol

from uflip._native import Trace
from uflip.data.state_record import StateRequest
from uflip.device.handle import Device
from uflip.durability import CACHED
from uflip.footprint import written_sequentially
from uflip.methodology.state import Enforcement, OnState, enforce_state, next_state_id
from uflip.spec import Spec, read_spec


class Noted(Protocol):
    """Where the state of a device is noted; `uflip.results.StateRecord` is one."""

    def begin(self, request: StateRequest, total_ios: int) -> int:
        """Note that a state is to be enforced; returns how many writes were made already."""

    def reached(self, done_ios: int) -> None:
        """Note that so many of its writes were made."""

    def enforced(self, state_id: str) -> None:
        """Note that it is enforced."""

    def after_run(self, state_id: str | None, written_bytes: int, used_bytes: int) -> None:
        """Note what a run left behind."""

    def forget(self) -> None:
        """Note that nothing is known any more."""


class Nowhere:
    """In place of a record, for devices that end with the process."""

    def begin(self, request: StateRequest, total_ios: int) -> int:  # noqa: ARG002
        """Begin at the first write."""
        return 0

    def reached(self, done_ios: int) -> None:
        """Forget it."""

    def enforced(self, state_id: str) -> None:
        """Forget it."""

    def after_run(self, state_id: str | None, written_bytes: int, used_bytes: int) -> None:
        """Forget it."""

    def forget(self) -> None:
        """Know nothing."""


class History:
    """Follows the state of a device through enforcements and runs.

    Parameters
    ----------
    state_id : str or None
        The state at the beginning; None where it is not known.
    noted : Noted, optional
        Told after each change.
    """

    def __init__(self, state_id: str | None, noted: Noted | None = None) -> None:
        self.state_id = state_id
        """The state that the device is in now."""
        self._noted = Nowhere() if noted is None else noted

    def enforce(self, device: Device, wanted: Enforcement, on_state: OnState | None = None) -> None:
        """Bring the device into a state, from where an earlier attempt was cut short.

        Raises
        ------
        UflipError
            As `enforce_state`; what was written is noted.
        """
        done_ios = self._noted.begin(wanted.request, wanted.total_ios)
        self.state_id = None
        enforce_state(device, wanted, self._noted, done_ios, on_state)
        self._noted.enforced(wanted.state_id)
        self.state_id = wanted.state_id

    def cut_short(self, spec: Spec, durability: str = CACHED) -> None:
        """Take note that a run was cut short: nobody knows how much of it was written."""
        if spec.writes:
            self.state_id = next_state_id(self.state_id, spec, None, durability)

    def lost(self) -> None:
        """Take note that others wrote to the device: it is in no state that anybody knows."""
        self.state_id = None
        self._noted.forget()

    def after(self, trace: Trace, durability: str = CACHED) -> None:
        """Take note of a run that is over; reads leave a device in the state that it was in."""
        spec = read_spec(trace.spec_json)
        if not spec.writes:
            return
        self.state_id = next_state_id(self.state_id, spec, len(trace), durability)
        if trace.bytes_trimmed:
            # A state that is known is one that a benchmark may begin in.
            self._noted.forget()
            return
        self._noted.after_run(self.state_id, trace.bytes_written, written_sequentially(spec).end)
