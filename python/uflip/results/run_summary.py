"""The summary of a run: statistics of all I/Os of its repetitions, and their convergence.

Summaries are cached beside the runs, so that results are shown without reading their I/Os::

    results/demo/
      summaries/0001-baseline-SR-….json            summary of a run, written at its commit
      summaries/0001-baseline-SR-….pyramid.npy     its aggregated response times
      summaries/experiments.json                   all repetitions together, written at the end

The cache holds derived data only and proves nothing: its files can be removed, and a file that does
not match the run files in the ledger is ignored (`uflip.data.run_summary`). So its files are not
synced, and a failed write does not stop the benchmark. A missing summary is computed from the run
files, with the same result.

A run of an open-channel device is a job over physical addresses. Its file has a row per command,
with address and status, or, for a wear job, a row per cycle of a block.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from uflip import _native
from uflip.data import run_summary
from uflip.data.counters import CounterChange, combine
from uflip.data.document import DocumentKind, read_if_exists
from uflip.data.energy import PowerRecord, summarise_energy
from uflip.data.manifest import PlanEntry
from uflip.data.run import About, metadata_of
from uflip.data.run_summary import PyramidFile, RunSummary, StoredSummary, SummarySource, typed
from uflip.data.spec import Mix, read_spec
from uflip.data.summary import RepetitionSummary, RoundSummary, StatisticsSummary
from uflip.errors import UflipError
from uflip.results.columns import measured_column, pieces
from uflip.results.pyramid import ROW, Pyramid, pyramid_of
from uflip.results.run_statistics import statistics_of, write_amplification
from uflip.results.statistics import disagreement, job_convergence, repetition_convergence
from uflip.results.steady_state import Samples, rounds_of
from uflip.safe_files import write_file
from uflip.stats import summarise

if TYPE_CHECKING:
    from uflip.results.reader import StoredRun


Document = dict[str, object]


PYRAMID_KIND = DocumentKind("pyramid", 64 << 20, "remove it: it is made again from the run file")
FileDigest = tuple[int, str]
"""Length [bytes] and digest of a run file."""
Log = _native.Trace | _native.FlashTrace
ENDINGS = SUMMARY, PYRAMID = (".json", ".pyramid.npy")
"""Endings of the cache files."""


class SummaryCache:
    """The cached summaries of a result folder.

    `folder`: the result folder; the cache may be empty.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / run_summary.FOLDER

    @cached_property
    def _experiments(self) -> Mapping[tuple[SummarySource, ...], RunSummary]:
        path = self._file(run_summary.ALL)
        return {stored.sources: stored.summary for stored in run_summary.read(path)}

    def find(self, runs: Sequence[tuple[str, FileDigest | None]]) -> RunSummary | None:
        """Find the summary of these repetitions, by the digests of their files."""
        sources = _sources(runs)
        if sources is None:
            return None
        result = self._experiments.get(sources)
        if result is None and len(sources) == 1:
            stored = self._read(sources[0])
            result = None if stored is None else stored.summary
        return result

    def pyramid(self, run: str, digest: FileDigest | None) -> Pyramid | None:
        """Find the pyramid of a run, by the digest of its file; None if it is not cached."""
        sources = _sources([(run, digest)])
        stored = None if sources is None else self._read(sources[0])
        if stored is None or stored.pyramid is None:
            return None
        try:
            content = read_if_exists(self._pyramid_file(run), PYRAMID_KIND)
        except UflipError:
            return None
        if content is None or _native.digest(content) != stored.pyramid.digest:
            return None
        return _unpack(content, stored.pyramid)

    def store_run(
        self, run: str, digest: FileDigest, summary: RunSummary, pyramid: Pyramid | None
    ) -> None:
        """Cache the summary of a committed run; a job that wears out a block has no pyramid."""
        record = None
        with contextlib.suppress(OSError):
            self._folder.mkdir(exist_ok=True)
            if pyramid is not None:
                content, record = _pack(pyramid)
                write_file(self._pyramid_file(run), content, durable=False)
            stored = StoredSummary((SummarySource(run, *digest),), summary, record)
            write_file(self._file(run), run_summary.encode((stored,)), durable=False)

    def store_experiments(
        self, experiments: Sequence[tuple[Sequence[tuple[str, FileDigest | None]], RunSummary]]
    ) -> None:
        """Cache the summaries of all repetitions, for every experiment of the folder."""
        with_sources = [(_sources(runs), summary) for runs, summary in experiments]
        stored = tuple(StoredSummary(of, summary) for of, summary in with_sources if of is not None)
        with contextlib.suppress(OSError):
            self._folder.mkdir(exist_ok=True)
            write_file(self._file(run_summary.ALL), run_summary.encode(stored), durable=False)

    def _read(self, source: SummarySource) -> StoredSummary | None:
        stored = run_summary.read(self._file(source.run))
        return next((each for each in stored if each.sources == (source,)), None)

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}{SUMMARY}"

    def _pyramid_file(self, run: str) -> Path:
        return self._folder / f"{run}{PYRAMID}"


