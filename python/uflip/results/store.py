"""Reads a result folder back: finished runs, missing runs, and what is wrong with it.

Nothing is kept in memory but the manifest: a run's I/Os are read from its Parquet file when they
are asked for, so that a folder of any size can be opened.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uflip import _native
from uflip.amplification import page_bytes
from uflip.errors import ResultsError, UflipError, native_errors
from uflip.results import lock, manifest
from uflip.results.columns import as_array, measured
from uflip.results.warnings import Examiner, StoredWarning, about_conditions, about_interference

# Every Parquet file begins and ends with these bytes; the end is written last.
PARQUET_MAGIC = b"PAR1"


@dataclass(frozen=True)
class StoredRun:
    """One finished run of a result folder."""

    id: str
    micro_benchmark: str
    pattern: str
    parameter: str | None
    value: int | float | str | None
    unit: str | None
    spec: Mapping[str, Any]
    path: Path
    repetition: int = 1
    page_bytes: int | None = None
    """Size of a flash page of the device that was measured [bytes]; None where it is unknown."""

    def trace(self) -> _native.Trace:
        """Read every I/O of the run.

        Raises
        ------
        ResultsError
            If the file is damaged.
        """
        try:
            with native_errors():
                return _native.read_trace(str(self.path))
        except ResultsError:
            raise
        except UflipError as error:
            raise damaged(
                self.path, f"{error.what}: {error.got}" if error.got else error.what
            ) from error

    @cached_property
    def meta(self) -> dict[str, Any]:
        """What was stored with the run: the plan's entry, counters, when it finished."""
        return metadata_of(self.trace())

    def response_time_ns(self, *, include_ignored: bool = False) -> NDArray[np.uint64]:
        """Response times (n,) [ns], by default without the I/Os inside `io_ignore`."""
        trace = self.trace()
        return as_array(trace, "response_time_ns") if include_ignored else measured(trace)


class Results:
    """A result folder; open one with `load`."""

    def __init__(self, path: Path, content: dict[str, Any], runs: list[StoredRun]) -> None:
        self.path = path
        self.manifest = content
        self.runs = runs

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Results":
        """Open a result folder, finished or not.

        Raises
        ------
        ResultsError
            If it is not one, is of a newer format, or holds a damaged file (which is named).
        """
        folder = Path(path)
        content = manifest.read(folder)
        runs = []
        for entry in content["plan"]:
            file = folder / manifest.RUNS / f"{entry['id']}.parquet"
            if file.exists():
                _check_whole(file)
                runs.append(_stored_run(entry, file, page_bytes(content["device"])))
        return cls(folder, content, runs)

    @property
    def missing(self) -> list[str]:
        """Ids of planned runs that are not there."""
        there = {run.id for run in self.runs}
        return [entry["id"] for entry in self.manifest["plan"] if entry["id"] not in there]

    @property
    def status(self) -> str:
        """How the benchmark ended; "interrupted" if it says running and nobody is at work."""
        status = str(self.manifest["status"])
        return "interrupted" if status == "running" and not lock.is_held(self.path) else status

    @cached_property
    def warnings(self) -> list[dict[str, Any]]:
        """Stored doubts; of a benchmark that never finished, those that its runs raise now."""
        stored = list(self.manifest["warnings"])
        if self.manifest["finished_utc"] is not None:
            return stored
        examiner = Examiner(self.manifest["device"], self.manifest["harness"])
        entries = {entry["id"]: entry for entry in self.manifest["plan"]}
        for run in self.runs:
            trace = run.trace()
            examiner.look(entries[run.id], trace)
        found = about_conditions(
            self.manifest["device"], self.manifest["host"], self.manifest["state"]
        )
        found += about_interference(self.manifest["interference"]) + examiner.warnings()
        if self.status != "running":
            found.append(_unfinished(len(self.runs), len(self.manifest["plan"])))
        return stored + [warning.as_dict() for warning in found]


def metadata_of(trace: _native.Trace) -> dict[str, Any]:
    """The metadata that a trace was stored with; empty for one that comes from a run."""
    content = json.loads(trace.metadata_json or "{}")
    return content if isinstance(content, dict) else {}


def damaged(path: Path, got: str) -> ResultsError:
    """Make the error for a run file that cannot be read."""
    return ResultsError(
        what="A run file is damaged",
        where=str(path),
        got=got,
        allowed="a complete Parquet file, as `uflip run` commits it",
        action="restore the file from a copy, or move it away to read the other runs without it",
    )


def _check_whole(path: Path) -> None:
    """Cheap look at both ends: a truncated file is found before any of the folder is used."""
    try:
        with path.open("rb") as file:
            head = file.read(len(PARQUET_MAGIC))
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - len(PARQUET_MAGIC), 0))
            tail = file.read()
    except OSError as error:
        raise damaged(path, error.strerror or str(error)) from error
    if head != PARQUET_MAGIC or tail != PARQUET_MAGIC or size < 3 * len(PARQUET_MAGIC):
        raise damaged(path, f"{size} bytes that do not begin and end as a Parquet file does")


def _stored_run(entry: Mapping[str, Any], path: Path, page_bytes: int | None) -> StoredRun:
    return StoredRun(
        **{key: entry[key] for key in manifest.PLANNED_RUN},
        path=path,
        repetition=entry["repetition"],
        page_bytes=page_bytes,
    )


def _unfinished(finished: int, planned: int) -> StoredWarning:
    return StoredWarning(
        "unfinished",
        f"The benchmark was killed: {finished} of {planned} runs finished",
        {"runs_finished": finished, "runs_planned": planned},
        "the finished runs are whole; `uflip run --resume FOLDER` makes the others",
    )
