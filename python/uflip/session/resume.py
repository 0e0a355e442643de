"""Resuming an interrupted benchmark on the same device."""

from pathlib import Path
from typing import cast

import numpy as np
from msgspec import structs

from uflip._native import FlashTrace, Trace
from uflip.data.device import DeviceInfo
from uflip.data.manifest import Manifest
from uflip.data.spec import Replay as ReplaySpec
from uflip.data.summary import WarningSummary
from uflip.device.catalogue import inspect_device
from uflip.device.handle import Device
from uflip.device.identity import identity, medium, medium_difference
from uflip.device.opener import open_device
from uflip.errors import DeviceError, RefusedError, ResultsError, UsageError
from uflip.experiment import PlannedRun, Skipped
from uflip.methodology import Calibration, History, Plan, remaining_plan
from uflip.methodology.state import plan_request
from uflip.results import ResultsWriter
from uflip.results.state_record import StateRecord, default_path, open_record
from uflip.session.benchmark_run import BenchmarkRun
from uflip.session.events import OnEvent
from uflip.session.state import bring_into_state


class ReplayCheck:
    """Checks that a rebuilt simulated device repeats its earlier runs.

    Parameters
    ----------
    writer : ResultsWriter
        Has the earlier runs.
    """

    def __init__(self, writer: ResultsWriter) -> None:
        self._writer = writer

    def __call__(self, run: PlannedRun, log: Trace | FlashTrace) -> None:
        """Raise unless a run took the same times again."""
        before = self._writer.log_of(run.id)
        assert before is not None, "it is one of those that are done"
        # A worn-out block has a row per cycle, and no response times.
        name = "response_time_ns" if "response_time_ns" in before.columns else "erase_ns"
        if np.array_equal(np.asarray(before.column(name)), np.asarray(log.column(name))):
            return
        raise ResultsError(
            what="The simulated device does not do what it did before",
            where=run.id,
            got="other response times from the same plan",
            allowed="the same version of uflip on the same results",
            action="start another benchmark with a new --out",
        )


def check_device(kept: Manifest, url: str | None) -> None:
    """Refuse a named device that is not the measured one."""
    was = kept.device.url
    if url is not None and url != was:
        raise UsageError(
            "These results are from another device",
            where="DEVICE",
            got=url,
            allowed=was,
            action="leave DEVICE out: the results say which it is",
        )


def planned_runs(kept: Manifest) -> list[PlannedRun]:
    """Return the runs of the plan in a manifest."""
    return [PlannedRun(**structs.asdict(entry)) for entry in kept.plan]


def resume_benchmark(
    writer: ResultsWriter,
    *,
    device: str | None,
    destroy: str | None,
    record: Path | None,
    io_timeout_ns: int,
    on_event: OnEvent,
) -> BenchmarkRun:
    """Open the device of an interrupted benchmark, and find the remainder of its plan.

    Raises
    ------
    DeviceError
        If the device has changed.
    """
    try:
        kept = writer.manifest
        opened = _reopen(kept, device, destroy, io_timeout_ns)
        plan = _plan_of(kept, opened)
        simulated = opened.info.simulated
        noted = _record_of(kept, opened.info, record)
        history = History(kept.state.state_id, noted)
        if simulated:
            if kept.state.known_from == "enforced" and plan.state is not None:
                bring_into_state(opened, plan.state, None, on_event)
        else:
            plan = _resume_real_device(plan, writer.done, history, noted)
        writer.replan(plan.runs)
    except BaseException:
        writer.close()
        raise
    # A rebuilt device shows the interference again; a real one has shown it already.
    found = Calibration(plan, writer, None if simulated else kept.interference)
    return BenchmarkRun(
        opened, plan, writer, history, found, ReplayCheck(writer) if simulated else None
    )


