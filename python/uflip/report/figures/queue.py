"""Throughput and response time over the queue depth, next to each other, with the knees.

**Source** ours; the knee is that of `uflip.microbench.today.queue_depth`.

**Faithful** Throughput is completions over time while the queue has its full depth
(`uflip.results.run_statistics`).

**Simplified** Throughput has no whiskers: its interval is that of the mean next to it.

**Ambiguous** The diagonal that throughput leaves at the knee is not drawn: it differs for each
pattern.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from uflip.data.summary import MeasuredExperiment
from uflip.microbench.labels import by_pattern, format_value
from uflip.microbench.today.queue_depth import knee, rate
from uflip.report.blocks import Figure
from uflip.report.data import Document, is_simulated
from uflip.report.figures import axes as scales
from uflip.report.figures import palette
from uflip.report.figures.chart import Axis, Chart, Mark, Panel, ReferenceLine
from uflip.report.figures.sweep import key_of, marks_of, range_ms, with_numbers
from uflip.report.labels import axis_words

HEIGHT = 238.0
THOUSAND = 1e3


def chart(document: Document, micro_benchmark: str) -> Chart:
    """Return the chart of a measured queue: throughput and response time."""
    experiments = by_pattern(document["micro_benchmarks"][micro_benchmark])
    measured = [run for experiment in experiments.values() for run in experiment]
    depths = sorted({run["value"] for run in measured})
    positions = scales.positions_of(depths)
    marks = [
        mark for pattern, runs in experiments.items() for mark in marks_of(pattern, runs, positions)
    ]
    label = axis_words(measured[0]["parameter"], measured[0]["unit"])
    x = scales.parameter_axis(depths, [format_value(depth, "") for depth in depths], label)
    response = Panel(x, scales.response_time_axis(*range_ms(measured)), marks)
    return Chart(
        [_throughput(experiments, positions, x), response],
        HEIGHT,
        columns=2,
        legend=[key_of(pattern) for pattern in experiments],
        simulated=is_simulated(document),
    )


def _throughput(
    experiments: Mapping[str, Sequence[MeasuredExperiment]],
    positions: Mapping[float, float],
    x: Axis,
) -> Panel:
    """Return thousands of IOPS; a short line below marks the knee of each pattern."""
    marks: list[Mark] = []
    every = []
    for pattern, runs in experiments.items():
        rates = [rate(run) / THOUSAND for run in runs]
        every += rates
        x_of_runs = [positions[run["value"]] for run in runs]
        marks.append(replace(key_of(pattern), x=x_of_runs, y=rates))
        if (depth := knee(runs)) is not None and depth >= 1:
            color = palette.look(pattern).color
            marks.append(
                ReferenceLine(math.log2(depth), color, width=2.0, vertical=True, span=0.06)
            )
    y = scales.response_time_axis(min(every), max(every), "throughput [1,000 IOPS]")
    return Panel(x, y, marks)


def figure(document: Document, micro_benchmark: str) -> Figure | None:
    """Return the figure of a queue, with the numbers of its runs; None without any."""
    experiments = by_pattern(document["micro_benchmarks"].get(micro_benchmark, []))
    if not experiments:
        return None
    drawn = chart(document, micro_benchmark)
    return with_numbers(document, micro_benchmark, drawn, _describe(experiments))


def _describe(experiments: Mapping[str, Sequence[MeasuredExperiment]]) -> str:
    """Return the figure as a sentence, for screen readers."""
    parts = []
    for pattern, runs in experiments.items():
        depth = knee(runs)
        text = f"{pattern}: {rate(runs[0]):,.0f} IOPS at depth {runs[0]['value']}, "
        text += f"{rate(runs[-1]):,.0f} at depth {runs[-1]['value']}"
        parts.append(text if depth is None else f"{text}, knee at {depth:.1f}")
    return "Throughput and response time against the queue depth. " + "; ".join(parts) + "."
