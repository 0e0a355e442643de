"""What is stored with the numbers of a run, in the metadata of its Parquet file.

Which run it is, and of which folder (`folder_id`), so that a file that was copied over another is
found even where nothing else tells; what the device counted; when it finished; and how a run that
finds its own length came to it. Runs that are divided into rounds have `samples`: counters of a
simulated device over the course of the run, none of a real one.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from msgspec import Struct

from uflip.data.bounded_read import DocumentKind
from uflip.data.document import Count, DigestText, Name, Positive, Table, Text, decode

KIND = DocumentKind("metadata of the run", 64 << 20, "move the file away to look at the other runs")


class InsideFile(Struct, frozen=True):
    """The file beside a run in which stands what happened inside the device meanwhile."""

    bytes: Count
    digest: DigestText


class RunMetadata(Struct, frozen=True):
    """Other keys are those of the plan, or were given with the run."""

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


class About(TypedDict, total=False):
    """What is given with a run when it is stored, beside its plan and its counters."""

    state_id: str | None
    pause_ns: int
    refreshed_bytes: int
    disturbed: Mapping[str, int]
    samples: Mapping[str, Sequence[int]]
    samples_only: bool  # nothing else of what was recorded inside the device is stored


class SeriesRecord(Struct, frozen=True):
    """What was known of one pattern when its run ended."""

    half_width_ns: float | None
    period_ios: Positive
    reasons: tuple[Name, ...] = ()
    slow_episodes: Count = 0


class StopRecord(Struct, frozen=True):
    """How a run with a rule to stop came to its length."""

    converged: bool
    startup_ios: Count
    series: tuple[SeriesRecord, ...]
    ended_by: Name | None = None
    ios: Count | None = None
    stop: Table | None = None


def metadata_of(path: Path, text: str) -> RunMetadata:
    """Read what a trace was stored with; nothing of one that was not stored.

    Raises
    ------
    ResultsError
        If it is not what uflip stores.
    """
    return decode(path, KIND, (text or "{}").encode(), RunMetadata)


def ended_of(path: Path, text: str | None) -> StopRecord | None:
    """Read how a run came to its length; None where that was given.

    Raises
    ------
    ResultsError
        If it is not what uflip stores.
    """
    return None if text is None else decode(path, KIND, text.encode(), StopRecord)
