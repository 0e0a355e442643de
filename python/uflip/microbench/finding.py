"""Findings: computed sentences that summarise the results of a micro-benchmark.

**Source** uFLIP (CIDR 2009) §5.2, Table 3: pauses, locality, partitions, reverse, in-place and
large increments, each against the cost of a baseline pattern.

**Faithful** The same comparisons, of means.

**Simplified** No verdicts ("significant degradation"): the ratios are given, the reader decides.

**Ambiguous** Table 3 does not say where a locality area ends; here the ends of the range are given.

A rule compares measured means and never interpolates; without the numbers it returns no sentence. A
micro-benchmark has its rule in its file, or uses `largest_effect`.
"""

from collections.abc import Callable, Mapping, Sequence

from uflip.data.summary import MeasuredExperiment
from uflip.microbench.labels import format_ratio, format_times, format_value, parameter_name
from uflip.units import format_duration_ns

Run = MeasuredExperiment
Experiments = Mapping[str, Sequence[Run]]
"""Pattern -> its runs in the order of their values, from a summary; all have statistics."""
Means = Mapping[str, float | None]
"""Pattern -> mean of its baseline run [ms]."""


class Ratios:
    """Formats ratios, and records them with the patterns whose means they compare."""

    def __init__(self) -> None:
        self.recorded: list[tuple[float, tuple[str, ...]]] = []

    def times(self, ratio: float, *labels: str) -> str:
        """Return the ratio as a number of times."""
        self.recorded.append((ratio, labels))
        return format_times(ratio)

    def factor(self, ratio: float, *labels: str) -> str:
        """Return the ratio as a factor."""
        self.recorded.append((ratio, labels))
        return format_ratio(ratio)


Rule = Callable[[Experiments, Means, Ratios], str]


# As in other verdicts, means that differ by less agree.
SMALLEST_EFFECT = 1.05


def largest_effect(experiments: Experiments, _baselines: Means, ratios: Ratios) -> str:
    """Return the sentence on the pattern that depends most on a varying parameter."""
    lines: dict[tuple[str, str | None], list[Run]] = {}
    for runs in experiments.values():
        for run in runs:
            lines.setdefault((run["pattern"], run["parameter"]), []).append(run)
    spans = [
        (min(runs, key=mean_ns), max(runs, key=mean_ns)) for runs in lines.values() if len(runs) > 1
    ]
    if not spans:
        return ""
    low, high = max(spans, key=lambda span: mean_ns(span[1]) / mean_ns(span[0]))
    ratio = mean_ns(high) / mean_ns(low)
    if ratio < SMALLEST_EFFECT:
        return f"No decided mean varies by more than {SMALLEST_EFFECT - 1:.0%}."
    return (
        f"The largest effect is on {high['pattern']}: {_at(low)}, {_at(high)} "
        f"({ratios.factor(ratio, *high['pattern'].split('/'))})."
    )


def mean_ns(run: Run) -> float:
    """Return the mean response time of a run [ns]."""
    return float(run["statistics"]["mean_ns"])


def second_mean_ns(run: Run) -> float:
    """Return the mean response time of the second component of a mix [ns]."""
    second = run["components"]["second"]["statistics"]
    assert second is not None, "the run has I/Os of it"
    return second["mean_ns"]


def _at(run: Run) -> str:
    value = format_value(run["value"], run["unit"])
    mean = format_duration_ns(mean_ns(run))
    return f"{mean} at {parameter_name(run['parameter'])} = {value}"


def format_ms(milliseconds: float) -> str:
    """Return a response time [ms] with a suitable unit."""
    return format_duration_ns(milliseconds * 1e6)
