"""Replay of a trace of another device, or another tool: a benchmark of one run.

```text
TRACE ─ read ─▶ Recording ─ fit ─▶ Ios ─ a plan of one run ─▶ BenchmarkRun.carry_out ─▶ results
```

Every change on the way is a warning with its numbers: I/Os moved because the device is smaller,
widened to its sectors, sorted by their times, or omitted because they are neither reads nor writes.
"""

import csv
import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TypedDict

from uflip import _native, signals
from uflip.analysis.files import ReadOptions, SeriesSource
from uflip.benchmark.estimate import estimate
from uflip.benchmark.events import OnEvent, TraceRead, ignore
from uflip.benchmark.execute import new_benchmark_run
from uflip.benchmark.plan import plan_as_is
from uflip.benchmark.prepare import AS_IS, known_state, record_of
from uflip.benchmark.request import BenchmarkRequest
from uflip.benchmark.session import check_out, folder_name, resume_benchmark
from uflip.data.device import DEEPEST_QUEUE, DeviceInfo
from uflip.data.document import DocumentKind, read_start
from uflip.data.spec import Replay as ReplaySpec
from uflip.data.spec import read_spec, text_of
from uflip.data.summary import WarningSummary
from uflip.device.guard import IO_TIMEOUT_NS
from uflip.errors import UflipError, UsageError, native_errors
from uflip.extras import missing_extra
from uflip.microbench.experiment import PlannedRun
from uflip.results import ResultsWriter
from uflip.results.result_dir import refuse_existing
from uflip.units import format_duration_ns

COLUMNS = ("submit_ns", "offset_bytes", "io_size_bytes", "mode")
"""Columns of a table; others are ignored."""
RUN = "run"
TABLE_FORMAT = "uflip"
"""The format name of a table."""
KIND = DocumentKind("trace", 1 << 40, "name a trace: `uflip replay --help` lists the formats")
PARQUET_MAGIC = b"PAR1"
FITS = ("refuse", "wrap", "scale")
_MILLION = 1_000_000
# Queue depth of an open loop on a real device: NVMe drives accept it without a queue before theirs.
_QUEUE = 256


class Recorded(TypedDict):
    """The used part of the native summary of a trace."""

    bytes_read: int
    bytes_written: int
    bytes_trimmed: int
    end: int
    left_out: dict[str, int]
    odd_lines: int
    first_odd_line: tuple[int, str] | None
    steps_back: int


@dataclass(frozen=True, kw_only=True)
class ReplayRequest:
    """A trace and the options of its replay."""

    trace: Path  #: A file for `uflip.benchmark.replay.read_recording`.
    format: str | None = None  #: Its format; None: recognise it.
    columns: str | None = None  #: A map of its columns, as `time_us=5,offset=3,size=4,op=2`.
    fit: str = FITS[0]  #: One of `FITS`: the treatment of I/Os beyond the end of the device.
    address_scale: float = 1  #: Factor of all offsets, before `address_offset`.
    address_offset: int = 0  #: Bytes added to all offsets; it can be negative.
    #: Open loop: I/Os arrive at their recorded times, accelerated by this factor. None, a closed
    #: loop: each follows the one before.
    speed: float | None = None
    #: Largest number in flight; None: 1, or in an open loop the queue depth of the device.
    queue_depth: int | None = None

    def check(self) -> None:
        """Refuse a speed or scale out of range, before the trace is read."""
        for option, number, one in (
            ("--speed", self.speed, "the recorded speed"),
            ("--address-scale", self.address_scale, "the recorded offsets"),
        ):
            if number is not None and not 1 / _MILLION <= number <= _MILLION:
                raise UsageError(
                    "A factor of the replay is out of range",
                    where=option,
                    got=f"{number:g}",
                    allowed=f"{1 / _MILLION:g} to {_MILLION}; 1: {one}",
                    action="choose another factor",
                )

    def read(self) -> _native.Recording:
        """Read the trace."""
        self.check()
        return read_recording(self.trace, ReadOptions(format=self.format, columns=self.columns))


