"""Consistency: does the device perform equally when a benchmark repeats the same pattern?

A benchmark runs the four baseline patterns several times under other names: IOShift 0, Incr 1, one
partition, one process, a burst longer than the run, the baseline's own I/O size. Their results
differ from the baseline only by uncontrolled influences: the preceding runs, another target space,
other load on the device. The size of that difference limits the resolution of every comparison.

**Source** uFLIP (CIDR 2009) §3.2: the experiments of a micro-benchmark depart from the baseline
patterns only by the parameter that is varied; at its neutral value nothing is left of it. §5.1:
"differences ... were typically within 5%".
**Faithful** Neutral values are those at which Table 1's formulas are the baseline's.
**Simplified** Means are compared, not distributions.
**Ambiguous** When two means are the same. Here: unless `statistics.verdict` finds one slower or
faster by more than `AGREEMENT`. A mean without an interval counts as exact: a difference that is
not reported would look like agreement.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from uflip.data.spec import Basic, Spec
from uflip.data.summary import (
    BaselineRepeats,
    Characteristic,
    CharacteristicVerdict,
    KeyCharacteristics,
)
from uflip.results.key_characteristics import LIKE_FACTOR
from uflip.results.statistics import AGREEMENT, Mean, mean_ratio, verdict

BASELINE = "baseline"
LENGTHS = ("cache_cliff",)
"""Micro-benchmarks whose runs differ only in their length."""
OTHER_STATES = ("deallocate",)
"""Micro-benchmarks whose runs start from different device states, and may differ for that."""
NEUTRAL_ONE_PARAMETERS = ("parallel_degree", "queue_depth", "incr", "partitions")
"""Parameters whose neutral value is one."""
VERDICTS_OVER: Mapping[Characteristic, tuple[str, ...]] = {
    "pause": ("SW", "RW"),
    "locality": ("SW", "RW"),
    "partitions": ("SW",),
    "reverse": ("SW",),
    "in_place": ("SW",),
    "large_increments": ("SW", "RW"),
}
"""Key characteristic -> the patterns whose means it compares."""
LABELS = {
    ("read", "sequential"): "SR",
    ("read", "random"): "RR",
    ("write", "sequential"): "SW",
    ("write", "random"): "RW",
}

BaselineKey = tuple[Any, ...]
"""The baseline pattern of a run: label, I/O size, and for random patterns the target size."""


@dataclass(frozen=True)
class BaselineResult:
    """The result of an experiment: its name, mean and half the width of its interval [ns]."""

    micro_benchmark: str
    name: str
    mean_ns: float
    half_width_ns: float | None

    @property
    def as_mean(self) -> Mean:
        """The mean; exact where its interval is unknown."""
        return Mean(self.mean_ns, self.half_width_ns or 0.0)


def baseline_key(spec: Spec, ios: int) -> BaselineKey | None:
    """Return the baseline pattern that a run makes, whatever its name; None if it makes another.

    >>> spec = Basic("read", "ordered", incr=1, io_size=4096, target_size=40960)
    >>> baseline_key(spec, 10)
    ('SR', 4096)
    >>> baseline_key(spec.but(incr=2), 10)
    """
    if not isinstance(spec, Basic) or spec.shift or not _is_consecutive(spec, ios):
        return None
    if any(getattr(spec, name) not in (None, 1) for name in NEUTRAL_ONE_PARAMETERS):
        return None
    if (spec.mode, "sequential") not in LABELS:
        return None
    if spec.location == "random":
        return (LABELS[spec.mode, spec.location], spec.io_bytes, spec.target_bytes)
    # A sequential run that wraps around writes in place.
    if ios * spec.io_bytes > spec.target_bytes:
        return None
    return (LABELS[spec.mode, "sequential"], spec.io_bytes)


def baseline_key_of_run(micro_benchmark: str, spec: Spec, ios: int) -> BaselineKey | None:
    """Return the baseline pattern of a micro-benchmark's run; None where the runs are different."""
    return None if micro_benchmark in LENGTHS + OTHER_STATES else baseline_key(spec, ios)


def _is_consecutive(spec: Basic, ios: int) -> bool:
    """Return whether a run has no pauses: pauses are off, or bursts are longer than the run."""
    if spec.time in (None, "consecutive") or not spec.pause:
        return True
    return spec.time == "burst" and (spec.burst or 1) >= ios


