"""The state of a device: its enforcement, the progress of that, and its name.

The behaviour of a flash device depends on its history. So it is overwritten in a defined way before
it is measured, and later writes are recorded: a *state id* names the enforced state together with
every write since. Two runs with the same id began on equal devices.

**Source**: uFLIP (CIDR 2009) §4.1: random writes of random size (0.5 KB to the flash block size,
128 KB) over the whole device; the alternative is a sequential rewrite.
**Faithful**: both states; the whole target is written.
**Simplified**: a sequential pass comes first, so that every sector is written for certain. A
simulated device is written to in its functional mode.
**Ambiguous**: how much is written at random. Random writes of x times the target leave e^-x of the
sequential pass: 37 % after one, 5 % after `OVERWRITES`, the required precision. The remaining data
lies in the order of its addresses, and sequential writes meet it all at once.
"""

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from uflip._native import Trace
from uflip.benchmark.cost import cost_of
from uflip.benchmark_options import STATES
from uflip.data.device import DeviceInfo
from uflip.data.spec import Spec, read_spec, table_of
from uflip.data.state_record import StateRequest
from uflip.device.handle import Device
from uflip.device.resolve import resolve_state
from uflip.durability import CACHED
from uflip.errors import InterruptedRun, UsageError, unknown_name
from uflip.footprint import written_sequentially
from uflip.results.state_record import StateRecord

WRITTEN_STATES = ("random", "sequential")
OVERWRITES = 3
# Enough for the run lengths of the paper.
FEWEST_OVERWRITES = 1

# A killed enforcement loses at most the writes of this time; storing its progress costs a rename.
SAVE_EVERY_S = 5.0

OnState = Callable[[int, int], None]
"""Called with (writes made, writes in all), both counted from the first write of the state."""


@dataclass(frozen=True)
class Enforcement:
    """A state to be enforced, and its cost."""

    #: Complete: state, target_offset, target_size, io_size_max, random_bytes [bytes], seed.
    request: StateRequest
    #: Its I/Os and bytes; counted, not estimated.
    total_ios: int
    bytes_written: int
    time_ns: int  #: An estimate [ns] on the wall clock.

    @property
    def state_id(self) -> str:
        """The name of the resulting state."""
        return _digest(self.request)

    def is_met_by(self, request: StateRequest) -> bool:
        """Return whether the state of another request satisfies this one: more random does."""
        least = self.request["random_bytes"]
        is_enough = request["random_bytes"] >= least
        return is_enough and self.request == {**request, "random_bytes": least}


def plan_state(
    info: DeviceInfo,
    state: str,
    target_size: int | None = None,
    seed: int = 1,
    overwrites: int = OVERWRITES,
) -> Enforcement | None:
    """Return the cost of enforcing a state. The device is not touched.

    `info`: the device. `state`: one of `STATES`. `target_size`: the part of the device to write,
    from its beginning [bytes]; by default all of it. `seed`: seed of the random writes.
    `overwrites`: amount of random writes, in multiples of the target size.
    """
    if state not in STATES:
        raise unknown_name("state", state, STATES, where="--state")
    if state == "as-is":
        return None
    if state == "empty" and not info.details.deallocates:
        raise UsageError(
            "The device has no command to deallocate: it cannot be emptied",
            where="--state",
            got=state,
            allowed="random, sequential, as-is",
            action="omit --state, or choose another device",
        )
    request: dict[str, object] = {"state": state, "seed": seed}
    if state == "random":
        whole = info.capacity_bytes if target_size is None else target_size
        request["random_bytes"] = overwrites * whole
    if target_size is None:
        return plan_request(info, request)
    try:
        return plan_request(info, request | {"target_size": target_size})
    except UsageError as error:
        error.where = f"--target-size {target_size}"
        raise


def plan_request(info: DeviceInfo, requested: Mapping[str, object]) -> Enforcement:
    """Return the same as `plan_state`, for a request that may also contain sizes and a seed."""
    request, totals = resolve_state(requested, info)
    ios, written = totals.total_ios, totals.bytes_written
    time_ns = cost_of(info.kind).state_ns(ios, written, request["target_size"])
    return Enforcement(request, ios, written, time_ns)


