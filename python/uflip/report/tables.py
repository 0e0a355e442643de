"""Tables and key figures of a report: every number that a figure shows is in a table.

A tile is the key figure of a baseline pattern. It shows mean, median and p99, and a histogram: all
four on the same logarithmic scale, so that the tiles can be compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from uflip.data.energy import is_energy
from uflip.data.manifest import Batches, SkippedRun
from uflip.data.spec import PLURALS
from uflip.data.summary import (
    Component,
    MeasuredExperiment,
    ModeStatistics,
    ResponseTime,
    Summary,
    TargetSpace,
)
from uflip.data.summary import ExperimentSummary as Run
from uflip.microbench.labels import (
    PATTERN_NAMES,
    by_pattern,
    format_ratio,
    format_value,
    parameter_name,
)
from uflip.report.data import BaselineTrace, Document, Traces, pooled
from uflip.report.figures import palette
from uflip.report.labels import counter_name, format_ms, tail_percentile, title
from uflip.results.causes import cause_name
from uflip.results.summary_document import PATTERNS, baseline_of
from uflip.table import Table
from uflip.units import format_count, format_duration_ns, format_size

TIMES: dict[ResponseTime, str] = {
    "mean_ns": "mean",
    "std_ns": "std",
    "min_ns": "min",
    "p50_ns": "p50",
    "p90_ns": "p90",
    "p95_ns": "p95",
    "p99_ns": "p99",
    "p99_9_ns": "p99.9",
    "max_ns": "max",
}
WITHOUT_STARTUP = "without the start-up: response time [ms], IOPS with pauses"


def runs_table(micro_benchmark: str, runs: Sequence[Run]) -> Table:
    """Return the numbers behind a figure: a row per run, response times [ms]."""
    experiments = by_pattern(runs)
    measured = [run for experiment in experiments.values() for run in experiment]
    parameter = parameter_name(measured[0]["parameter"]) if measured else ""
    rows = [
        [
            run["pattern"],
            format_value(run["value"], run["unit"]),
            *statistics_cells(run),
            _rate(run),
        ]
        for run in measured
    ]
    head = ["pattern", parameter, "I/Os", *TIMES.values(), "IOPS"]
    return Table(head, rows, "llr", f"{title(micro_benchmark)}, {WITHOUT_STARTUP}")


def components_tables(runs: Sequence[Run]) -> list[Table]:
    """Return the two patterns within each mix [ms]."""
    rows = [
        [
            run["pattern"],
            format_value(run["value"], run["unit"]),
            f"{part['pattern'] or ''} ({which})",
            *statistics_cells(part),
        ]
        for experiment in by_pattern(runs).values()
        for run in experiment
        for which, part in run.get("components", {}).items()
        if part["statistics"] is not None
    ]
    head = ["mix", "Ratio", "pattern in it", "I/Os", *TIMES.values()]
    caption = "The patterns within the mixes, response time [ms]"
    return [Table(head, rows, "lllr", caption)] if rows else []


def modes_tables(runs: Sequence[Run]) -> list[Table]:
    """Return reads, writes and trims separately, for runs with several modes: rates, times [ms]."""
    rows = [
        [
            run["pattern"],
            format_value(run["value"], run["unit"]),
            PLURALS[mode],
            *statistics_cells(part),
            format_size(part["bytes"]),
            _rate(part),
            "–" if part["bytes_per_s"] is None else f"{part['bytes_per_s'] / (1 << 20):.2f}",
        ]
        for experiment in by_pattern(runs).values()
        for run in experiment
        for mode, part in run.get("by_mode", {}).items()
        if part["statistics"] is not None
    ]
    parameter = parameter_name(runs[0]["parameter"]) if rows else ""
    head = ["pattern", parameter, "", "I/Os", *TIMES.values(), "size", "IOPS", "MiB/s"]
    caption = f"Reads, writes and other modes, {WITHOUT_STARTUP}"
    return [Table(head, rows, "lllr", caption)] if rows else []


def statistics_cells(run: Run | MeasuredExperiment | Component | ModeStatistics) -> list[str]:
    """Return the count and response times [ms] of a measured run or component."""
    statistics = run["statistics"]
    if statistics is None:
        raise ValueError("a run without statistics has no row")
    return [format_count(statistics["count"]), *(format_ms(statistics[key]) for key in TIMES)]


def summary_tables(document: Summary) -> list[Table]:
    """Return one row per experiment: its lowest and highest mean, and their ratio."""
    rows = []
    for name, runs in document["micro_benchmarks"].items():
        for pattern, experiment in by_pattern(runs).items():
            ordered = sorted(experiment, key=lambda run: run["statistics"]["mean_ns"])
            low, high = ordered[0], ordered[-1]
            span = high["statistics"]["mean_ns"] / max(low["statistics"]["mean_ns"], 1)
            rows.append(
                [
                    title(name),
                    pattern,
                    parameter_name(low["parameter"]),
                    str(len(experiment)),
                    format_ms(low["statistics"]["mean_ns"]),
                    format_value(low["value"], low["unit"]),
                    format_ms(high["statistics"]["mean_ns"]),
                    format_value(high["value"], high["unit"]),
                    format_ratio(span),
                ]
            )
    head = [
        "micro-benchmark", "pattern", "parameter", "runs",
        "lowest mean [ms]", "at", "highest mean [ms]", "at", "ratio",
    ]  # fmt: skip
    return [Table(head, rows, "lllrrlrlr")] if rows else []


def baselines_tables(document: Summary) -> list[Table]:
    """Return the baseline runs [ms]."""
    rows = [
        [
            run["pattern"],
            format_value(run["value"], run["unit"]),
            *statistics_cells(run),
            _rate(run),
        ]
        for run in document["baselines"]
        if run["statistics"] is not None
    ]
    head = ["pattern", "IOSize", "I/Os", *TIMES.values(), "IOPS"]
    return [Table(head, rows, "llr", f"Baselines, {WITHOUT_STARTUP}")] if rows else []


def causes_tables(document: Summary) -> list[Table]:
    """Return the mean time per I/O by cause [ms], and the device counters, per baseline run."""
    with_causes = [run for run in document["baselines"] if run.get("time_spent_ns")]
    if not with_causes:
        return []
    rows = [
        [cause_name(cause), *(format_ms(run["time_spent_ns"][cause]) for run in with_causes)]
        for cause in with_causes[0]["time_spent_ns"]
    ]
    rows.append(["sum", *(format_ms(sum(run["time_spent_ns"].values())) for run in with_causes)])
    head = ["mean time per I/O [ms]", *(run["pattern"] for run in with_causes)]
    return [Table(head, rows, "lr", "Time by cause"), *_counters_tables(with_causes)]


def _counters_tables(runs: Sequence[Run]) -> list[Table]:
    counted = [run for run in runs if run.get("counters")]
    if not counted:
        return []
    rows = [
        [counter_name(name), *(_plain(run["counters"].get(name)) for run in counted)]
        for name in counted[0]["counters"]
        if not is_energy(name)
    ]
    rows.append(["write amplification", *(_plain(run["write_amplification"]) for run in counted)])
    head = ["device counter, over the whole run", *(run["pattern"] for run in counted)]
    return [Table(head, rows, "lr", "Device counters, start-up included")]


def every_experiment_table(document: Summary) -> Table:
    """Return all experiments with the resolved pattern of their first run."""
    runs = [*document["baselines"]]
    for experiment in document["micro_benchmarks"].values():
        runs += experiment
    rows = [
        [
            run["run"],
            format_count(len(run["repetitions"])),
            json.dumps(run["spec"], separators=(", ", ": ")),
            format_count(run["io_count"]),
            format_count(run["io_ignore"]),
            format_duration_ns(run["elapsed_ns"]),
        ]
        for run in sorted(runs, key=lambda run: str(run["run"]))
    ]
    head = ["first run", "runs", "pattern specification (bytes, ns)", "I/Os", "ignored", "elapsed"]
    return Table(head, rows, "lrlr")


def intervals_table(experiments: Mapping[str, Sequence[Run]]) -> Table:
    """Return the confidence interval of the mean of each run."""
    rows = [
        [
            each["run"],
            format_count(each["io_count"]),
            format_ms(each["mean_ns"]),
            f"{100 * each['half_width_ns'] / each['mean_ns']:.2g}",
            "–" if each["converged"] is None else "yes" if each["converged"] else "no",
            ", ".join(each["reasons"] or []).replace("_", " "),
        ]
        for runs in experiments.values()
        for run in runs
        for each in run["repetitions"]
        if each["half_width_ns"] is not None and each["mean_ns"]
    ]
    head = ["run", "I/Os", "mean [ms]", "± [%]", "converged", "doubts"]
    return Table(head, rows, "lrrrll", "Half widths of the intervals of the means")


def windows_table(windows: Batches) -> Table:
    """Return the after-effects of a batch of random writes, window by window [ms]."""
    batches = (("SR", windows["before"]), ("RW", windows["writes"]), ("SR", windows["after"]))
    rows: list[list[str]] = []
    for pattern, batch in batches:
        for mean_ns, max_ns in zip(batch["mean_ns"], batch["max_ns"], strict=True):
            first = len(rows) * windows["ios"]
            rows.append([format_count(first), pattern, format_ms(mean_ns), format_ms(max_ns)])
    head = ["from I/O number", "pattern", "mean", "slowest"]
    return Table(head, rows, "rlrr", f"Of {windows['ios']} I/Os each, response time [ms]")


def target_spaces_table(spaces: Sequence[TargetSpace]) -> Table:
    """Return the target spaces of sequential writes, in the order of the plan."""
    rows = [
        [
            space["run"],
            format_size(space["begin_bytes"]),
            format_size(space["end_bytes"]),
            "yes" if space["reset_before"] else "",
        ]
        for space in spaces
    ]
    return Table(["run", "from", "to", "reset before"], rows, "lrrl", "Target spaces")


def skipped_table(skipped: Sequence[SkippedRun]) -> Table:
    """Return the runs that were left out, with the reason of each group."""
    groups: dict[tuple[str, str, str, str], list[str]] = {}
    for entry in skipped:
        parameter = entry.parameter or ""
        key = (entry.micro_benchmark, entry.pattern, parameter, entry.reason)
        unit = "bytes" if "size" in parameter or "shift" in parameter else ""
        groups.setdefault(key, []).append(format_value(entry.value, unit))
    rows = [
        [title(name), pattern, parameter_name(parameter), ", ".join(values), reason]
        for (name, pattern, parameter, reason), values in groups.items()
    ]
    return Table(["micro-benchmark", "pattern", "parameter", "values", "reason"], rows, "l")


def facts_table(facts: Mapping[str, object], caption: str) -> Table:
    """Return nested facts (device, host, harness) as rows of key and value."""
    return Table(["", ""], list(_flat(facts)), "l", caption)


def _flat(facts: Mapping[str, object], prefix: str = "") -> Iterable[list[str]]:
    for key, value in facts.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            # Drop the level "details" from the key: it carries no information.
            yield from _flat(value, prefix if key == "details" else f"{name}.")
        else:
            yield [name, _fact(key, value)]


def _fact(key: str, value: object) -> str:
    """Return a fact as text, with the unit from its key."""
    if value is None or value == "":
        return "–"
    if isinstance(value, list):
        return " ".join(str(item) for item in value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return "yes" if value is True else "no" if value is False else str(value)
    if key.endswith("_bytes"):
        return f"{value:,} ({format_size(int(value))})"
    if key.endswith("_ns"):
        return f"{value:,} ({format_duration_ns(value)})"
    return _plain(value)


def _plain(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def _rate(run: Run | MeasuredExperiment | ModeStatistics) -> str:
    """Return I/Os per second, without the start-up as everything in the row; pauses count."""
    ios_per_s = run["ios_per_s"]
    return "–" if ios_per_s is None else format_count(round(ios_per_s))


BINS = 48
BAR_WIDTH, HEIGHT = 4, 34


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of a histogram, from the ground up, in its units."""

    left: int
    height: float
    width: int = BAR_WIDTH - 1


