"""Rate, write amplification and p99 of long random writes over the bytes written, round by round.

**Source** SNIA, *Solid state storage performance test specification* (v2.0.2, 2020): the steady
state convergence plot.

**Faithful** A line for each block size, over the rounds; the measurement window is shaded.

**Simplified** The position of a round is in bytes written. The sizes share the colour of the
pattern and differ by dashes.

**Ambiguous** Repetitions: the first is the line, further ones are thin.
"""

from collections.abc import Mapping, Sequence

from uflip.data.summary import ExperimentSummary, MeasuredExperiment, RoundSummary
from uflip.microbench.labels import by_pattern, format_value, parameter_name
from uflip.report.blocks import Figure
from uflip.report.data import Document, is_simulated
from uflip.report.figures import axes as scales
from uflip.report.figures import palette, sweep
from uflip.report.figures.chart import (
    DASHED,
    DOTTED,
    FINE_DOTS,
    SOLID,
    Axis,
    Band,
    Chart,
    Mark,
    Panel,
    Polyline,
)

HEIGHT = 238.0
GIB = 1 << 30
DASHES = (SOLID, DASHED, DOTTED, FINE_DOTS)
QUANTITIES = (
    ("ios_per_s", 1e-3, "throughput [1,000 IOPS]"),
    ("write_amplification", 1.0, "write amplification"),
    ("p99_ns", 1e-6, "p99 [ms]"),
)
"""Field of a round, its factor, and the label of its axis."""


def chart(document: Document, micro_benchmark: str) -> Chart:
    """Return the chart of the rounds of a micro-benchmark, a panel for each available quantity.

    A sweep if its runs have no rounds.
    """
    runs = _with_rounds(by_pattern(document["micro_benchmarks"][micro_benchmark]))
    if not runs:
        return sweep.chart(document, micro_benchmark)
    every = [each for run in runs for rounds in run["rounds"] for each in rounds]
    most = max(each["written_bytes"] for each in every) / GIB
    x = Axis(0, most * 1.02, "written [GiB]")
    panels = []
    for name, factor, label in QUANTITIES:
        values = [float(value) * factor for each in every if (value := _value(each, name))]
        if values:
            y = scales.response_time_axis(min(values), max(values), label)
            panels.append(Panel(x, y, _marks(runs, name, factor, most)))
    varied = {run["parameter"] for run in runs}
    legend = [_key(run, number, named=len(varied) > 1) for number, run in enumerate(runs)]
    simulated = is_simulated(document)
    return Chart(panels, HEIGHT, columns=len(panels), legend=legend, simulated=simulated)


def _with_rounds(
    experiments: Mapping[str, Sequence[MeasuredExperiment]],
) -> list[MeasuredExperiment]:
    return [run for runs in experiments.values() for run in runs if any(run.get("rounds", ()))]


def _value(round_summary: RoundSummary, name: str) -> float | None:
    value: float | None = round_summary[name]  # type: ignore[literal-required]
    return value


def _marks(runs: Sequence[MeasuredExperiment], name: str, factor: float, most: float) -> list[Mark]:
    longest = max(run["rounds"][0][-1]["written_bytes"] for run in runs) / GIB
    marks: list[Mark] = [Band(longest / 2, min(longest, most))]
    for number, run in enumerate(runs):
        for repetition, rounds in enumerate(run["rounds"]):
            points = [
                (each["written_bytes"] / GIB, value * factor)
                for each in rounds
                if (value := _value(each, name)) is not None
            ]
            if points:
                x, y = zip(*points, strict=True)
                look = _key(run, number)
                thin = 0.5 if repetition else look.width
                marks.append(Polyline(x, y, look.color, width=thin, dashes=look.dashes))
    return marks


def _key(run: MeasuredExperiment, number: int, *, named: bool = False) -> Polyline:
    color = palette.look(run["pattern"]).color
    parameter = f" {parameter_name(run['parameter'])}" if named else ""
    label = f"{run['pattern']}{parameter} {format_value(run['value'], run['unit'])}"
    return Polyline(color=color, dashes=DASHES[number % len(DASHES)], label=label)


def figure(document: Document, micro_benchmark: str) -> Figure | None:
    """Return the figure of the rounds, with the numbers of the runs."""
    runs: Sequence[ExperimentSummary] = document["micro_benchmarks"].get(micro_benchmark, [])
    experiments = by_pattern(runs)
    if not _with_rounds(experiments):
        return sweep.figure(document, micro_benchmark)
    drawn = chart(document, micro_benchmark)
    return sweep.with_numbers(document, micro_benchmark, drawn, _describe(experiments))


def _describe(experiments: Mapping[str, Sequence[MeasuredExperiment]]) -> str:
    """Return the figure as a sentence, for screen readers."""
    parts = []
    for run in _with_rounds(experiments):
        first, last = run["rounds"][0][0], run["rounds"][0][-1]
        parts.append(
            f"{run['pattern']} {format_value(run['value'], run['unit'])}: "
            f"{first['ios_per_s'] or 0:,.0f} IOPS in the first round, "
            f"{last['ios_per_s'] or 0:,.0f} in the last"
        )
    return "Rate, write amplification and p99 over the bytes written. " + "; ".join(parts) + "."
