"""The manifest: everything about a benchmark but the response times, as versioned JSON.

`docs/reference/results-format.md` has the rule for versions. Facts of the device, the host and
phases, and numbers of warnings have no fixed list of fields: a reader ignores unknown ones. A
reader without support for a word of a value or a specification (a mode, a time, a durability)
refuses the manifest and names the value.
"""

import json
import os
from pathlib import Path
from typing import Annotated, Literal, TypedDict

import msgspec
from msgspec import Meta, Struct

from uflip.data.counters import DriveCounters
from uflip.data.device import DeviceInfo, DeviceWear
from uflip.data.document import (
    MAX_INTEGER,
    MAX_RUNS,
    MAX_WARNINGS,
    Count,
    DocumentKind,
    FolderId,
    Instant,
    Name,
    Positive,
    Seconds,
    Table,
    Text,
    check,
    decode,
    file_name_problem,
)
from uflip.data.spec import Spec, spec_hook
from uflip.data.state_record import StateRequest
from uflip.errors import RefusedError

# Phases of the long baseline runs, and the interference of random writes: plain data.


class ResponseLevel(Struct, frozen=True):
    """A level of response times.

    Attributes
    ----------
    mean_ns : float
        Mean of its I/Os [ns].
    share : float
        Its share of all I/Os.
    """

    mean_ns: float
    share: float


class Percentile(Struct, frozen=True):
    """The smallest response time that a share of the I/Os does not exceed.

    Attributes
    ----------
    share : float
        The share.
    value_ns, low_ns, high_ns : float
        The response time, and its interval [ns].
    """

    share: float
    value_ns: float
    low_ns: float
    high_ns: float


class Analysis(Struct, frozen=True):
    """The analysis of a series of response times.

    Attributes
    ----------
    ios : int
        Number of all I/Os.
    startup_ios : int
        I/Os before the running phase. 0: no start-up, or one that cannot be distinguished from
        later I/Os, or one that is not over (`reasons` then contains it).
    period_ios : int
        I/Os of one oscillation of the running phase; 1 if none is significant.
    phase : str
        One of `uflip.analysis.PHASES`.
    levels : tuple of ResponseLevel
        Levels of the running phase, lowest first.
    mean_ns, half_width_ns : float
        Mean of the running phase, as far as it is divided into batches (see
        docs/reference/analysis.md), and half the width of its interval [ns]; None with fewer than
        five periods.
    mean_ios : int
        Number of I/Os, at the end of the series, in the mean.
    confidence : float
        Confidence of all intervals.
    converged : bool
        Whether the interval is narrow enough and there is no reason to doubt it.
    reasons : tuple of str
        Reasons for doubt; names of `uflip.analysis.REASONS`.
    slow_bound_ns : float or None
        Response times from here on count as slow [ns]; None if nothing varies.
    slow_episodes : int
        Independent episodes of slow I/Os in the running phase; a burst is one.
    percentiles : tuple of Percentile
        Those of 5, 50, 90, 95, 99, 99.9, 99.99 % that the sample supports.
    change_points : tuple of int
        I/Os at which the level changes, for naming the phase.
    """

    ios: Count
    startup_ios: Count
    period_ios: Count
    phase: Name
    levels: tuple[ResponseLevel, ...]
    mean_ns: float
    half_width_ns: float | None
    mean_ios: Count
    confidence: float
    converged: bool
    reasons: tuple[Name, ...]
    slow_bound_ns: float | None
    slow_episodes: Count
    percentiles: tuple[Percentile, ...]
    change_points: tuple[Count, ...]


class PhasesOfPattern(Analysis, frozen=True):
    """The analysis of a pattern, and its settling.

    `settled_ios`: I/Os until the means of parts of the run equal those of the running phase;
    unlike `startup_ios`, chance does not prolong it. `settling_ns` is the mean of these,
    `running_ns` that of all others [ns].
    """

    settled_ios: Count
    settling_ns: float
    running_ns: float


class Phases(TypedDict):
    """Phases of the baseline patterns, by label; `again`: after the longest rest.

    `startup_ios` and `period_ios` are the bounds across the patterns.
    """

    patterns: dict[str, PhasesOfPattern]
    again: dict[str, PhasesOfPattern]
    startup_ios: Count
    period_ios: Count