@dataclass(frozen=True, slots=True)
class Tile:
    """A pattern and its response times; `mean` is empty if it was not measured."""

    #: Its label, its full name, and the CSS variable of its colour.
    pattern: str
    name: str
    hue: str
    mean: str = ""  #: Response time [ms].
    #: (name, response time [ms]) of the median and of a percentile in the tail.
    times: Sequence[tuple[str, str]] = ()
    ios: str = ""  #: Number and size of the I/Os, and the write amplification of writes.
    bars: Sequence[Bar] = ()  #: Histogram of the response times, in a strip of `width` by `height`.
    width: int = BINS * BAR_WIDTH
    height: int = HEIGHT


def tiles(document: Document, traces: Traces) -> list[Tile]:
    """Return the four tiles."""
    edges = _common_edges(traces)
    bars = {trace.pattern: _histogram(trace, edges) for trace in pooled(traces)}
    return [_tile(document, pattern, bars.get(pattern, [])) for pattern in PATTERNS]


def scale_note(traces: Traces) -> str:
    """Return the range of the histograms, as a sentence."""
    edges = _common_edges(traces)
    if len(edges) == 0:
        return ""
    ends = " to ".join(f"{format_ms(edge * 1e6)} ms" for edge in (edges[0], edges[-1]))
    return f"The strips are histograms of response times on one logarithmic scale from {ends}."


