"""Views of the explorer as plain data, with the texts of the report.

The list of results, a result, a run, a comparison, an open-channel device, a distribution.

Names are untrusted text: the page shows them only as text. A thousand folders are listed within a
second, from their manifests; the columns about runs follow in batches.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, cast

import msgspec
import numpy as np
from msgspec import Meta, Struct, UnsetType
from msgspec.structs import replace

from uflip.data import manifest
from uflip.data import summary as summary_types
from uflip.data.device import DeviceInfo
from uflip.data.document import MAX_RUNS, MAX_WARNINGS, plain, read_document
from uflip.data.energy import is_energy
from uflip.data.manifest import Manifest
from uflip.data.spec import PLURALS
from uflip.data.summary import ExperimentSummary, Summary, WarningSummary
from uflip.durability import describe_durability
from uflip.errors import UflipError, UsageError
from uflip.hints import advise
from uflip.microbench import MICRO_BENCHMARKS, varied_micro_benchmarks
from uflip.microbench.labels import PATTERN_NAMES, by_pattern, format_value, parameter_name
from uflip.microbench.open_channel.oc1 import Oc1
from uflip.microbench.open_channel.scaling import Scaling
from uflip.microbench.open_channel.series import ResponseSeries
from uflip.oc.figures import TOP_PERCENTILE
from uflip.oc.result_dir import OpenChannelResult
from uflip.profiles.keys import known_keys
from uflip.report.comparison import sentences
from uflip.report.drive_counters import change_facts, drive_facts
from uflip.report.energy import energy_facts
from uflip.report.figures.axes import positions_of
from uflip.report.findings import finding, headline
from uflip.report.inside import check_text, interval_text, value_text
from uflip.report.key_row import COLUMNS, cells, has_characteristics, in_words, note, numbers
from uflip.report.labels import axis_words, counter_name, title
from uflip.result_views import summary
from uflip.results import Results, StoredRun
from uflip.results.causes import cause_name
from uflip.results.comparison import compare
from uflip.results.reader import repeated
from uflip.results.statistics import VERDICTS
from uflip.results.stored_inference import read_inference
from uflip.results.summary_document import describe_device, experiments_of
from uflip.web import api_io_types, api_types
from uflip.web.open_results import Latest, OpenResults, ResultFolder, refuse_names, stamp_of
from uflip.web.open_run import CLASSES, PIECE_IOS, classes_of, edges_ns

ROWS = 20_000
"""Maximum number of cached rows."""
MAX_DOTS = 3000
LINE_POINTS = 600


class _Warned(Struct, frozen=True):
    code: str


class _StoredState(Struct, frozen=True):
    state: str = "unknown"


class _Glance(Struct, frozen=True):
    """The fields of a manifest that a row shows; only its format is checked."""

    format: Literal["uflip-results"]
    format_version: Literal[1]
    uflip_version: str
    created_utc: str
    status: str
    device: DeviceInfo
    scale: str
    plan: Annotated[list[msgspec.Raw], Meta(max_length=MAX_RUNS)]
    warnings: Annotated[list[_Warned], Meta(max_length=MAX_WARNINGS)]
    durability: str
    state: _StoredState = _StoredState()
    repetitions: int = 1


class _Planned(Struct, frozen=True):
    id: str


def _only_run(document: _Glance | Manifest) -> str | None:
    """Return the run of a result that has only one."""
    if len(document.plan) != 1 or document.device.addresses == "physical":
        return None
    (planned,) = document.plan
    if not isinstance(planned, msgspec.Raw):
        return planned.id
    with suppress(msgspec.MsgspecError):
        return msgspec.json.decode(planned, type=_Planned).id
    return None


class Listing:
    """Rows of results, each cached until its folder changes."""

    def __init__(self, opened: OpenResults) -> None:
        self._opened = opened
        self._glances: Latest[api_types.Glance | api_types.Failed] = Latest(ROWS)
        self._rows: Latest[api_types.WarningRow | api_types.Failed] = Latest(ROWS)

    def glances(self) -> list[api_types.Glance | api_types.Failed]:
        """Return the row of every folder, from its manifest."""
        return [
            self._glances.get(folder.key, stamp_of(folder), partial(_glance, folder))
            for folder in self._opened.folders.scan()
        ]

    def row(self, key: str) -> api_types.WarningRow | api_types.Failed:
        """Return the runs of a folder: its row of Table 3, and the number of converged means."""
        folder = self._opened.folder(key)
        return self._rows.get(key, stamp_of(folder), partial(_row, folder))


def _glance(folder: ResultFolder) -> api_types.Glance | api_types.Failed:
    try:
        refuse_names(folder)
        path = folder.path / manifest.FILE_NAME
        document = _read(path, read_document(path, manifest.KIND))
    except UflipError as error:
        return {"key": folder.key, "name": folder.name, "error": error.parts()}
    return {
        "key": folder.key,
        "name": folder.name,
        "device": describe_device(document.device),
        "simulated": document.device.simulated,
        "created_utc": document.created_utc,
        "scale": document.scale,
        "state": document.state.state,
        "durability": document.durability,
        "status": document.status,
        "repetitions": document.repetitions,
        "planned": len(document.plan),
        "run": _only_run(document),
        "warnings": [each.code for each in document.warnings],
        "uflip_version": document.uflip_version,
    }


def _read(path: Path, content: bytes) -> _Glance | Manifest:
    """Parse the fields of a row; if that fails, parse the whole manifest, or raise an error."""
    with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return msgspec.json.decode(content, type=_Glance)
    return manifest.parse(path, content)


def _row(folder: ResultFolder) -> api_types.WarningRow | api_types.Failed:
    try:
        results = Results.load(folder.path)
        return {"key": folder.key, **run_counts(summary(results))}
    except UflipError as error:
        return {"key": folder.key, "error": error.parts()}


def run_counts(document: Summary) -> api_types.RunCountsWithWarnings:
    """Return the part of a row that comes from a summary."""
    converged = [
        run["together"]["converged"]
        for _, run in experiments_of(document)
        if run["together"]["converged"] is not None
    ]
    row = document["key_characteristics"]
    return {
        "status": document["status"],
        "finished": document["runs_finished"],
        "planned": document["runs_planned"],
        "warnings": [each["code"] for each in document["warnings"]],
        "experiments": len(converged),
        "known": sum(map(bool, converged)),
        "cells": None if row is None else cells(row),
        "numbers": None if row is None else numbers(row),
        "baselines_ms": document["baselines_ms"],
        "tail": _tail(document),
    }


PERCENTILES = ("p50_ns", "p90_ns", "p95_ns", "p99_ns", "p99_9_ns", "max_ns")


def _tail(document: Summary) -> api_types.Tail | None:
    """Return the tail of the random writes, or else of the first run."""
    runs = [run for _, run in experiments_of(document)]
    run = next((run for run in runs if run["pattern"] == "RW"), next(iter(runs), None))
    statistics = None if run is None else run["statistics"]
    if run is None or statistics is None:
        return None
    numbers = cast("Mapping[str, float | None]", statistics)
    times = [numbers[name] for name in PERCENTILES]
    return {"pattern": run["pattern"], "times_ns": times}


def result(opened: OpenResults, key: str) -> api_types.ResultView:
    """Return a result: its numbers, its micro-benchmarks, its warnings, its runs."""
    results, document = opened.results(key), opened.summary(key)
    runs_of = {group[0].id: [run.id for run in group] for group in repeated(results.runs)}
    names = [run.id for run in results.runs]
    counts, row = run_counts(document), document["key_characteristics"]
    return {
        "key": key,
        "name": opened.folder(key).name,
        "device": describe_device(document["device"]),
        "url": document["device"].url,
        "simulated": document["device"].simulated,
        "is_open_channel": results.is_open_channel,
        "created_utc": document["created_utc"],
        "scale": document["scale"],
        "state": document["state"].state,
        "durability": document["durability"],
        "durability_means": describe_durability(document["durability"])
        if document["durability"]
        else "",
        "repetitions": document["repetitions"],
        "uflip_version": document["uflip_version"],
        "headline": "" if results.is_open_channel else headline(document),
        "columns": COLUMNS,
        "note": note(),
        "characteristics": [] if row is None else in_words(row),
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
        "drive": _labelled(drive_facts(document)),
        "inside": _inside(results),
        "runs": [_named(run) for run in results.runs],
    }


DERIVED = {
    "dies": "dies of all channels, which work at the same time",
    "superblock_bytes": "data of the blocks that are erased together",
}
"""Meanings of inferred properties that are not keys of a profile."""


def _inside(results: Results) -> api_types.InsideView | None:
    """Return what is inside the device; None if the result has no run of a probe."""
    probes = varied_micro_benchmarks("inside")
    if results.is_open_channel or not any(run.micro_benchmark in probes for run in results.runs):
        return None
    found = read_inference(results)
    keys = {key: of.meaning for table in known_keys("block").values() for key, of in table.items()}
    return {
        "properties": [
            {
                "key": each.key,
                "meaning": (DERIVED | keys).get(each.key, "").replace("`", ""),
                "value": value_text(each),
                "interval": interval_text(each),
                "identified": each.value is not None,
                "probe": each.probe,
                "title": title(each.probe),
                "reason": each.reason,
            }
            for each in (found.properties if found else ())
        ],
        "check": check_text(found.errors) if found else "",
        "why_no_twin": found.why_no_twin if found else "",
        "bytes_written": found.bytes_written if found else 0,
        "command": f"uflip infer {results.path.name}",
    }


def _labelled(facts: Iterable[tuple[str, str]]) -> list[api_types.LabelledText]:
    return [{"label": label, "text": text} for label, text in facts]


def _advice(document: Summary, *, is_job: bool) -> api_types.DeviceAdvice | None:
    """Return the class of a device and its design hints, as in the report."""
    if is_job or not has_characteristics(document):
        return None
    device_hints = advise(document)
    class_text = f"Class {device_hints.classified.name}: {device_hints.classified.meaning}."
    hints = [replace(hint, advice=hint.next_step) for hint in device_hints.hints]
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
        "axis": axis_words(*varied),
        "values": [
            {"at": positions[value], "label": format_value(value, unit)} for value, unit in values
        ],
        "levels_ms": document["baselines_ms"] if about is None or about.levels else {},
        "patterns": [
            {
                "pattern": pattern,
                "words": PATTERN_NAMES.get(pattern, ""),
                "points": [
                    {
                        "at": positions[run["value"]],
                        "rounds": run.get("rounds", []),
                        **_experiment(run, runs_of),
                    }
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
    }


def run(opened: OpenResults, key: str, name: str) -> api_types.RunView:
    """Return the numbers of a run; its I/Os are requested in parts."""
    opened_run = opened.run(key, name)
    document = cast("ExperimentSummary", plain(opened_run.summary))
    change = opened_run.summary.drive
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
        "counters": {
            counter_name(each): n
            for each, n in (document.get("counters") or {}).items()
            if not is_energy(each)
        },
        "write_amplification": document.get("write_amplification"),
        "drive": _labelled(
            [
                *([] if isinstance(change, UnsetType) else change_facts(change)),
                *([] if (energy := document.get("energy")) is None else energy_facts(energy)),
            ]
        ),
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
                "state": document["state"].state,
                "durability": document["durability"],
                **run_counts(document),
            }
            for key, document in zip(keys, documents, strict=True)
        ],
        "columns": COLUMNS,
        "verdicts": VERDICTS,
        "comparisons": [
            _compared(first, other, (opened.folder(keys[0]).name, opened.folder(key).name))
            for key, other in zip(keys[1:], others, strict=True)
        ],
    }


def _compared(first: Summary, second: Summary, names: tuple[str, str]) -> api_types.ComparedPair:
    compared = compare(first, second)
    return {
        "first": compared.first,
        "second": compared.second,
        "devices": {name: list(map(str, both)) for name, both in compared.devices.items()},
        "conditions": list(compared.conditions),
        "verdicts": compared.verdicts,
        "differences": sentences(compared, names),
        "rows": [
            api_types.ComparedRow(
                **asdict(row),
                title=title(row.micro_benchmark),
                label=format_value(row.value, row.unit),
                axis=parameter_name(row.parameter),
                axis_words=axis_words(row.parameter, row.unit),
            )
            for row in compared.rows
        ],
        "only_in_first": list(compared.only_in_first),
        "only_in_second": list(compared.only_in_second),
    }


def channel(opened: OpenResults, key: str) -> api_io_types.Channel:
    """Return the findings of a uFLIP-OC folder: bands, LUNs, wear, parallelism, rules.

    The numbers are those of `uflip.oc`, which the report draws too. Long series are thinned out by
    an odd step, so that no position of a mix is always left out.
    """
    results = opened.results(key)
    if not results.is_open_channel:
        raise UsageError(
            "Not an open-channel device",
            where=opened.folder(key).name,
            got="a block device",
            allowed="results of uFLIP-OC",
            action="open it as a result",
        )
    result = OpenChannelResult(results)
    phases = result.measured
    scaling = {**(phases.oc2 or {}), **(phases.oc3.scaling if phases.oc3 else {})}
    return {
        "bands": _bands(phases.oc0.mixes, phases.oc0.throughput) if phases.oc0 else [],
        "shares": _bands(phases.oc3.mixes, phases.oc3.throughput) if phases.oc3 else [],
        "luns": None
        if phases.oc0 is None
        else {
            "write_mb_per_s": phases.oc0.write_mb_per_s.tolist(),
            "read_mb_per_s": phases.oc0.read_mb_per_s.tolist(),
        },
        "wear": None if phases.oc1 is None else _wear(phases.oc1),
        "scaling": [_scaling(name, line) for name, line in scaling.items()],
        "rules": result.rules,
    }


def _bands(
    mixes: Mapping[str, ResponseSeries], throughput: Mapping[str, float]
) -> list[api_io_types.ResponseBands]:
    bands: list[api_io_types.ResponseBands] = []
    for mix, series in mixes.items():
        step = max(1, len(series.op) // MAX_DOTS) | 1
        at = np.arange(0, len(series.op), step)
        bands.append(
            {
                "mix": mix,
                "ios": len(series.op),
                "at": at.tolist(),
                "op": series.op[at].tolist(),
                "ms": np.round(series.response_time_ms[at], 6).tolist(),
                "top_ms": float(np.percentile(series.response_time_ms, TOP_PERCENTILE)),
                "mb_per_s": throughput[mix],
            }
        )
    return bands


def _wear(worn: Oc1) -> api_io_types.BlockWear:
    cycles = worn.cycles - worn.erase_failed
    at = np.unique(np.linspace(0, max(cycles - 1, 0), LINE_POINTS).astype(np.int64))
    return {
        "block": ":".join(map(str, worn.block)),
        "cycles": worn.cycles,
        "at": (at + 1).tolist(),
        "erase_ms": worn.erase_ms[at].tolist(),
        "write_ms": worn.write_ms[at].tolist(),
        "read_ms": worn.read_ms[at].tolist(),
        "failing_share": worn.failing_share()[at].tolist(),
        "first_failure": worn.first_failure(),
        "erase_failed": bool(worn.erase_failed),
    }


def _scaling(name: str, one: Scaling) -> api_io_types.ScalingCurve:
    return {
        "name": name,
        "over": one.over,
        "degrees": list(one.mb_per_s),
        "mb_per_s": list(one.mb_per_s.values()),
    }


def distribution(opened: OpenResults, key: str, names: Sequence[str]) -> api_io_types.Spread:
    """Return the number of I/Os of some runs in each class of response time, without start-up."""
    counts, longest = np.zeros(CLASSES, np.int64), 0
    for each in [opened.run(key, name) for name in names]:
        for low in range(0, each.io_count, PIECE_IOS):
            high = min(low + PIECE_IOS, each.io_count)
            times = each.column("response_time_ns", low, high)
            if each.has("ignored"):
                times = times[each.column("ignored", low, high) == 0]
            counts += np.bincount(classes_of(times), minlength=CLASSES)
            longest = max(longest, int(times.max(initial=0)))
    used = np.flatnonzero(counts)
    first, stop = (int(used[0]), int(used[-1]) + 1) if len(used) else (0, 0)
    return {
        "runs": len(names),
        "count": int(counts.sum()),
        "counts": counts[first:stop].tolist(),
        "edges_ns": edges_ns()[first : stop + 1].tolist(),
        "longest_ns": longest,
    }
