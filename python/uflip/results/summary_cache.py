"""Cache of run summaries beside the runs, so that results are shown without reading their I/Os.

::

    results/demo/
      summaries/0001-baseline-SR-….json            summary of a run, written at its commit
      summaries/0001-baseline-SR-….pyramid.npy     its aggregated response times
      summaries/experiments.json                   all repetitions together, written at the end

The cache holds derived data only and proves nothing: its files can be removed, and a file that does
not match the run files in the ledger is ignored (`uflip.data.run_summary`). So its files are not
synced, and a failed write does not stop the benchmark.
"""

import contextlib
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from uflip import _native
from uflip.data import run_summary
from uflip.data.document import DocumentKind, read_if_exists
from uflip.data.manifest import PlanEntry
from uflip.data.run_summary import (
    PyramidFile,
    RunSummary,
    StoredSummary,
    SummarySource,
)
from uflip.data.summary import RepetitionSummary
from uflip.errors import UflipError
from uflip.results.pyramid import ROW, Pyramid, pyramid_of
from uflip.results.run_summary import RepetitionPart, experiment_of, job_summary, merge_repetitions
from uflip.results.steady_state import Samples
from uflip.safe_files import write_file

PYRAMID_KIND = DocumentKind("pyramid", 64 << 20, "remove it: it is made again from the run file")
FileDigest = tuple[int, str]
"""Length [bytes] and digest of a run file."""
Log = _native.Trace | _native.FlashTrace
ENDINGS = SUMMARY, PYRAMID = (".json", ".pyramid.npy")
"""Endings of the cache files."""


class SummaryCache:
    """The cached summaries of a result folder.

    Parameters
    ----------
    folder : Path
        The result folder; the cache may be empty.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / run_summary.FOLDER

    @cached_property
    def _experiments(self) -> Mapping[tuple[SummarySource, ...], RunSummary]:
        path = self._file(run_summary.ALL)
        return {stored.sources: stored.summary for stored in run_summary.read(path)}

    def find(self, runs: Sequence[tuple[str, FileDigest | None]]) -> RunSummary | None:
        """Find the summary of these repetitions, by the digests of their files.

        Returns
        -------
        RunSummary or None
            None if no cached summary was made from exactly these files.
        """
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

    Parameters
    ----------
    folder : Path
        Its result folder.
    page_bytes : int or None
        Size of a flash page of its device [bytes].
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
        sampled: Samples | None = None,
    ) -> None:
        """Cache the summary of a committed run."""
        if isinstance(trace, _native.FlashTrace):
            summary = job_summary(run, trace)
        else:
            summary = merge_repetitions(
                [RepetitionPart(run, trace, self._page_bytes, path, sampled=sampled)]
            )
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
