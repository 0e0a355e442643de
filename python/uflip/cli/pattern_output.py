"""Output of `uflip pattern`: the printed run and its trace file."""

import csv
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from uflip._native import Trace
from uflip.cli.terminal import echo, echo_pairs
from uflip.data.device import DeviceInfo
from uflip.data.single_run import ModeDocument, Numbers, OneRun, SeriesDocument, StopDocument
from uflip.data.spec_base import PLURALS
from uflip.durability import CACHED, describe_durability
from uflip.errors import native_errors
from uflip.spec import Mix, MixPart, Parallel, Pattern, Replay
from uflip.units import format_count, format_duration_ns, format_size

if TYPE_CHECKING:
    from uflip.results.outputs import OutputPath


def print_run(document: OneRun) -> None:
    """Print a run as text, one line per topic."""
    device = document["device"]
    echo(f"{_title(document['spec'])} on {device.url}", bold=True)
    pairs = [("I/Os", _amount(document)), ("rate", _rate(document))]
    pairs += _times("", document["statistics"])
    by_mode = document.get("by_mode", {})
    for mode, numbers in by_mode.items():
        pairs += _mode_lines(mode, numbers)
    spec = document["spec"]
    # The mode already separates two patterns of one mode each.
    if isinstance(spec, Mix) and (spec.first.mode == spec.second.mode or not by_mode):
        first, second = _names(spec)
        named = {"first": first, "second": second}
        for name, statistics in document.get("components", {}).items():
            pairs += _times(f"{named[name]}: ", statistics)
    pairs += _convergence(document["ended"], document["spec"])
    if document["durability"] != CACHED:
        pairs.append(
            (
                "durability",
                f"{document['durability']}: {describe_durability(document['durability'])}",
            )
        )
    pairs.append(("time spent on", _causes(document)))
    pairs += _counters(document)
    echo_pairs(pairs, "  ")


def _names(mix: Mix) -> tuple[str, str]:
    """Return names for the two patterns of a mix: the first property in which they differ."""
    first, second = mix.first, mix.second
    if first.mode != second.mode:
        return first.mode, second.mode
    if first.location != second.location:
        return first.location, second.location
    return "first", "second"


def _title(spec: Pattern) -> str:
    if isinstance(spec, Mix):
        first, second = _part_title(spec.first), _part_title(spec.second)
        if share := spec.first_percent:
            return f"{share} % {first} / {100 - share} % {second}"
        return f"{spec.ratio} × {first} / 1 × {second}"
    if isinstance(spec, Replay):
        return f"replay of {format_count(spec.list.io_count)} I/Os"
    if isinstance(spec, Parallel):
        return " ∥ ".join(_title(pattern) for pattern in spec.patterns)
    return _part_title(spec)


def _part_title(part: MixPart) -> str:
    processes = f", {part.processes} processes" if part.processes > 1 else ""
    return f"{part.location} {part.mode} of {format_size(part.io_bytes)}{processes}"


def _amount(document: OneRun) -> str:
    clock = " of virtual time" if document["device"].simulated else ""
    ignored = document["ignored"]
    ignored_text = f", {format_count(ignored)} of them not in the statistics" if ignored else ""
    return (
        f"{format_count(document['ios'])} ({format_size(document['bytes'])}) in "
        f"{format_duration_ns(document['elapsed_ns'])}{clock}{ignored_text}"
    )


def _rate(document: OneRun | ModeDocument) -> str:
    ios, size = document["ios_per_s"], document["bytes_per_s"]
    if ios is None or size is None:
        return ""
    return f"{format_count(round(ios))} IOPS, {format_size(round(size))}/s"


def _mode_lines(mode: str, numbers: ModeDocument) -> list[tuple[str, str]]:
    """Return the number of I/Os of a mode, their volume, rate and response times."""
    statistics = numbers["statistics"]
    count = format_count(int(statistics["count"] or 0))
    amount = f"{count} ({format_size(numbers['bytes'])})"
    return [
        (f"{PLURALS[mode]}", ", ".join(filter(None, (amount, _rate(numbers))))),
        *_times(f"{mode}: ", statistics),
    ]


def _times(prefix: str, statistics: Numbers) -> list[tuple[str, str]]:
    """Return the paper's four statistics, and the percentiles that the sample supports."""
    main = ("mean", "std", "min", "max")
    percentiles = [name for name in statistics if name.startswith("p")]
    return [
        (f"{prefix}response time", _durations(statistics, [f"{name}_ns" for name in main])),
        (f"{prefix}percentiles", _durations(statistics, percentiles)),
    ]


