"""Single figures of a result for a paper, one column or page wide, legible without colour.

The contents are those of the report; lines get dashes in addition to markers, for printing without
colours, and simulated results are marked.

**Source** uFLIP (CIDR 2009), Figures 3 to 8; OFC (2011), Figures 5(b) and 7.
**Faithful** The quantities on the axes.
**Simplified** Widths are those of a two-column page of 7 inches.
**Ambiguous** "Relative to sequential writes" of Figure 8 is the mean over that of the SW baseline,
at the same I/O size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from uflip.data.manifest import PhasesOfPattern
from uflip.errors import unknown_name
from uflip.microbench.labels import by_pattern, format_value
from uflip.report.data import Document, baseline_traces, first_runs, is_simulated
from uflip.report.figures import axes as scales
from uflip.report.figures import design_space, interference, kind_of, palette, phases, traces
from uflip.report.figures.chart import Axis, Chart, Panel, Polyline, ReferenceLine
from uflip.report.figures.matplotlib_chart import (
    INCH,
    Dashes,
    draw_chart,
    draw_panel,
    figure_of,
    handles,
    new_figure,
    outside_legend,
    styled,
)
from uflip.report.labels import axis_words, title
from uflip.results import Results, StoredRun
from uflip.results.columns import as_array
from uflip.results.summary_document import BASELINE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D


PANELS_TITLE = 20.0
"""Distance of the title above several panels [points]."""


def benchmark_names(document: Document) -> list[str]:
    """Return the names of the micro-benchmarks that can be drawn."""
    return [name for name, runs in document["micro_benchmarks"].items() if by_pattern(runs)]


def benchmark_chart(document: Document, micro_benchmark: str) -> Chart:
    """Return the chart of one of `benchmark_names`."""
    return kind_of(micro_benchmark).chart(document, micro_benchmark)


@styled
def draw_benchmark(axis: Axes | None, document: Document, micro_benchmark: str) -> Axes:
    """Draw one of `benchmark_names` on axes of the caller, or of a new figure of pyplot."""
    if axis is None:
        from matplotlib import pyplot

        _, axis = pyplot.subplots(layout="constrained")
    chart = benchmark_chart(document, micro_benchmark)
    draw_chart(axis, chart)
    # Panels may have titles of their own.
    axis.set_title(title(micro_benchmark), pad=None if len(chart.panels) == 1 else PANELS_TITLE)
    return axis


WINDOWS = 60
MAX_WORKLOADS = 24
"""Maximum number of workloads; of more, only the baselines are drawn."""
MIN_IOS_PER_WINDOW = 5
MIN_LABEL_SHARE = 0.1
"""Share of the axis that a label needs."""


@dataclass(frozen=True)
class WorkloadHistory:
    """A workload: its pattern, duration [s], and rate in each interval (n,) [IOPS]."""

    pattern: str
    seconds: float
    iops: NDArray[np.float64]


def runs_of(results: Results) -> list[StoredRun]:
    """Return the runs of a result to draw, in the order in which they were made."""
    runs = [run for run in results.runs if not run.is_job]
    if len(runs) > MAX_WORKLOADS:
        runs = [run for run in runs if run.micro_benchmark == BASELINE][:MAX_WORKLOADS]
    return runs


def workloads_of(results: Results) -> list[WorkloadHistory]:
    """Read the runs to draw."""
    workloads = []
    for run in runs_of(results):
        trace = run.trace()
        completed = as_array(trace, "submit_ns") + as_array(trace, "response_time_ns")
        workloads.append(
            workload(run.pattern, completed / 1e9 - as_array(trace, "submit_ns").min() / 1e9)
        )
    return workloads


def workload(pattern: str, completed_s: NDArray[np.float64]) -> WorkloadHistory:
    """Return a workload from the completion times of its I/Os [s since the first submission]."""
    seconds = float(completed_s.max())
    windows = max(min(WINDOWS, len(completed_s) // MIN_IOS_PER_WINDOW), 1)
    counts, _ = np.histogram(completed_s, bins=windows, range=(0, seconds))
    return WorkloadHistory(pattern, seconds, counts / (seconds / windows))


def draw_history(
    axis: Axes, workloads: Sequence[WorkloadHistory], dashes: Mapping[str, Dashes]
) -> None:
    """Draw workloads along one time axis, numbered, with dashes by pattern."""
    begins = [0.0, *accumulate(each.seconds for each in workloads)]
    named = set()
    top = 1.15 * max(float(each.iops.max()) for each in workloads) / 1e3
    for number, (each, begin) in enumerate(zip(workloads, begins, strict=False), 1):
        middles = begin + (np.arange(len(each.iops)) + 0.5) * each.seconds / len(each.iops)
        axis.plot(
            middles,
            each.iops / 1e3,
            color=palette.look(each.pattern).color,
            linewidth=1.1,
            linestyle=dashes.get(each.pattern, "-"),
            label=each.pattern if each.pattern not in named else f"{each.pattern} again",
        )
        named.add(each.pattern)
        if number > 1:
            axis.axvline(begin, color=palette.MUTED, linewidth=0.6)
        # A label needs space.
        if each.seconds >= MIN_LABEL_SHARE * begins[-1]:
            middle = begin + each.seconds / 2
            axis.text(middle, top, f"run {number}", ha="center", va="top", fontsize=6.5)
    axis.set_xlim(0, begins[-1])
    axis.set_ylim(0, top)
    axis.set_xlabel("time with I/Os [s]")
    axis.set_ylabel("kIOPS")


COLUMN, PAGE = 3.4, 7.0
"""Widths [inches]."""
HEIGHT = 2.8
LEGEND_COLUMNS = 2
DASHES: Mapping[str, Dashes] = {"SR": "-", "RR": (0, (5, 1.5)), "SW": (0, (5, 1, 1, 1)), "RW": ":"}
SMALL = 7.0
"""Size of the text [points]: what is left of 8.5 where the report is printed as wide as a page."""
# Labels of more characters are slanted.
LEVEL_LABEL = 4
RELATIVE, TRACES, PHASES = "locality-relative", "traces", "phases"
PAUSE = "pause-determination"
"""Not named after the micro-benchmark Pause, which is one of the paper's nine."""
HISTORY = "workload-history"

