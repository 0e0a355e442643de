"""The summary of a run: statistics of all I/Os of its repetitions, and their convergence.

The summary of a run is cached beside it at its commit, that of all repetitions at the end of the
benchmark (`summary_cache`). Everything else is computed from the run files, with the same result.

A run of an open-channel device is a job over physical addresses. Its file has a row per command,
with address and status, or, for a wear job, a row per cycle of a block.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from uflip import _native
from uflip.data import summary
from uflip.data.manifest import PlanEntry
from uflip.data.run import metadata_of
from uflip.data.run_summary import RunSummary, typed
from uflip.data.spec import Mix, read_spec
from uflip.results.columns import measured_column, pieces
from uflip.results.convergence import job_convergence, repetition_convergence
from uflip.results.repetitions import disagreement
from uflip.results.run_statistics import statistics_of, write_amplification
from uflip.results.steady_state import Samples, rounds_of
from uflip.stats import summarise

if TYPE_CHECKING:
    from uflip.results.reader import StoredRun


Document = dict[str, object]


@dataclass(frozen=True)
class RepetitionPart:
    """One repetition: its run, its I/Os, the flash page of its device, its file."""

    run: StoredRun | PlanEntry
    trace: _native.Trace
    page_bytes: int | None
    path: Path
    cached: summary.RepetitionSummary | None = None
    """Its convergence, where that is known already."""
    sampled: Samples | None = None
    """Samples of the counters during a fresh run that is divided into rounds."""

    def convergence(self) -> summary.RepetitionSummary:
        """Return the convergence of its mean."""
        if self.cached is not None:
            return self.cached
        return {
            "run": self.run.id,
            **repetition_convergence(self.trace, measured_column(self.trace), self.path),
        }

    @property
    def rounds(self) -> list[summary.RoundSummary] | None:
        """The rounds of a run that is divided into rounds."""
        samples = self.sampled
        if samples is None and self.trace.metadata_json:
            samples = metadata_of(self.path, self.trace.metadata_json).samples
        return None if samples is None else rounds_of(self.trace, samples, self.page_bytes)

    @property
    def counters(self) -> dict[str, int] | None:
        """Counters of the device; None where it has no counters."""
        fresh = self.trace.counters_json()
        if fresh is not None:
            parsed: dict[str, int] = json.loads(fresh)
            return parsed
        return metadata_of(self.path, self.trace.metadata_json).counters


def experiment_of(run: StoredRun | PlanEntry) -> tuple[Any, ...]:
    """Return what all repetitions of a run have in common: the key of their experiment."""
    return run.micro_benchmark, run.pattern, run.parameter, run.value


def merge_repetitions(parts: Sequence[RepetitionPart]) -> RunSummary:
    """Summarise the repetitions of a run: the statistics are those of all their I/Os.

    Parameters
    ----------
    parts : sequence of RepetitionPart
        One or more, in the order of the plan.

    Returns
    -------
    RunSummary
        That of the first run; `statistics` and `by_mode` cover all repetitions, and are null if
        they contain only start-up. `repetitions` has each; `disagreement` is the range of their
        means relative to its middle, null for a single run.
    """
    first, traces = parts[0], [part.trace for part in parts]
    repetitions = [part.convergence() for part in parts]
    spec, totals = read_spec(first.trace.spec_json), statistics_of(traces)
    document: Document = {
        "run": first.run.id,
        "pattern": first.run.pattern,
        "parameter": first.run.parameter,
        "value": first.run.value,
        "unit": first.run.unit,
        "io_count": len(first.trace),
        "io_ignore": sum(int(ignored.sum()) for (ignored,) in pieces(first.trace, ["ignored"])),
        "elapsed_ns": first.trace.elapsed_ns(),
        "ios_per_s": totals.ios_per_s,
        "statistics": totals.statistics,
        "repetitions": repetitions,
        "disagreement": disagreement([each["mean_ns"] for each in repetitions]),
        "spec": spec,
    }
    if isinstance(spec, Mix):
        labels = first.run.pattern.split("/")
        document["components"] = {
            name: {"pattern": label, "statistics": statistics}
            for (name, statistics), label in zip(
                totals.components.items(), labels if len(labels) == 2 else [None, None], strict=True
            )
        }
    if totals.separate_modes:
        document["by_mode"] = totals.separate_modes
    rounds = [each for part in parts if (each := part.rounds) is not None]
    if len(rounds) == len(parts):
        document["rounds"] = rounds
    if first.trace.causes:
        document["time_spent_ns"] = totals.causes_ns
    all_counters = [
        counters for counters in (part.counters for part in parts) if counters is not None
    ]
    if all_counters:
        counted = {name: sum(each[name] for each in all_counters) for name in all_counters[0]}
        written = sum(trace.bytes_written for trace in traces)
        document["counters"] = counted
        document["write_amplification"] = write_amplification(counted, first.page_bytes, written)
    return typed(document)


OPS = ("reads", "writes", "erases")
WEAR = {"reads": "read_ns", "writes": "write_ns", "erases": "erase_ns"}
"""Columns of a wear job for each operation: a mean per cycle."""


def job_summary(run: Any, log: _native.FlashTrace) -> RunSummary:
    """Summarise a job: `statistics` are those of its reads and writes; each operation is separate.

    Parameters
    ----------
    run
        The planned or stored run: id, pattern, parameter, value, unit.
    log
        Its log. For a wear job, `statistics` is null, and those of an operation are of its means
        in each cycle. Any other job has an interval of the mean, as a run of fixed length.
    """
    wears_out = WEAR["erases"] in log.columns
    times = {op: _times(log, number, op) for number, op in enumerate(OPS)}
    moved = np.zeros(0) if wears_out else np.concatenate([times["reads"], times["writes"]])
    mean_ns = float(moved.mean()) if len(moved) else None
    convergence = job_convergence(*((np.zeros(0),) * 2 if wears_out else _moved(log)))
    document: dict[str, object] = {
        "run": run.id,
        "pattern": run.pattern,
        "parameter": run.parameter,
        "value": run.value,
        "unit": run.unit,
        "io_count": len(log),
        "io_ignore": 0,
        "elapsed_ns": log.elapsed_ns(),
        "ios_per_s": len(log) / log.elapsed_ns() * 1e9 if log.elapsed_ns() else None,
        "statistics": _statistics(moved),
        "repetitions": [{"run": run.id, "io_count": len(log), "mean_ns": mean_ns, **convergence}],
        "disagreement": None,
        "components": {
            op: {"pattern": op, "statistics": _statistics(op_times)}
            for op, op_times in times.items()
            if len(op_times)
        },
        "spec": msgspec.json.decode(log.job_json),
    }
    if log.causes:
        document["time_spent_ns"] = {
            cause: float(np.asarray(log.column(cause)).mean()) if len(log) else 0.0
            for cause in log.causes
        }
    return typed(document)


def _moved(log: _native.FlashTrace) -> tuple[np.ndarray, np.ndarray]:
    """Return times [ns] and threads of reads and writes (n,), in the order of submission."""
    moves = np.asarray(log.column("op")) < OPS.index("erases")
    times, thread = (np.asarray(log.column(name)) for name in ("response_time_ns", "thread"))
    return times[moves], thread[moves]


def _times(log: _native.FlashTrace, number: int, op: str) -> np.ndarray:
    if WEAR[op] in log.columns:
        means: np.ndarray = np.asarray(log.column(WEAR[op]))
        return means
    times: np.ndarray = np.asarray(log.column("response_time_ns"))
    of_this: np.ndarray = times[np.asarray(log.column("op")) == number]
    return of_this


def _statistics(times: np.ndarray) -> dict[str, int | float | None] | None:
    return summarise(times).as_dict() if len(times) else None
