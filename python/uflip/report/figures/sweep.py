"""Response time against the varying parameter: one line per pattern.

**Source** uFLIP (CIDR 2009) figures 6, 7 and 8.

**Faithful** Mean response time [ms] per run; logarithmic parameter axis.

**Simplified** Patterns stand a little beside their value, so that their whiskers can be told apart.

**Ambiguous** The paper draws means only. Here the line is the mean, the dash across it the median,
and the whisker spans p5 to p95 (or min to max where a run has too few I/Os for percentiles).
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from uflip.data.summary import Experiment, Measured
from uflip.microbench import MICRO_BENCHMARKS
from uflip.microbench.words import PATTERN_NAMES, by_pattern, format_value
from uflip.report.blocks import Figure, Table
from uflip.report.data import Document, is_simulated
from uflip.report.figures import axes as scales
from uflip.report.figures import palette
from uflip.report.figures.canvas import (
    Drawing,
    legend_above,
    mark_simulated,
    new_figure,
    styled,
    to_drawing,
)
from uflip.report.findings import finding
from uflip.report.tables import runs_table
from uflip.report.words import anchor, axis_name, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEIGHT = 3.5
# Between neighbouring patterns, as a share of the distance between values and of the whole axis:
# whiskers apart, but all patterns visibly at one value.
DODGE, MOST_DODGE = 0.11, 0.011


@styled
def draw(
    micro_benchmark: str,
    runs: Sequence[Experiment],
    *,
    simulated: bool,
    levels: Mapping[str, float | None] | None = None,
) -> Drawing | None:
    """Draw one micro-benchmark.

    Parameters
    ----------
    micro_benchmark
        Its name.
    runs
        Its runs, as in the summary; those without statistics are left out.
    simulated
        Whether to mark the figure as simulated.
    levels
        Baseline means [ms] to draw as faint horizontal lines, by pattern.

    Returns
    -------
    Drawing or None
        None if there is nothing to draw.
    """
    experiments = by_pattern(runs)
    if not experiments:
        return None
    figure, (axis,) = new_figure(height=HEIGHT)
    legend_above(figure, _fill(axis, experiments, levels))
    mark_simulated(figure, simulated)
    description = _describe(experiments)
    return to_drawing(figure, micro_benchmark, f"{title(micro_benchmark)}", description)


@styled
def draw_on(axis: "Axes | None", micro_benchmark: str, runs: Sequence[Experiment]) -> "Axes":
    """Draw one micro-benchmark on axes of somebody else, or on those of a new figure of pyplot."""
    if axis is None:
        from matplotlib import pyplot

        _, axis = pyplot.subplots(layout="constrained")
    axis.legend(handles=_fill(axis, by_pattern(runs), None))
    axis.set_title(title(micro_benchmark))
    return axis


def _fill(
    axis: "Axes",
    experiments: Mapping[str, Sequence[Measured]],
    levels: Mapping[str, float | None] | None,
) -> list[Any]:
    """Draw experiments, their levels and the labels; returns the handles of a legend."""
    measured = [run for experiment in experiments.values() for run in experiment]
    low, high = _range(measured)
    scales.response_time_scale(axis, low, high)
    handles = []
    dodge = _dodge(measured)
    for index, (pattern, experiment) in enumerate(experiments.items()):
        shift = (index - (len(experiments) - 1) / 2) * dodge
        handles.append(draw_experiment(axis, pattern, experiment, shift))
        if levels and (level := levels.get(pattern)):
            axis.axhline(level, color=palette.look(pattern).color, lw=0.7, ls=(0, (1, 3)))
    _label(axis, measured)
    return handles


def figure(document: Document, micro_benchmark: str) -> Figure | None:
    """A micro-benchmark beside the baselines."""
    about, runs = MICRO_BENCHMARKS.get(micro_benchmark), document["micro_benchmarks"]
    drawing = draw(
        micro_benchmark,
        runs.get(micro_benchmark, []),
        simulated=is_simulated(document),
        levels=document["baselines_ms"] if about is None or about.levels else None,
    )
    return with_numbers(document, micro_benchmark, drawing)


def with_numbers(
    document: Document, micro_benchmark: str, drawing: Drawing | None, *more: Table
) -> Figure | None:
    """A micro-benchmark as drawn, with the numbers of its runs; None where nothing is."""
    if drawing is None:
        return None
    about, runs = MICRO_BENCHMARKS.get(micro_benchmark), document["micro_benchmarks"]
    return Figure(
        anchor(micro_benchmark),
        title(micro_benchmark),
        drawing,
        about.how_to_read if about else "",
        data=[runs_table(micro_benchmark, runs[micro_benchmark]), *more],
        found=finding(micro_benchmark, document),
    )


def draw_experiment(axis: "Axes", pattern: str, runs: Sequence[Measured], shift: float) -> object:
    """Mean line, median dashes and whiskers of one experiment; returns the legend's handle."""
    look = palette.look(pattern)
    x = scales.positions([run["value"] for run in runs]) + shift
    low, high = np.array([whisker_ms(run) for run in runs]).T
    axis.vlines(x, low, high, color=look.color, lw=1.0, alpha=0.55)
    medians = [run["statistics"]["p50_ns"] for run in runs]
    median = [(place, p50_ns) for place, p50_ns in zip(x, medians, strict=True) if p50_ns]
    if median:
        axis.plot(
            [place for place, _ in median],
            [p50_ns / 1e6 for _, p50_ns in median],
            linestyle="none",
            marker="_",
            markersize=6,
            color=look.color,
        )
    name = f"{pattern} {PATTERN_NAMES[pattern]}" if pattern in PATTERN_NAMES else pattern
    (line,) = axis.plot(
        x,
        [run["statistics"]["mean_ns"] / 1e6 for run in runs],
        color=look.color,
        marker=look.marker,
        markeredgecolor=palette.CARD,
        markeredgewidth=0.6,
        label=name,
    )
    return line