Draw = Callable[[], "Figure"]


def kinds_of(results: Results, document: Document) -> dict[str, Draw]:
    """Return the possible figures of a result: kind -> drawing function."""
    simulated = is_simulated(document)
    kinds: dict[str, Draw] = {}
    for name in benchmark_names(document):
        kinds[name] = partial(_micro_benchmark, document, name)
    level = document["baselines_ms"].get("SW")
    if level and by_pattern(document["micro_benchmarks"].get("locality", [])):
        runs = document["micro_benchmarks"]["locality"]
        kinds[RELATIVE] = lambda: _relative(runs, level, simulated)
    if document["baselines"]:
        kinds[TRACES] = lambda: _wide(
            traces.chart_of(baseline_traces(results), simulated=simulated)
        )
    if (phases := document["phases"]) and document["baselines"]:
        kinds[PHASES] = lambda: _phases(results, phases["patterns"], simulated)
    if (pause := document["interference"]) is not None:
        kinds[PAUSE] = lambda: _wide(
            interference.chart_of(pause, pause["windows"], simulated=simulated)
        )
    if runs_of(results):
        kinds[HISTORY] = lambda: _history(results, simulated)
    return kinds


def kinds_of_sweep(points: Sequence[design_space.VariedPoint]) -> dict[str, Draw]:
    """Return the possible figures of a sweep: a kind for each varied name that is a number."""
    return {
        name.replace("_", "-"): partial(_varied, points, name)
        for name in design_space.names_of(points)
    }


def choose(kinds: Mapping[str, Draw], kind: str) -> Draw:
    """Return the drawing function of a kind."""
    if kind not in kinds:
        raise unknown_name("figure of this result", kind, kinds, where="KIND")
    return kinds[kind]


@styled
def drawn(draw: Draw) -> Figure:
    """Draw in our style, with lines that differ without colour."""
    figure = draw()
    for name, line in _named_lines(figure):
        pattern = name.split(" ")[0]
        if pattern in DASHES and line.get_linestyle() != "None":
            line.set_linestyle(DASHES[pattern])
            line.set_markersize(3.5)
    return figure


