"""Several results in one figure: a panel for each pattern of a micro-benchmark, a line per result.

**Source** uFLIP (CIDR 2009) Table 3 compares seven devices in numbers; these are the curves.

**Faithful** Mean response time [ms] over the varying parameter, as in `sweep`.

**Simplified** No whiskers. Only micro-benchmarks that at least two results have.

**Ambiguous** Panels have their own y axes: devices of one panel are compared, not panels.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from uflip.data.summary import MeasuredExperiment, Summary
from uflip.microbench.labels import by_pattern, format_value, parameter_name
from uflip.report.blocks import Figure
from uflip.report.data import is_simulated
from uflip.report.figures import axes as scales
from uflip.report.figures import palette
from uflip.report.figures.chart import MARKERS, Axis, Chart, Panel, Polyline
from uflip.report.figures.svg import ROW, draw, legend_columns
from uflip.report.labels import title

COLUMNS = 3
PANEL_HEIGHT, LEGEND_HEIGHT = 142.0, 30.0
NAME = "side-by-side"
HOW_TO_READ = (
    "A panel is one pattern of a micro-benchmark, and a line one result: its mean response time "
    "over the varying parameter. Each panel has its own vertical axis."
)


def figure(summaries: Sequence[Summary], names: Sequence[str]) -> Figure | None:
    """Return the figure of some results; None if no two have a micro-benchmark in common."""
    drawn = chart(summaries, names)
    if drawn is None:
        return None
    heading = "Every micro-benchmark, a line per result"
    description = f"{len(drawn.panels)} panels of mean response times: {', '.join(names)}."
    return Figure(NAME, heading, draw(drawn, NAME, heading, description), HOW_TO_READ)


def chart(summaries: Sequence[Summary], names: Sequence[str]) -> Chart | None:
    """Return the chart of some results; None if no two have a micro-benchmark in common."""
    looks = {n: _look(n) for n in range(len(names))}
    panels = [
        _panel(f"{title(micro_benchmark)}, {pattern}", runs, looks)
        for micro_benchmark in _micro_benchmarks(summaries)
        for pattern, runs in _patterns(micro_benchmark, summaries)
    ]
    if not panels:
        return None
    chart = Chart(
        panels,
        0,
        columns=min(COLUMNS, len(panels)),
        legend=[replace(looks[n], label=name) for n, name in enumerate(names)],
        simulated=all(map(is_simulated, summaries)),
    )
    return replace(chart, height=PANEL_HEIGHT * chart.rows + LEGEND_HEIGHT)


def thumbnails(summary: Summary) -> Chart | None:
    """Return a panel for each micro-benchmark of a result, and in it a line for each pattern."""
    panels: list[Panel] = []
    looks: dict[str, Polyline] = {}
    for micro_benchmark, experiments in summary["micro_benchmarks"].items():
        patterns = {
            pattern: runs
            for pattern, runs in by_pattern(experiments).items()
            if len({run["value"] for run in runs}) > 1
        }
        for pattern in patterns:
            mixes = sum(each not in palette.PATTERNS for each in looks)
            looks.setdefault(pattern, replace(_pattern_look(mixes, pattern), label=pattern))
        panels += [_panel(title(micro_benchmark), patterns, looks)] if patterns else []
    if not panels:
        return None
    rank = {pattern: n for n, pattern in enumerate(palette.PATTERNS)}
    entries = [looks[each] for each in sorted(looks, key=lambda each: rank.get(each, len(rank)))]
    chart = Chart(
        panels,
        0,
        columns=min(COLUMNS, len(panels)),
        legend=entries,
        simulated=is_simulated(summary),
    )
    further_rows = (len(entries) - 1) // legend_columns(chart)
    return replace(chart, height=PANEL_HEIGHT * chart.rows + LEGEND_HEIGHT + ROW * further_rows)


def _micro_benchmarks(summaries: Sequence[Summary]) -> list[str]:
    """Return the names that any result has, in the order of the first one that has them."""
    return list(dict.fromkeys(name for each in summaries for name in each["micro_benchmarks"]))


Key = TypeVar("Key", int, str)
Runs = Mapping[Key, Sequence[MeasuredExperiment]]
"""Number of a result, or name of a pattern -> its experiments."""


def _patterns(
    micro_benchmark: str, summaries: Sequence[Summary]
) -> Iterator[tuple[str, Runs[int]]]:
    measured = [by_pattern(each["micro_benchmarks"].get(micro_benchmark, [])) for each in summaries]
    for pattern in dict.fromkeys(pattern for each in measured for pattern in each):
        runs = {n: each[pattern] for n, each in enumerate(measured) if pattern in each}
        values = {run["value"] for each in runs.values() for run in each}
        # A single value is no curve; the table has it.
        if len(runs) > 1 and len(values) > 1:
            yield pattern, runs


def _panel(heading: str, runs: Runs[Key], looks: Mapping[Key, Polyline]) -> Panel:
    units = {run["value"]: run["unit"] for each in runs.values() for run in each}
    positions = scales.positions_of(units)
    means = [run["statistics"]["mean_ns"] / 1e6 for each in runs.values() for run in each]
    marks = [
        replace(
            looks[n],
            x=[positions[run["value"]] for run in each],
            y=[run["statistics"]["mean_ns"] / 1e6 for run in each],
        )
        for n, each in runs.items()
    ]
    first, last = min(units), max(units)
    ticks = [(positions[value], format_value(value, units[value])) for value in (first, last)]
    margin = max(0.08 * (positions[last] - positions[first]), 0.35)
    varied = next(run for each in runs.values() for run in each)
    label = parameter_name(varied["parameter"]).replace("_", " ")
    x = Axis(positions[first] - margin, positions[last] + margin, label, ticks=ticks, grid=False)
    return Panel(x, scales.response_time_axis(min(means), max(means), "[ms]"), marks, heading)


def _pattern_look(number: int, pattern: str) -> Polyline:
    look = palette.PATTERNS.get(pattern)
    if look is None:
        return _look(number)
    return replace(_look(0), color=look.color, marker=look.marker)


def _look(number: int) -> Polyline:
    color = palette.MANY[number % len(palette.MANY)]
    return Polyline(color=color, width=1.2, marker=MARKERS[number % 7], size=3.5, edge=palette.CARD)
