"""Import of logs and traces as a result folder: a run for each, shown and compared like any other.

    before_clat.1.log   ─▶  imported  read-clat  job 1
    after_clat.1.log    ─▶  imported  read-clat  job 1

An experiment is identified by its job and not by the name of its log, so that two runs of fio are
compared job by job. The run and the manifest contain the file name.

Properties that a log lacks stay unknown: the device, its state, the host. If it has no offsets
(without fio's `log_offset=1`), they are 0, with a warning. Traces of other tools are imported if
they contain response times.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from uflip import _native
from uflip.analysis.files import ReadOptions, SeriesSource, check_series
from uflip.benchmark.session import check_out
from uflip.benchmark_options import SEED
from uflip.data.device import DeviceInfo
from uflip.data.manifest import IMPORTED
from uflip.data.spec import read_spec
from uflip.data.summary import WarningSummary
from uflip.durability import UNKNOWN
from uflip.errors import ResultsError, native_errors
from uflip.microbench.experiment import PlannedRun
from uflip.results import ResultsWriter
from uflip.results.initial_manifest import manifest_of
from uflip.units import format_duration_ns

NAME = IMPORTED
"""Micro-benchmark and scale of imported runs."""
# The number of the job at the end of the name of a fio log.
_FIO_LOG_NUMBER = re.compile(r"\.([0-9]{1,9})\.log(?:\.gz|\.zst)?$")
Job = tuple[str, int]
"""Direction and kind of latency of a job, and its number."""


class _Log(NamedTuple):
    """A log as the trace of a run, and how it was understood."""

    trace: _native.Trace
    source: SeriesSource
    has_offsets: bool
    end: int
    left_out: dict[str, int]


def import_logs(paths: Sequence[Path], out: Path, options: ReadOptions) -> Path:
    """Make a result folder from logs or traces with response times.

    `paths`: files of fio's `write_lat_log`, or traces with response times. `out`: an unused name.
    `options`: the format, columns and unit of all of them, where the files do not suffice.
    """
    check_out(out)
    logs = [_read(path, options) for path in paths]
    jobs = _jobs(paths, logs)
    runs = [
        _run(number, path, log.trace, job)
        for number, (path, log, job) in enumerate(zip(paths, logs, jobs, strict=True), 1)
    ]
    warnings = _warnings(paths, logs)
    end = max(each.end for each in logs)
    writer = ResultsWriter.create(
        out,
        manifest_of(
            device=_device(paths, end),
            host={
                "imported_from": [path.name for path in paths],
                "read_as": [log.source.describe() for log in logs],
            },
            harness={},
            scale=NAME,
            seed=SEED,
            pause_ns=0,
            plan=runs,
            warnings=warnings,
            durability=UNKNOWN,
        ),
    )
    status = "failed"
    try:
        for run, log in zip(runs, logs, strict=True):
            writer.commit(run, log.trace)
        status = "complete"
    finally:
        writer.finish(status)
    return out


def _read(path: Path, options: ReadOptions) -> _Log:
    check_series(path)
    with native_errors():
        recording = _native.read_recording(
            [str(path)], options.format, columns=options.columns, unit=options.unit
        )
    summary = json.loads(recording.summary_json())
    source = SeriesSource.parse(recording.summary_json())
    if source.averaged_ns is not None:
        raise ResultsError(
            "The log contains averages, not the time of each I/O",
            where=str(path),
            got=f"averages of {format_duration_ns(source.averaged_ns)}, as fio logs them with "
            "log_avg_msec",
            allowed="a log of every I/O",
            action="run fio without log_avg_msec, or with log_avg_msec=0",
        )
    with native_errors():
        trace, about = recording.measured()
    counts = json.loads(about)
    left_out = {"trims": counts["trims"], "I/Os without a response time": counts["untimed"]}
    return _Log(trace, source, summary["has_offsets"], counts["end"], left_out)


def _jobs(paths: Sequence[Path], logs: Sequence[_Log]) -> list[Job]:
    """Name jobs by direction and kind of latency, and number them as fio did.

    If two have one name, those of the same kind are numbered in the order of their files.
    """
    matches = [_FIO_LOG_NUMBER.search(path.name) for path in paths]
    patterns = [f"{_direction(log.trace)}-{log.source.quantity or 'response'}" for log in logs]
    numbers = [int(match[1]) if match else 1 for match in matches]
    jobs = list(zip(patterns, numbers, strict=True))
    twice = {pattern for pattern, number in jobs if jobs.count((pattern, number)) > 1}
    return [
        (pattern, patterns[: index + 1].count(pattern) if pattern in twice else number)
        for index, (pattern, number) in enumerate(jobs)
    ]


def _direction(trace: _native.Trace) -> str:
    """Return the direction of a job, in fio's words."""
    modes = {"read": trace.bytes_read, "write": trace.bytes_written}
    used = [mode for mode, size in modes.items() if size]
    return "rw" if len(used) > 1 else used[0]


