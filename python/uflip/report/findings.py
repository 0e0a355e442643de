"""What the numbers of this device say: computed sentences, with the numbers they rest on.

**Source** uFLIP (CIDR 2009) §5.2, Table 3: pauses, locality, partitions, reverse, in-place and
large increments, each against the cost of a baseline pattern.

**Faithful** The same comparisons, of means.

**Simplified** No verdicts ("significant degradation"): the ratios are given, the reader judges.

**Ambiguous** Table 3 does not say where a locality area ends; here the ends of the range are given.

A finding compares measured means and never interpolates. It says nothing where a number is missing,
nor where the same pattern differs by as much when it is measured again (`repeatability`).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from uflip.report.words import (
    PATTERN_NAMES,
    by_pattern,
    format_ratio,
    format_value,
    parameter_name,
    times,
)
from uflip.results.agreement import AGREEMENT
from uflip.results.consistency import within, worst_of
from uflip.units import format_count, format_duration_ns

Run = Mapping[str, Any]
Experiments = Mapping[str, Sequence[Run]]
Means = Mapping[str, float | None]  # pattern → baseline mean [ms]


def finding(micro_benchmark: str, document: Mapping[str, Any]) -> str:
    """One or two sentences on a micro-benchmark; empty if there is too little to say.

    Parameters
    ----------
    micro_benchmark
        Its name; one without a rule of its own gets its largest effect.
    document
        The summary of the results.
    """
    experiments = by_pattern(document["micro_benchmarks"].get(micro_benchmark, []))
    # A device that does nothing has no properties to speak of.
    if not experiments or document.get("device", {}).get("kind") == "null":
        return ""
    rule, told = RULES.get(micro_benchmark, largest_effect), Told()
    text = rule(experiments, document["baselines_ms"], told)
    return _only_what_repeats(text, told, document.get("repeatability") or {})


class Told:
    """Says ratios in words, and remembers them with the patterns whose means they compare."""

    def __init__(self) -> None:
        self.ratios: list[tuple[float, tuple[str, ...]]] = []

    def times(self, ratio: float, *labels: str) -> str:
        """Say it as a number of times."""
        self.ratios.append((ratio, labels))
        return times(ratio)

    def ratio(self, ratio: float, *labels: str) -> str:
        """Say it as a factor."""
        self.ratios.append((ratio, labels))
        return format_ratio(ratio)


def _only_what_repeats(text: str, told: Told, repeated: Mapping[str, Any]) -> str:
    """Take a finding back, or qualify it, that is smaller than what one pattern differs by."""
    small = [
        worst
        for ratio, labels in told.ratios
        if (worst := worst_of(repeated, labels)) is not None
        and worst[1]["factor"] > 1 + AGREEMENT
        and within(ratio, float(worst[1]["factor"]))
    ]
    if not small:
        return text
    label, found = max(small, key=lambda one: float(one[1]["factor"]))
    same = (
        f"{PATTERN_NAMES[label].capitalize()}s as the baseline has them took from "
        f"{format_duration_ns(found['smallest_ns'])} to {format_duration_ns(found['largest_ns'])} "
        f"when they were measured {found['experiments']} times"
    )
    if len(small) == len(told.ratios):
        return f"No effect that is larger than what one pattern differs by. {same}."
    return f"{text} A factor below {times(float(found['factor']))} says nothing there. {same}."


def headline(document: Mapping[str, Any]) -> str:
    """The four baselines in one sentence; empty if none was measured."""
    means = {name: ms for name, ms in document["baselines_ms"].items() if ms}
    if not means:
        return ""
    if document.get("device", {}).get("kind") == "null":
        return (
            "The null device does nothing: these are the costs of the harness, no device's "
            f"properties. An I/O takes {_ms(min(means.values()))} to {_ms(max(means.values()))}."
        )
    size = format_value(document["baseline_io_size_bytes"], "bytes")
    parts = [f"{PATTERN_NAMES[name]}s {_ms(ms)}" for name, ms in means.items()]
    listed = parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + f" and {parts[-1]}"
    text = f"At {size} an I/O takes on average: {listed}."
    if "SW" in means and "RW" in means:
        ratio = means["RW"] / means["SW"]
        worst = worst_of(document.get("repeatability") or {}, ("SW", "RW"))
        limit = 1.0 if worst is None else float(worst[1]["factor"])
        if limit <= 1 + AGREEMENT or not within(ratio, limit):
            text += f" A random write costs {times(ratio)} a sequential one."
    return text


def largest_effect(experiments: Experiments, _baselines: Means, told: Told) -> str:
    """The pattern whose mean depends most on the varying parameter."""
    spans = [_extremes(runs) for runs in experiments.values() if len(runs) > 1]
    if not spans:
        return ""
    low, high = max(spans, key=lambda span: _mean(span[1]) / _mean(span[0]))
    return (
        f"The largest effect is on {high['pattern']}: {_at(low)}, {_at(high)} "
        f"({told.ratio(_mean(high) / _mean(low), *high['pattern'].split('/'))})."
    )


def granularity(experiments: Experiments, _baselines: Means, _told: Told) -> str:
    """Throughput at the smallest and largest size: who profits from larger I/Os."""
    parts = []
    for pattern, runs in experiments.items():
        first, last = runs[0], runs[-1]
        parts.append(f"{pattern} {_throughput(first)} → {_throughput(last)}")
    small = format_value(next(iter(experiments.values()))[0]["value"], "bytes")
    large = format_value(next(iter(experiments.values()))[-1]["value"], "bytes")
    return f"Throughput of one I/O at a time, from {small} to {large}: " + ", ".join(parts) + "."


def locality(experiments: Experiments, baselines: Means, told: Told) -> str:
    """Random writes in the smallest and in the largest area, against the sequential write."""
    runs, reference = experiments.get("RW", ()), baselines.get("SW")
    if len(runs) < 2 or not reference:
        return largest_effect(experiments, baselines, told)
    parts = [
        f"{told.times(_mean(run) / 1e6 / reference, 'SW', 'RW')} within "
        f"{format_value(run['value'], 'bytes')}"
        for run in (runs[0], runs[-1])
    ]
    return f"A random write costs {parts[0]}, and {parts[1]}, the mean of the sequential baseline."


def partitioning(experiments: Experiments, baselines: Means, told: Told) -> str:
    """Sequential writes to many partitions, against one partition and random writes."""
    runs = experiments.get("SW", ())
    if len(runs) < 2:
        return largest_effect(experiments, baselines, told)
    first, last = runs[0], runs[-1]
    text = (
        f"With {last['value']} partitions a write costs "
        f"{told.times(_mean(last) / _mean(first), 'SW')} what it costs with {first['value']}"
    )
    if reference := baselines.get("RW"):
        text += f", and {told.times(_mean(last) / 1e6 / reference, 'SW', 'RW')} a random write"
    return text + "."


def order(experiments: Experiments, baselines: Means, told: Told) -> str:
    """Reverse and in-place against sequential writes, large increments against random ones."""
    runs = {run["value"]: run for run in experiments.get("SW", ())}
    if 1 not in runs or len(runs) < 2:
        return largest_effect(experiments, baselines, told)
    unit = _mean(runs[1])
    parts = [
        f"{name} {told.times(_mean(runs[value]) / unit, 'SW')}"
        for value, name in ((-1, "a reverse write costs"), (0, "an in-place write"))
        if value in runs
    ]
    text = f"Compared with Incr = 1, {' and '.join(parts)} as much." if parts else ""
    largest = max(runs)
    if largest > 1 and (reference := baselines.get("RW")):
        ratio = told.times(_mean(runs[largest]) / 1e6 / reference, "SW", "RW")
        text += f" With Incr = {largest}, a write costs {ratio} a random one."
    return text.strip()


def parallelism(experiments: Experiments, _baselines: Means, told: Told) -> str:
    """I/Os per second at the lowest and highest degree."""
    parts = []
    for pattern, runs in experiments.items():
        first, last = _rate(runs[0]), _rate(runs[-1])
        if len(runs) > 1 and first and last:
            parts.append(
                f"{pattern} {format_count(round(first))} → {format_count(round(last))} "
                f"({told.ratio(last / first, pattern)})"
            )
    if not parts:
        return ""
    runs = next(iter(experiments.values()))
    return (
        f"I/Os per second with {runs[0]['value']} and with {runs[-1]['value']} processes: "
        + ", ".join(parts)
        + "."
    )


def mix(experiments: Experiments, baselines: Means, told: Told) -> str:
    """The mix that is furthest from what its two baselines would cost."""
    deviations = [
        (abs(actual / expected - 1), run, actual / expected)
        for runs in experiments.values()
        for run in runs
        if (expected := expected_mix_ms(run, baselines)) and (actual := _mean(run) / 1e6)
    ]
    if not deviations:
        return ""
    _, run, ratio = max(deviations, key=lambda deviation: deviation[0])
    return (
        f"Furthest from its baselines is {run['pattern']} at {run['value']} : 1, with "
        f"{told.times(ratio, *run['pattern'].split('/'))} the cost that they have apart, in the "
        "same proportion."
    )


def expected_mix_ms(run: Run, baselines: Means) -> float | None:
    """Mean of a mix if its patterns did not disturb each other [ms], from the baseline means.

    With n I/Os of the first per one of the second: (n × first + second) / (n + 1).
    """
    first, _, second = str(run["pattern"]).partition("/")
    first_ms, second_ms = baselines.get(first), baselines.get(second)
    if first_ms is None or second_ms is None:
        return None
    ratio = int(run["value"])
    return (ratio * first_ms + second_ms) / (ratio + 1)


def pause(experiments: Experiments, baselines: Means, told: Told) -> str:
    """Random writes with the longest pause, against none."""
    runs, reference = experiments.get("RW", ()), baselines.get("RW")
    if not runs or not reference:
        return largest_effect(experiments, baselines, told)
    last = runs[-1]
    length = format_value(last["value"], last["unit"])
    return (
        f"With {length} after each I/O a random write takes {format_duration_ns(_mean(last))}, "
        f"without a pause {_ms(reference)}."
    )


RULES: dict[str, Callable[[Experiments, Means, Told], str]] = {
    "granularity": granularity,
    "locality": locality,
    "partitioning": partitioning,
    "order": order,
    "parallelism": parallelism,
    "mix": mix,
    "pause": pause,
}


def _mean(run: Run) -> float:
    return float(run["statistics"]["mean_ns"])


def _extremes(runs: Sequence[Run]) -> tuple[Run, Run]:
    return min(runs, key=_mean), max(runs, key=_mean)


def _at(run: Run) -> str:
    value = format_value(run["value"], run["unit"])
    mean = format_duration_ns(_mean(run))
    return f"{mean} at {parameter_name(run['parameter'])} = {value}"


def _ms(milliseconds: float) -> str:
    return format_duration_ns(milliseconds * 1e6)


def _rate(run: Run) -> float:
    """I/Os per second over the whole run, pauses and start-up included."""
    return float(run["io_count"] / run["elapsed_ns"] * 1e9) if run["elapsed_ns"] else 0.0


def _throughput(run: Run) -> str:
    megabytes = run["value"] / _mean(run) * 1e3  # bytes/ns → MB/s
    return f"{megabytes:,.0f} MB/s" if megabytes >= 9.95 else f"{megabytes:.2g} MB/s"
