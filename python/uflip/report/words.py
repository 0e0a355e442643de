"""The words of a report: what is asked, how a figure is read, how values are written.

**Source** uFLIP (CIDR 2009) §3.2 for the questions, Table 1 for names and parameters, §5.2 for how
the paper reads its own figures.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from uflip.units import format_duration_ns, format_size

# An id needs not to be read, only to be told from others.
LONGEST_ANCHOR = 60

PATTERN_NAMES = {
    "SR": "sequential read",
    "RR": "random read",
    "SW": "sequential write",
    "RW": "random write",
}

# The paper's own names of the varying parameters (Table 1).
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


@dataclass(frozen=True, slots=True)
class About:
    """A micro-benchmark in words."""

    title: str
    question: str
    how_to_read: str


MICRO_BENCHMARKS: dict[str, About] = {
    "granularity": About(
        "Granularity",
        "What does an I/O cost as it grows?",
        "Where a line is flat, a fixed cost per I/O dominates and a larger I/O comes almost free; "
        "where it doubles with the size, the device has reached its bandwidth.",
    ),
    "alignment": About(
        "Alignment",
        "What does it cost to shift I/Os off their natural boundaries?",
        "A level that drops at some shift shows the unit in which the device works: shifts that "
        "are not multiples of it touch one unit more.",
    ),
    "locality": About(
        "Locality",
        "Are random I/Os cheaper inside a small area?",
        "Follow RW from left to right: it leaves the level of SW where the area grows beyond what "
        "the device keeps in order at once.",
    ),
    "partitioning": About(
        "Partitioning",
        "How many sequential streams can be interleaved?",
        "Writes stay flat for as many partitions as the device keeps open at a time; "
        "beyond that, interleaved sequential writes cost as much as random ones.",
    ),
    "order": About(
        "Order",
        "What if addresses go backwards, stand still, or stride?",
        "Compare with Incr = 1, the sequential pattern: −1 walks backwards, 0 rewrites one place, "
        "larger values leave gaps.",
    ),
    "parallelism": About(
        "Parallelism",
        "Does the device overlap the I/Os of concurrent processes?",
        "Flat: the I/Os overlap perfectly. Doubling with the degree: they wait for one another, "
        "and nothing is gained by submitting them together.",
    ),
    "mix": About(
        "Mix",
        "Do two patterns disturb each other?",
        "The dotted line is what the two baselines would cost in the same proportion. Where the "
        "solid line (all I/Os) leaves it, the patterns interact; the faint lines show which "
        "of the two pays.",
    ),
    "pause": About(
        "Pause",
        "Does the device use idle time to prepare?",
        "A line that falls as the pause grows shows work done in the background. The pause itself "
        "is not part of the response time: compare what is saved with what is waited.",
    ),
    "bursts": About(
        "Bursts",
        "How does deferred work pile up within a burst?",
        "A line that rises with the length of the burst shows work put off during the burst that "
        "the pause between bursts could still absorb when bursts were shorter.",
    ),
}


def anchor(name: str) -> str:
    """Make an id of a name: of letters, digits, - and _, and another one for another name.

    Examples
    --------
    >>> anchor("granularity"), anchor("<b>")
    ('granularity', '-b--381c882d')
    """
    slug = re.sub(r"[^A-Za-z0-9_-]", "-", name)[:LONGEST_ANCHOR]
    if slug == name:
        return slug
    return f"{slug}-{blake2b(name.encode(errors='replace'), digest_size=4).hexdigest()}"


def title(micro_benchmark: str) -> str:
    """The name of a micro-benchmark as a heading; one that is not ours keeps its own name."""
    about = MICRO_BENCHMARKS.get(micro_benchmark)
    return about.title if about else micro_benchmark.replace("_", " ").capitalize()


def parameter_name(parameter: str | None) -> str:
    """The paper's name of a varying parameter."""
    return PARAMETERS.get(parameter or "", parameter or "")


