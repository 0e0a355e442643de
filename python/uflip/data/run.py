"""Metadata of a run, stored in its Parquet file.

It contains the id of the run and of its folder (`folder_id`), so that a file that was copied over
another is detected even without a ledger; the counters of the device; the time of its end; and the
result of a stop rule. Runs that are divided into rounds have `samples`: counters of a simulated
device during the run, empty for a real one.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NotRequired, TypedDict

from msgspec import Struct

from uflip.data.counters import CounterChange
from uflip.data.device import DeviceInfo
from uflip.data.document import Count, DigestText, DocumentKind, Name, Positive, Table, Text, decode
from uflip.data.energy import EnergySummary, PowerRecord
from uflip.data.host_load import HostRecord
from uflip.data.spec import Pattern
from uflip.data.summary import StatisticsSummary

KIND = DocumentKind("metadata of the run", 64 << 20, "move the file away to look at the other runs")


class InsideFile(Struct, frozen=True):
    """The device log beside a run: its length and digest."""

    bytes: Count
    digest: DigestText


class RunMetadata(Struct, frozen=True):
    """The used metadata; other keys are those of the plan, or were stored with the run."""

    id: Text | None = None
    folder_id: Text | None = None
    device_kind: Text | None = None
    finished_utc: Text | None = None
    elapsed_ns: Count | None = None
    counters: dict[str, Count] | None = None
    state_id: Text | None = None
    pause_ns: Count | None = None
    refreshed_bytes: Count | None = None
    disturbed: dict[str, Count] | None = None
    inside: InsideFile | None = None
    samples: dict[str, list[Count]] | None = None
    drive: CounterChange | None = None
    power: PowerRecord | None = None
    host: HostRecord | None = None


class About(TypedDict, total=False):
    """Metadata given with a run when it is stored, beside its plan and its counters."""

    state_id: str | None
    pause_ns: int
    refreshed_bytes: int
    disturbed: Mapping[str, int]
    samples: Mapping[str, Sequence[int]]
    drive: CounterChange
    power: PowerRecord
    host: HostRecord
    samples_only: bool  # nothing else from inside the device is stored


class SeriesRecord(Struct, frozen=True):
    """The result of the stop rule for one pattern."""

    half_width_ns: float | None
    period_ios: Positive
    reasons: tuple[Name, ...] = ()
    slow_episodes: Count = 0


class StopRecord(Struct, frozen=True):
    """The end of a run with a stop rule."""

    converged: bool
    startup_ios: Count
    series: tuple[SeriesRecord, ...]
    ended_by: Name | None = None
    ios: Count | None = None
    stop: Table | None = None


def metadata_of(path: Path, text: str) -> RunMetadata:
    """Read the stored metadata of a trace; empty for one that was not stored."""
    return decode(path, KIND, (text or "{}").encode(), RunMetadata)


def ended_of(path: Path, text: str | None) -> StopRecord | None:
    """Read the end of a run with a stop rule; None for a run of fixed length."""
    return None if text is None else decode(path, KIND, text.encode(), StopRecord)


# A single run as plain data: the output of `uflip pattern --json`.


class SeriesDocument(TypedDict):
    """The mean of one series of a run, and its interval."""

    mean_ns: float
    half_width_ns: float | None
    reasons: list[str]


class StopDocument(TypedDict):
    """The end of a run with a stop rule."""

    converged: bool
    ended_by: str
    series: list[SeriesDocument]


class ModeDocument(TypedDict):
    """Statistics of the reads, writes or trims of a run."""

    bytes: int
    ios_per_s: float | None
    bytes_per_s: float | None
    statistics: StatisticsSummary


class RunFacts(TypedDict, total=False):
    """The change of the counters of a real drive, and the sectors that were compared, if any."""

    drive: CounterChange
    verified_sectors: int


class Coincidence(TypedDict):
    """A disturbance by the host: how many of the slow I/Os, and of all, lie in its windows."""

    what: str
    slow_ios: int
    ios: int


class HostSummary(TypedDict):
    """Disturbances by the host: windows with each, and those that coincide with slow I/Os."""

    windows: int
    window_ns: int
    disturbed: dict[str, int]
    slow_ios: int
    ios: int
    coincide: list[Coincidence]


class OneRun(RunFacts):
    """A run, its rates, and the statistics of the I/Os that were not ignored."""

    device: DeviceInfo
    durability: str
    spec: Pattern
    ios: int
    ignored: int
    bytes: int
    elapsed_ns: int
    ios_per_s: float | None
    bytes_per_s: float | None
    statistics: StatisticsSummary
    causes_ns: dict[str, float]
    counters: dict[str, int] | None
    write_amplification: float | None
    ended: StopDocument | None
    energy: NotRequired[EnergySummary]
    power: NotRequired[PowerRecord]
    components: NotRequired[dict[str, StatisticsSummary]]
    by_mode: NotRequired[Mapping[str, ModeDocument]]
    disturbed: NotRequired[Mapping[str, int]]
    host: NotRequired[HostSummary]
