"""A trace of another device, or another tool, replayed: a benchmark of one run.

```text
TRACE ─ read ─▶ Recording ─ fit ─▶ Ios ─ a plan of one run ─▶ Work.carry_out ─▶ results
```

Everything that is changed on the way (I/Os that are moved because the device is smaller, widened to
its sectors, or left out because they are neither reads nor writes) is a warning with its numbers.
"""

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypedDict

from uflip import _native, signals
from uflip.data.device import DeviceInfo
from uflip.data.spec import Replay as ReplaySpec
from uflip.data.spec import read_spec, text_of
from uflip.data.summary import WarningSummary
from uflip.device.options import IO_TIMEOUT_NS
from uflip.errors import UsageError, native_errors
from uflip.experiment import PlannedRun
from uflip.methodology import estimate
from uflip.results import ResultsWriter
from uflip.results.result_dir import refuse_existing
from uflip.session.benchmark import check_out, folder_name
from uflip.session.benchmark_run import new_work
from uflip.session.events import OnEvent, ignore
from uflip.session.open_device import open_watched
from uflip.session.request import BenchmarkRequest
from uflip.session.resume import go_on
from uflip.session.single import plan_of_run
from uflip.session.state import AS_IS, known_state, record_of
from uflip.session.trace_sources import read_recording

NAME = "replay"
"""Its micro-benchmark, in results."""
FITS = ("refuse", "wrap", "scale")
SCALE = "replay"
_MILLION = 1_000_000
# Of a real device in an open loop: what NVMe drives take at a time without a queue before theirs.
_QUEUE = 256


class Recorded(TypedDict):
    """What is read of what the native part says of a trace."""

    bytes_read: int
    bytes_written: int
    bytes_trimmed: int
    end: int
    left_out: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class ReplayRequest:
    """What is replayed, and how.

    Attributes
    ----------
    trace : Path
        As `uflip.session.trace_sources.read_recording` reads it.
    format : str or None
        Which; None: the one that it looks like.
    fit : str
        One of `FITS`: what becomes of I/Os beyond the end of the device.
    speed : float or None
        An open loop: I/Os arrive when they did, so many times as fast. None, a closed loop: each
        follows the one before.
    queue_depth : int or None
        How many are under way at most; None: 1, or in an open loop as many as the device takes.
    """

    trace: Path
    format: str | None = None
    fit: str = FITS[0]
    speed: float | None = None
    queue_depth: int | None = None


def replay(
    request: BenchmarkRequest,
    wanted: ReplayRequest,
    out: Path | None = None,
    on_event: OnEvent = ignore,
) -> Path:
    """Replay a trace on a device and keep what it took.

    Parameters
    ----------
    request : Request
        The device, and how it is opened; what belongs to a plan is not looked at.
    wanted : Replay
        The trace.
    out : Path, optional
        New folder for the results; without it one under `results/`.
    on_event : callable
        Told about everything that takes time.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    UflipError
        All that can be wrong is looked for before anything is created, written or opened for
        writing.
    """
    recording = read_recording(wanted.trace, wanted.format)
    summary: Recorded = json.loads(recording.summary_json())
    changes = summary["bytes_written"] or summary["bytes_trimmed"]
    writable = bool(changes) or request.size is not None
    if writable:
        request.check()
    folder = Path("results") / folder_name(request.device) if out is None else out
    check_out(folder)
    info = request.inspect()
    recording, summary = _possible(recording, summary, info, wanted.trace)
    ios = _fitted(recording, wanted, info)
    run = _run_of(wanted, info, ios)
    durability, doubts = request.durability_of(), _doubts(summary, ios)
    plan = plan_of_run(run, info, scale=SCALE, durability=durability, warnings=doubts)
    estimate(plan)
    with (
        signals.shielded(),
        open_watched(
            request.device,
            info,
            on_event,
            size=request.size,
            buffered=request.buffered,
            data=request.data,
            destroy=request.destroy,
            durability=plan.durability,
            io_timeout_ns=request.io_timeout_ns,
            completion=request.completion,
            writable=writable,
        ) as device,
    ):
        refuse_existing(folder)
        plan = replace(plan, device=device.info)
        device.give(ios)
        record = record_of(device.info, request.device, request.record) if writable else None
        begun = known_state(device.info, None, record) or AS_IS
        new_work(device, plan, folder, begun, record=record).carry_out(None, on_event)
    return folder


def resume(
    folder: Path,
    wanted: ReplayRequest,
    *,
    device: str | None = None,
    destroy: str | None = None,
    io_timeout_ns: int = IO_TIMEOUT_NS,
    on_event: OnEvent = ignore,
) -> Path:
    """Go on with a replay that was cut short, on the same device, with the same trace.

    Parameters
    ----------
    folder : Path
        Its results.
    wanted : Replay
        The trace, and what was said of it when the replay began.
    device : str, optional
        The device, as a check: the results say which it is.
    destroy, io_timeout_ns
        As `uflip.open_device` takes them.
    on_event : callable
        Told about everything that takes time.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    UflipError
        As `replay`, and as `uflip.session.resume`; other I/Os than those that the results name.
    """
    recording = read_recording(wanted.trace, wanted.format)
    with signals.shielded():
        writer = ResultsWriter.resume(folder)
        try:
            ios = _the_same(writer, recording, wanted)
        except BaseException:
            writer.close()
            raise
        work = go_on(
            writer,
            device=device,
            destroy=destroy,
            record=None,
            io_timeout_ns=io_timeout_ns,
            on_event=on_event,
        )
        with work.device:
            work.device.give(ios)
            work.carry_out(None, on_event)
    return folder