def axis_name(parameter: str | None, unit: str | None) -> str:
    """What stands under an axis: parameter and, where the labels do not say it, the unit."""
    name = parameter_name(parameter)
    if parameter == "ratio":
        return f"{name} (I/Os of the first pattern per I/O of the second)"
    return f"{name} [I/Os]" if unit == "ios" else name


def format_value(value: Any, unit: str | None) -> str:
    """A value of the varying parameter as people write it.

    Examples
    --------
    >>> format_value(32768, "bytes"), format_value(100_000, "ns"), format_value(-1, "")
    ('32 KiB', '100 µs', '−1')
    """
    if value is None:
        return ""
    if unit == "bytes":
        return format_size(int(value))
    if unit == "ns":
        return format_duration_ns(float(value))
    return str(value).replace("-", "−")


def format_ms(duration_ns: float | None) -> str:
    """A response time in milliseconds with three significant digits; "–" where there is none.

    One unit throughout a table lets the eye compare: 0.0421, 0.421, 4.21, 42.1, 421.

    Examples
    --------
    >>> format_ms(42_123), format_ms(4_212_345), format_ms(421_234_500), format_ms(None)
    ('0.0421', '4.21', '421', '–')
    """
    if duration_ns is None:
        return "–"
    ms = duration_ns / 1e6
    if ms == 0:
        return "0"
    if ms >= 1000:
        return f"{ms:,.0f}"
    text = f"{ms:.3g}"
    # %g turns to exponents below 1e-4; a nanosecond is 1e-6 ms and is written out.
    return f"{ms:.8f}".rstrip("0") if "e" in text else _padded(text)


def _padded(text: str) -> str:
    """Keep trailing zeros that %g drops, so that three digits are always three digits."""
    digits = len(text.replace(".", "").lstrip("0"))
    if digits >= 3:
        return text
    return text + ("" if "." in text else ".") + "0" * (3 - digits)


def format_ratio(ratio: float) -> str:
    """How many times as much.

    Examples
    --------
    >>> format_ratio(12.34), format_ratio(1.0), format_ratio(0.371), format_ratio(1234.5)
    ('×12', '×1.0', '×0.37', '×1,234')
    """
    return f"×{_times(ratio)}"


def times(ratio: float) -> str:
    """How many times as much, in a sentence.

    Examples
    --------
    >>> times(12.34), times(0.371)
    ('12 times', '0.37 times')
    """
    return f"{_times(ratio)} times"


def _times(ratio: float) -> str:
    if ratio >= 9.95:
        return f"{ratio:,.0f}"
    return f"{ratio:.1f}" if ratio >= 0.995 else f"{ratio:.2f}"


def by_pattern(runs: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Runs of a micro-benchmark as experiments: pattern → measured runs in the order of values."""
    experiments: dict[str, list[Mapping[str, Any]]] = {}
    for run in runs:
        if run["statistics"] is not None:
            experiments.setdefault(run["pattern"], []).append(run)
    for experiment in experiments.values():
        experiment.sort(key=lambda run: (run["value"] is not None, run["value"]))
    return dict(sorted(experiments.items(), key=lambda item: _pattern_place(item[0])))


def _pattern_place(pattern: str) -> tuple[int, list[int], str]:
    """SR RR SW RW as the paper lists them, then mixes in that order, then other names."""
    order = list(PATTERN_NAMES)
    parts = pattern.split("/")
    if any(part not in order for part in parts):
        return len(order), [], pattern
    return len(parts), [order.index(part) for part in parts], pattern


def tail_percentile(statistics: Mapping[str, Any]) -> tuple[str, int | None]:
    """The highest percentile up to p99 that the sample supports, with its name."""
    for key, name in (("p99_ns", "p99"), ("p95_ns", "p95"), ("p90_ns", "p90")):
        if statistics[key] is not None:
            return name, statistics[key]
    return "max", statistics["max_ns"]


def cause_name(cause: str) -> str:
    """The name of a cause column in words.

    Examples
    --------
    >>> cause_name("wait_die_ns")
    'wait die'
    """
    return cause.removesuffix("_ns").replace("_", " ")