def enforce_state(
    device: Device,
    enforcement: Enforcement,
    record: StateRecord | None,
    done_ios: int = 0,
    on_state: OnState | None = None,
) -> None:
    """Enforce a state on a device; store the progress, even if it fails."""
    made, saved_at = done_ios, time.monotonic()

    def progress(done: int, _total: int, _response_ns: int) -> None:
        nonlocal made, saved_at
        made = done_ios + done
        if record is not None and time.monotonic() - saved_at > SAVE_EVERY_S:
            record.save_progress(made)
            saved_at = time.monotonic()
        if on_state is not None:
            on_state(made, enforcement.total_ios)

    try:
        device.enforce(enforcement.request, done_ios, progress)
    except InterruptedRun as error:
        raise InterruptedRun(
            f"Interrupted after {made} of {enforcement.total_ios} writes of the state",
            where=error.where,
            action="give the same command again: it continues from there",
        ) from None
    finally:
        if record is not None:
            record.save_progress(made)


def default_state(info: DeviceInfo) -> str:
    """Return the default state at the beginning of a plan.

    A simulated device is created in the state of its profile, and a saved one keeps its state; the
    null device has no state.
    """
    if info.zoned:
        return "as-is"
    if info.outlives_process:
        return "random"
    if info.simulated and info.details.snapshot is None:
        profile = info.profile.state.state
        return profile if profile in WRITTEN_STATES else "as-is"
    return "as-is"


def next_state_id(
    state_id: str | None, spec: Spec, ios: int | None, durability: str = CACHED
) -> str | None:
    """Return the name of the state after a run on a device in a named state.

    `state_id`: the state before; None is an unknown state, and stays unknown. `spec`: the resolved
    specification of the run. `ios`: number of its I/Os; None if unknown. `durability`: durability
    of its writes: frequent flushes change the layout of data.
    """
    if state_id is None:
        return None
    after = {"after": state_id, "spec": table_of(spec), "ios": ios}
    return _digest(after if durability == CACHED else after | {"durability": durability})


def state_of_profile(profile: Mapping[str, object], snapshot: str | None = None) -> str:
    """Return the name of the state in which a simulated device is opened."""
    return _digest({"profile": profile} | ({"snapshot": snapshot} if snapshot else {}))


def _digest(content: Mapping[str, object]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


class History:
    """Tracks the state of a device through enforcements and runs.

    `state_id`: the initial state; None if unknown. `record`: stores each change; None for a device
    that ends with the process.
    """

    def __init__(self, state_id: str | None, record: StateRecord | None = None) -> None:
        self.state_id = state_id
        """The current state of the device."""
        self._record = record

    def enforce(
        self, device: Device, enforcement: Enforcement, on_state: OnState | None = None
    ) -> None:
        """Enforce a state on the device, continuing an interrupted attempt."""
        record = self._record
        done_ios = record.begin(enforcement.request, enforcement.total_ios) if record else 0
        self.state_id = None
        enforce_state(device, enforcement, record, done_ios, on_state)
        if record:
            record.save_enforced(enforcement.state_id)
        self.state_id = enforcement.state_id

    def record_interruption(self, spec: Spec, durability: str = CACHED) -> None:
        """Record an interrupted run: the amount that it wrote is unknown."""
        if spec.writes:
            self.state_id = next_state_id(self.state_id, spec, None, durability)

    def record_foreign_writes(self) -> None:
        """Record writes by other processes: the state of the device is unknown."""
        self.state_id = None
        if self._record:
            self._record.forget()

    def record_run(self, trace: Trace, durability: str = CACHED) -> None:
        """Record a finished run; reads do not change the state of a device."""
        spec = read_spec(trace.spec_json)
        if not spec.writes:
            return
        self.state_id = next_state_id(self.state_id, spec, len(trace), durability)
        if self._record is None:
            return
        if trace.bytes_trimmed:
            # A known state must be one that a benchmark may begin in.
            self._record.forget()
            return
        self._record.save_run(self.state_id, trace.bytes_written, written_sequentially(spec).end)