def _the_same(
    writer: ResultsWriter, recording: _native.Recording, wanted: ReplayRequest
) -> _native.Ios:
    """Return the I/Os of a replay that goes on; others are refused."""
    kept = writer.manifest
    summary = json.loads(recording.summary_json())
    recording, _ = _possible(recording, summary, kept.device, wanted.trace)
    spec = kept.plan[0].spec if kept.plan else None
    if not isinstance(spec, ReplaySpec):
        raise UsageError(
            "These results are not from a replay",
            where=str(writer.path),
            got=kept.plan[0].micro_benchmark if kept.plan else "nothing",
            allowed="what `uflip replay` has begun",
            action=f"use `uflip run --resume {writer.path}`",
        )
    ios = _fitted(recording, wanted, kept.device)
    depth = spec.queue_depth or 1
    if read_spec(ios.spec_json(depth)) == spec and wanted.queue_depth in (None, depth):
        return ios
    raise UsageError(
        "The trace or its options differ from the first start",
        where="TRACE, --fit, --speed, --queue-depth",
        got=ios.spec_json(wanted.queue_depth or depth),
        allowed=text_of(spec),
        action="give the same trace and the same options as then",
    )


def deepest(info: DeviceInfo) -> int:
    """Return how many I/Os of one process are under way at most: as a device can, and queues do."""
    return info.deepest_queue if info.simulated else min(info.deepest_queue, _QUEUE)


def _run_of(wanted: ReplayRequest, info: DeviceInfo, ios: _native.Ios) -> PlannedRun:
    depth = wanted.queue_depth or (1 if wanted.speed is None else deepest(info))
    name = re.sub(r"[^A-Za-z0-9.]+", "-", wanted.trace.name).strip("-.")[:40] or "trace"
    return PlannedRun(
        id=f"0001-{NAME}-{name}",
        micro_benchmark=NAME,
        pattern=name,
        parameter="queue_depth",
        value=depth,
        unit="",
        spec=read_spec(ios.spec_json(depth)),
    )


def _possible(
    recording: _native.Recording, summary: Recorded, info: DeviceInfo, trace: Path
) -> tuple[_native.Recording, Recorded]:
    """Leave out what a device has no command for."""
    if info.details.deallocates or not summary["bytes_trimmed"]:
        return recording, summary
    recording = recording.without_trims()
    left: Recorded = json.loads(recording.summary_json())
    if not left["bytes_read"] and not left["bytes_written"]:
        raise UsageError(
            "The trace has trims alone, and the device has no command to deallocate",
            where=str(trace),
            got=info.url,
            allowed="one whose queue says discard_max_bytes above 0, a file, or a simulated one",
            action="replay it on another device",
        )
    return recording, left


def _fitted(recording: _native.Recording, wanted: ReplayRequest, info: DeviceInfo) -> _native.Ios:
    speed = wanted.speed
    if speed is not None and not 1 / _MILLION <= speed <= _MILLION:
        raise UsageError(
            "A trace cannot be replayed at this speed",
            where="--speed",
            got=f"{speed:g}",
            allowed=f"{1 / _MILLION:g} to {_MILLION}; 1: as it was recorded",
            action="choose another speed",
        )
    ppm = None if speed is None else round(speed * _MILLION)
    with native_errors():
        return recording.fit(info.capacity_bytes, info.sector_bytes, wanted.fit, ppm)


def _doubts(summary: Recorded, ios: _native.Ios) -> tuple[WarningSummary, ...]:
    """Say what of a trace is not replayed as it was."""
    total = len(ios)
    found: list[WarningSummary] = []
    if ios.moved:
        found.append(
            {
                "code": "trace_moved",
                "message": f"{ios.moved} of {total} I/Os are at another place than in the trace",
                "numbers": {"ios": ios.moved, "of": total, "trace_end_bytes": summary["end"]},
                "advice": "replay it on a device that is as large as the recorded one",
            }
        )
    if ios.widened:
        found.append(
            {
                "code": "trace_widened",
                "message": f"{ios.widened} of {total} I/Os were widened to whole sectors",
                "numbers": {"ios": ios.widened, "of": total},
                "advice": "replay it on a device with smaller sectors",
            }
        )
    if ios.split:
        found.append(
            {
                "code": "trace_split",
                "message": f"{ios.split} trims were longer than any I/O may be, and became several",
                "numbers": {"ios": ios.split, "of": total},
                "advice": "their time is that of all parts together, which are at the same instant",
            }
        )
    if summary["left_out"]:
        left_out = summary["left_out"]
        listed = ", ".join(f"{name} {count}" for name, count in sorted(left_out.items()))
        found.append(
            {
                "code": "trace_left_out",
                "message": f"Not everything in the trace was replayed: {listed}",
                "numbers": left_out,
                "advice": "reads and writes are, and trims where the device can; see "
                "docs/how-to/replay-a-trace.md",
            }
        )
    return tuple(found)
