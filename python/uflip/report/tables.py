"""Tables of a report, as HTML: every number that a figure shows can be read off one of these."""

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from uflip.report.words import (
    by_pattern,
    cause_name,
    format_ms,
    format_ratio,
    format_value,
    parameter_name,
    title,
)
from uflip.units import format_count, format_duration_ns, format_size

Run = Mapping[str, Any]

STATISTICS = {
    "count": "I/Os",
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


def table(head: Sequence[str], rows: Iterable[Sequence[str]], align: str, caption: str = "") -> str:
    """Make an HTML table of plain text; it is escaped here.

    Parameters
    ----------
    head, rows
        Cells; the first of a row is its heading.
    align
        A letter per column, "l" for words and "r" for numbers; the last one stands for the rest.
    caption
        What the table is.
    """
    classes = [' class="n"' if side == "r" else "" for side in align.ljust(len(head), align[-1])]
    heads = _cells("th", head, [f' scope="col"{name}' for name in classes])
    body = "\n".join(
        "<tr>"
        + _cells("th", row[:1], [f' scope="row"{classes[0]}'])
        + _cells("td", row[1:], classes[1:])
        + "</tr>"
        for row in rows
    )
    text = f"<caption>{escape(caption)}</caption>" if caption else ""
    return (
        f'<div class="scroll" tabindex="0"><table>{text}<thead><tr>{heads}</tr></thead>'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def _cells(tag: str, texts: Sequence[str], attributes: Sequence[str]) -> str:
    return "".join(
        f"<{tag}{attribute}>{escape(text)}</{tag}>"
        for text, attribute in zip(texts, attributes, strict=True)
    )


def runs_table(runs: Sequence[Run], caption: str) -> str:
    """The numbers behind a figure: a row per run, response times [ms]."""
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
    head = ["pattern", parameter, *STATISTICS.values(), "I/Os per s"]
    return table(head, rows, "llr", caption)


def components_table(runs: Sequence[Run]) -> str:
    """The two patterns within each mix [ms]."""
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
    head = ["mix", "Ratio", "pattern in it", *STATISTICS.values()]
    caption = "The patterns within the mixes, response time [ms]"
    return table(head, rows, "lllr", caption) if rows else ""


def statistics_cells(run: Run) -> list[str]:
    """Count and response times [ms] of a run or component."""
    statistics = run["statistics"]
    return [
        format_count(statistics[key]) if key == "count" else format_ms(statistics[key])
        for key in STATISTICS
    ]


def summary_table(document: Mapping[str, Any]) -> str:
    """One row per experiment: where its mean was lowest and highest, and how far apart."""
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
    return table(head, rows, "lllrrlrlr") if rows else ""


def baselines_table(document: Mapping[str, Any]) -> str:
    """The baseline runs [ms]."""
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
    head = ["pattern", "IOSize", *STATISTICS.values(), "I/Os per s"]
    return table(head, rows, "llr", "Baselines, response time [ms]") if rows else ""


def causes_table(document: Mapping[str, Any]) -> str:
    """Mean time per I/O by cause [ms], and what the device counted, per baseline run."""
    told = [run for run in document["baselines"] if run.get("time_spent_ns")]
    if not told:
        return ""
    rows = [
        [cause_name(cause), *(format_ms(run["time_spent_ns"][cause]) for run in told)]
        for cause in told[0]["time_spent_ns"]
    ]
    rows.append(["sum", *(format_ms(sum(run["time_spent_ns"].values())) for run in told)])
    head = ["mean time per I/O [ms]", *(run["pattern"] for run in told)]
    return table(head, rows, "lr", "What the time was spent on") + _counters_table(told)


def _counters_table(runs: Sequence[Run]) -> str:
    counted = [run for run in runs if run.get("counters")]
    if not counted:
        return ""
    rows = [
        [name.replace("_", " "), *(_plain(run["counters"].get(name)) for run in counted)]
        for name in counted[0]["counters"]
    ]
    rows.append(["write amplification", *(_plain(run["write_amplification"]) for run in counted)])
    head = ["device counter, over the run", *(run["pattern"] for run in counted)]
    return table(head, rows, "lr", "What the device counted")


def every_run_table(document: Mapping[str, Any]) -> str:
    """All finished runs with their resolved patterns: enough to repeat any of them."""
    runs = [*document["baselines"]]
    for experiment in document["micro_benchmarks"].values():
        runs += experiment
    rows = [
        [
            run["run"],
            json.dumps(run["spec"], separators=(", ", ": ")),
            format_count(run["io_count"]),
            format_count(run["io_ignore"]),
            format_duration_ns(run["elapsed_ns"]),
        ]
        for run in sorted(runs, key=lambda run: str(run["run"]))
    ]
    head = ["run", "pattern specification (bytes, ns)", "I/Os", "ignored", "elapsed"]
    return table(head, rows, "llr")


def skipped_table(skipped: Sequence[Mapping[str, Any]]) -> str:
    """Runs that were left out, with the reason of each group."""
    groups: dict[tuple[str, str, str, str], list[str]] = {}
    for entry in skipped:
        key = (entry["micro_benchmark"], entry["pattern"], entry["parameter"], entry["reason"])
        unit = "bytes" if "size" in entry["parameter"] or "shift" in entry["parameter"] else ""
        groups.setdefault(key, []).append(format_value(entry["value"], unit))
    rows = [
        [title(name), pattern, parameter_name(parameter), ", ".join(values), reason]
        for (name, pattern, parameter, reason), values in groups.items()
    ]
    return table(["micro-benchmark", "pattern", "parameter", "values", "reason"], rows, "l")


def facts_table(facts: Mapping[str, Any], caption: str) -> str:
    """Nested facts (device, host, harness) as rows of key and value."""
    rows = list(_flat(facts))
    return table(["", ""], rows, "l", caption) if rows else ""


def _flat(facts: Mapping[str, Any], prefix: str = "") -> Iterable[list[str]]:
    for key, value in facts.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            # "details" only says that there is more: its keys speak for themselves.
            yield from _flat(value, prefix if key == "details" else f"{name}.")
        else:
            yield [name, _fact(key, value)]


def _fact(key: str, value: Any) -> str:
    """A fact with its unit said in words where the name ends in one."""
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


def _plain(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def _rate(run: Run) -> str:
    """I/Os per second over the whole run, start-up and pauses included."""
    elapsed_ns = run["elapsed_ns"]
    return format_count(round(run["io_count"] / elapsed_ns * 1e9)) if elapsed_ns else "–"