def replay(
    request: BenchmarkRequest,
    replay_request: ReplayRequest,
    out: Path | None = None,
    on_event: OnEvent = ignore,
    *,
    command: Sequence[str] | None = None,
) -> Path:
    """Replay a trace on a device and store the response times.

    `request`: the device, and the options for opening it; options of a plan are ignored. `out`: new
    folder for the results; without it one under `results/`. `command`: the command line to store;
    without it, that of this process.
    """
    folder = Path("results") / folder_name(request.device) if out is None else out
    check_out(folder)
    info = request.inspect()
    recording = replay_request.read()
    summary: Recorded = json.loads(recording.summary_json())
    bytes_changed = summary["bytes_written"] or summary["bytes_trimmed"]
    writable = bool(bytes_changed) or request.size is not None
    if writable:
        request.check()
    source = SeriesSource.parse(recording.summary_json())
    if source.averaged_ns is not None:
        raise UsageError(
            "The log contains averages, which are no I/Os",
            where=str(replay_request.trace),
            got=f"averages of {format_duration_ns(source.averaged_ns)}",
            allowed="a log or trace of each I/O",
            action="log each I/O: omit log_avg_msec",
        )
    on_event(TraceRead(source.describe(), _recorded_times(recording, source)))
    recording, summary = _supported_ios(recording, summary, info, replay_request.trace)
    ios = _fit_recording(recording, replay_request, info)
    run = _planned_run(replay_request, info, ios)
    durability, warnings = request.resolved_durability(), _warnings(summary, ios)
    plan = plan_as_is([run], info, scale=SCALE, durability=durability, warnings=warnings)
    estimate(plan)
    with (
        signals.shielded(),
        request.open(info, plan.durability, on_event, writable=writable) as device,
    ):
        refuse_existing(folder)
        plan = replace(plan, device=device.info)
        device.set_replay_ios(ios)
        record = record_of(device.info, request.device, request.record) if writable else None
        initial_state = known_state(device.info, None, record) or AS_IS
        new_benchmark_run(
            device, plan, folder, initial_state, record=record, command=command
        ).carry_out(None, on_event)
    return folder


def _recorded_times(
    recording: _native.Recording, source: SeriesSource
) -> dict[str, _native.Column]:
    """Return the response times in a trace by their name."""
    if source.averaged_ns is not None:
        return {}
    name = source.quantity or "response time"
    return {name: recording.response_times(), "D2C": recording.device_times()}


def resume(
    folder: Path,
    replay_request: ReplayRequest,
    *,
    device: str | None = None,
    destroy: str | None = None,
    io_timeout_ns: int = IO_TIMEOUT_NS,
    on_event: OnEvent = ignore,
) -> Path:
    """Resume an interrupted replay, on the same device, with the same trace and the same options.

    `device`: only a check, since the results contain its name. `destroy`, `io_timeout_ns`: as for
    `uflip.open_device`.
    """
    with signals.shielded():
        writer = ResultsWriter.resume(folder)
        try:
            recording = replay_request.read()
            ios = _check_same_ios(writer, recording, replay_request)
        except BaseException:
            writer.close()
            raise
        run = resume_benchmark(
            writer,
            device=device,
            destroy=destroy,
            record=None,
            io_timeout_ns=io_timeout_ns,
            on_event=on_event,
        )
        with run.device:
            run.device.set_replay_ios(ios)
            run.carry_out(None, on_event)
    return folder


def _check_same_ios(
    writer: ResultsWriter, recording: _native.Recording, replay_request: ReplayRequest
) -> _native.Ios:
    """Return the I/Os of a resumed replay; refuse different ones."""
    manifest = writer.manifest
    summary = json.loads(recording.summary_json())
    recording, _ = _supported_ios(recording, summary, manifest.device, replay_request.trace)
    spec = manifest.plan[0].spec if manifest.plan else None
    if not isinstance(spec, ReplaySpec):
        raise UsageError(
            "These results are not from a replay",
            where=str(writer.path),
            got=manifest.plan[0].micro_benchmark if manifest.plan else "nothing",
            allowed="results of `uflip replay`",
            action=f"use `uflip run --resume {writer.path}`",
        )
    ios = _fit_recording(recording, replay_request, manifest.device)
    depth = spec.queue_depth or 1
    if read_spec(ios.spec_json(depth)) == spec and replay_request.queue_depth in (None, depth):
        return ios
    raise UsageError(
        "The trace or its options differ from the first start",
        where="TRACE, --fit, --address-scale, --address-offset, --speed, --queue-depth",
        got=ios.spec_json(replay_request.queue_depth or depth),
        allowed=text_of(spec),
        action="give the trace and the options of the first start",
    )