def _run(number: int, path: Path, trace: _native.Trace, job: Job) -> PlannedRun:
    spec = read_spec(trace.spec_json)
    name = re.sub(r"[^A-Za-z0-9.]+", "-", path.name.removesuffix(".log")).strip("-.")[:40] or "log"
    return PlannedRun(
        id=f"{number:04}-{NAME}-{name}",
        micro_benchmark=NAME,
        pattern=job[0],
        parameter="job",
        value=job[1],
        unit="",
        spec=spec,
    )


def _device(paths: Sequence[Path], end: int) -> DeviceInfo:
    """Return a placeholder for the unknown device of the logs."""
    return DeviceInfo(
        url=f"fio:{paths[0].name}",
        kind="file",
        simulated=False,
        model="unknown (imported)",
        capacity_bytes=max(end, 512),
        sector_bytes=512,
        clock="fio",
        io="fio",
        data="unknown",
    )


def _warnings(paths: Sequence[Path], logs: Sequence[_Log]) -> list[WarningSummary]:
    warnings: list[WarningSummary] = []
    logs_without_offsets = [
        path.name for path, each in zip(paths, logs, strict=True) if not each.has_offsets
    ]
    if logs_without_offsets:
        warnings.append(
            {
                "code": "no_offsets",
                "message": f"{len(logs_without_offsets)} of {len(paths)} logs have no offsets of "
                "their I/Os",
                "numbers": {"logs": logs_without_offsets},
                "advice": "run fio with log_offset=1",
            }
        )
    trims = sum(each.left_out["trims"] for each in logs)
    if trims:
        warnings.append(
            {
                "code": "trims_left_out",
                "message": f"{trims} trims of the logs were omitted",
                "numbers": {"trims": trims},
                "advice": "only reads and writes are imported",
            }
        )
    for path, log in zip(paths, logs, strict=True):
        warnings += _warnings_of_lines(path, log)
    return warnings


def _warnings_of_lines(path: Path, log: _Log) -> list[WarningSummary]:
    """Return warnings about I/Os and lines that are not as recorded."""
    warnings: list[WarningSummary] = []
    untimed = log.left_out["I/Os without a response time"]
    odd = log.source.odd_lines
    if untimed or odd:
        warnings.append(
            {
                "code": "lines_left_out",
                "message": f"{path.name}: {odd} odd lines and {untimed} I/Os without a response "
                "time were left out",
                "numbers": {"odd_lines": odd, "untimed": untimed},
                "advice": "check these lines, and that the format is right: "
                f"{log.source.first_odd_line or ''}".rstrip(": "),
            }
        )
    if log.source.zero_times:
        warnings.append(
            {
                "code": "zero_times",
                "message": f"{path.name}: {log.source.zero_times} response times of 0 count as one "
                "tick of the clock",
                "numbers": {"ios": log.source.zero_times},
                "advice": "the clock of the log is too coarse for its fastest I/Os",
            }
        )
    return warnings