def whisker_ms(run: Measured) -> tuple[float, float]:
    """p5 to p95 of a run [ms], or min to max where the sample supports no such percentiles."""
    statistics = run["statistics"]
    if statistics["p5_ns"] is None or statistics["p95_ns"] is None:
        return statistics["min_ns"] / 1e6, statistics["max_ns"] / 1e6
    return statistics["p5_ns"] / 1e6, statistics["p95_ns"] / 1e6


def _range(runs: Sequence[Measured]) -> tuple[float, float]:
    ends = np.array([whisker_ms(run) for run in runs])
    means = np.array([run["statistics"]["mean_ns"] / 1e6 for run in runs])
    return float(min(ends.min(), means.min())), float(max(ends.max(), means.max()))


def _dodge(runs: Sequence[Measured]) -> float:
    """How far neighbouring patterns stand apart on the x axis."""
    places = np.unique(scales.positions([run["value"] for run in runs]))
    if len(places) < 2:
        return MOST_DODGE
    return min(DODGE * float(np.diff(places).min()), MOST_DODGE * float(np.ptp(places)))


def _label(axis: "Axes", runs: Sequence[Measured]) -> None:
    units = {run["value"]: run["unit"] for run in runs}
    labels = [format_value(value, unit) for value, unit in units.items()]
    scales.label_values(axis, list(units), labels)
    axis.grid(visible=False, axis="x")
    axis.set_xlabel(axis_name(runs[0]["parameter"], runs[0]["unit"]))
    axis.set_ylabel("response time [ms]")


def _describe(experiments: Mapping[str, Sequence[Measured]]) -> str:
    """The figure in words, for those who do not see it."""
    parts = []
    for pattern, runs in experiments.items():
        first, last = runs[0], runs[-1]
        parts.append(
            f"{pattern}: mean {first['statistics']['mean_ns'] / 1e6:.3g} ms at "
            f"{format_value(first['value'], first['unit'])}, "
            f"{last['statistics']['mean_ns'] / 1e6:.3g} ms at "
            f"{format_value(last['value'], last['unit'])}"
        )
    return "Mean response time per pattern, ends of the range. " + "; ".join(parts) + "."
