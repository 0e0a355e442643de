"""The result of a benchmark in Python: read it, tabulate it, plot it, compare it.

All numbers come from the summary that `uflip show --json` prints, so that none differs from those
of the command line. Response times of single I/Os are read on first use.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Self

from uflip.arrow_table import Columns, frame
from uflip.data.device import DeviceInfo
from uflip.data.document import Table as Plain
from uflip.data.document import plain
from uflip.data.summary import NamedExperiment, Summary, WarningSummary
from uflip.errors import unknown_name
from uflip.result_views import summary
from uflip.results import Results, StoredRun, comparison
from uflip.results.causes import CAUSES, cause_name
from uflip.results.pyramid import Pyramid
from uflip.results.summary_document import describe_device, experiments_of
from uflip.trace import Trace
from uflip.units import parse_path

if TYPE_CHECKING:
    from arro3.core import Table
    from matplotlib.axes import Axes

# Statistics of an experiment in its row of the frame.
NUMBERS: Columns = {
    "count": int, "mean_ns": float, "std_ns": float, "min_ns": int, "p5_ns": int, "p50_ns": int,
    "p90_ns": int, "p95_ns": int, "p99_ns": int, "p99_9_ns": int, "max_ns": int,
}  # fmt: skip
COLUMNS: Columns = {
    "micro_benchmark": str, "pattern": str, "parameter": str, "value": int, "unit": str,
    "repetitions": int, "half_width_ns": float, "converged": bool, **NUMBERS,
    "write_amplification": float,
}  # fmt: skip
"""Columns of the frame of a result, which has one more for each cause of time spent."""


class Result:
    """A benchmark, finished or not, as `uflip.load` and `uflip.run` return it.

    Parameters
    ----------
    results : Results
        The folder.
    """

    def __init__(self, results: Results) -> None:
        self._results = results

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Open a result folder.

        Parameters
        ----------
        path : path
            A folder that `uflip.run` or `uflip run` wrote.

        Returns
        -------
        Result

        Raises
        ------
        ResultsError
            If the path is not a result, or cannot be read.
        """
        if isinstance(path, str) and path.startswith(("http://", "https://")):
            from uflip.site.client import download_result

            return cls(Results.load(download_result(path)))
        return cls(Results.load(parse_path(path, "results")))

    @property
    def path(self) -> Path:
        """The folder."""
        return self._results.path

    @property
    def status(self) -> str:
        """Status of the benchmark: complete, interrupted, failed, or running."""
        return self._results.status

    @property
    def device(self) -> DeviceInfo:
        """Properties of the measured device."""
        return self._results.manifest.device

    @property
    def warnings(self) -> list[WarningSummary]:
        """Doubts about the data: code, message, numbers, advice."""
        return self._results.warnings

    @property
    def runs(self) -> Sequence[StoredRun]:
        """Every finished run, in the order of the plan."""
        return self._results.runs

    @cached_property
    def _document(self) -> Summary:
        return summary(self._results)

    @cached_property
    def summary(self) -> Plain:
        """The whole result as one document of plain data, as `uflip show --json` prints it."""
        return plain(self._document)

    @property
    def experiments(self) -> list[NamedExperiment]:
        """Every experiment of the summary, the baselines first, with its `micro_benchmark`."""
        return [{"micro_benchmark": name, **run} for name, run in experiments_of(self._document)]

    def frame(self, *, labels: bool = False) -> "Table":
        """Return one row per experiment: varied value, mean with interval, statistics, causes.

        Parameters
        ----------
        labels : bool
            Name columns as figures and pages do, "mean GC stall [ns]" for `mean_free_page_wait_ns`.

        Returns
        -------
        arro3.core.Table
            For `pandas.DataFrame.from_arrow`, `polars.DataFrame`, `pyarrow.table`, DuckDB. Times
            are in nanoseconds. All results have the same columns and types; simulated devices
            also have the means of their causes, `mean_*_ns`.
        """
        rows = [_row(each) for each in self.experiments]
        causes = dict.fromkeys((name for row in rows for name in row if name not in COLUMNS), float)
        table = frame(rows, {**COLUMNS, **causes})
        return (
            table.rename_columns([_label(name) for name in table.column_names]) if labels else table
        )

    def trace(self, run: str) -> Trace:
        """Read every I/O of a run.

        Parameters
        ----------
        run : str
            Its id, as in `runs`.

        Returns
        -------
        Trace

        Raises
        ------
        UsageError
            If there is no such run.
        ResultsError
            If its file is damaged.
        """
        return self._run(run, "trace").trace()

    def pyramid(self, run: str) -> Pyramid | None:
        """Return a run's response times reduced for drawing at every scale.

        Parameters
        ----------
        run : str
            Its id, as in `runs`.

        Returns
        -------
        Pyramid or None
            Minimum, maximum, sum and count of neighbouring I/Os, over their number and over time;
            None for a job that wears out a block of an open-channel device.

        Raises
        ------
        UsageError
            If there is no such run.
        ResultsError
            If its file is damaged.
        """
        return self._results.pyramid_of(self._run(run, "pyramid"))

    def _run(self, name: str, where: str) -> StoredRun:
        for each in self.runs:
            if each.id == name:
                return each
        raise unknown_name("run", name, [each.id for each in self.runs], where=where)

    def compare(self, other: "Result | str | PathLike[str]") -> "Comparison":
        """Compare this result, the first, with another one.

        Parameters
        ----------
        other : Result or path
            The second, or its path, as for `load`.

        Returns
        -------
        Comparison
            Experiment by experiment, with the conditions that differ.
        """
        second = other if isinstance(other, Result) else Result.load(other)
        compared = comparison.compare(self._document, second._document)
        return Comparison(*(getattr(compared, field.name) for field in fields(compared)))

    def plot(self, micro_benchmark: str, ax: "Axes | None" = None) -> "Axes":
        """Plot a micro-benchmark as the report does, without the levels of the baselines.

        Parameters
        ----------
        micro_benchmark : str
            A micro-benchmark that was measured.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default of a new figure. Several panels (`mix`, `queue_depth`) are
            placed next to each other within these axes.

        Returns
        -------
        matplotlib.axes.Axes
            The axes drawn on.

        Raises
        ------
        UsageError
            If it was not measured.
        UnavailableError
            If matplotlib is not installed.
        """
        from uflip.report.figures.paper import benchmark_names, draw_benchmark

        measured = benchmark_names(self._document)
        if micro_benchmark not in measured:
            raise unknown_name("micro-benchmark", micro_benchmark, measured, where="plot")
        return draw_benchmark(ax, self._document, micro_benchmark)

    def __repr__(self) -> str:
        runs = f"{len(self.runs)} of {len(self._results.manifest.plan)} runs"
        return f"<Result {self.path}: {describe_device(self.device)}, {runs}, {self.status}>"

    def _repr_html_(self) -> str:
        """Show the baselines and the micro-benchmarks in a notebook."""
        from uflip.report.html import result_fragment

        return result_fragment(self._document)


