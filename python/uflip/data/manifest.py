"""The manifest: everything about a benchmark but the response times, as versioned JSON.

Version history
---------------
1   first version. `finished_utc` and `elapsed_s` are null until the end; `status` is "running"
    while the benchmark runs, then complete, interrupted or failed.
2   `state`: the state of the device before the first run, with its `state_id` (null if unknown);
    `target_size_bytes`: the used part of the device; `repetitions`; `method`, `phases`,
    `interference`: the source of lengths and pauses, null until they are known; `resumed_utc`:
    times of resumption; and with a planned run `repetition`, `reset_before`.
3   `folder_id`: the id of this folder, and `ledger_lines`: the number of lines in its ledger before
    this manifest was written; see `uflip.data.ledger`.
4   `durability`: the durability of writes. In older versions it follows from the way the device was
    opened (`uflip.durability.unrecorded_durability`), and is read as if it were stored.

A version is raised when an older reader would misinterpret the content. It is not raised for data
that an older reader can ignore: facts of the device, the host and phases, and numbers of warnings
have no fixed list of fields, and are absent from older manifests of the same version. Nor is it
raised for new words of a value or a specification (a mode, a time, a durability): a reader without
support for them refuses the manifest and names the value.

A reader accepts every version up to its own and refuses a newer one, as guessing at an unknown
format would present wrong numbers as right ones.
"""

import json
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from uflip.data.bounded_read import DocumentKind
from uflip.data.device import DeviceInfo, DeviceWear
from uflip.data.document import (
    MAX_INTEGER,
    MAX_RUNS,
    MAX_WARNINGS,
    Count,
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
from uflip.data.phases import Interference, Phases
from uflip.data.spec import Spec, spec_hook
from uflip.data.state_record import StateRequest
from uflip.durability import UNKNOWN, open_channel_durability, unrecorded_durability
from uflip.errors import ResultsError

FORMAT = "uflip-results"
FORMAT_VERSION = 4
STATE_SINCE = 2  # earlier versions stored no state: their benchmarks cannot be resumed
FILE_NAME = "manifest.json"
RUNS = "runs"  # the folder of run files beside it
KnownFrom = Literal["enforced", "record", "profile", "snapshot"]
"""Source of the known state of a device."""
Status = Literal["running", "complete", "interrupted", "failed"]

KIND = DocumentKind(
    "manifest",
    64 << 20,
    "restore the file from a copy; the runs/*.parquet files can be analysed without it",
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
    windows = interference and interference.get("windows")
    for each in (windows["before"], windows.get("writes"), windows["after"]) if windows else ():
        if each and len(each["mean_ns"]) != len(each["max_ns"]):
            raise ValueError("windows of interference with other numbers of means and maxima")


def entry_of(run: object) -> PlanEntry:
    """Return the entry of a planned run, an object with the same fields.

    Raises
    ------
    ValueError
        If a field is invalid.
    """
    return msgspec.convert(run, PlanEntry, from_attributes=True, dec_hook=spec_hook)


class WarningRecord(Struct, frozen=True, forbid_unknown_fields=True):
    """A stored warning."""

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
    format_version: Annotated[int, Meta(ge=1, le=FORMAT_VERSION)] = FORMAT_VERSION
    uflip_version: Name
    folder_id: FolderId | None = None
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
    durability: Durability | None = None
    state: DeviceState = UNKNOWN_STATE
    phases: Phases | None = None
    interference: Interference | None = None
    plan: Annotated[tuple[PlanEntry, ...], Meta(max_length=MAX_RUNS)]
    skipped: Annotated[tuple[SkippedRun, ...], Meta(max_length=MAX_RUNS)]
    warnings: Annotated[tuple[WarningRecord, ...], Meta(max_length=MAX_WARNINGS)]
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
    """Convert the bytes of `manifest.json` to a manifest.

    Raises
    ------
    ResultsError
        If it is not JSON, not ours, of a newer version, or contains an invalid value.
    """
    _check_format(path, content)
    manifest = decode(path, KIND, content, Manifest, spec_hook)
    for name, shape in SHAPES.items():
        check(path, KIND, name, getattr(manifest, name), shape)
    # Folders of open-channel devices stored `cached`, then `fua`, for every controller.
    physical = manifest.device.addresses == "physical"
    # Imported folders stored `cached`, but it is unknown.
    imported = manifest.scale == IMPORTED
    if manifest.durability is None or physical or imported:
        stored_as = unrecorded_durability(manifest.device.kind, manifest.device.io or None)
        if physical:
            stored_as = open_channel_durability(manifest.device.profile.controller.write_back)
        elif imported:
            stored_as = UNKNOWN
        manifest = msgspec.structs.replace(manifest, durability=stored_as)
    return manifest


class _ManifestFormat(Struct, frozen=True):
    format: str | None = None
    format_version: int | None = None
    uflip_version: Text = "?"


def _check_format(path: Path, content: bytes) -> None:
    """Check format and version before any other key."""
    head = decode(path, KIND, content, _ManifestFormat)
    if head.format != FORMAT:
        raise KIND.unreadable(path, f"format {head.format!r}, not {FORMAT!r}")
    version = head.format_version
    if version is not None and version > FORMAT_VERSION:
        raise ResultsError(
            what="These results are from a newer uflip",
            where=str(path),
            got=f"format_version {version}, written by uflip {head.uflip_version}",
            allowed=f"format_version up to {FORMAT_VERSION}",
            action="read them with that version of uflip or a later one",
        )
