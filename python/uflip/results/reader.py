"""Reads a result folder back: finished runs, missing runs, and damage.

Every file is verified against the folder's ledger when the folder is opened (`integrity`). A
damaged run is left out, and a warning names it; the other runs stay valid.

Only the manifest stays in memory: the I/Os of a run are read from its Parquet file on demand, so
that a folder of any size can be opened.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from uflip import _native
from uflip.data.manifest import Manifest, PlanEntry, StoredWarning
from uflip.data.run import RunMetadata, metadata_of
from uflip.data.run_summary import RunSummary
from uflip.data.spec import Spec
from uflip.data.summary import WarningSummary
from uflip.errors import ResultsError, UflipError, UsageError, native_errors
from uflip.results import result_dir
from uflip.results.benchmark_warnings import benchmark_warnings, file_warnings
from uflip.results.columns import as_array, measured_column
from uflip.results.integrity import FolderVerification, examine, read_log
from uflip.results.pyramid import Pyramid, pyramid_of
from uflip.results.result_dir import run_file
from uflip.results.run_summary import (
    RepetitionPart,
    SummaryCache,
    experiment_of,
    job_summary,
    merge_repetitions,
)
from uflip.results.warnings import Examiner, FlashExaminer


@dataclass(frozen=True)
class StoredRun:
    """One finished run of a result folder."""

    id: str
    micro_benchmark: str
    pattern: str
    parameter: str | None
    value: int | float | None
    unit: str | None
    spec: Spec
    path: Path
    repetition: int = 1
    page_bytes: int | None = None
    """Size of a flash page of the measured device [bytes]; None if unknown."""
    expected: tuple[int, str] | None = None
    """Expected length [bytes] and digest of the file; None if the ledger has no line."""
    is_job: bool = False
    """Whether it is a job over physical addresses, to be read with `log` instead of `trace`."""

    def trace(self) -> _native.Trace:
        """Read every I/O of the run."""
        if self.is_job:
            raise UsageError(
                "An open-channel job has a command log instead of a trace",
                where=self.id,
                got=f"a job of {self.micro_benchmark}",
                allowed="a run over sectors",
                action="read it with log(); log().columns lists its columns",
            )
        try:
            with native_errors():
                return _native.read_trace(str(self.path), self.expected)
        except ResultsError:
            raise
        except UflipError as error:
            raise damaged_run_error(
                self.path, f"{error.what}: {error.got}" if error.got else error.what
            ) from error

    def log(self) -> _native.FlashTrace:
        """Read every command of a job over physical addresses."""
        return read_log(self.path, self.expected)

    def summary(self) -> RunSummary:
        """Summarise this run alone, from its file."""
        return job_summary(self, self.log()) if self.is_job else merge_repetitions([self.part()])

    def part(self) -> RepetitionPart:
        """Read the run as one of its repetitions."""
        return RepetitionPart(self, self.trace(), self.page_bytes, self.path)

    @cached_property
    def meta(self) -> RunMetadata:
        """Metadata stored with the run: counters, time of its end."""
        stored = self.log() if self.is_job else self.trace()
        return metadata_of(self.path, stored.metadata_json)

    def response_time_ns(self, *, include_ignored: bool = False) -> NDArray[np.uint64]:
        """Return response times (n,) [ns], by default without the I/Os inside `io_ignore`."""
        trace = self.trace()
        return as_array(trace, "response_time_ns") if include_ignored else measured_column(trace)


class Results:
    """A result folder; open one with `load`."""

    def __init__(
        self, path: Path, content: Manifest, runs: list[StoredRun], verification: FolderVerification
    ) -> None:
        self.path = path
        self.manifest = content
        self.runs = runs
        self.verification = verification
        """The verification result of each file."""

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Results:
        """Open a result folder, finished or not."""
        folder = Path(path)
        verification = examine(folder)
        content = verification.usable_manifest()
        verdicts = verification.runs
        page, is_job = content.device.page_bytes, content.is_of_jobs
        runs = [
            _stored_run(entry, folder, verification.expected(entry.id), page, is_job=is_job)
            for entry in content.plan
            if entry.id in verdicts and verdicts[entry.id].usable
        ]
        return cls(folder, content, runs, verification)

    def summary_of(self, runs: Sequence[StoredRun]) -> RunSummary:
        """Summarise the repetitions of a run: from the cache, or from their I/Os."""
        cached = self._summary_cache.find([(run.id, run.expected) for run in runs])
        if cached is not None:
            return cached
        return (
            runs[0].summary() if len(runs) == 1 else merge_repetitions([run.part() for run in runs])
        )

    def pyramid_of(self, run: StoredRun) -> Pyramid | None:
        """Return the aggregated response times of a run: from the cache, or from its I/Os.

        None for a job that wears out a block.
        """
        cached = self._summary_cache.pyramid(run.id, run.expected)
        return pyramid_of(run.log() if run.is_job else run.trace()) if cached is None else cached

    @cached_property
    def _summary_cache(self) -> SummaryCache:
        return SummaryCache(self.path)

    @property
    def missing(self) -> list[str]:
        """Ids of planned runs without a usable file."""
        present = {run.id for run in self.runs}
        return [entry.id for entry in self.manifest.plan if entry.id not in present]

    @property
    def is_open_channel(self) -> bool:
        """Whether its runs are jobs over physical addresses (uFLIP-OC)."""
        return self.manifest.is_of_jobs

    @property
    def status(self) -> str:
        """State of the benchmark; "interrupted" if it is "running" without a live writer."""
        status = str(self.manifest.status)
        return (
            "interrupted" if status == "running" and not result_dir.is_locked(self.path) else status
        )

    @cached_property
    def warnings(self) -> list[WarningSummary]:
        """Stored warnings, and those about the files; for an unfinished benchmark also those that
        its runs raise now.
        """
        all_warnings = [*self.manifest.warnings, *file_warnings(self.verification)]
        if self.manifest.finished_utc is None:
            all_warnings += self._unfinished_warnings()
        document: list[WarningSummary] = msgspec.to_builtins(all_warnings)
        return document

    def _unfinished_warnings(self) -> list[StoredWarning]:
        content = self.manifest
        examiner = examiner_of(content)
        for run in self.runs:
            entry = content.entry(run.id)
            assert entry is not None, "runs are of the plan"
            examiner.examine(entry, run.log() if run.is_job else run.trace())
        raised = benchmark_warnings(content) + examiner.warnings(content.phases, content.plan)
        if self.status != "running":
            raised.append(_unfinished(len(self.runs), len(content.plan)))
        return raised


def repeated(runs: Sequence[StoredRun]) -> list[list[StoredRun]]:
    """Group the repetitions of each run, in the order of their first."""
    groups: dict[tuple[Any, ...], list[StoredRun]] = {}
    for run in runs:
        groups.setdefault(experiment_of(run), []).append(run)
    return list(groups.values())


def examiner_of(content: Manifest) -> Examiner | FlashExaminer:
    """Return the examiner that gathers warnings about the runs of a benchmark."""
    if content.is_of_jobs:
        return FlashExaminer()
    return Examiner(content.device, content.harness)


def damaged_run_error(path: Path, got: str) -> ResultsError:
    """Return the error for a run file that cannot be read."""
    return ResultsError(
        what="A run file is damaged",
        where=str(path),
        got=got,
        allowed="a complete Parquet file, as `uflip run` commits it",
        action="restore the file from a copy, or move it away to read the other runs without it",
    )


def _stored_run(
    entry: PlanEntry,
    folder: Path,
    expected: tuple[int, str] | None,
    page: int | None,
    *,
    is_job: bool,
) -> StoredRun:
    return StoredRun(
        id=entry.id,
        micro_benchmark=entry.micro_benchmark,
        pattern=entry.pattern,
        parameter=entry.parameter,
        value=entry.value,
        unit=entry.unit,
        spec=entry.spec,
        path=run_file(folder, entry.id),
        repetition=entry.repetition,
        expected=expected,
        page_bytes=page,
        is_job=is_job,
    )


def _unfinished(finished: int, planned: int) -> StoredWarning:
    return StoredWarning(
        "unfinished",
        f"The benchmark was killed: {finished} of {planned} runs finished",
        {"runs_finished": finished, "runs_planned": planned},
        "the finished runs are complete; `uflip run --resume FOLDER` makes the others",
    )
