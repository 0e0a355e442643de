"""Import of fio logs as a result folder: a run for each, shown and compared like any other.

    before_clat.1.log   ─▶  imported  read-clat  job 1
    after_clat.1.log    ─▶  imported  read-clat  job 1

An experiment is identified by its job and not by the name of its log, so that two runs of fio are
compared job by job. The run and the manifest contain the file name.

Properties that a log lacks stay unknown: the device, its state, the host. If it has no offsets
(without fio's `log_offset=1`), they are 0, with a warning.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

import numpy as np

from uflip import _native
from uflip.analysis.files import check_series
from uflip.benchmark.session import check_out
from uflip.benchmark_options import SEED
from uflip.data.device import DeviceInfo
from uflip.data.manifest import IMPORTED
from uflip.data.spec import MODES, read_spec
from uflip.data.summary import WarningSummary
from uflip.durability import UNKNOWN
from uflip.errors import ResultsError, UflipError, native_errors
from uflip.microbench.experiment import PlannedRun
from uflip.results import ResultsWriter
from uflip.results.initial_manifest import manifest_of

NAME = IMPORTED
"""Micro-benchmark and scale of imported runs."""
_MAX_LINE_BYTES = 1000
# Name of a fio log after the user's prefix: the kind of latency, and the job.
_FIO_LOG_NAME = re.compile(r"_(lat|clat|slat)(?:\.([0-9]{1,9}))?\.log")
Job = tuple[str, int]
"""Direction and kind of latency of a job, and its number."""


class _Log(TypedDict):
    """Summary of a log: whether it has offsets, its number of trims, the end of its last I/O."""

    has_offsets: bool
    trims: int
    end: int


def import_fio_logs(paths: Sequence[Path], out: Path) -> Path:
    """Make a result folder from fio's latency logs.

    Parameters
    ----------
    paths : sequence of Path
        Files of `write_lat_log`: `*_lat.*.log` or `*_clat.*.log`.
    out : Path
        An unused name.
    """
    check_out(out)
    logs = [_read(path) for path in paths]
    summaries: list[_Log] = [json.loads(text) for _, text in logs]
    jobs = _jobs(paths, [trace for trace, _ in logs])
    runs = [
        _run(number, path, trace, job)
        for number, (path, (trace, _), job) in enumerate(zip(paths, logs, jobs, strict=True), 1)
    ]
    warnings = _warnings(paths, summaries)
    end = max(each["end"] for each in summaries)
    writer = ResultsWriter.create(
        out,
        manifest_of(
            device=_device(paths, end),
            host={"imported_from": [path.name for path in paths]},
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
        for run, (trace, _) in zip(runs, logs, strict=True):
            writer.commit(run, trace)
        status = "complete"
    finally:
        writer.finish(status)
    return out


def _read(path: Path) -> tuple[_native.Trace, str]:
    check_series(path)
    try:
        with native_errors():
            return _native.read_fio_log(str(path))
    except UflipError:
        if _holds_averages(path):
            raise ResultsError(
                "The log contains averages, not the time of each I/O",
                where=str(path),
                got="sizes of 0 bytes, as fio logs them with log_avg_msec",
                allowed="a log of every I/O",
                action="run fio without log_avg_msec, or with log_avg_msec=0",
            ) from None
        raise


def _holds_averages(path: Path) -> bool:
    """Return whether the first line of a log averages several I/Os: its size is zero."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            fields = file.readline(_MAX_LINE_BYTES).split(b",")
    except OSError:
        return False
    values = [field.strip() for field in fields]
    directions = (b"0", b"1", b"2")
    # With log_window_value=both the maximum follows the average, and the direction comes after it.
    has_maximum = len(values) > 5 and values[2] not in directions and values[3] in directions
    return len(values) >= 4 and values[4 if has_maximum else 3] == b"0"


def _jobs(paths: Sequence[Path], traces: Sequence[_native.Trace]) -> list[Job]:
    """Name jobs by direction and kind of latency, and number them as fio did.

    If two have one name, those of the same kind are numbered in the order of their files.
    """
    matches = [_FIO_LOG_NAME.search(path.name) for path in paths]
    patterns = [
        f"{_direction(trace)}-{match[1] if match else 'log'}"
        for trace, match in zip(traces, matches, strict=True)
    ]
    numbers = [int(match[2]) if match and match[2] else 1 for match in matches]
    jobs = list(zip(patterns, numbers, strict=True))
    twice = {pattern for pattern, number in jobs if jobs.count((pattern, number)) > 1}
    return [
        (pattern, patterns[: index + 1].count(pattern) if pattern in twice else number)
        for index, (pattern, number) in enumerate(jobs)
    ]


def _direction(trace: _native.Trace) -> str:
    """Return the direction of a job, in fio's words."""
    modes = np.unique(np.asarray(trace.column("mode")))
    return "rw" if len(modes) > 1 else MODES[int(modes[0])]


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


def _warnings(paths: Sequence[Path], summaries: Sequence[_Log]) -> list[WarningSummary]:
    warnings: list[WarningSummary] = []
    logs_without_offsets = [
        path.name for path, each in zip(paths, summaries, strict=True) if not each["has_offsets"]
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
    trims = sum(each["trims"] for each in summaries)
    if trims:
        warnings.append(
            {
                "code": "trims_left_out",
                "message": f"{trims} trims of the logs were omitted",
                "numbers": {"trims": trims},
                "advice": "only reads and writes are imported",
            }
        )
    return warnings
