"""Does the device do the same when it is asked for the same?

A benchmark asks for the four baseline patterns several times under other names: IOShift 0, Incr 1,
one partition, one process, a burst longer than the run, the baseline's own I/O size. What these
runs say differs from the baseline only by what was not asked for: what came before, another place
on the device, somebody else at work. How much that is bounds what any comparison can tell.

**Source** uFLIP (CIDR 2009) §3.2: the experiments of a micro-benchmark depart from the baseline
patterns only by the parameter that is varied; at its neutral value nothing is left of it. §5.1:
"differences ... were typically within 5%".
**Faithful** Neutral values are those at which Table 1's formulas are the baseline's.
**Simplified** Means are compared, not distributions.
**Ambiguous** When two means are the same. Here: unless they lie further apart than both intervals
together allow, and than `AGREEMENT`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import hypot
from typing import Any, cast

from uflip.data.spec import Basic, Spec
from uflip.data.summary import (
    BaselineRepeats,
    Characteristic,
    CharacteristicVerdict,
    KeyCharacteristics,
)
from uflip.results.agreement import AGREEMENT
from uflip.results.characteristics import LIKE

BASELINE = "baseline"
LENGTHS = ("cache_cliff",)
"""Micro-benchmarks whose runs differ in nothing but their length, and are told apart by it."""
OTHER_STATES = ("deallocate",)
"""Those whose runs meet the device in states of their own: alike, they need not take as long."""
ONE = ("parallel_degree", "queue_depth", "incr", "partitions")
"""What is neutral at one."""
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

Question = tuple[Any, ...]
"""What a run asks for: label, I/O size, and for random patterns the size of the target."""


@dataclass(frozen=True)
class Answer:
    """What an experiment found for a question: its name, mean and half of its interval [ns]."""

    micro_benchmark: str
    name: str
    mean_ns: float
    half_width_ns: float | None


def question(spec: Spec, ios: int) -> Question | None:
    """Return which baseline pattern a run is, whatever it is called; None if it is none.

    Parameters
    ----------
    spec
        As the engine filled it in.
    ios
        How many I/Os were made.

    Examples
    --------
    >>> spec = Basic("read", "ordered", incr=1, io_size=4096, target_size=40960)
    >>> question(spec, 10)
    ('SR', 4096)
    >>> question(spec.but(incr=2), 10)
    """
    if not isinstance(spec, Basic) or spec.shift or not _is_consecutive(spec, ios):
        return None
    if any(getattr(spec, name) not in (None, 1) for name in ONE):
        return None
    if (spec.mode, "sequential") not in LABELS:
        return None
    if spec.location == "random":
        return (LABELS[spec.mode, spec.location], spec.io_bytes, spec.target_bytes)
    # Who comes round writes in place.
    if ios * spec.io_bytes > spec.target_bytes:
        return None
    return (LABELS[spec.mode, "sequential"], spec.io_bytes)


def asks_for(micro_benchmark: str, spec: Spec, ios: int) -> Question | None:
    """Return the same of a run of a micro-benchmark: none of one that asks something else."""
    return None if micro_benchmark in LENGTHS + OTHER_STATES else question(spec, ios)


def _is_consecutive(spec: Basic, ios: int) -> bool:
    """Whether no pause falls into a run: none at all, or bursts that are longer than it."""
    if spec.time in (None, "consecutive") or not spec.pause:
        return True
    return spec.time == "burst" and (spec.burst or 1) >= ios


def inconsistent(
    answers: Mapping[Question, Sequence[Answer]],
) -> list[tuple[float, Answer, Answer]]:
    """Return what differs from its baseline: (factor, what, its baseline), the worst first."""
    found = []
    for same in answers.values():
        baseline = next((each for each in same if each.micro_benchmark == BASELINE), None)
        for each in same:
            if baseline is None or each is baseline or min(each.mean_ns, baseline.mean_ns) <= 0:
                continue
            apart = abs(each.mean_ns - baseline.mean_ns)
            allowed = hypot(each.half_width_ns or 0.0, baseline.half_width_ns or 0.0)
            if apart > max(allowed, AGREEMENT * baseline.mean_ns):
                found.append((_factor((each.mean_ns, baseline.mean_ns)), each, baseline))
    return sorted(found, key=lambda one: -one[0])


def comparisons(answers: Mapping[Question, Sequence[Answer]]) -> int:
    """Count the experiments that could be compared with their baseline."""
    return sum(
        len(same) - 1
        for same in answers.values()
        if any(each.micro_benchmark == BASELINE for each in same)
    )


def repeatability(
    answers: Mapping[Question, Sequence[Answer]],
) -> dict[str, BaselineRepeats | None]:
    """Return how far apart the answers to each baseline pattern lie.

    Returns
    -------
    dict
        By label: how many `experiments`, `smallest_ns` and `largest_ns` of their means, and the
        `factor` between them; None where it was asked for only once. Of several I/O sizes and
        targets that of the baseline, or else that which was asked for most often.
    """
    found: dict[str, BaselineRepeats | None] = {}
    for label in LABELS.values():
        groups = [same for asked, same in answers.items() if asked[0] == label]
        same = max(groups, key=_weight, default=())
        means = [each.mean_ns for each in same if each.mean_ns > 0]
        found[label] = None
        if len(means) > 1:
            found[label] = {
                "experiments": len(means),
                "smallest_ns": min(means),
                "largest_ns": max(means),
                "factor": round(_factor(means), 4),
            }
    return found


def _weight(same: Sequence[Answer]) -> tuple[bool, int]:
    return any(each.micro_benchmark == BASELINE for each in same), len(same)


def worst_of(
    repeated: Mapping[str, BaselineRepeats | None], labels: Iterable[str]
) -> tuple[str, BaselineRepeats] | None:
    """Return the label that repeats worst, and how; None if none was asked for twice."""
    known = [(label, found) for label in labels if (found := repeated.get(label)) is not None]
    return max(known, key=lambda one: float(one[1]["factor"]), default=None)


def within(ratio: float, factor: float) -> bool:
    """Whether a ratio is no more than what the same pattern differs by."""
    return 1 / factor <= ratio <= factor


def only_what_repeats(
    row: KeyCharacteristics, repeated: Mapping[str, BaselineRepeats | None]
) -> KeyCharacteristics:
    """Take back the verdicts of a row of key characteristics that are smaller than repeatability.

    What repeats to `LIKE` is told whatever it is: "as much as" is then a verdict, too.
    """
    told = row.copy()
    for name, labels in VERDICTS_OVER.items():
        worst, finding = worst_of(repeated, labels), row[name]
        if worst is None or finding["factor"] is None:
            continue
        limit = float(worst[1]["factor"])
        if limit > LIKE and within(finding["factor"], limit):
            blank = cast(CharacteristicVerdict, dict.fromkeys(finding))
            told[name] = {**blank, "verdict": "not_repeatable", "factor": finding["factor"]}
    return told


def gathered(found: Iterable[tuple[Question | None, Answer]]) -> dict[Question, list[Answer]]:
    """Put answers to the same question together; without a question they are left out."""
    groups: dict[Question, list[Answer]] = {}
    for asked, answer in found:
        if asked is not None:
            groups.setdefault(asked, []).append(answer)
    return groups


def _factor(means: Sequence[float]) -> float:
    return max(means) / min(means)