class SummaryWriter:
    """Caches the summaries of a running benchmark.

    `folder`: its result folder. `page_bytes`: size of a flash page of its device [bytes].
    """

    def __init__(self, folder: Path, page_bytes: int | None) -> None:
        self._summaries = SummaryCache(folder)
        self._page_bytes = page_bytes
        self._by_run: dict[str, RunSummary] = {}

    def cache_run(
        self,
        run: PlanEntry,
        path: Path,
        digest: FileDigest,
        trace: Log,
        about: About | None = None,
    ) -> None:
        """Cache the summary of a committed run."""
        if isinstance(trace, _native.FlashTrace):
            summary = job_summary(run, trace)
        else:
            part = RepetitionPart(run, trace, self._page_bytes, path, about=about)
            summary = merge_repetitions([part])
        self._by_run[run.id] = summary
        self._summaries.store_run(run.id, digest, summary, pyramid_of(trace))

    def repetition(self, run: str) -> RepetitionSummary:
        """Return the convergence of a committed run."""
        return self._by_run[run].repetitions[0].copy()

    def _cached_repetition(self, run: str) -> RepetitionSummary | None:
        cached = self._by_run.get(run)
        return None if cached is None else cached.repetitions[0]

    def cache_experiments(
        self,
        runs: Iterable[tuple[PlanEntry, Path, FileDigest | None]],
        trace_of: Callable[[str], Log | None],
    ) -> None:
        """Cache the summaries of all repetitions of these runs."""
        groups: dict[tuple[Any, ...], list[tuple[PlanEntry, Path, FileDigest | None]]] = {}
        for run in runs:
            groups.setdefault(experiment_of(run[0]), []).append(run)
        experiments = []
        for group in groups.values():
            files = [(entry.id, digest) for entry, _, digest in group]
            summary = self._by_run.get(files[0][0]) if len(files) == 1 else None
            summary = summary or self._summaries.find(files) or self._merged(group, trace_of)
            if summary is not None:
                experiments.append((files, summary))
        self._summaries.store_experiments(experiments)

    def _merged(
        self,
        group: Sequence[tuple[PlanEntry, Path, FileDigest | None]],
        trace_of: Callable[[str], Log | None],
    ) -> RunSummary | None:
        traces = [trace_of(entry.id) for entry, _, _ in group]
        if isinstance(traces[0], _native.FlashTrace):
            return job_summary(group[0][0], traces[0])  # jobs are not repeated
        parts = [
            RepetitionPart(entry, trace, self._page_bytes, path, self._cached_repetition(entry.id))
            for (entry, path, _), trace in zip(group, traces, strict=True)
            if isinstance(trace, _native.Trace)
        ]
        return merge_repetitions(parts) if len(parts) == len(group) else None


@dataclass(frozen=True)
class RepetitionPart:
    """One repetition: its run, its I/Os, the flash page of its device, its file."""

    run: StoredRun | PlanEntry
    trace: _native.Trace
    page_bytes: int | None
    path: Path
    cached: RepetitionSummary | None = None
    """Its convergence, where that is known already."""
    about: About | None = None
    """Metadata of a fresh run: a stored one contains them."""

    def convergence(self) -> RepetitionSummary:
        """Return the convergence of its mean."""
        if self.cached is not None:
            return self.cached
        return {
            "run": self.run.id,
            **repetition_convergence(self.trace, measured_column(self.trace), self.path),
        }

    @property
    def rounds(self) -> list[RoundSummary] | None:
        """The rounds of a run that is divided into rounds."""
        samples: Samples | None = (self.about or {}).get("samples")
        if samples is None and self.trace.metadata_json:
            samples = metadata_of(self.path, self.trace.metadata_json).samples
        return None if samples is None else rounds_of(self.trace, samples, self.page_bytes)

    @property
    def drive(self) -> CounterChange | None:
        """Change of the counters of a real drive; None where it has none."""
        if self.about is not None:
            return self.about.get("drive")
        return metadata_of(self.path, self.trace.metadata_json).drive

    @property
    def power(self) -> PowerRecord | None:
        """The power that a meter of the host measured; None without one."""
        if self.about is not None:
            return self.about.get("power")
        return metadata_of(self.path, self.trace.metadata_json).power

    @property
    def counters(self) -> dict[str, int] | None:
        """Counters of the device; None where it has no counters."""
        fresh = self.trace.counters_json()
        if fresh is not None:
            parsed: dict[str, int] = json.loads(fresh)
            return parsed
        return metadata_of(self.path, self.trace.metadata_json).counters


