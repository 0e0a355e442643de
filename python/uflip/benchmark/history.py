"""History of a device: writes since its state was enforced, run by run."""

from typing import Protocol

from uflip._native import Trace
from uflip.benchmark.state import Enforcement, OnState, enforce_state, next_state_id
from uflip.data.spec import Spec, read_spec
from uflip.data.state_record import StateRequest
from uflip.device.handle import Device
from uflip.durability import CACHED
from uflip.footprint import written_sequentially


class StateStore(Protocol):
    """Storage for the state of a device; `uflip.results.StateRecord` is one."""

    def begin(self, request: StateRequest, total_ios: int) -> int:
        """Record that enforcement begins; return the number of writes made already."""

    def save_progress(self, done_ios: int) -> None:
        """Record the number of its writes made so far."""

    def save_enforced(self, state_id: str) -> None:
        """Record that the state is enforced."""

    def save_run(self, state_id: str | None, written_bytes: int, used_bytes: int) -> None:
        """Record the state after a run."""

    def forget(self) -> None:
        """Record that the state is unknown."""


class NoStateStore:
    """A record without storage, for devices that end with the process."""

    def begin(self, request: StateRequest, total_ios: int) -> int:  # noqa: ARG002
        """Return 0: begin at the first write."""
        return 0

    def save_progress(self, done_ios: int) -> None:
        """Do nothing."""

    def save_enforced(self, state_id: str) -> None:
        """Do nothing."""

    def save_run(self, state_id: str | None, written_bytes: int, used_bytes: int) -> None:
        """Do nothing."""

    def forget(self) -> None:
        """Do nothing."""


class History:
    """Tracks the state of a device through enforcements and runs.

    Parameters
    ----------
    state_id : str or None
        The initial state; None if unknown.
    store : StateStore, optional
        Stores each change.
    """

    def __init__(self, state_id: str | None, store: StateStore | None = None) -> None:
        self.state_id = state_id
        """The current state of the device."""
        self._store = NoStateStore() if store is None else store

    def enforce(
        self, device: Device, enforcement: Enforcement, on_state: OnState | None = None
    ) -> None:
        """Enforce a state on the device, continuing an interrupted attempt.

        Raises
        ------
        UflipError
            From `enforce_state`; the writes made so far are recorded.
        """
        done_ios = self._store.begin(enforcement.request, enforcement.total_ios)
        self.state_id = None
        enforce_state(device, enforcement, self._store, done_ios, on_state)
        self._store.save_enforced(enforcement.state_id)
        self.state_id = enforcement.state_id

    def record_interruption(self, spec: Spec, durability: str = CACHED) -> None:
        """Record an interrupted run: the amount that it wrote is unknown."""
        if spec.writes:
            self.state_id = next_state_id(self.state_id, spec, None, durability)

    def record_foreign_writes(self) -> None:
        """Record writes by other processes: the state of the device is unknown."""
        self.state_id = None
        self._store.forget()

    def record_run(self, trace: Trace, durability: str = CACHED) -> None:
        """Record a finished run; reads do not change the state of a device."""
        spec = read_spec(trace.spec_json)
        if not spec.writes:
            return
        self.state_id = next_state_id(self.state_id, spec, len(trace), durability)
        if trace.bytes_trimmed:
            # A known state must be one that a benchmark may begin in.
            self._store.forget()
            return
        self._store.save_run(self.state_id, trace.bytes_written, written_sequentially(spec).end)
