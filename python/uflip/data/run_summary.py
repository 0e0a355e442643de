"""Cached statistics of runs, stored beside them, so that results are shown without their I/Os.

::

    {"format": "uflip-run-summary", "format_version": 1, "uflip_version": …,
     "digest": …, "experiments": [{"of": [{"run": …, "bytes": …, "digest": …}, …],
                                   "summary": {…}, "pyramid": {…}}]}

A summary is derived from run files only. It contains their lengths and digests, so that it is used
for no others. `digest` is that of the document with zeros in its place, so that a changed document
is detected. A summary that does not match is made again from the run files, and nothing is lost.

A version covers the numbers: every change in the way they are computed from a run raises it, and
summaries of other versions are made again when they are needed.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from uflip import _native
from uflip.data.counters import CounterChange
from uflip.data.document import (
    Count,
    DigestText,
    DocumentKind,
    Name,
    Positive,
    Text,
    read_if_exists,
)
from uflip.data.energy import EnergySummary
from uflip.data.spec import Spec, spec_hook
from uflip.data.summary import (
    Component,
    ModeStatistics,
    RepetitionSummary,
    RoundSummary,
    StatisticsSummary,
)
from uflip.errors import UflipError

FOLDER = "summaries"
ALL = "experiments"  # the file of the experiments of a whole folder; run ids begin with a number
NO_DIGEST = b"0" * 64  # placeholder for the digest of the document
KIND = DocumentKind("summary", 256 << 20, "remove it: it is made again from the run files")


class RunSummary(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Statistics of a run, or of all its repetitions: see `uflip.results.run_summary`."""

    run: Name
    pattern: Name
    parameter: Text | None
    value: int | float | None
    unit: Text | None
    io_count: Count
    io_ignore: Count
    elapsed_ns: Count
    ios_per_s: float | None
    statistics: StatisticsSummary | None
    repetitions: list[RepetitionSummary]
    disagreement: float | None
    components: dict[Name, Component] | UnsetType = UNSET
    by_mode: dict[Name, ModeStatistics] | UnsetType = UNSET
    rounds: list[list[RoundSummary]] | UnsetType = UNSET
    time_spent_ns: dict[Name, float] | UnsetType = UNSET
    counters: dict[Name, Count] | UnsetType = UNSET
    write_amplification: float | UnsetType | None = UNSET
    drive: CounterChange | UnsetType = UNSET
    energy: EnergySummary | UnsetType = UNSET
    spec: Spec


class SummarySource(Struct, frozen=True, forbid_unknown_fields=True):
    """A run file that a summary is derived from."""

    run: Name
    bytes: Count
    digest: DigestText


class PyramidFile(Struct, frozen=True, forbid_unknown_fields=True):
    """The file with the aggregated response times of a run, see `uflip.results.pyramid`."""

    digest: DigestText
    rows_over_number: Count
    ios_per_row: Positive
    rows_over_time: Count
    ns_per_row: Positive
    begin_ns: Count


class StoredSummary(Struct, frozen=True, forbid_unknown_fields=True):
    """A summary with its sources."""

    sources: tuple[SummarySource, ...] = field(name="of")
    summary: RunSummary
    pyramid: PyramidFile | None = None


class SummaryFile(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of a summary file."""

    uflip_version: Name
    experiments: tuple[StoredSummary, ...]
    digest: DigestText = NO_DIGEST.decode()
    format: Literal["uflip-run-summary"] = "uflip-run-summary"
    format_version: Literal[1] = 1


def encode(summaries: tuple[StoredSummary, ...]) -> bytes:
    """Return the bytes of a file of summaries."""
    content = msgspec.json.encode(SummaryFile(_native.__version__, summaries))
    return content.replace(NO_DIGEST, _native.digest(content).encode())


def read(path: Path) -> tuple[StoredSummary, ...]:
    """Read a summary file; return an empty tuple if it is damaged, or of another version."""
    try:
        content = read_if_exists(path, KIND)
        if content is None:
            return ()
        file = msgspec.json.decode(content, type=SummaryFile, dec_hook=spec_hook)
    except (UflipError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ()
    blank = content.replace(file.digest.encode(), NO_DIGEST)
    return file.experiments if _native.digest(blank) == file.digest else ()


def typed(content: Mapping[str, object]) -> RunSummary:
    """Check and convert a new summary."""
    return msgspec.convert(content, RunSummary, dec_hook=spec_hook)