def default_queue_depth(info: DeviceInfo) -> int:
    """Return the default queue depth of an open loop: that of the device, limited for real ones."""
    return DEEPEST_QUEUE if info.simulated else _QUEUE


def _planned_run(replay_request: ReplayRequest, info: DeviceInfo, ios: _native.Ios) -> PlannedRun:
    depth = replay_request.queue_depth or (
        1 if replay_request.speed is None else default_queue_depth(info)
    )
    name = re.sub(r"[^A-Za-z0-9.]+", "-", replay_request.trace.name).strip("-.")[:40] or "trace"
    return PlannedRun(
        id=f"0001-{NAME}-{name}",
        micro_benchmark=NAME,
        pattern=name,
        parameter="queue_depth",
        value=depth,
        unit="",
        spec=read_spec(ios.spec_json(depth)),
    )


def _supported_ios(
    recording: _native.Recording, summary: Recorded, info: DeviceInfo, trace: Path
) -> tuple[_native.Recording, Recorded]:
    """Omit I/Os that the device does not support."""
    if info.details.deallocates or not summary["bytes_trimmed"]:
        return recording, summary
    recording = recording.without_trims()
    remaining: Recorded = json.loads(recording.summary_json())
    if not remaining["bytes_read"] and not remaining["bytes_written"]:
        raise UsageError(
            "The trace contains only trims, and the device has no command to deallocate",
            where=str(trace),
            got=info.url,
            allowed="a disk with discard_max_bytes above 0, a file, or a simulated device",
            action="replay it on another device",
        )
    return recording, remaining


def _fit_recording(
    recording: _native.Recording, replay_request: ReplayRequest, info: DeviceInfo
) -> _native.Ios:
    speed = replay_request.speed
    ppm = None if speed is None else round(speed * _MILLION)
    addresses = round(replay_request.address_scale * _MILLION), replay_request.address_offset
    capacity, sector = info.capacity_bytes, info.sector_bytes
    with native_errors():
        return recording.fit(capacity, sector, replay_request.fit, ppm, addresses)


def _warnings(summary: Recorded, ios: _native.Ios) -> tuple[WarningSummary, ...]:
    """Return warnings about the parts of a trace that are not replayed as recorded."""
    total = len(ios)
    warnings: list[WarningSummary] = []
    if ios.moved:
        warnings.append(
            {
                "code": "trace_moved",
                "message": f"{ios.moved} of {total} I/Os have another offset than in the trace",
                "numbers": {"ios": ios.moved, "of": total, "trace_end_bytes": summary["end"]},
                "advice": "replay it on a device that is as large as the recorded one",
            }
        )
    if ios.widened:
        warnings.append(
            {
                "code": "trace_widened",
                "message": f"{ios.widened} of {total} I/Os were widened to whole sectors",
                "numbers": {"ios": ios.widened, "of": total},
                "advice": "replay it on a device with smaller sectors",
            }
        )
    if ios.split:
        warnings.append(
            {
                "code": "trace_split",
                "message": f"{ios.split} trims were longer than any I/O may be, and became several",
                "numbers": {"ios": ios.split, "of": total},
                "advice": "their time is that of all parts together, which are at the same instant",
            }
        )
    warnings += _warnings_of_lines(summary, ios)
    if summary["left_out"]:
        left_out = summary["left_out"]
        listed = ", ".join(f"{name} {count}" for name, count in sorted(left_out.items()))
        warnings.append(
            {
                "code": "trace_left_out",
                "message": f"Not everything in the trace was replayed: {listed}",
                "numbers": left_out,
                "advice": "reads and writes are replayed, and trims if the device supports them; "
                "see docs/how-to/replay-a-trace.md",
            }
        )
    return tuple(warnings)