def inconsistent_results(
    results: Mapping[BaselineKey, Sequence[BaselineResult]],
) -> list[tuple[float, BaselineResult, BaselineResult]]:
    """Return what differs from its baseline: (factor, experiment, baseline), the worst first."""
    inconsistent = []
    for same in results.values():
        baseline = next((each for each in same if each.micro_benchmark == BASELINE), None)
        for each in same:
            if baseline is None or each is baseline or min(each.mean_ns, baseline.mean_ns) <= 0:
                continue
            ratio = mean_ratio(each.as_mean, baseline.as_mean)
            if verdict(ratio, repeats_to=1 + AGREEMENT) in ("slower", "faster"):
                inconsistent.append((_factor((each.mean_ns, baseline.mean_ns)), each, baseline))
    return sorted(inconsistent, key=lambda one: -one[0])


def count_comparisons(results: Mapping[BaselineKey, Sequence[BaselineResult]]) -> int:
    """Count the experiments that could be compared with their baseline."""
    return sum(
        len(same) - 1
        for same in results.values()
        if any(each.micro_benchmark == BASELINE for each in same)
    )


def repeatability(
    results: Mapping[BaselineKey, Sequence[BaselineResult]],
) -> dict[str, BaselineRepeats | None]:
    """Return the spread of the means of each baseline pattern.

    Returns, by label: the number of `experiments`, `smallest_ns` and `largest_ns` of their means,
    and the `factor` between them; None where the pattern ran only once. Of several I/O sizes and
    targets, those of the baseline, or else those that ran most often.
    """
    spreads: dict[str, BaselineRepeats | None] = {}
    for label in LABELS.values():
        groups = [group for key, group in results.items() if key[0] == label]
        same = max(groups, key=_weight, default=())
        means = [each.mean_ns for each in same if each.mean_ns > 0]
        spreads[label] = None
        if len(means) > 1:
            spreads[label] = {
                "experiments": len(means),
                "smallest_ns": min(means),
                "largest_ns": max(means),
                "factor": round(_factor(means), 4),
            }
    return spreads


def _weight(same: Sequence[BaselineResult]) -> tuple[bool, int]:
    return any(each.micro_benchmark == BASELINE for each in same), len(same)


def worst_repeatability(
    repeated: Mapping[str, BaselineRepeats | None], labels: Iterable[str]
) -> tuple[str, BaselineRepeats] | None:
    """Return the label with the worst repeatability, and its repeats; None without repeats."""
    measured = [
        (label, repeats) for label in labels if (repeats := repeated.get(label)) is not None
    ]
    return max(measured, key=lambda one: float(one[1]["factor"]), default=None)


def is_within_repeatability(ratio: float, factor: float) -> bool:
    """Return whether a ratio is within the repeatability of its pattern."""
    return 1 / factor <= ratio <= factor


def withdraw_unrepeatable(
    row: KeyCharacteristics, repeated: Mapping[str, BaselineRepeats | None]
) -> KeyCharacteristics:
    """Withdraw verdicts of a row of key characteristics whose factor is within repeatability.

    Patterns that repeat to `LIKE_FACTOR` keep all verdicts: "as much as" is then a verdict, too.
    """
    revised = row.copy()
    for name, labels in VERDICTS_OVER.items():
        worst, finding = worst_repeatability(repeated, labels), row[name]
        if worst is None or finding["factor"] is None:
            continue
        limit = float(worst[1]["factor"])
        if limit > LIKE_FACTOR and is_within_repeatability(finding["factor"], limit):
            blank = cast(CharacteristicVerdict, dict.fromkeys(finding))
            revised[name] = {**blank, "verdict": "not_repeatable", "factor": finding["factor"]}
    return revised


def group_by_baseline(
    results: Iterable[tuple[BaselineKey | None, BaselineResult]],
) -> dict[BaselineKey, list[BaselineResult]]:
    """Group the results of the same pattern; those without a pattern are left out."""
    groups: dict[BaselineKey, list[BaselineResult]] = {}
    for key, result in results:
        if key is not None:
            groups.setdefault(key, []).append(result)
    return groups


def _factor(means: Sequence[float]) -> float:
    return max(means) / min(means)
