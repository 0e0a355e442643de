"""Response time against the varying parameter: one line per pattern.

**Source** uFLIP (CIDR 2009) figures 6, 7 and 8.

**Faithful** Mean response time [ms] per run; logarithmic parameter axis.

**Simplified** Patterns are slightly offset from their value, so that their whiskers are distinct.

**Ambiguous** The paper draws means only. Here the line is the mean, the dash across it the median,
and the whisker spans p5 to p95 (or min to max where a run has too few I/Os for percentiles).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from uflip.data.summary import MeasuredExperiment
from uflip.microbench import MICRO_BENCHMARKS
from uflip.microbench.labels import PATTERN_NAMES, by_pattern, format_value
from uflip.report.blocks import Figure, Table
from uflip.report.data import Document, is_simulated
from uflip.report.figures import axes as scales
from uflip.report.figures import palette, svg
from uflip.report.figures.chart import FINE_DOTS, Chart, Mark, Panel, Polyline, ReferenceLine, Spans
from uflip.report.findings import finding
from uflip.report.labels import anchor, axis_words, title
from uflip.report.tables import modes_tables, runs_table

HEIGHT = 252.0
# Offset of neighbouring patterns, as a share of the distance between values and of the whole axis:
# whiskers are separate, but all patterns are visibly at one value.
DODGE, MAX_DODGE = 0.11, 0.011


def chart(document: Document, micro_benchmark: str) -> Chart:
    """Return a micro-benchmark's chart, without baseline levels: only colour distinguishes them."""
    experiments = by_pattern(document["micro_benchmarks"][micro_benchmark])
    return chart_of(experiments, None, simulated=is_simulated(document))


def chart_of(
    experiments: Mapping[str, Sequence[MeasuredExperiment]],
    levels: Mapping[str, float | None] | None,
    *,
    simulated: bool,
) -> Chart:
    """Return the chart of some experiments of a micro-benchmark."""
    panel, legend = panel_of(experiments, levels)
    return Chart([panel], HEIGHT, legend=legend, simulated=simulated)


def panel_of(
    experiments: Mapping[str, Sequence[MeasuredExperiment]],
    levels: Mapping[str, float | None] | None,
) -> tuple[Panel, list[Polyline]]:
    """Return the panel of experiments with their levels, and its legend entries."""
    measured = [run for experiment in experiments.values() for run in experiment]
    marks: list[Mark] = []
    legend = []
    positions = scales.positions_of(run["value"] for run in measured)
    dodge = _dodge(list(positions.values()))
    for index, (pattern, experiment) in enumerate(experiments.items()):
        shift = (index - (len(experiments) - 1) / 2) * dodge
        marks += marks_of(pattern, experiment, positions, shift)
        legend.append(key_of(pattern))
        if levels and (level := levels.get(pattern)):
            color = palette.look(pattern).color
            marks.append(ReferenceLine(level, color, width=0.7, dashes=FINE_DOTS))
    units = {run["value"]: run["unit"] for run in measured}
    names = [format_value(value, unit) for value, unit in units.items()]
    label = axis_words(measured[0]["parameter"], measured[0]["unit"])
    x = scales.parameter_axis(list(units), names, label)
    return Panel(x, scales.response_time_axis(*range_ms(measured)), marks), legend


def figure(document: Document, micro_benchmark: str) -> Figure | None:
    """Return the figure of a micro-benchmark with the baseline levels; None without runs."""
    about = MICRO_BENCHMARKS.get(micro_benchmark)
    experiments = by_pattern(document["micro_benchmarks"].get(micro_benchmark, []))
    if not experiments:
        return None
    levels = document["baselines_ms"] if about is None or about.levels else None
    drawn = chart_of(experiments, levels, simulated=is_simulated(document))
    return with_numbers(document, micro_benchmark, drawn, _describe(experiments))


def with_numbers(
    document: Document, micro_benchmark: str, chart: Chart, description: str, *more: Table
) -> Figure:
    """Return the figure of a measured micro-benchmark, with its tables."""
    about, runs = MICRO_BENCHMARKS.get(micro_benchmark), document["micro_benchmarks"]
    heading = title(micro_benchmark)
    return Figure(
        anchor(micro_benchmark),
        heading,
        svg.draw(chart, micro_benchmark, heading, description),
        about.how_to_read if about else "",
        data=[
            runs_table(micro_benchmark, runs[micro_benchmark]),
            *modes_tables(runs[micro_benchmark]),
            *more,
        ],
        finding=finding(micro_benchmark, document),
    )


def marks_of(
    pattern: str,
    runs: Sequence[MeasuredExperiment],
    positions: Mapping[float, float],
    shift: float = 0.0,
) -> list[Mark]:
    """Return whiskers, median dashes and mean line of an experiment, offset by `shift`."""
    look = palette.look(pattern)
    x = [positions[run["value"]] + shift for run in runs]
    low, high = np.array([whisker_ms(run) for run in runs]).T
    medians = [
        (position, p50_ns / 1e6)
        for position, run in zip(x, runs, strict=True)
        if (p50_ns := run["statistics"]["p50_ns"])
    ]
    at, median = zip(*medians, strict=True) if medians else ((), ())
    mean = [run["statistics"]["mean_ns"] / 1e6 for run in runs]
    return [
        Spans(x, low, high, look.color, alpha=0.55),
        Polyline(at, median, look.color, width=0, marker="_", size=6, edge_width=1),
        replace(key_of(pattern), x=x, y=mean),
    ]


def key_of(pattern: str) -> Polyline:
    """Return the legend entry of a pattern."""
    look = palette.look(pattern)
    name = f"{pattern} {PATTERN_NAMES[pattern]}" if pattern in PATTERN_NAMES else pattern
    return Polyline(color=look.color, marker=look.marker, size=5.5, edge=palette.CARD, label=name)


def whisker_ms(run: MeasuredExperiment) -> tuple[float, float]:
    """Return p5 to p95 of a run [ms], or min to max if the sample is too small for them."""
    statistics = run["statistics"]
    if statistics["p5_ns"] is None or statistics["p95_ns"] is None:
        return statistics["min_ns"] / 1e6, statistics["max_ns"] / 1e6
    return statistics["p5_ns"] / 1e6, statistics["p95_ns"] / 1e6


def range_ms(runs: Sequence[MeasuredExperiment]) -> tuple[float, float]:
    """Return the range of all drawn values of some runs [ms]."""
    ends = np.array([whisker_ms(run) for run in runs])
    means = np.array([run["statistics"]["mean_ns"] / 1e6 for run in runs])
    return float(min(ends.min(), means.min())), float(max(ends.max(), means.max()))


def _dodge(positions: Sequence[float]) -> float:
    """Return the offset of neighbouring patterns on the x axis, from the positions of values."""
    if len(positions) < 2:
        return MAX_DODGE
    return min(DODGE * float(np.diff(positions).min()), MAX_DODGE * float(np.ptp(positions)))


def _describe(experiments: Mapping[str, Sequence[MeasuredExperiment]]) -> str:
    """Return the figure as a sentence, for screen readers."""
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