def _named_lines(figure: Figure) -> Iterator[tuple[str, Line2D]]:
    """Yield lines with their names, those of legends included."""
    from matplotlib.lines import Line2D

    for axis in figure.axes:
        yield from ((str(line.get_label()), line) for line in axis.get_lines())
    legends = [*figure.legends, *(axis.get_legend() for axis in figure.axes)]
    for legend in (legend for legend in legends if legend):
        for text, line in zip(legend.get_texts(), legend.legend_handles, strict=True):
            if isinstance(line, Line2D):
                yield text.get_text(), line


def _column() -> tuple[Figure, Axes]:
    figure, (axis,) = new_figure(height=HEIGHT)
    figure.set_size_inches(COLUMN, HEIGHT)
    return figure, axis


def _micro_benchmark(document: Document, name: str) -> Figure:
    """Draw a micro-benchmark, one column wide for a single panel, else one page wide."""
    chart = benchmark_chart(document, name)
    if len(chart.panels) > 1:
        return _wide(chart)
    figure, axis = _column()
    draw_panel(axis, chart.panels[0])
    outside_legend(figure, handles(chart.legend), columns=LEGEND_COLUMNS)
    return _small(figure, axis, chart.simulated)


def _relative(runs: Any, level_ms: float, simulated: bool) -> Figure:
    """Draw means relative to sequential writes, by the size of the area (Figure 8)."""
    experiments = by_pattern(runs)
    values = {
        run["value"]: run["unit"]
        for runs_of_pattern in experiments.values()
        for run in runs_of_pattern
    }
    positions = scales.positions_of(values)
    lines = [
        Polyline(
            [positions[run["value"]] for run in runs_of_pattern],
            [run["statistics"]["mean_ns"] / 1e6 / level_ms for run in runs_of_pattern],
            palette.look(pattern).color,
            marker=palette.look(pattern).marker,
            label=pattern,
        )
        for pattern, runs_of_pattern in experiments.items()
    ]
    names = [format_value(value, unit) for value, unit in values.items()]
    first = next(iter(experiments.values()))[0]
    x = scales.parameter_axis(list(values), names, axis_words(first["parameter"], first["unit"]))
    most = max(max(line.y) for line in lines)
    y = Axis(0, 1.05 * max(most, 1.0), "mean over that of SW")
    figure, axis = _column()
    draw_panel(axis, Panel(x, y, [*lines, ReferenceLine(1.0, palette.MUTED)]))
    outside_legend(figure, axis.get_legend_handles_labels()[0], columns=LEGEND_COLUMNS)
    return _small(figure, axis, simulated)


def _history(results: Results, simulated: bool) -> Figure:
    figure, axis = _column()
    draw_history(axis, workloads_of(results), DASHES)
    lines = {str(line.get_label()): line for line in axis.get_lines()}
    named = [line for name, line in lines.items() if name in DASHES]
    outside_legend(figure, named, columns=len(named))
    return _small(figure, axis, simulated)


def _varied(points: Sequence[design_space.VariedPoint], name: str) -> Figure:
    figure = design_space.varied_figure(points, name, COLUMN)
    for axis in reversed(figure.axes):
        _small(figure, axis, axis is figure.axes[0])
    return figure


def _phases(results: Results, patterns: Mapping[str, PhasesOfPattern], simulated: bool) -> Figure:
    analysed = [
        trace for trace in first_runs(baseline_traces(results)) if trace.pattern in patterns
    ]
    return _wide(phases.chart_of(analysed, patterns, simulated=simulated))


def _small(figure: Figure, axis: Axes, simulated: bool) -> Figure:
    """Reduce the text size to that of a paper's column."""
    if simulated:
        axis.set_title(
            "simulated device", loc="right", size=SMALL, weight="normal", color=palette.MUTED
        )
    texts = [*axis.get_xticklabels(), *axis.get_yticklabels(), axis.xaxis.label, axis.yaxis.label]
    legends = [*figure.legends, *filter(None, [axis.get_legend()])]
    for text in [*texts, *(text for legend in legends for text in legend.get_texts())]:
        text.set_fontsize(SMALL)
    labels = axis.get_xticklabels()
    for label in labels if any(len(each.get_text()) > LEVEL_LABEL for each in labels) else []:
        label.set_rotation(45)
        label.set_horizontalalignment("right")
        label.set_rotation_mode("anchor")
    return figure


def _wide(chart: Chart) -> Figure:
    """Draw a chart one page wide."""
    height = chart.height * PAGE * INCH / chart.width
    return figure_of(replace(chart, width=PAGE * INCH, height=height))