class Windows(TypedDict):
    """Means and maxima of the windows of a batch of I/Os [ns]."""

    mean_ns: list[int | float]
    max_ns: list[int | float]


class Batches(TypedDict):
    """The data of uFLIP's Figure 5; `ios`: per window."""

    ios: Positive
    before: Windows
    writes: Windows
    after: Windows


class Interference(TypedDict):
    """The effect of a batch of random writes on later reads.

    `reads_affected` sequential reads after it are slower than before it, for `lingering_ns`;
    `over`: the effect ended before the reads did. Reads above `slow_ns` are slow. `device_busy_ns`:
    busy time of the device after the writes if it idles; null if unknown. `gap_ns`: the longest
    time between two batches in which the device had nothing to do. `pause_ns`: the resulting pause.
    """

    reads_affected: Count
    lingering_ns: Count
    over: bool
    slow_ns: float
    device_busy_ns: Count | None
    gap_ns: int
    pause_ns: Count
    windows: Batches


FILE_NAME = "manifest.json"
RUNS = "runs"  # the folder of run files beside it
KnownFrom = Literal["enforced", "record", "profile", "snapshot"]
"""Source of the known state of a device."""
Status = Literal["running", "complete", "interrupted", "failed"]

KIND = DocumentKind(
    "manifest",
    64 << 20,
    "restore the file from a copy; the runs/*.parquet files can be analysed without it",
    format="uflip-results",
)


IMPORTED = "imported"
"""The scale of results that other programs measured."""
Durability = Annotated[str, Meta(pattern=r"^(cached|fua|flush:[1-9][0-9]{0,9}|unknown)$")]


class PlanEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """A planned run; `id` is the name of its file."""

    id: str
    micro_benchmark: Name
    pattern: Name
    parameter: Text | None
    value: int | float | None
    unit: Text | None
    spec: Spec
    repetition: Positive = 1
    reset_before: bool = False

    def __post_init__(self) -> None:
        if (problem := file_name_problem(self.id)) is not None:
            raise ValueError(f"a run id that is {problem}")
        if isinstance(self.value, int) and abs(self.value) > MAX_INTEGER:
            raise ValueError("a value beyond 64 bits")


def _check_windows(interference: Interference | None) -> None:
    """Refuse batches without one mean and one maximum per window."""
    windows = interference and interference["windows"]
    for each in (windows["before"], windows["writes"], windows["after"]) if windows else ():
        if len(each["mean_ns"]) != len(each["max_ns"]):
            raise ValueError("windows of interference with other numbers of means and maxima")


def entry_of(run: object) -> PlanEntry:
    """Return the entry of a planned run, an object with the same fields."""
    return msgspec.convert(run, PlanEntry, from_attributes=True, dec_hook=spec_hook)


class StoredWarning(Struct, frozen=True, forbid_unknown_fields=True):
    """A warning with its numbers and a next step."""

    code: Name
    message: Text
    numbers: Table
    advice: Text


class SkippedRun(Struct, frozen=True, forbid_unknown_fields=True):
    """A run that is not made, and the reason."""

    micro_benchmark: Name
    pattern: Name
    parameter: Text | None
    value: int | float | None
    reason: Text


def skipped_entry_of(skipped: object) -> SkippedRun:
    """Return the entry of a skipped run, an object with the same fields."""
    return msgspec.convert(skipped, SkippedRun, from_attributes=True)