def _reopen(kept: Manifest, url: str | None, destroy: str | None, io_timeout_ns: int) -> Device:
    was = kept.device
    check_device(kept, url)
    buffered = was.buffered
    size = was.capacity_bytes if was.null else None
    now = inspect_device(was.url, size=size, buffered=buffered)
    here, there = identity(now), identity(was)
    different = [key for key in {**there, **here} if here.get(key) != there.get(key)]
    if different:
        key = different[0]
        raise DeviceError(
            "This is not the device that was measured",
            where=was.url,
            got=f"{key} {here.get(key, 'none')}",
            allowed=f"{key} {there.get(key, 'none')}",
            action="connect the same device again, or start another benchmark with a new --out",
        )
    _check_medium(was, now)
    data = was.data or "random" if was.outlives_process else "random"
    brand = was.details.brand if was.kind == "block" else None
    device = open_device(
        was.url,
        io_timeout_ns=io_timeout_ns,
        size=size,
        buffered=buffered,
        durability=kept.durability,
        data=data,
        writable=_writes(kept),
        destroy=destroy,
        brand=brand,
        completion=was.completion if was.kind in ("file", "block") else None,
    )
    _check_medium(was, device.info)
    return device


def _writes(kept: Manifest) -> bool:
    """Return whether the device is opened for writing: not for a replay of reads only."""
    return any(entry.spec.writes or not isinstance(entry.spec, ReplaySpec) for entry in kept.plan)


def _check_medium(was: DeviceInfo, now: DeviceInfo) -> None:
    """Refuse another medium under the same name."""
    if was.outlives_process and (other := medium_difference(medium(was), now)):
        raise RefusedError(
            "This is not the medium that was measured",
            where=was.url,
            got=other[0],
            allowed=other[1],
            action="connect the same medium again, or start another benchmark with a new --out",
        )


def _plan_of(kept: Manifest, device: Device) -> Plan:
    """Rebuild the plan from the manifest."""
    info = device.info
    request = kept.state.request
    return Plan(
        device=info,
        scale=kept.scale,
        seed=kept.seed,
        runs=tuple(planned_runs(kept)),
        skipped=tuple(Skipped(**structs.asdict(skip)) for skip in kept.skipped),
        pause_ns=kept.pause_ns,
        target_size=kept.target_size_bytes or info.capacity_bytes,
        state=None if request is None else plan_request(info, request),
        repetitions=kept.repetitions,
        method=kept.method,
        durability=device.durability,
        warnings=tuple(cast(WarningSummary, structs.asdict(warning)) for warning in kept.warnings),
    )


def _record_of(kept: Manifest, info: DeviceInfo, given: Path | None) -> StateRecord | None:
    """Open the record of the device; a path that only the results contain is never written.

    Raises
    ------
    UsageError
        If the record is at another than the default path, and the user did not name it.
    """
    if kept.state.record is None:
        return None
    noted = Path(kept.state.record)
    url = kept.device.url
    # A block device may have been named by its bare path.
    usual = [default_path(url), default_path(url.removeprefix("block:"))]
    places = usual if given is None else [given]
    place = next((each for each in places if each.absolute() == noted.absolute()), None)
    if place is None:
        raise UsageError(
            "The state record of this benchmark is in another place",
            where="--record",
            got=str(places[0]),
            allowed=kept.state.record,
            action=f"if that file is yours, add --record {kept.state.record}",
        )
    return open_record(place, info, ours_is_last=True)


def _resume_real_device(
    plan: Plan, done: list[str], history: History, record: StateRecord | None
) -> Plan:
    """Return the remainder of the plan for the current state of the device, as far as known."""
    known = record.state if record else None
    history.state_id = known.state_id if known else None
    just_reset = bool(done and known and known.state_id and known.runs_since == 0)
    plan = remaining_plan(plan, done, just_reset=just_reset)
    left = [run for run in plan.runs if run.id not in done]
    if left:
        history.cut_short(left[0].spec, plan.durability)
    return plan
