"""A result, a run, and a comparison, as plain data with the texts of the report.

Names are untrusted text: the page shows them only as text.
"""

from collections.abc import Mapping, Sequence
from typing import cast

from msgspec.structs import replace

from uflip.data import summary as summary_types
from uflip.data.document import plain
from uflip.data.spec_base import PLURALS
from uflip.data.summary import ExperimentSummary, Summary, WarningSummary
from uflip.durability import describe_durability
from uflip.hints import advise
from uflip.microbench import MICRO_BENCHMARKS
from uflip.microbench.labels import PATTERN_NAMES, by_pattern, format_value, parameter_name
from uflip.report.figures.axes import positions_of
from uflip.report.findings import finding, headline
from uflip.report.key_row import COLUMNS, has_characteristics, note
from uflip.report.labels import axis_name, cause_name, counter_name, title
from uflip.results import Results, StoredRun
from uflip.results.comparison import VERDICTS, compare
from uflip.results.reader import repeated
from uflip.results.summary_document import describe_device
from uflip.web import api_types
from uflip.web.listing import run_counts
from uflip.web.open_results import OpenResults
from uflip.web.open_run import edges_ns


def result(opened: OpenResults, key: str) -> api_types.ResultView:
    """Return a result: its numbers, its micro-benchmarks, its warnings, its runs."""
    results, document = opened.results(key), opened.summary(key)
    runs_of = {group[0].id: [run.id for run in group] for group in repeated(results.runs)}
    names = [run.id for run in results.runs]
    counts = run_counts(document)
    return {
        "key": key,
        "name": opened.folder(key).name,
        "device": describe_device(document["device"]),
        "url": document["device"].url,
        "simulated": document["device"].simulated,
        "is_open_channel": results.is_open_channel,
        "created_utc": document["created_utc"],
        "scale": document["scale"],
        "state": document["state"]["state"],
        "durability": document["durability"],
        "durability_means": describe_durability(document["durability"])
        if document["durability"]
        else "",
        "repetitions": document["repetitions"],
        "uflip_version": document["uflip_version"],
        "headline": "" if results.is_open_channel else headline(document),
        "columns": COLUMNS,
        "note": note(),
        "status": counts["status"],
        "finished": counts["finished"],
        "planned": counts["planned"],
        "warnings": [_warning(each, names) for each in document["warnings"]],
        "experiments": counts["experiments"],
        "known": counts["known"],
        "cells": counts["cells"],
        "numbers": counts["numbers"],
        "baselines_ms": counts["baselines_ms"],
        "advice": _advice(document, is_job=results.is_open_channel),
        "baselines": [_experiment(run, runs_of) for run in document["baselines"]],
        "benchmarks": [
            _benchmark(name, runs, document, runs_of)
            for name, measured in document["micro_benchmarks"].items()
            for runs in _by_parameter(measured)
        ],
        "missing": len(document["missing"]),
        "skipped": len(document["skipped"]),
        "runs": [_named(run) for run in results.runs],
    }


def _advice(document: Summary, *, is_job: bool) -> api_types.DeviceAdvice | None:
    """Return the class of a device and its design hints, as in the report."""
    if is_job or not has_characteristics(document):
        return None
    device_hints = advise(document)
    class_text = f"Class {device_hints.classified.name}: {device_hints.classified.meaning}."
    hints = [plain(replace(hint, advice=hint.next_step)) for hint in device_hints.hints]
    return {"class": class_text, "hints": hints}


def _by_parameter(runs: Sequence[ExperimentSummary]) -> list[list[ExperimentSummary]]:
    """Group runs by the varied parameter: values of different parameters are not comparable."""
    groups: dict[str | None, list[ExperimentSummary]] = {}
    for run in runs:
        groups.setdefault(run["parameter"], []).append(run)
    return list(groups.values())


def _benchmark(
    name: str,
    runs: Sequence[ExperimentSummary],
    document: Summary,
    runs_of: Mapping[str, Sequence[str]],
) -> api_types.MicroBenchmarkView:
    about, experiments = MICRO_BENCHMARKS.get(name), by_pattern(runs)
    measured = [run for experiment in experiments.values() for run in experiment]
    values = sorted({run["value"]: run["unit"] for run in measured}.items())
    positions = positions_of(value for value, _ in values)
    varied = (measured[0]["parameter"], measured[0]["unit"]) if measured else (None, None)
    part: Summary = {**document, "micro_benchmarks": {name: list(runs)}}
    return {
        "name": name,
        "parameter": runs[0]["parameter"],
        "title": title(name),
        "question": about.question if about else "",
        "how_to_read": about.how_to_read if about else "",
        "finding": finding(name, part),
        "axis": axis_name(*varied),
        "values": [
            {"at": positions[value], "label": format_value(value, unit)} for value, unit in values
        ],
        "levels_ms": document["baselines_ms"] if about is None or about.levels else {},
        "patterns": [
            {
                "pattern": pattern,
                "words": PATTERN_NAMES.get(pattern, ""),
                "points": [
                    {"at": positions[run["value"]], **_experiment(run, runs_of)}
                    for run in experiment
                ],
            }
            for pattern, experiment in experiments.items()
        ],
        "others": [_experiment(run, runs_of) for run in runs if run["value"] is None],
    }


