"""The summary on a terminal: plain text, one line per experiment, also for log files.

A sparkline shows the means of an experiment from its first to its last value. All sparklines of a
micro-benchmark share one logarithmic scale, so that they can be compared.
"""

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence

from uflip.data.manifest import IMPORTED, SkippedRun
from uflip.data.spec import PLURALS
from uflip.data.summary import ExperimentSummary as Run
from uflip.data.summary import (
    MeasuredExperiment,
    ResponseTime,
    StatisticsSummary,
    Summary,
    WarningSummary,
)
from uflip.durability import CACHED
from uflip.microbench.labels import (
    PATTERN_NAMES,
    by_pattern,
    format_ratio,
    format_value,
    parameter_name,
)
from uflip.report import key_row
from uflip.report.drive_counters import drive_facts, runs_table
from uflip.report.energy import energy_table
from uflip.report.findings import finding, headline
from uflip.report.labels import format_ms, title
from uflip.results.summary_document import describe_device
from uflip.table import Table, text_width
from uflip.units import format_count, format_duration_ns

BARS = "▁▂▃▄▅▆▇█"
# Below this ratio of largest to smallest mean a sparkline is flat, so that noise stays invisible.
MIN_SPAN = 2.0


def render(document: Summary, *, full: bool = False) -> str:
    """Render the summary of a result folder."""
    benchmarks = document["micro_benchmarks"]
    blocks = [head(document), _baselines(document), _key_characteristics(document)]
    if full:
        blocks += [_full(name, runs) for name, runs in benchmarks.items()]
    elif benchmarks:
        blocks.append(_compact(document))
    blocks += [
        _energy(document, full=full),
        _drive(document, full=full),
        _skipped(document["skipped"]),
        format_warnings(document["warnings"]),
    ]
    return "\n\n".join(block for block in blocks if block)


def next_commands(path: str, *, hints: bool = True) -> str:
    """Return useful next commands for a result folder; `hints` need micro-benchmarks."""
    return "\n".join(
        (
            f"uflip explore {path}",
            *([f"uflip hints {path}"] if hints else []),
            f"uflip show {path} --full",
            f"uflip report {path} -o report.html",
            f"uflip export {path} --format csv",
        )
    )


def sparkline(values: Sequence[float], low: float, high: float) -> str:
    """Return values as bars on a logarithmic scale from `low` to `high`.

    Examples
    --------
    >>> sparkline([1, 10, 100], 1, 100)
    '▁▅█'
    >>> sparkline([5, 5], 5, 5)
    '▁▁'
    """
    if low <= 0 or high / low < MIN_SPAN:
        return BARS[0] * len(values)
    span = math.log(high / low)
    heights = [math.log(max(value, low) / low) / span for value in values]
    return "".join(BARS[min(round(height * (len(BARS) - 1)), len(BARS) - 1)] for height in heights)


def head(document: Summary) -> str:
    """Return the device, the conditions and the progress of the benchmark."""
    device = document["device"]
    kind = "SIMULATED device" if device.simulated else "real device"
    if device.null:
        kind = "null device: the harness measures itself"
    if document["scale"] == IMPORTED:
        kind = "imported log, which does not name its device"
    runs = f"{document['runs_finished']} of {document['runs_planned']} runs"
    facts = [kind, f"scale {document['scale']}", f"seed {document['seed']}", runs]
    if document["durability"] not in (None, CACHED):
        facts.append(f"durability {document['durability']}")
    if document["elapsed_s"]:
        facts.append(f"in {format_duration_ns(document['elapsed_s'] * 1e9)}")
    lines = [describe_device(device), " · ".join(facts)]
    if document["status"] != "complete":
        lines.append(f"status: {document['status'].upper()} (finished runs are shown)")
    return "\n".join(lines)


def _baselines(document: Summary) -> str:
    measured = [
        (run["pattern"], statistics)
        for run in document["baselines"]
        if (statistics := run["statistics"])
    ]
    if not measured:
        return ""
    size = format_value(document["baseline_io_size_bytes"], "bytes")
    rows = [
        [f"{pattern} {PATTERN_NAMES.get(pattern, '')}", *_cells(statistics)]
        for pattern, statistics in measured
    ]
    table = Table(["", *_COLUMNS], rows, "lr").text("  ")
    return f"Baselines at {size}, response time [ms]\n{table}\n\n{_wrap(headline(document))}"


def _key_characteristics(document: Summary) -> str:
    characteristics = document["key_characteristics"]
    if characteristics is None or not key_row.has_characteristics(document):
        return ""
    table = Table(key_row.COLUMNS, [key_row.cells(characteristics)], "r").text("  ")
    words = _wrap(" ".join(key_row.in_words(characteristics)), indent=2)
    return f"Key characteristics\n{table}\n{words}"


_COLUMNS = ("I/Os", "mean", "std", "min", "p50", "p95", "p99", "max")
_KEYS: tuple[ResponseTime, ...] = (
    "mean_ns",
    "std_ns",
    "min_ns",
    "p50_ns",
    "p95_ns",
    "p99_ns",
    "max_ns",
)


def _cells(statistics: StatisticsSummary) -> list[str]:
    return [format_count(statistics["count"]), *(format_ms(statistics[key]) for key in _KEYS)]