def _size_of(trace: _native.Trace) -> int:
    return sum(int(sizes.sum(dtype="uint64")) for (sizes,) in pieces(trace, ["io_size_bytes"]))


def experiment_of(run: StoredRun | PlanEntry) -> tuple[Any, ...]:
    """Return what all repetitions of a run have in common: the key of their experiment."""
    return run.micro_benchmark, run.pattern, run.parameter, run.value


def merge_repetitions(parts: Sequence[RepetitionPart]) -> RunSummary:
    """Summarise the repetitions of a run: the statistics are those of all their I/Os.

    `parts`: one or more, in the order of the plan. Returns that of the first run; `statistics` and
    `by_mode` cover all repetitions, and are null if they contain only start-up. `repetitions` has
    each; `disagreement` is the range of their means relative to its middle, null for a single run.
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
        document["components"] = _components(first.run.pattern, totals.components)
    if totals.separate_modes:
        document["by_mode"] = totals.separate_modes
    rounds = [each for part in parts if (each := part.rounds) is not None]
    if len(rounds) == len(parts):
        document["rounds"] = rounds
    if first.trace.causes:
        document["time_spent_ns"] = totals.causes_ns
    return typed(document | _counted(parts))


def _components(pattern: str, components: Mapping[str, StatisticsSummary | None]) -> Document:
    """Return the pattern and the statistics of each component of a mix."""
    labels: list[str | None] = [*pattern.split("/")]
    if len(labels) != len(components):
        labels = [None] * len(components)
    return {
        name: {"pattern": label, "statistics": statistics}
        for (name, statistics), label in zip(components.items(), labels, strict=True)
    }


def _counted(parts: Sequence[RepetitionPart]) -> Document:
    """Return what devices, drives and meters counted: counters, write amplification, energy."""
    document: Document = {}
    traces = [part.trace for part in parts]
    counted = None
    if counters := [each for part in parts if (each := part.counters) is not None]:
        counted = {name: sum(each[name] for each in counters) for name in counters[0]}
        written = sum(trace.bytes_written for trace in traces)
        document["counters"] = counted
        document["write_amplification"] = write_amplification(counted, parts[0].page_bytes, written)
    records = [record for part in parts if (record := part.power) is not None]
    energy = summarise_energy(
        counted,
        records if len(records) == len(parts) else [],
        sum(len(trace) for trace in traces),
        sum(_size_of(trace) for trace in traces),
        sum(trace.elapsed_ns() for trace in traces),
    )
    if energy is not None:
        document["energy"] = energy
    if drive := combine([change for part in parts if (change := part.drive) is not None]):
        document |= {"drive": drive, "write_amplification": drive.write_amplification}
    return document


OPS = ("reads", "writes", "erases")
WEAR = {"reads": "read_ns", "writes": "write_ns", "erases": "erase_ns"}
"""Columns of a wear job for each operation: a mean per cycle."""


def job_summary(run: Any, log: _native.FlashTrace) -> RunSummary:
    """Summarise a job: `statistics` are those of its reads and writes; each operation is separate.

    `run`: the planned or stored run: id, pattern, parameter, value, unit. `log`: its log. For a
    wear job, `statistics` is null, and those of an operation are of its means in each cycle. Any
    other job has an interval of the mean, as a run of fixed length.
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


def _statistics(times: np.ndarray) -> StatisticsSummary | None:
    return summarise(times) if len(times) else None


def _sources(runs: Sequence[tuple[str, FileDigest | None]]) -> tuple[SummarySource, ...] | None:
    """Return the files that a summary is made from; None if one has no digest."""
    sources = [SummarySource(run, *digest) for run, digest in runs if digest is not None]
    return tuple(sources) if len(sources) == len(runs) else None


def _pack(pyramid: Pyramid) -> tuple[bytes, PyramidFile]:
    """Return the bytes of a pyramid file, and the record that is needed to read it."""
    content = io.BytesIO()
    np.save(content, np.concatenate([pyramid.over_number, pyramid.over_time]), allow_pickle=False)
    about = PyramidFile(
        digest=_native.digest(content.getvalue()),
        rows_over_number=len(pyramid.over_number),
        ios_per_row=pyramid.ios_per_row,
        rows_over_time=len(pyramid.over_time),
        ns_per_row=pyramid.ns_per_row,
        begin_ns=pyramid.begin_ns,
    )
    return content.getvalue(), about


def _unpack(content: bytes, about: PyramidFile) -> Pyramid | None:
    try:
        rows = np.load(io.BytesIO(content), allow_pickle=False)
    except (ValueError, OSError, EOFError):
        return None
    if rows.dtype != ROW or rows.shape != (about.rows_over_number + about.rows_over_time,):
        return None
    over_number, over_time = np.split(rows, [about.rows_over_number])
    return Pyramid(over_number, about.ios_per_row, over_time, about.ns_per_row, about.begin_ns)
