"""The ten key characteristics of uFLIP's Table 3, from the stored micro-benchmarks of any device.

**Source** uFLIP (CIDR 2009) §5.2 and Table 3: the four baselines, the pause at which random writes
behave like sequential ones, the locality area and its factor, the partitions that can be written to
side by side and their factor, reverse, in-place and large increments.

**Faithful** Each column is a ratio of means of the same runs that the paper compares.

**Simplified** Means only; nothing is interpolated between measured values but the pause.

**Ambiguous** The paper uses words where a program needs numbers. These are the readings:

- *behaves like*: a mean within `LIKE_FACTOR` of the sequential write's; it rounds to "=".
- *without significant degradation*: "when writing to more partitions than indicated, the write
  performance degrades significantly". Significant is one factor, `NEARLY_FACTOR`: what rounds to x3
  or more, since the table still calls x2 none. It is taken over the sequential write where the
  smallest area (or two partitions) is that near to it. Elsewhere the device has an area only if the
  smallest one is cheaper than the random write by the same factor, and the area ends before the
  first step of the curve by that factor, or where random writes are no longer dearer by it.
  `Finding.reference` names the case.
- *area*, *partitions*: the largest value up to which every measured value is without degradation.
  If the smallest measured value is far from the sequential write, it counts only if no smaller
  value exists (`MIN_AREA_BYTES`, `MIN_PARTITIONS`): smaller ones may be cheap.
- *in parentheses*: "the maximum cost within that area".
- *pause*: the measurement yields an interval: the longest pause that is too short, and the first
  that is long enough (`Finding.bounds`). The pauses of Table 1 are powers of two; the table's 5 and
  9 ms are not among them. §5.2 says that "the total workload takes the same overall time regardless
  of the length of the pause". If the longest pause that is too short confirms that (pause and
  response time together are the random write, within `REPEATS`), the line is extrapolated to the
  sequential write. Otherwise, or without such a pause, the pause is the first measured one that is
  long enough.
- *large increments*: the worst of the gaps from 1 to 8 MB, over the random write.

Every rule can abstain. The verdict names the reason, in one of the words of `VERDICTS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from uflip.data.summary import (
    Characteristic,
    CharacteristicVerdict,
    ExperimentSummary,
    KeyCharacteristics,
)

LIKE_FACTOR = 1.22
"""Behaves like a sequential write: up to this many times its mean; √1.5, where "=" ends and x1.5
begins on a logarithmic scale."""
NEARLY_FACTOR = 2.45
"""Without significant degradation: up to this many times the cost it is compared with; √6, where
x2 ends and x3 begins on a logarithmic scale."""
REPEATS = 0.05
"""Relative difference within which two means are the same, as in the paper's repetitions (§5.1)."""
LARGE_GAPS_BYTES = (1 << 20, 8 << 20)
"""Gaps of large increments, first and last."""

VERDICTS = {
    "found": "the value was found",
    "none": "the effect was measured and does not occur",
    "everywhere": "it holds for every measured value: the device does not degrade at all",
    "not_repeatable": "the same pattern differs by more when it is measured again",
    "undecided": "a run that the rule needs is inside the start-up, or never left the write cache",
    "not_measured": "the runs that the rule needs are not in the result",
}

REQUIRED_EXPERIMENTS: Mapping[Characteristic, tuple[str, str]] = {
    "pause": ("pause", "RW"),
    "locality": ("locality", "RW"),
    "partitions": ("partitioning", "SW"),
    "reverse": ("order", "SW"),
    "in_place": ("order", "SW"),
    "large_increments": ("order", "SW"),
}
"""Characteristic -> the micro-benchmark and pattern that it needs, besides the write baselines."""

REFERENCES = {
    "sequential": "the sequential write",
    "smallest": "the smallest area, or two partitions, far from the sequential write as they are",
}

T = TypeVar("T")
Means = Mapping[str, float | None]


@dataclass(frozen=True)
class Finding:
    """The finding of a rule."""

    verdict: str  #: One of `VERDICTS`.
    #: The pause [ns], the area [bytes], the number of partitions; None for bare factors.
    value: float | None = None
    #: Cost over the sequential write (of large increments: over the random write).
    factor: float | None = None
    #: For areas and partitions: the reference of "without degradation", one of `REFERENCES`.
    reference: str | None = None
    #: For pauses: the longest that is too short and the first that is long enough [ns].
    bounds: tuple[float, float] | None = None


