"""Result folders for tests: small ones run by hand, written by the real native module."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from uflip.data.device import DeviceDetails, DeviceInfo
from uflip.data.manifest import PhasesOfPattern
from uflip.device.handle import Device
from uflip.device.opener import open_device
from uflip.microbench.experiment import PlannedRun
from uflip.results import Results, ResultsWriter, host_provenance
from uflip.results.initial_manifest import manifest_of
from uflip.spec import Spec, baseline, mix

HARNESS = {"null_ns_per_io": 55.0, "clock_ns": 25.0}
PATTERNS = ("SR", "RR", "SW", "RW")


def device_info(kind: str = "file", **changes: Any) -> DeviceInfo:
    """Return a description of a device that is not opened; `details` as in `DeviceDetails`."""
    fields: dict[str, Any] = {
        "url": f"{kind}:described", "simulated": kind == "sim", "model": kind,
        "capacity_bytes": 64 << 30, "sector_bytes": 512,
    }  # fmt: skip
    details = DeviceDetails(**changes.pop("details", {}))
    return DeviceInfo(kind=kind, **(fields | changes), details=details)


def pattern_phases(startup: int, ios: int = 1024, *reasons: str) -> PhasesOfPattern:
    """Return phases with a start-up of a length, whose I/Os take twice as long as later ones."""
    return PhasesOfPattern(
        ios=ios, startup_ios=startup, period_ios=1, phase="start-up", levels=(), mean_ns=1.0,
        half_width_ns=None, mean_ios=ios - startup, confidence=0.95, converged=not reasons,
        reasons=reasons, slow_bound_ns=None, slow_episodes=0, percentiles=(), change_points=(),
        settled_ios=startup, settling_ns=2.0, running_ns=1.0,
    )  # fmt: skip


def planned_run(
    ordinal: int, name: str, pattern: str, *, parameter: str, value: int, unit: str, spec: Spec
) -> PlannedRun:
    run_id = f"{ordinal:04d}-{name}-{pattern.replace('/', '+')}-{parameter}-{value}"
    return PlannedRun(run_id, name, pattern, parameter, value, unit, spec)


def baseline_run(ordinal: int, pattern: str, **changes: Any) -> PlannedRun:
    parameters = {"io_size": 32768, "io_count": 100, "target_size": 32 << 20, "seed": 7} | changes
    spec = baseline(pattern, **parameters)
    return planned_run(
        ordinal,
        "baseline",
        pattern,
        parameter="io_size",
        value=spec.io_size,
        unit="bytes",
        spec=spec,
    )


def mix_run(ordinal: int, first: str, second: str, ratio: int, **changes: Any) -> PlannedRun:
    sides = [
        baseline(label, io_size=32768, target_size=16 << 20, target_offset=index * (16 << 20))
        for index, label in enumerate((first, second))
    ]
    spec = mix(sides[0], sides[1], ratio, **({"io_count": 40, "seed": 7} | changes))
    return planned_run(
        ordinal, "mix", f"{first}/{second}", parameter="ratio", value=ratio, unit="", spec=spec
    )


FOUR = tuple(baseline_run(number, pattern) for number, pattern in enumerate(PATTERNS, 1))


def writer(path: Path, runs: Sequence[PlannedRun], opened: Device, **changes: Any) -> ResultsWriter:
    fields: dict[str, Any] = {
        "device": opened.info,
        "host": host_provenance(["uflip", "test"]),
        "harness": HARNESS,
        "scale": "quick",
        "seed": 1,
        "pause_ns": 0,
        "plan": runs,
    }
    return ResultsWriter.create(path, manifest_of(**(fields | changes)))


def results(
    path: Path,
    runs: Sequence[PlannedRun] = FOUR,
    url: str = "sim:demo",
    *,
    finished: int | None = None,
    status: str = "complete",
    **changes: Any,
) -> Results:
    """Run and store the first `finished` runs of a plan (all by default)."""
    with open_device(url) as device:
        results_writer = writer(path, runs, device, **changes)
        for run in runs[:finished]:
            results_writer.commit(run, device.run(run.spec))
        results_writer.finish(status)
    return Results.load(path)