def _compact(document: Summary) -> str:
    lines = ["Micro-benchmarks, mean response time [ms] from the first value to the last"]
    for name, runs in document["micro_benchmarks"].items():
        experiments = by_pattern(runs)
        if experiments:
            lines += ["", _benchmark_line(name, experiments), *_experiment_lines(experiments)]
            if all(len(each) == 1 for each in experiments.values()):
                lines += _modes(runs)
            if text := finding(name, document):
                lines.append(_wrap(text, indent=2))
    return "\n".join(lines)


def _benchmark_line(name: str, experiments: Mapping[str, Sequence[MeasuredExperiment]]) -> str:
    low, high = _ends(experiments)
    values = dict.fromkeys((_value(low), _value(high)))
    return f"{title(name)}   {parameter_name(low['parameter'])} {' … '.join(values)}"


def _ends(
    experiments: Mapping[str, Sequence[MeasuredExperiment]],
) -> tuple[MeasuredExperiment, MeasuredExperiment]:
    """Return the runs with the smallest and the largest value of all patterns."""
    firsts = [runs[0] for runs in experiments.values()]
    lasts = [runs[-1] for runs in experiments.values()]
    return min(firsts, key=lambda run: run["value"]), max(lasts, key=lambda run: run["value"])


def _value(run: MeasuredExperiment) -> str:
    return format_value(run["value"], run["unit"])


def _experiment_lines(experiments: Mapping[str, Sequence[MeasuredExperiment]]) -> list[str]:
    means = {
        pattern: [float(run["statistics"]["mean_ns"]) for run in runs]
        for pattern, runs in experiments.items()
    }
    low = min(min(values) for values in means.values())
    high = max(max(values) for values in means.values())
    width = max(len(values) for values in means.values())
    _, last = _ends(experiments)
    lines = []
    for pattern, values in means.items():
        if width == 1:
            lines.append(f"  {pattern:<6}{format_ms(values[0]):>8}")
            continue
        bars = sparkline(values, low, high).ljust(width)
        line = f"  {pattern:<6}{format_ms(values[0]):>8}  {bars}  {format_ms(values[-1]):<8}"
        span = max(values) / min(values) if min(values) > 0 else 1.0
        line += f" highest / lowest {format_ratio(span)}"
        if experiments[pattern][-1]["value"] != last["value"]:
            line += f", up to {_value(experiments[pattern][-1])}"
        lines.append(line)
    return lines


def _full(name: str, runs: Sequence[Run]) -> str:
    experiments = by_pattern(runs)
    if not experiments:
        return ""
    rows = [
        [run["pattern"], format_value(run["value"], run["unit"]), *_cells(run["statistics"])]
        for experiment in experiments.values()
        for run in experiment
    ]
    parameter = parameter_name(next(iter(experiments.values()))[0]["parameter"])
    table = Table(["", parameter, *_COLUMNS], rows, "llr").text("  ")
    return "\n".join([f"{title(name)}, response time [ms]", table, *_modes(runs)])


def _modes(runs: Iterable[Run]) -> list[str]:
    """Return reads, writes and trims separately, for runs with several modes."""
    rows = [
        [
            run["pattern"],
            format_value(run["value"], run["unit"]),
            PLURALS[mode],
            *_cells(statistics),
            "–" if summary["ios_per_s"] is None else format_count(round(summary["ios_per_s"])),
            "–" if summary["bytes_per_s"] is None else f"{summary['bytes_per_s'] / (1 << 20):.2f}",
        ]
        for run in runs
        for mode, summary in run.get("by_mode", {}).items()
        if (statistics := summary["statistics"])
    ]
    head = ["", "", "", *_COLUMNS, "IOPS", "MiB/s"]
    return [Table(head, rows, "lllr").text("  ")] if rows else []


def _energy(document: Summary, *, full: bool) -> str:
    table = energy_table(document, full=full)
    return "" if table is None else f"{table.caption}\n{table.text('  ')}"


def _drive(document: Summary, *, full: bool) -> str:
    facts = drive_facts(document)
    if not facts:
        return ""
    lines = ["Counters of the drive, over all runs"]
    lines += [_wrap(f"{label}: {text}", indent=2) for label, text in facts]
    table = runs_table(document) if full else None
    return "\n".join([*lines, *([] if table is None else [table.text("  ")])])


def _skipped(skipped: Sequence[SkippedRun]) -> str:
    if not skipped:
        return ""
    reasons: dict[str, list[str]] = {}
    for entry in skipped:
        where = f"{entry.micro_benchmark} {entry.pattern}"
        names = reasons.setdefault(entry.reason, [])
        if where not in names:
            names.append(where)
    lines = [f"Skipped: {len(skipped)} runs that were left out of the plan"]
    lines += [_wrap(f"{', '.join(names)}: {why}", indent=2) for why, names in reasons.items()]
    return "\n".join(lines)


def format_warnings(warnings: Sequence[WarningSummary]) -> str:
    """Return the warnings with their advice."""
    if not warnings:
        return ""
    lines = [f"Warnings: {len(warnings)}"]
    for warning in warnings:
        lines.append(_wrap(f"! {warning['message']}", indent=2))
        lines.append(_wrap(f"→ {warning['advice']}", indent=4))
    return "\n".join(lines)


def _wrap(text: str, indent: int = 0) -> str:
    return textwrap.fill(
        text,
        text_width(),
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + 2 * (indent > 0)),
    )
