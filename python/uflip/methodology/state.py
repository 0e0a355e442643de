"""The state of a device: how it is enforced, how far that got, and what it is called.

A flash device does what its history makes it do. So it is written over in a defined way before it
is measured, and what is written to it afterwards is kept count of: a *state id* names the enforced
state together with every write since, and two runs with the same id began on equal devices.

**Source**: uFLIP (CIDR 2009) §4.1: random writes of random size (0.5 KB to the flash block size,
128 KB) over the whole device; the alternative is a sequential rewrite.
**Faithful**: both states; the whole target is written.
**Simplified**: a sequential pass comes first, so that every sector is written for certain. A
simulated device is written to in its functional mode.
**Ambiguous**: how much is written at random. Of the sequential pass e^-x is left after x times as
much as the target holds: 37 % after one, 5 % after `OVERWRITES`, the precision that is asked for.
What is left lies in the order of its addresses, and sequential writes meet it all at once.
"""

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from uflip.benchmark_options import STATES
from uflip.data.device import DeviceInfo
from uflip.data.spec import Spec, table_of
from uflip.data.state_record import StateRequest
from uflip.device.handle import Device
from uflip.device.resolve import resolve_state
from uflip.durability import CACHED
from uflip.errors import InterruptedRun, UsageError, unknown_name
from uflip.methodology.cost import cost_of

OVERWRITES = 3
# What the lengths of the paper make do with.
FEWEST_OVERWRITES = 1

# A killed enforcement loses at most what was written in this time; its record costs a rename.
SAVE_EVERY_S = 5.0

OnState = Callable[[int, int], None]
"""Called with (writes made, writes in all), both counted from the first write of the state."""


@dataclass(frozen=True)
class Enforcement:
    """A state to be enforced, and what that takes.

    Attributes
    ----------
    request : dict
        Complete: state, target_offset, target_size, io_size_max, random_bytes [bytes], seed.
    total_ios, bytes_written : int
        What it amounts to; counted, not estimated.
    time_ns : int
        An estimate [ns] on the wall clock.
    """

    request: StateRequest
    total_ios: int
    bytes_written: int
    time_ns: int

    @property
    def state_id(self) -> str:
        """The name of the state that it ends in."""
        return _digest(self.request)

    def is_met_by(self, request: StateRequest) -> bool:
        """Whether a device in the state of another request is in this one: more at random is."""
        least = self.request["random_bytes"]
        is_enough = request["random_bytes"] >= least
        return is_enough and self.request == {**request, "random_bytes": least}


class EnforcementLog(Protocol):
    """Where it is noted how far an enforcement got; `uflip.results.StateRecord` is one."""

    def reached(self, done_ios: int) -> None:
        """Note durably that so many writes were made."""


def plan_state(
    info: DeviceInfo,
    state: str,
    target_size: int | None = None,
    seed: int = 1,
    overwrites: int = OVERWRITES,
) -> Enforcement | None:
    """Say what enforcing a state takes. Nothing is touched.

    Parameters
    ----------
    info : DeviceInfo
        The device.
    state : str
        One of `STATES`.
    target_size : int, optional
        The part of the device, from its beginning, that is written [bytes]; all without it.
    seed : int
        Seed of the random writes.
    overwrites : int
        How many times as much as the target holds is written at random.

    Returns
    -------
    Enforcement or None
        None for "as-is".

    Raises
    ------
    UsageError
        For an unknown state, or a target that does not fit the device or the writes.
    """
    if state not in STATES:
        raise unknown_name("state", state, STATES, where="--state")
    if state == "as-is":
        return None
    asked: dict[str, object] = {"state": state, "seed": seed}
    if state == "random":
        whole = info.capacity_bytes if target_size is None else target_size
        asked["random_bytes"] = overwrites * whole
    if target_size is None:
        return plan_request(info, asked)
    try:
        return plan_request(info, asked | {"target_size": target_size})
    except UsageError as error:
        error.where = f"--target-size {target_size}"
        raise


def plan_request(info: DeviceInfo, asked: Mapping[str, object]) -> Enforcement:
    """As `plan_state`, for a request in which sizes and seed may be given as well.

    Raises
    ------
    UsageError
        If it does not make sense, or does not fit the device.
    """
    request, totals = resolve_state(asked, info)
    ios, written = totals.total_ios, totals.bytes_written
    return Enforcement(request, ios, written, cost_of(info.kind).state_ns(ios, written))


def enforce_state(
    device: Device,
    wanted: Enforcement,
    keeper: EnforcementLog,
    done_ios: int = 0,
    on_state: OnState | None = None,
) -> None:
    """Bring a device into a state; how far it got is kept, whatever ends it.

    Parameters
    ----------
    device : Device
        Open for writing.
    wanted : Enforcement
        From `plan_state`.
    keeper : Keeper
        Told now and then, and at the end.
    done_ios : int
        Writes that an earlier attempt made: they are not made again.
    on_state : callable, optional
        Called about ten times a second.

    Raises
    ------
    InterruptedRun
        After Ctrl-C; what was written so far is kept, and counts.
    DeviceError
        If a write fails.
    """
    made, saved_at = done_ios, time.monotonic()

    def progress(done: int, _total: int, _response_ns: int) -> None:
        nonlocal made, saved_at
        made = done_ios + done
        if time.monotonic() - saved_at > SAVE_EVERY_S:
            keeper.reached(made)
            saved_at = time.monotonic()
        if on_state is not None:
            on_state(made, wanted.total_ios)

    try:
        device.enforce(wanted.request, done_ios, progress)
    except InterruptedRun as error:
        raise InterruptedRun(
            f"Interrupted after {made} of {wanted.total_ios} writes of the state",
            where=error.where,
            action="give the same command again: it goes on from there",
        ) from None
    finally:
        keeper.reached(made)


def default_state(info: DeviceInfo) -> str:
    """Return the state that a plan begins in if nobody says which.

    A simulated device is made in the state of its profile, and one that was saved stays in the
    state in which it was; the null device has none.
    """
    if info.zoned:
        return "as-is"
    if info.outlives_process:
        return "random"
    if info.simulated and info.details.snapshot is None:
        profile = info.profile.state.state
        return profile if profile in STATES else "as-is"
    return "as-is"


def next_state_id(
    state_id: str | None, spec: Spec, ios: int | None, durability: str = CACHED
) -> str | None:
    """Name the state after a run of a device that was in a named state.

    Parameters
    ----------
    state_id : str or None
        The state before; None stands for an unknown one, and stays.
    spec : Spec
        The resolved specification of the run.
    ios : int or None
        How many I/Os it made; None where nobody knows.
    durability : str
        What its writes waited for: what is flushed more often is laid out differently.
    """
    if state_id is None:
        return None
    after = {"after": state_id, "spec": table_of(spec), "ios": ios}
    return _digest(after if durability == CACHED else after | {"durability": durability})


def state_of_profile(profile: Mapping[str, object], snapshot: str | None = None) -> str:
    """Name the state in which a simulated device is opened.

    Parameters
    ----------
    profile : mapping
        What it is made of, which says all of a device that was just made.
    snapshot : str, optional
        The name of the state that was restored.
    """
    return _digest({"profile": profile} | ({"snapshot": snapshot} if snapshot else {}))


def _digest(content: Mapping[str, object]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