def _warnings_of_lines(summary: Recorded, ios: _native.Ios) -> list[WarningSummary]:
    """Return warnings about the order of a trace, and about lines that are not in its format."""
    warnings: list[WarningSummary] = []
    if ios.sorted:
        warnings.append(
            {
                "code": "trace_sorted",
                "message": f"The times of the trace go back {summary['steps_back']} times; "
                f"{ios.sorted} of {len(ios)} I/Os were sorted by their times",
                "numbers": {"ios": ios.sorted, "of": len(ios), "steps_back": summary["steps_back"]},
                "advice": "omit --speed to keep the order of the file",
            }
        )
    elif summary["steps_back"]:
        warnings.append(
            {
                "code": "trace_steps_back",
                "message": f"The times of the trace go back {summary['steps_back']} times; "
                "its I/Os have the order of the file",
                "numbers": {"steps_back": summary["steps_back"], "of": len(ios)},
                "advice": "check whether several recordings were joined",
            }
        )
    if summary["odd_lines"] and summary["first_odd_line"]:
        line, text = summary["first_odd_line"]
        warnings.append(
            {
                "code": "trace_odd_lines",
                "message": f"{summary['odd_lines']} lines of the trace were left out; the first is "
                f"line {line}: {text}",
                "numbers": {"lines": summary["odd_lines"], "first": line},
                "advice": "check these lines, and that the format is right",
            }
        )
    return warnings


def read_recording(path: Path, options: ReadOptions) -> _native.Recording:
    """Read a trace.

    `path`: a file of one of `uflip._native.recording_formats`, a Parquet table with `COLUMNS`, or a
    folder with the files of one trace. `options`: its format and columns; without them, recognise
    them. Returns the I/Os, in the order of the file.
    """
    try:
        return read_recordings(_files_of(path), options)
    except UflipError:
        rows = None if options.format not in (None, TABLE_FORMAT) else _rows_of_parquet(path)
        if rows is None:
            raise
    with tempfile.TemporaryDirectory() as folder:
        converted = Path(folder) / "trace.csv"
        with converted.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(rows)
        return read_recordings([converted], ReadOptions())


def _files_of(path: Path) -> list[Path]:
    """Return the files of a trace: one, or those of a folder by name."""
    if not path.is_dir():
        return [path]
    files = sorted(each for each in path.iterdir() if each.is_file())
    if not files:
        raise UsageError(
            "The folder contains no files",
            where=str(path),
            allowed="the files of one trace",
            action="name a trace, or a folder of its files",
        )
    return files


def read_recordings(paths: Sequence[Path], options: ReadOptions) -> _native.Recording:
    """Read the files of one trace, merged by time; none of them a table in Parquet."""
    with native_errors():
        return _native.read_recording(
            [str(path) for path in paths],
            options.format,
            columns=options.columns,
            unit=options.unit,
        )


def _rows_of_parquet(path: Path) -> Iterator[Sequence[object]] | None:
    """Return the head and the rows of a table; None if it is not one, or lacks the columns."""
    start = b""
    with suppress(UflipError, OSError):
        start = read_start(path, KIND, len(PARQUET_MAGIC))
    if start != PARQUET_MAGIC:
        return None
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise missing_extra(
            "sweep",
            "A Parquet table that is not a run of a result needs pyarrow",
            where=str(path),
            instead="a trace in a CSV file needs no library",
        ) from error
    try:
        opened = parquet.ParquetFile(path)
    except (ArrowException, OSError):
        return None  # the native part has reported the error
    names = opened.schema_arrow.names
    if not set(COLUMNS) <= set(names):
        return None
    columns = [*COLUMNS, *({RUN} & set(names))]
    batches = opened.iter_batches(columns=columns)
    rows = ([row.get(name) for name in columns] for batch in batches for row in batch.to_pylist())
    return chain([columns], rows)


NAME = "replay"
"""Micro-benchmark of replays in results."""
SCALE = "replay"