def _tile(document: Document, pattern: str, bars: Sequence[Bar]) -> Tile:
    run = baseline_of(document, pattern)
    name, hue = PATTERN_NAMES[pattern], palette.look(pattern).variable
    if run is None or run["statistics"] is None:
        return Tile(pattern, name, hue)
    statistics = run["statistics"]
    tail, tail_ns = tail_percentile(statistics)
    size = format_value(run["spec"].get("io_size"), "bytes")
    amplified = run.get("write_amplification")
    amplification = f", write amplification {amplified:.3g}" if amplified else ""
    return Tile(
        pattern,
        name,
        hue,
        mean=format_ms(statistics["mean_ns"]),
        times=[("p50", format_ms(statistics["p50_ns"])), (tail, format_ms(tail_ns))],
        ios=f"{statistics['count']:,} I/Os of {size}{amplification}",
        bars=bars,
    )


def _common_edges(traces: Traces) -> np.ndarray:
    """Return common bin edges [ms] of all patterns, logarithmic; empty without data."""
    times = [trace.measured_ms[trace.measured_ms > 0] for trace in traces]
    every = np.concatenate(times) if times else np.empty(0)
    if len(every) == 0:
        return np.empty(0)
    low, high = float(every.min()) / 1.05, float(every.max()) * 1.05
    return np.geomspace(low, high, BINS + 1)


def _histogram(trace: BaselineTrace, edges: np.ndarray) -> list[Bar]:
    """Return bars with the square root of the count: one slow I/O in a thousand stays visible."""
    if len(edges) == 0:
        return []
    counts, _ = np.histogram(trace.measured_ms, edges)
    heights = np.sqrt(counts / max(counts.max(), 1)) * HEIGHT
    return [
        Bar(index * BAR_WIDTH, float(height)) for index, height in enumerate(heights) if height > 0
    ]
