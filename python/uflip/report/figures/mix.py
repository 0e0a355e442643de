"""The six mixes: their cost, and the cost of their baselines in the same proportion.

**Source** uFLIP (CIDR 2009) §3.2 (Mix) and §5.2, "Other Results".

**Faithful** Six combinations, response time against the ratio.

**Simplified** Nothing.

**Ambiguous** The paper compares mixes with baselines in words. Here the expectation is drawn: with
n I/Os of the first per one of the second, (n × first + second) / (n + 1) of the baseline means.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from uflip.data.summary import MeasuredExperiment
from uflip.microbench.labels import by_pattern, format_value
from uflip.microbench.mix import expected_mix_ms
from uflip.report.blocks import Figure
from uflip.report.data import Document, is_simulated
from uflip.report.figures import axes as scales
from uflip.report.figures import palette
from uflip.report.figures.chart import (
    DASHED,
    DOTTED,
    SOLID,
    Axis,
    Chart,
    Mark,
    Panel,
    Polyline,
    Spans,
)
from uflip.report.figures.sweep import whisker_ms, with_numbers
from uflip.report.labels import axis_words
from uflip.report.tables import components_tables

COLUMNS = 3
MIX = Polyline(marker="o", label="the mix")
FROM_BASELINES = Polyline(width=1.3, dashes=DOTTED, label="from baselines")
HEIGHT, PANEL_HEIGHT = 32.0, 151.0


def chart(document: Document, micro_benchmark: str) -> Chart:
    """Return the chart of the measured mixes, a panel each on a common scale."""
    experiments = by_pattern(document["micro_benchmarks"][micro_benchmark])
    baselines_ms = document["baselines_ms"]
    columns = min(COLUMNS, len(experiments))
    y = scales.response_time_axis(*_range(experiments, baselines_ms))
    panels = [
        _panel(pattern, experiment, baselines_ms, y) for pattern, experiment in experiments.items()
    ]
    first = next(iter(experiments.values()))[0]
    rows = -(-len(experiments) // columns)
    return Chart(
        panels,
        HEIGHT + PANEL_HEIGHT * rows,
        columns=columns,
        legend=_legend(experiments, alternating=_alternates(first)),
        x_label=axis_words(first["parameter"], first["unit"]),
        share_y=True,
        simulated=is_simulated(document),
    )


def figure(document: Document, micro_benchmark: str) -> Figure | None:
    """Return the figure of the mixes, with the numbers of their parts; None without any."""
    measured = document["micro_benchmarks"].get(micro_benchmark, [])
    if not (experiments := by_pattern(measured)):
        return None
    return with_numbers(
        document,
        micro_benchmark,
        chart(document, micro_benchmark),
        _describe(experiments, document["baselines_ms"]),
        *components_tables(measured),
    )


def _panel(
    pattern: str,
    runs: Sequence[MeasuredExperiment],
    baselines_ms: Mapping[str, float | None],
    y: Axis,
) -> Panel:
    ratios = [run["value"] for run in runs]
    positions = scales.positions_of(ratios)
    x = [positions[ratio] for ratio in ratios]
    marks: list[Mark] = [*_component(runs, x, "first"), *_component(runs, x, "second")]
    low, high = np.array([whisker_ms(run) for run in runs]).T
    marks.append(Spans(x, low, high, palette.MUTED, width=0.9, alpha=0.6))
    means = [run["statistics"]["mean_ns"] / 1e6 for run in runs]
    marks.append(replace(MIX, x=x, y=means, label=""))
    expected = [_expected_ms(run, baselines_ms) for run in runs]
    expected_ms = [ms for ms in expected if ms is not None]
    if len(expected_ms) == len(runs):
        marks.append(replace(FROM_BASELINES, x=x, y=expected_ms, label=""))
    names = [format_value(ratio, runs[0]["unit"]) for ratio in ratios]
    return Panel(scales.parameter_axis(ratios, names), y, marks, pattern.replace("/", " / "))


def _component(runs: Sequence[MeasuredExperiment], x: Sequence[float], name: str) -> list[Polyline]:
    """Return one of the two patterns within the mix, faint, in its own colour."""
    parts = [part for run in runs if (part := run.get("components", {}).get(name))]
    means = [statistics["mean_ns"] / 1e6 for part in parts if (statistics := part["statistics"])]
    if len(means) < len(runs):
        return []
    return [replace(_part(runs[0]["pattern"], name), x=x, y=means, alpha=0.75)]


def _part(mix: str, name: str) -> Polyline:
    """Return the look of a component of a mix: filled only to distinguish two of a kind."""
    first, _, second = mix.partition("/")
    pattern = first if name == "first" else second
    look, is_other = palette.look(pattern), first == second and name == "second"
    return Polyline(
        color=look.color, width=1.0, dashes=DASHED if is_other else SOLID,
        marker=look.marker, size=4.0, face=look.color if is_other else palette.CARD,
        edge=look.color, label=f"{pattern} in it{', the second' if is_other else ''}",
    )  # fmt: skip


def _alternates(run: MeasuredExperiment) -> bool:
    """Return whether a mix alternates, so that it can cost as much as its baselines.

    In a mix drawn at random the device is under load.
    """
    return run["parameter"] == "ratio"


def _expected_ms(run: MeasuredExperiment, baselines_ms: Mapping[str, float | None]) -> float | None:
    return expected_mix_ms(run, baselines_ms) if _alternates(run) else None


def _legend(mixes: Iterable[str], *, alternating: bool) -> list[Polyline]:
    parts = [_part(mix, name) for mix in mixes if "/" in mix for name in ("first", "second")]
    patterns = [
        part
        for pattern in palette.PATTERNS
        for part in dict.fromkeys(parts)
        if part.label.split(" ")[0] == pattern
    ]
    return [MIX, *([FROM_BASELINES] if alternating else []), *patterns]


def _range(
    experiments: Mapping[str, Sequence[MeasuredExperiment]],
    baselines_ms: Mapping[str, float | None],
) -> tuple[float, float]:
    drawn_ms: list[float] = []
    for runs in experiments.values():
        for run in runs:
            drawn_ms += [*whisker_ms(run), run["statistics"]["mean_ns"] / 1e6]
            drawn_ms += [
                part["statistics"]["mean_ns"] / 1e6
                for part in run.get("components", {}).values()
                if part["statistics"] is not None
            ]
            if (expected := _expected_ms(run, baselines_ms)) is not None:
                drawn_ms.append(expected)
    return min(drawn_ms), max(drawn_ms)


def _describe(
    experiments: Mapping[str, Sequence[MeasuredExperiment]],
    baselines_ms: Mapping[str, float | None],
) -> str:
    parts = []
    for pattern, runs in experiments.items():
        for run in (runs[0], runs[-1]):
            expected = _expected_ms(run, baselines_ms)
            comparison = f", from baselines {expected:.3g} ms" if expected is not None else ""
            mean = run["statistics"]["mean_ns"] / 1e6
            at = (
                f"{run['value']} : 1"
                if _alternates(run)
                else format_value(run["value"], run["unit"])
            )
            parts.append(f"{pattern} at {at}, mean {mean:.3g} ms{comparison}")
    return "Mean response time of mixes, ends of the range. " + "; ".join(parts) + "."