class Comparison(comparison.ResultComparison):
    """The comparison of two results, experiment by experiment, as `uflip.compare` returns it."""

    __slots__ = ()

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Plot the ratios with their intervals, the largest differences first.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default of a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes drawn on.

        Raises
        ------
        UnavailableError
            If matplotlib is not installed.
        """
        from uflip.report.figures.ratios import draw_on

        return draw_on(ax, self)

    def _repr_html_(self) -> str:
        """Show the baselines and the differences in a notebook."""
        from uflip.report.html import comparison_fragment

        return comparison_fragment(self)


def _row(run: NamedExperiment) -> Mapping[str, object]:
    """Return the row of an experiment."""
    row: dict[str, object] = {
        "micro_benchmark": run["micro_benchmark"],
        "pattern": run["pattern"],
        "parameter": run["parameter"],
        "value": run["value"],
        "unit": run["unit"],
        "repetitions": len(run["repetitions"]),
        "half_width_ns": run["together"]["half_width_ns"],
        "converged": run["together"]["converged"],
    }
    statistics: Mapping[str, object] = run["statistics"] or {}
    row |= {name: statistics.get(name) for name in NUMBERS}
    row["write_amplification"] = run.get("write_amplification")
    return row | {f"mean_{cause}": ns for cause, ns in run.get("time_spent_ns", {}).items()}


def _label(column: str) -> str:
    """Return the label of a column of the frame, with its unit."""
    cause = CAUSES.get(column.removeprefix("mean_"))
    words = f"mean {cause.label}" if cause else cause_name(column.replace("p99_9", "p99.9"))
    return f"{words} [ns]" if column.endswith("_ns") else words
