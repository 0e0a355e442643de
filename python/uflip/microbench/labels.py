"""Labels after Table 1: names of patterns and parameters, and formatted values.

**Source** uFLIP (CIDR 2009) §3, Table 1.
"""

from collections.abc import Iterable
from typing import Any, cast

from uflip.data.spec import Mix, MixPart, Parallel, Pattern, Replay
from uflip.data.summary import ExperimentSummary, MeasuredExperiment
from uflip.units import format_count, format_duration_ns, format_size

PATTERN_NAMES = {
    "SR": "sequential read",
    "RR": "random read",
    "SW": "sequential write",
    "RW": "random write",
}

# Values of the unit "state", the states of the device before a run.
INITIAL_STATES = ("empty", "sequential", "random")
# The paper's names of the varying parameters (Table 1).
PARAMETERS = {
    "io_size": "IOSize",
    "io_shift": "IOShift",
    "target_size": "TargetSize",
    "partitions": "Partitions",
    "incr": "Incr",
    "parallel_degree": "ParallelDegree",
    "ratio": "Ratio",
    "pause": "Pause",
    "burst": "Burst",
}


def parameter_name(parameter: str | None) -> str:
    """Return the paper's name of a varying parameter."""
    return PARAMETERS.get(parameter or "", parameter or "")


def format_value(value: Any, unit: str | None) -> str:
    """Return a value of the varying parameter with its unit.

    >>> format_value(32768, "bytes"), format_value(100_000, "ns"), format_value(-1, "")
    ('32 KiB', '100 µs', '−1')
    """
    if value is None:
        return ""
    if unit == "bytes":
        return format_size(int(value))
    if unit == "bytes/s":
        return f"{format_size(int(value))}/s"
    if unit == "ns":
        return format_duration_ns(float(value))
    if unit == "state":
        return INITIAL_STATES[int(value)]
    return str(value).replace("-", "−")


def format_ratio(ratio: float) -> str:
    """Return a ratio as a factor.

    >>> format_ratio(12.34), format_ratio(1.0), format_ratio(0.371), format_ratio(1234.5)
    ('×12', '×1.0', '×0.37', '×1,234')
    """
    return f"×{_times(ratio)}"


def format_times(ratio: float) -> str:
    """Return a ratio as a number of times, for a sentence.

    >>> format_times(12.34), format_times(0.371)
    ('12 times', '0.37 times')
    """
    return f"{_times(ratio)} times"


def _times(ratio: float) -> str:
    if ratio >= 9.95:
        return f"{ratio:,.0f}"
    return f"{ratio:.1f}" if ratio >= 0.995 else f"{ratio:.2f}"


def by_pattern(runs: Iterable[ExperimentSummary]) -> dict[str, list[MeasuredExperiment]]:
    """Return the experiments of a micro-benchmark: pattern → measured runs in the order of values.

    A run without a value belongs to no experiment: it appears in tables only.
    """
    experiments: dict[str, list[MeasuredExperiment]] = {}
    for run in runs:
        if run["statistics"] is not None and run["value"] is not None:
            experiments.setdefault(run["pattern"], []).append(cast(MeasuredExperiment, run))
    for experiment in experiments.values():
        experiment.sort(key=lambda run: run["value"])
    return dict(sorted(experiments.items(), key=lambda item: _pattern_rank(item[0])))


def _pattern_rank(pattern: str) -> tuple[int, list[int], str]:
    """SR RR SW RW as the paper lists them, then mixes in that order, then other names."""
    order = list(PATTERN_NAMES)
    parts = pattern.split("/")
    if any(part not in order for part in parts):
        return len(order), [], pattern
    return len(parts), [order.index(part) for part in parts], pattern


def pattern_title(spec: Pattern) -> str:
    """Return a pattern in words, as "random write of 32 KiB"."""
    if isinstance(spec, Mix):
        first, second = _part_title(spec.first), _part_title(spec.second)
        if spec.weights is not None:
            each = zip(spec.weights, spec.parts, strict=True)
            order = ", drawn" if spec.drawn else ""
            return " / ".join(f"{n} × {_part_title(part)}" for n, part in each) + order
        if share := spec.first_percent:
            return f"{share} % {first} / {100 - share} % {second}"
        return f"{spec.ratio} × {first} / 1 × {second}"
    if isinstance(spec, Replay):
        return f"replay of {format_count(spec.list.io_count)} I/Os"
    if isinstance(spec, Parallel):
        return " ∥ ".join(pattern_title(pattern) for pattern in spec.patterns)
    return _part_title(spec)


def _part_title(part: MixPart) -> str:
    processes = f", {part.processes} processes" if part.processes > 1 else ""
    return f"{part.location} {part.mode} of {format_size(part.io_bytes)}{processes}"