NOT_MEASURED = Finding("not_measured")


def characteristics(
    baselines_ms: Means, micro_benchmarks: Mapping[str, Sequence[ExperimentSummary]]
) -> KeyCharacteristics:
    """Work out the ten key characteristics.

    `baselines_ms`: pattern → mean [ms] of SR, RR, SW and RW, None where not measured.
    `micro_benchmarks`: name → runs of a summary: `pattern`, `value`, `spec`, and `statistics` with
    `mean_ns`.
    """
    means = {name: baselines_ms.get(name) for name in ("SR", "RR", "SW", "RW")}
    sequential, random = means["SW"], means["RW"]

    def curve(micro_benchmark: str, pattern: str) -> dict[int, float]:
        """Return the value of the varying parameter → mean [ms], in ascending order."""
        runs = micro_benchmarks.get(micro_benchmark, ())
        points = {
            int(run["value"]): run["statistics"]["mean_ns"] / 1e6
            for run in runs
            if run["pattern"] == pattern
            and run["value"] is not None
            and run["statistics"] is not None
        }
        return dict(sorted(points.items()))

    order, areas_ms = curve("order", "SW"), areas(curve("locality", "RW"))
    wait = pause(curve("pause", "RW"), sequential, random)
    too_short_ns, long_enough_ns = wait.bounds or (None, None)
    area = without_degradation(areas_ms, sequential, random, MIN_AREA_BYTES)
    several = without_degradation(curve("partitioning", "SW"), sequential, random, MIN_PARTITIONS)
    gaps = large_increments(order, _io_size(micro_benchmarks), random)
    return {
        "SR_ms": means["SR"],
        "RR_ms": means["RR"],
        "SW_ms": sequential,
        "RW_ms": random,
        "pause": {
            "verdict": wait.verdict,
            "pause_ns": wait.value,
            "factor": wait.factor,
            "pause_from_ns": too_short_ns,
            "pause_to_ns": long_enough_ns,
        },
        "locality": {
            "verdict": area.verdict,
            "locality_bytes": area.value,
            "factor": area.factor,
            "reference": area.reference,
        },
        "partitions": {
            "verdict": several.verdict,
            "partitions": several.value,
            "factor": several.factor,
            "reference": several.reference,
        },
        "reverse": _over(order.get(-1), sequential),
        "in_place": _over(order.get(0), sequential),
        "large_increments": {"verdict": gaps.verdict, "factor": gaps.factor},
    }


def rests_on(
    name: Characteristic,
    baselines: Sequence[ExperimentSummary],
    micro_benchmarks: Mapping[str, Sequence[ExperimentSummary]],
) -> list[tuple[str, ExperimentSummary]]:
    """Return the experiments that a characteristic rests on, each with its micro-benchmark."""
    name_of_benchmark, pattern = REQUIRED_EXPERIMENTS[name]
    incr = {"reverse": -1, "in_place": 0}.get(name)
    varied_runs = [
        (name_of_benchmark, run)
        for run in micro_benchmarks.get(name_of_benchmark, ())
        if run["pattern"] == pattern
        and run["statistics"] is not None
        and (incr is None or run["value"] == incr)
        and (name != "large_increments" or (run["value"] or 0) > 1)
        and (name != "locality" or (run["value"] or 0) >= MIN_AREA_BYTES)
    ]
    labels: Sequence[str] = ("SW", "RW")
    if name in ("reverse", "in_place", "large_increments"):
        labels = ("RW",) if name == "large_increments" else ("SW",)
    baseline_runs = [
        run for run in baselines if run["pattern"] in labels and run["statistics"] is not None
    ]
    return varied_runs + [("baseline", run) for run in baseline_runs]