class DeviceState(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The state of the device before the first run."""

    state: Name
    state_id: Name | None
    known_from: KnownFrom | None
    request: StateRequest | None
    since_runs: Count | None = None
    since_bytes_written: Count | None = None
    record: Text | None = None


UNKNOWN_STATE = DeviceState("unknown", None, None, None)


class Manifest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of `manifest.json`. `host` and the like are plain data."""

    format: Literal["uflip-results"] = "uflip-results"
    format_version: Literal[1] = 1
    uflip_version: Name
    folder_id: FolderId
    ledger_lines: Count = 0
    created_utc: Instant
    finished_utc: Instant | None
    resumed_utc: Annotated[tuple[Instant, ...], Meta(max_length=MAX_RUNS)] = ()
    status: Status
    device: DeviceInfo
    host: Table
    harness: Table
    scale: Name
    seed: Annotated[int, Meta(ge=-MAX_INTEGER, le=MAX_INTEGER)]
    pause_ns: Count
    target_size_bytes: Positive | None = None
    repetitions: Positive = 1
    method: Name = "paper"
    durability: Durability
    state: DeviceState = UNKNOWN_STATE
    phases: Phases | None = None
    interference: Interference | None = None
    plan: Annotated[tuple[PlanEntry, ...], Meta(max_length=MAX_RUNS)]
    skipped: Annotated[tuple[SkippedRun, ...], Meta(max_length=MAX_RUNS)]
    warnings: Annotated[tuple[StoredWarning, ...], Meta(max_length=MAX_WARNINGS)]
    elapsed_s: Seconds | None

    def __post_init__(self) -> None:
        ids = [entry.id for entry in self.plan]
        if len(set(ids)) < len(ids):
            raise ValueError("a plan with two runs of one id")
        if not self.device.capacity_bytes:
            raise ValueError("a device without capacity")
        _check_windows(self.interference)

    @property
    def is_of_jobs(self) -> bool:
        """Whether its runs are jobs over physical addresses (uFLIP-OC)."""
        return self.device.addresses == "physical"

    def entry(self, run_id: str) -> PlanEntry | None:
        """Find a planned run by its id."""
        return next((entry for entry in self.plan if entry.id == run_id), None)


# The used part of the plain data. Other keys are ignored.


class Disk(Struct, frozen=True):
    """The disk below a target, see `uflip.device.disk`; None for unknown values.

    `group_rates` are limits of a control group, see `uflip.device.disk`.
    """

    name: Text = ""
    model: Text | None = None
    transport: Text | None = None
    scheduler: Text | None = None
    partition_begin_bytes: Count | None = None
    temperature_celsius: float | None = None
    write_cache: Text | None = None
    zoned: Text | None = None
    logical_block_bytes: Count | None = None
    physical_block_bytes: Count | None = None
    io_bytes_max: Count | None = None
    queue_requests: Count | None = None
    group_rates: dict[Text, Count] = {}
    unknown: tuple[Text, ...] = ()


class After(Struct, frozen=True):
    """The state of a real device and its host at the end of a benchmark.

    `stolen_share` is the share of processor time that a hypervisor gave to other machines, of the
    time demanded since the benchmark began, or was resumed.
    """

    temperature_celsius: float | None = None
    wear: DeviceWear | None = None
    stolen_share: float | None = None


class Host(Struct, frozen=True):
    """The used part of the host's provenance; `uflip.results.initial_manifest` creates it."""

    disk: Disk | None = None
    counters: DriveCounters | None = None
    virtual_disk: Text | None = None
    after: After | None = None
    cpu_governor: Text | None = None
    load_average_1min: float | None = None
    cpus: Count | None = None
    cpus_usable: Count | None = None
    cpus_of_group: float | None = None
    memory_bytes: Count | None = None
    command_line: tuple[Text, ...] = ()


class _Harness(Struct, frozen=True):
    null_ns_per_io: float | None = None
    clock_ns: float | None = None
    io_count: Count | None = None


SHAPES: dict[str, type[Struct]] = {"host": Host, "harness": _Harness}


def host_of(content: Table) -> Host:
    """Read the host data of a manifest."""
    return msgspec.convert(content, Host)


def encode(manifest: Manifest) -> bytes:
    """Convert a manifest to the bytes of its file."""
    content = msgspec.to_builtins(manifest)
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    return text.encode()


def parse(path: Path, content: bytes) -> Manifest:
    """Convert the bytes of `manifest.json` to a manifest."""
    manifest = decode(path, KIND, content, Manifest, spec_hook)
    for name, shape in SHAPES.items():
        check(path, KIND, name, getattr(manifest, name), shape)
    return manifest


def refuse_results(path: Path, kind: str, where: str) -> None:
    """Refuse a name inside a result folder, also through links."""
    # `Path.resolve` raises something other than OSError for a link that leads to itself.
    parent = Path(os.path.realpath(path.absolute().parent))
    for folder in (parent, *parent.parents):
        if (folder / RUNS).is_dir() and (folder / FILE_NAME).exists():
            raise RefusedError(
                "Files cannot be written into a result folder",
                where=where,
                got=f"a name in the results {folder}",
                allowed="any other folder",
                action=f"write the {kind} beside the folder",
            )