def _convergence(stop: StopDocument | None, spec: Pattern) -> list[tuple[str, str]]:
    """Return whether the mean has converged, how precisely, and if not, why."""
    if stop is None:
        return []
    return [
        (f"{prefix}mean is known", _precision(stop, series))
        for prefix, series in zip(_prefixes(spec), stop["series"], strict=True)
    ]


def _prefixes(spec: Pattern) -> list[str]:
    """Return names of the series of a pattern: two for a mix in turns, one per parallel pattern."""
    if isinstance(spec, Mix) and spec.ratio is not None:
        return [f"{name}: " for name in _names(spec)]
    if not isinstance(spec, Parallel):
        return [""]
    parts = enumerate(spec.patterns, start=1)
    return [f"{number}: {name}" for number, part in parts for name in _prefixes(part)]


def _precision(stop: StopDocument, series: SeriesDocument) -> str:
    from uflip.analysis import REASONS

    mean_ns, half_width_ns = series["mean_ns"], series["half_width_ns"]
    width = "" if half_width_ns is None else f"within {half_width_ns / mean_ns:.2%}"
    if stop["converged"]:
        return width
    reasons = "; ".join(REASONS[name] for name in series["reasons"]) or "not twice in a row"
    return f"no, ended by {stop['ended_by']}: " + ", ".join(filter(None, (width, reasons)))


def _durations(statistics: Numbers, names: list[str]) -> str:
    return "  ".join(
        f"{name.removesuffix('_ns').replace('_', '.')} {format_duration_ns(ns)}"
        for name in names
        if (ns := statistics[name]) is not None
    )


def _causes(document: OneRun) -> str:
    """Return the causes of an average I/O's time, the largest first."""
    from uflip.report.labels import cause_name

    causes = {name: value for name, value in document["causes_ns"].items() if value > 0}
    total = sum(causes.values())
    ordered = sorted(causes.items(), key=lambda item: -item[1])
    return ", ".join(f"{cause_name(name)} {value / total:.1%}" for name, value in ordered)


def _counters(document: OneRun) -> list[tuple[str, str]]:
    from uflip.report.labels import counter_name

    counters, ratio = document["counters"], document["write_amplification"]
    if counters is None:
        return []
    counted = {name: value for name, value in counters.items() if value}
    text = ", ".join(f"{counter_name(name)} {format_count(n)}" for name, n in counted.items())
    # Unlike the times above: work for an I/O may happen long after it.
    scope = ", of the whole run" if document["ignored"] else ""
    amplified = "" if ratio is None else f"{ratio:.2f}{scope}"
    return [("counters", text and text + scope), ("write amplification", amplified)]


def trace_output_path(path: Path, force: bool) -> "OutputPath":
    """Check the name of a trace file before the run."""
    from uflip.results import outputs

    return outputs.check(path, outputs.TRACE, "--trace", force=force)


def spool_folder(info: DeviceInfo, output: Path | None) -> Path | None:
    """Return the folder for the I/Os of a long run while it lasts.

    That is the folder of the requested output, if there is one, and otherwise the folder for
    large temporary files: TMPDIR, or /var/tmp, since /tmp is often in memory. The null device is
    faster than any file: its I/Os stay in memory.
    """
    if info.null:
        return None
    if output is not None:
        return output.parent
    if "TMPDIR" not in os.environ and os.access("/var/tmp", os.W_OK | os.X_OK):
        return Path("/var/tmp")
    return Path(tempfile.gettempdir())


def write_trace(trace: Trace, output: "OutputPath") -> None:
    """Write every I/O of a run, all columns, as CSV or Parquet.

    Raises
    ------
    ResultsError
        If the file cannot be written; no partial file is left.
    """
    from uflip.results import outputs

    with outputs.output_file(output) as temporary:
        if output.path.suffix == ".parquet":
            temporary.unlink()  # the native part creates new files only
            with native_errors():
                trace.write_table(str(temporary), "[]", trace.columns)
        else:
            _write_csv(trace, temporary)


def _write_csv(trace: Trace, path: Path) -> None:
    from uflip.results.outputs import cell

    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerow(map(cell, ["index", *trace.columns]))
    with native_errors():
        trace.append_csv(str(path), None, trace.columns)