def pause(curve: Mapping[int, float], sequential: float | None, random: float | None) -> Finding:
    """Find the pause from which on random writes behave like sequential ones.

    `curve`: pause [ns] → mean of random writes [ms], ascending. `sequential`, `random`: means of
    the baselines [ms].

    >>> finding = pause({3_200_000: 5.8, 6_400_000: 2.6, 12_800_000: 0.41}, 0.4, 9.0)
    >>> finding.value, finding.bounds
    (8600000.0, (6400000.0, 12800000.0))
    """
    if not curve or not sequential or not random:
        return NOT_MEASURED
    if random <= LIKE_FACTOR * sequential:
        return Finding("everywhere", None, random / sequential)
    lengths = list(curve)
    too_short = [length for length in lengths if curve[length] > LIKE_FACTOR * sequential]
    if too_short and too_short[-1] == lengths[-1]:
        return Finding("none", None, curve[lengths[-1]] / sequential)
    first = lengths[len(too_short)] if not too_short else lengths[lengths.index(too_short[-1]) + 1]
    longest_short = too_short[-1] if too_short else 0
    pause_ns = float(first)
    if too_short and abs(longest_short / 1e6 + curve[longest_short] - random) <= REPEATS * random:
        # Prolong the longest pause that is too short by its remaining delay, one for one.
        pause_ns = min(longest_short + (curve[longest_short] - sequential) * 1e6, pause_ns)
    bounds = (float(longest_short), float(first))
    return Finding("found", pause_ns, curve[first] / sequential, bounds=bounds)


def without_degradation(
    curve: Mapping[int, float], sequential: float | None, random: float | None, least: int
) -> Finding:
    """Find the largest value up to which a mean is without significant degradation.

    `curve`: size of the area [bytes], or number of partitions → mean [ms], ascending. `sequential`,
    `random`: means of the baselines [ms]. `least`: the smallest meaningful value.

    >>> without_degradation({1: 0.4, 2: 0.5, 4: 0.6, 8: 3.1}, 0.4, 9.0, least=2).value
    4.0
    >>> finding = without_degradation({1: 2, 2: 20, 4: 24, 8: 130}, 2, 260, least=2)
    >>> finding.value, finding.reference
    (4.0, 'smallest')
    >>> without_degradation({1: 2, 4: 24, 8: 130}, 2, 260, least=2).verdict
    'not_measured'
    """
    if len(curve) < 2 or not sequential or not random:
        return NOT_MEASURED
    # One partition is the sequential write itself, and shows nothing about several.
    first, smallest = next((value, mean) for value, mean in curve.items() if value > 1)
    reference = "sequential" if smallest <= NEARLY_FACTOR * sequential else "smallest"
    if reference == "smallest" and not is_smallest(first, least):
        return NOT_MEASURED
    within: list[int] = []
    previous = smallest
    for value, mean in curve.items():
        if reference == "sequential":
            degraded = mean > NEARLY_FACTOR * sequential
        else:
            degraded = mean > NEARLY_FACTOR * previous or mean * NEARLY_FACTOR > random
        if degraded:
            break
        within.append(value)
        previous = mean if value > 1 else smallest
    if not within or within == [1]:
        return Finding("none", None, min(curve.values()) / sequential)
    verdict = "everywhere" if len(within) == len(curve) else "found"
    worst = max(curve[value] for value in within)
    return Finding(verdict, float(within[-1]), worst / sequential, reference)


def large_increments(
    order: Mapping[int, float], io_size: int | None, random: float | None
) -> Finding:
    """Compare the worst of the gaps from 1 to 8 MB with random writes.

    `order`: incr → mean of sequential writes [ms]. `io_size`: I/O size of those runs [bytes]: the
    gap is `Incr` times it. `random`: mean of the random write baseline [ms].
    """
    if not random or not io_size:
        return NOT_MEASURED
    first, last = LARGE_GAPS_BYTES
    means = [mean for incr, mean in order.items() if first <= incr * io_size <= last]
    return Finding("found", None, max(means) / random) if means else NOT_MEASURED


# An area of a handful of I/Os tests in-place writes, not locality. And a device that rewrites one
# place badly would have no area at all.
MIN_AREA_BYTES = 1 << 20
MIN_PARTITIONS = 2


def areas(curve: Mapping[int, T]) -> dict[int, T]:
    """Return the points of a curve of target sizes [bytes] that are large enough for an area."""
    return {size: mean for size, mean in curve.items() if size >= MIN_AREA_BYTES}


def is_smallest(value: int, least: int) -> bool:
    """Return whether no smaller measurable value exists: ranges go up by factors of two."""
    return value < 2 * least


def _over(mean: float | None, sequential: float | None) -> CharacteristicVerdict:
    if mean is None or not sequential:
        return {"verdict": "not_measured", "factor": None}
    return {"verdict": "found", "factor": mean / sequential}


def _io_size(micro_benchmarks: Mapping[str, Sequence[ExperimentSummary]]) -> int | None:
    for run in micro_benchmarks.get("order", ()):
        return int(run["spec"]["io_size"])
    return None
