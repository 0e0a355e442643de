"""A result folder as one document: what `uflip show --json` prints and the report is made of.

The document holds numbers and names only, no arrays over I/Os: a standard run of nine
micro-benchmarks comes to a few hundred kilobytes of JSON.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from uflip import _native
from uflip.results.characteristics import characteristics
from uflip.results.columns import as_array, measured
from uflip.results.store import Results, StoredRun, metadata_of
from uflip.stats import summarise
from uflip.units import format_size

BASELINE = "baseline"  # the long runs of the four patterns; not one of the nine micro-benchmarks
PATTERNS = ("SR", "RR", "SW", "RW")

Document = dict[str, Any]


def summary(results: Results) -> Document:
    """Summarise a result folder.

    Parameters
    ----------
    results
        A folder, finished or not.

    Returns
    -------
    dict
        ``device``; ``baselines_ms`` (pattern → mean [ms], null if not measured) with
        ``baseline_io_size_bytes``; ``key_characteristics`` (`uflip.results.characteristics`);
        ``baselines`` and ``micro_benchmarks`` (name → list of runs),
        a run being pattern, parameter, value, unit, ``io_count``, ``io_ignore``, ``statistics``
        [ns], ``components`` of a mix, ``time_spent_ns`` (mean per I/O and cause; simulated
        devices), ``counters``, ``write_amplification``, resolved ``spec`` and ``run`` (its
        id); ``missing`` runs, ``skipped``, ``warnings``, and the provenance.

    Raises
    ------
    ResultsError
        If a run file is damaged.
    """
    runs = [(run.micro_benchmark, run_document(run)) for run in results.runs]
    baselines = sorted((run for name, run in runs if name == BASELINE), key=_pattern_place)
    benchmarks: dict[str, list[Document]] = {}
    for name, document in runs:
        if name != BASELINE:
            benchmarks.setdefault(name, []).append(document)
    kept = results.manifest
    means = _baseline_means(baselines)
    return {
        "format": "uflip-summary",
        "format_version": kept["format_version"],
        "uflip_version": kept["uflip_version"],
        "status": results.status,
        "created_utc": kept["created_utc"],
        "finished_utc": kept["finished_utc"],
        "elapsed_s": kept["elapsed_s"],
        "device": kept["device"],
        "scale": kept["scale"],
        "seed": kept["seed"],
        "pause_ns": kept["pause_ns"],
        "target_size_bytes": kept["target_size_bytes"],
        "state": kept["state"],
        **means,
        "key_characteristics": characteristics(means["baselines_ms"], benchmarks).as_dict(),
        "baselines": baselines,
        "micro_benchmarks": benchmarks,
        "runs_planned": len(kept["plan"]),
        "runs_finished": len(results.runs),
        "missing": results.missing,
        "skipped": kept["skipped"],
        "warnings": results.warnings,
        "harness": kept["harness"],
        "host": kept["host"],
    }


def run_document(run: StoredRun) -> Document:
    """Summarise one run; `statistics` is null if start-up is all there is."""
    trace = run.trace()
    spec = json.loads(trace.spec_json)
    response_time_ns = measured(trace)
    meta = metadata_of(trace)
    document: Document = {
        "run": run.id,
        "pattern": run.pattern,
        "parameter": run.parameter,
        "value": run.value,
        "unit": run.unit,
        "io_count": len(trace),
        "io_ignore": len(trace) - len(response_time_ns),
        "elapsed_ns": trace.elapsed_ns(),
        "statistics": _statistics(response_time_ns),
    }
    if spec.get("kind") == "mix":
        document["components"] = _components(trace, run.pattern)
    if trace.causes:
        document["time_spent_ns"] = {
            cause: float(measured(trace, cause).mean()) if len(response_time_ns) else 0.0
            for cause in trace.causes
        }
    if meta.get("counters") is not None:
        document["counters"] = meta["counters"]
        document["write_amplification"] = write_amplification(meta["counters"])
    document["spec"] = spec
    return document


def baseline_of(document: Document, pattern: str) -> Document | None:
    """The baseline run of a pattern in a summary, or None if it was not measured."""
    for run in document["baselines"]:
        if run["pattern"] == pattern:
            found: Document = run
            return found
    return None


def write_amplification(counters: Document) -> float | None:
    """Pages programmed per host page written (≥ 1 in the long run); None if none was written.

    The optional factor of other definitions ("extra writes") is this minus one.
    """
    programmed, written = counters.get("pages_programmed"), counters.get("host_pages_written")
    return programmed / written if programmed is not None and written else None


def describe_device(device: Document) -> str:
    """One line that names a device: model (of a file its name), and capacity.

    Examples
    --------
    >>> describe_device({"kind": "file", "url": "file:a/b.bin", "capacity_bytes": 2**30})
    'file b.bin, 1 GiB'
    """
    name = str(device.get("model") or device.get("url") or "unknown device")
    if device.get("kind") == "file":
        name = f"file {Path(str(device['url'])).name}"
    capacity = device.get("capacity_bytes")
    return f"{name}, {format_size(int(capacity))}" if capacity else name


def _statistics(response_time_ns: np.ndarray) -> Document | None:
    return summarise(response_time_ns).as_dict() if len(response_time_ns) else None


def _components(trace: _native.Trace, pattern: str) -> Document:
    """The two patterns of a mix apart: {"first": {pattern, statistics}, "second": …}."""
    response_time_ns = measured(trace)
    component = as_array(trace, "component")[as_array(trace, "ignored") == 0]
    labels = pattern.split("/") if pattern.count("/") == 1 else [None, None]
    return {
        name: {
            "pattern": label,
            "statistics": _statistics(response_time_ns[component == index]),
        }
        for index, (name, label) in enumerate(zip(("first", "second"), labels, strict=True))
    }


def _pattern_place(run: Document) -> int:
    """SR RR SW RW as the paper lists them; a plan runs them in another order."""
    return PATTERNS.index(run["pattern"]) if run["pattern"] in PATTERNS else len(PATTERNS)


def _baseline_means(baselines: list[Document]) -> Document:
    means: dict[str, float | None] = dict.fromkeys(PATTERNS)
    io_size_bytes = None
    for run in baselines:
        if run["pattern"] in means and run["statistics"] is not None:
            means[run["pattern"]] = run["statistics"]["mean_ns"] / 1e6
            io_size_bytes = run["spec"].get("io_size", io_size_bytes)
    return {"baselines_ms": means, "baseline_io_size_bytes": io_size_bytes}