def _experiment(
    run: ExperimentSummary | summary_types.MeasuredExperiment, runs_of: Mapping[str, Sequence[str]]
) -> api_types.ExperimentView:
    return {
        "pattern": run["pattern"],
        "words": PATTERN_NAMES.get(run["pattern"], ""),
        "parameter": run["parameter"],
        "value": run["value"],
        "label": format_value(run["value"], run["unit"]),
        "statistics": run["statistics"],
        "half_width_ns": run["together"]["half_width_ns"],
        "converged": run["together"]["converged"],
        "runs": list(runs_of.get(run["run"], [run["run"]])),
    }


def _warning(warning: WarningSummary, runs: Sequence[str]) -> api_types.WarningView:
    """Return a warning with the runs that it names, and its numbers without them."""
    named: list[str] = []
    _find(warning["numbers"], set(runs), named)
    numbers = {name: each for name, each in warning["numbers"].items() if name != "runs"}
    return {**warning, "numbers": numbers, "runs": list(dict.fromkeys(named))}


def _find(value: object, runs: set[str], names: list[str]) -> None:
    """Collect the ids of runs in plain data, the worst one first."""
    if isinstance(value, str) and value in runs:
        names.append(value)
    elif isinstance(value, Mapping):
        for name in sorted(value, key=lambda name: name != "worst"):
            _find(value[name], runs, names)
    elif isinstance(value, list):
        for each in value:
            _find(each, runs, names)


def _named(run: StoredRun) -> api_types.NamedRun:
    varies = [parameter_name(run.parameter), format_value(run.value, run.unit)]
    return {
        "id": run.id,
        "micro_benchmark": run.micro_benchmark,
        "title": title(run.micro_benchmark),
        "pattern": run.pattern,
        "words": PATTERN_NAMES.get(run.pattern, ""),
        "varies": " ".join(each for each in varies if each),
        "repetition": run.repetition,
        "is_job": run.is_job,
    }


def run(opened: OpenResults, key: str, name: str) -> api_types.RunView:
    """Return the numbers of a run; its I/Os are requested in parts."""
    opened_run = opened.run(key, name)
    document = cast("ExperimentSummary", plain(opened_run.summary))
    results: Results = opened_run.results
    order = [each.id for each in results.runs]
    at = order.index(name)
    spent = document.get("time_spent_ns") or {}
    return {
        "key": key,
        "result": opened.folder(key).name,
        "device": describe_device(results.manifest.device),
        "simulated": results.manifest.device.simulated,
        **_named(opened_run.run),
        "io_count": document["io_count"],
        "io_ignore": document["io_ignore"],
        "elapsed_ns": document["elapsed_ns"],
        "ios_per_s": document["ios_per_s"],
        "statistics": document["statistics"],
        "by_mode": {PLURALS[mode]: of for mode, of in document.get("by_mode", {}).items()},
        "repetitions": document["repetitions"],
        "causes": [cause_name(each) for each in spent],
        "spent_ns": [{"words": cause_name(each), "ns": ns} for each, ns in spent.items()],
        "counters": {counter_name(each): n for each, n in (document.get("counters") or {}).items()},
        "write_amplification": document.get("write_amplification"),
        "spec": document["spec"],
        "has_inside": opened_run.run.meta.inside is not None,
        "previous": order[at - 1] if at else None,
        "next": order[at + 1] if at + 1 < len(order) else None,
        "edges_ns": edges_ns().tolist(),
    }


def comparison(opened: OpenResults, keys: Sequence[str]) -> api_types.ComparisonView:
    """Return two or more results, each compared with the first."""
    documents = [opened.summary(key) for key in keys]
    first, *others = documents
    return {
        "results": [
            {
                "key": key,
                "name": opened.folder(key).name,
                "device": describe_device(document["device"]),
                "created_utc": document["created_utc"],
                "scale": document["scale"],
                "state": document["state"]["state"],
                "durability": document["durability"],
                **run_counts(document),
            }
            for key, document in zip(keys, documents, strict=True)
        ],
        "columns": COLUMNS,
        "verdicts": VERDICTS,
        "comparisons": [_compared(first, other) for other in others],
    }


def _compared(first: Summary, second: Summary) -> api_types.ComparedPair:
    document = compare(first, second).as_dict()
    rows: list[api_types.ComparedRow] = [
        {
            **row,
            "title": title(row["micro_benchmark"]),
            "label": format_value(row["value"], row["unit"]),
            "axis": parameter_name(row["parameter"]),
        }
        for row in document["rows"]
    ]
    devices = {name: list(map(str, both)) for name, both in document["devices"].items()}
    return {**document, "rows": rows, "devices": devices}
