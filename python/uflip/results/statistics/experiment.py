"""The interval of the mean of an experiment, from its repetitions, and whether it has converged.

**Source** uFLIP (CIDR 2009) §5.1: "differences ... were typically within 5%". Student's interval
for the mean of a few independent repetitions. With many repetitions the intervals of the single
runs are not used: repetitions are batches that lie far apart, so the scatter of their means
contains everything. Then the interval is the wider of two: Student's, and the one from the pooled
scatter of all experiments of the same sort (`scatter`). An experiment unlike its peers has its own
interval, whatever the correlation of its neighbours. Without peers the interval is that of batch
means (Skart: Tafazzoli et al. 2011; Willink 2005), stretched for skewness and for the correlation
of neighbours.
**Faithful** Each experiment is run three times; their range is reported.
**Simplified** All repetitions have the same weight, whatever their length.
**Ambiguous** When an experiment has converged. Here: the interval of the mean of all is narrow
enough, and no reason for doubt is left. With fewer than `MIN_REPETITIONS` repetitions the interval
is the wider of two: from the intervals of the runs, and from the scatter of the repetitions. A
single repetition keeps its own interval. The printed interval is one of 95 %; a claim of
convergence rests on one of 98 % (`claim_half_width`). Convergence is tested after each round, and
five tests at one in twenty are wrong more often than one in twenty. Reads of few addresses are
judged by their repetitions alone; at least `MIN_PLACES` are needed. Reasons for doubt: with fewer
than `MIN_REPETITIONS`, any reason of a repetition except a wide interval. With more, that their
beginnings differ from their ends beyond chance (Welch's way to find a start-up, across
replications). Narrow enough is 5 % of the mean, or 2 % of the slowest baseline: all findings
compare responses of one device, so a mean of 0.2 ms need not be accurate to 10 µs where another
pattern takes 20 ms.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from math import sqrt
from typing import Final, Literal, TypeVar, cast

from uflip import _native
from uflip.data.summary import Certainty, MeanSummary, RepetitionSummary, Together
from uflip.results.columns import measured_column
from uflip.results.statistics.run import FEW_PLACES, repetition_convergence
from uflip.results.statistics.scatter import (
    MIN_REPETITIONS,
    Peers,
    Scatter,
    averaged_half_width,
    is_outlier,
    least_repetitions,
    pool_scatter,
    pooled_half_width,
)

FREE_SPACE_LEFT: Final = "free_space_left"
"""The reason against one that did not write what the device may have had free before it."""
COLD_READS: Final = "cold_reads"
"""The reason against random reads whose mean is that of first visits of addresses."""
DEVICE_CHANGED: Final = "device_changed"
"""The reason against one on a device whose repeated measurements drifted during the benchmark."""
INSIDE_STARTUP: Final = "inside_startup"
NEVER_LEFT_CACHE: Final = "never_left_write_cache"
Mark = Literal["inside_startup", "never_left_write_cache"]
MARKS: tuple[Mark, ...] = (NEVER_LEFT_CACHE, INSIDE_STARTUP)
"""Reasons for doubt: the mean is that of the start-up (`uflip.results.startup_check`)."""
KEEPS_HEADLINE: frozenset[str] = frozenset({FREE_SPACE_LEFT, DEVICE_CHANGED, COLD_READS})
"""Reasons against convergence that leave a headline without a mark. All others mark it."""
AGREEMENT = 0.05
CONFIDENCE = 0.95
CLAIM_CONFIDENCE = 0.98
"""Confidence at which an experiment counts as converged: one claim in fifty may be false."""
SHARE_OF_SLOWEST = 0.02
# Reads of few addresses need this number of repetitions, each at other addresses.
MIN_PLACES = 8
# Reasons for doubt that other repetitions can make up for, as they can for `FEW_PLACES`.
INTERVAL_TOO_WIDE = "interval_too_wide"
# As within a run: a difference below this share of the allowed half-width does not matter, and a
# larger one must be beyond a chance of one in a hundred.
NEGLIGIBLE_SHARE = 0.25
DIFFERENCE_CONFIDENCE = 0.99


Sort = TypeVar("Sort", bound=Hashable)


def disagreement(means: Sequence[float | None]) -> float | None:
    """Return the range of several means relative to its middle; None for fewer than two.

    >>> disagreement([0.95, 1.0, 1.05])
    0.1
    """
    values = [mean for mean in means if mean is not None]
    if len(values) < 2:
        return None
    low, high = min(values), max(values)
    return round(2 * (high - low) / (high + low), 6) if high > 0 else 0.0


def combined_mean(
    repetitions: Sequence[MeanSummary], slowest_ns: float | None = None, peers: Peers | None = None
) -> Together:
    """Return the mean of the repetitions of an experiment, its interval, and whether it converged.

    `repetitions`: `mean_ns`, `half_width_ns`, `converged` and `reasons` of each; `opening_ns` where
    it is known. `slowest_ns`: mean of the slowest baseline of the device, where it is known [ns].
    `peers`: the pooled scatter of other experiments of the same sort (`peers_among`). Returns
    `mean_ns` and `half_width_ns` [ns], of all repetitions with a mean; `converged`. Null where a
    repetition lacks the value.

    >>> run = {"half_width_ns": 3.0, "converged": True}
    >>> combined_mean([run | {"mean_ns": 100.0}, run | {"mean_ns": 100.5}, run | {"mean_ns": 99.5}])
    {'mean_ns': 100.0, 'half_width_ns': 1.732, 'converged': True}
    >>> combined_mean([run | {"mean_ns": 100.0}, run | {"mean_ns": 102.0}, run | {"mean_ns": 98.0}])
    {'mean_ns': 100.0, 'half_width_ns': 4.968, 'converged': False}
    """
    means = [each["mean_ns"] for each in repetitions if each["mean_ns"] is not None]
    if not means:
        return {"mean_ns": None, "half_width_ns": None, "converged": None}
    mean = sum(means) / len(means)
    half_widths = [each["half_width_ns"] for each in repetitions]
    many = MIN_REPETITIONS <= len(means) == len(repetitions)
    few_places = covers_few_places(repetitions)
    if few_places:
        peers = None
    by_scatter = many or (few_places and 1 < len(means) == len(repetitions))
    if not by_scatter and (
        None in half_widths or None in [each["converged"] for each in repetitions]
    ):
        convergences = [each["converged"] for each in repetitions]
        return {
            "mean_ns": mean,
            "half_width_ns": None,
            "converged": False if False in convergences else None,
        }
    allowed = allowed_ns(mean, slowest_ns)
    half_width = _scatter_half_width(means, allowed, peers)
    if not many and None not in half_widths:
        known_widths = [each for each in half_widths if each is not None]
        half_width = max(
            sqrt(sum(each * each for each in known_widths)) / len(known_widths), half_width
        )
    believable = (
        _are_believable(repetitions, allowed) if many else all(map(_is_believable, repetitions))
    )
    return {
        "mean_ns": mean,
        "half_width_ns": round(half_width, 3),
        "converged": believable
        and len(means) >= (MIN_PLACES if few_places else repetitions_needed(means, allowed, peers))
        and claim_half_width(means, half_width, allowed, peers) <= allowed,
    }


Experiments = Sequence[tuple[str, Sequence[str]]]
"""The sort of each experiment, which its peers share, and the runs that are its repetitions."""


def repetition_certainty(
    repetitions: Sequence[MeanSummary], slowest_ns: float | None, peers: Peers | None = None
) -> Certainty:
    """Return the statistics of repetitions, with the values that decide the next round.

    Returns as `combined_mean`, and: `allowed_ns`, the half width that is narrow enough;
    `expected_ns`, the half width from which more repetitions are planned, at the confidence of a
    claim and with the scatter so far; `widened`, its factor without peers like it; `supported_ns`,
    the half width from the pooled scatter, with its `degrees` of freedom; `fewest`, the number of
    repetitions needed; `certainly_converged`, whether it has converged and few repetitions begin
    alike; `cannot_converge`, whether there is a reason against it that more repetitions do not
    remove.
    """
    few_places = covers_few_places(repetitions)
    if few_places:
        peers = None
    combined = combined_mean(repetitions, slowest_ns, peers)
    nothing = dict.fromkeys(("allowed_ns", "expected_ns", "supported_ns", "degrees", "widened"))
    nothing |= {"fewest": 0, "certainly_converged": False, "cannot_converge": False}
    if combined["mean_ns"] is None:
        return cast(Certainty, combined | nothing)
    allowed, half_width = allowed_ns(combined["mean_ns"], slowest_ns), combined["half_width_ns"]
    means = [mean for each in repetitions if (mean := each["mean_ns"]) is not None]
    is_doubtful = 1 < len(means) < MIN_REPETITIONS and not _begin_alike(repetitions)
    is_narrow = half_width is not None and half_width <= allowed
    expected = half_width
    supported_ns = degrees = widened = None
    if half_width is not None and len(means) > 1:
        by_student = student_half_width(means, CLAIM_CONFIDENCE)
        expected = by_student if len(means) >= MIN_REPETITIONS else max(half_width, by_student)
        widened = (
            own_half_width(means, allowed, CLAIM_CONFIDENCE, peers) / by_student
            if by_student
            else None
        )
        if peers is not None:
            supported_ns, degrees = pooled_half_width(
                peers, Scatter(means, allowed), CLAIM_CONFIDENCE
            )
    return {
        **combined,
        "allowed_ns": allowed,
        "expected_ns": expected,
        "supported_ns": supported_ns,
        "degrees": degrees,
        "widened": widened,
        "fewest": MIN_PLACES if few_places else repetitions_needed(means, allowed, peers),
        "certainly_converged": bool(combined["converged"]) and not is_doubtful,
        "cannot_converge": is_narrow and beginnings_differ(repetitions, allowed),
    }


def plan_certainty(
    sorts: Sequence[str],
    experiments: Sequence[Sequence[MeanSummary]],
    slowest_ns: float | None,
) -> Sequence[Certainty]:
    """Return the same for all experiments of a plan; those of one sort are peers."""
    peers = peers_by_sort(zip(sorts, experiments, strict=True), slowest_ns)
    return [
        repetition_certainty(runs, slowest_ns, peers[sort])
        for sort, runs in zip(sorts, experiments, strict=True)
    ]


class RepetitionStatistics:
    """Statistics of the repetitions of a running benchmark, updated after each round.

    Each trace is read once; then only its repetition record is in memory.

    `trace_of`: returns the trace of a finished run; None if it is missing.
    """

    def __init__(self, trace_of: Callable[[str], _native.Trace | None]) -> None:
        self._trace_of = trace_of
        self._runs: dict[str, RepetitionSummary] = {}

    def experiment_statistics(
        self, experiments: Experiments, slowest_ns: float | None
    ) -> Sequence[Certainty]:
        """Return the statistics of each experiment; those of one sort are peers."""
        every = [[self._convergence(run_id) for run_id in run_ids] for _, run_ids in experiments]
        return plan_certainty([sort for sort, _ in experiments], every, slowest_ns)

    def ios_of(self, run_id: str) -> int:
        """Return the number of I/Os of a run; 0 if it is missing."""
        return int(self._convergence(run_id)["io_count"])

    def store(self, run_id: str, convergence: RepetitionSummary) -> None:
        """Store the convergence of a run that is known already."""
        self._runs[run_id] = convergence

    def _convergence(self, run_id: str) -> RepetitionSummary:
        if run_id not in self._runs:
            self._runs[run_id] = self._compute_convergence(run_id)
        return self._runs[run_id]

    def _compute_convergence(self, run_id: str) -> RepetitionSummary:
        trace = self._trace_of(run_id)
        if trace is None:
            nothing = dict.fromkeys(RepetitionSummary.__annotations__)
            return cast(RepetitionSummary, nothing | {"run": run_id, "io_count": 0})
        return cast(
            RepetitionSummary,
            {"run": run_id} | repetition_convergence(trace, measured_column(trace)),
        )


def peers_among(
    experiments: Sequence[Sequence[MeanSummary]], slowest_ns: float | None = None
) -> Peers | None:
    """Return the pooled scatter of the repetitions of experiments of one sort."""
    every = [
        [ns for run in runs if (ns := run["mean_ns"]) is not None]
        for runs in experiments
        if not covers_few_places(runs)
    ]
    return pool_scatter(
        [
            Scatter(means, allowed_ns(sum(means) / len(means), slowest_ns))
            for means in every
            if means
        ]
    )


def peers_by_sort(
    experiments: Iterable[tuple[Sort, Sequence[MeanSummary]]], slowest_ns: float | None
) -> dict[Sort, Peers | None]:
    """Return the pooled scatter of each sort of a plan; `experiments` are sort and repetitions."""
    groups: dict[Sort, list[Sequence[MeanSummary]]] = {}
    for sort, runs in experiments:
        groups.setdefault(sort, []).append(runs)
    return {sort: peers_among(group, slowest_ns) for sort, group in groups.items()}


def covers_few_places(repetitions: Sequence[MeanSummary]) -> bool:
    """Return whether a repetition describes only its own addresses; peers are not used for such."""
    return any(FEW_PLACES in (run["reasons"] or ()) for run in repetitions if "reasons" in run)


def claim_half_width(
    means: Sequence[float], half_width: float, allowed: float, peers: Peers | None = None
) -> float:
    """Return half the width of the interval that a claim rests on [ns]; the input has 95 %.

    With peers: the 98 % intervals from their scatter and from its own, and at least the input, so
    that an experiment with more scatter than its peers does not gain from them. Without peers and
    with few repetitions: the interval of batch means, several times Student's, because three means
    that lie together by chance are not evidence.
    """
    if len(means) < 2:
        return half_width
    wide = [half_width]
    if len(means) >= MIN_REPETITIONS or peers is not None:
        wide.append(own_half_width(means, allowed, CLAIM_CONFIDENCE, peers))
    if peers is not None and allowed > 0:
        wide.append(pooled_half_width(peers, Scatter(means, allowed), CLAIM_CONFIDENCE)[0])
    elif len(means) < MIN_REPETITIONS:
        wide.append(batch_half_width(means, CLAIM_CONFIDENCE))
    return max(wide)


def allowed_ns(mean_ns: float, slowest_ns: float | None) -> float:
    """Return half the width of an interval that is narrow enough [ns].

    >>> allowed_ns(100.0, None), allowed_ns(100.0, 400.0)
    (5.0, 8.0)
    """
    return max(AGREEMENT * mean_ns, SHARE_OF_SLOWEST * (slowest_ns or 0.0))


def _is_believable(run: MeanSummary) -> bool:
    """Return whether the only reasons against a run are those that repetitions make up for."""
    reasons = run.get("reasons") or ()
    return bool(run["converged"]) or (
        bool(reasons) and {*reasons} <= {INTERVAL_TOO_WIDE, FEW_PLACES}
    )


def _are_believable(runs: Sequence[MeanSummary], allowed: float) -> bool:
    """Return whether there is no reason to doubt the mean of many repetitions."""
    if any(run.get("opening_ns") is None for run in runs):
        return all(map(_is_believable, runs))
    return not beginnings_differ(runs, allowed)


def beginnings_differ(runs: Sequence[MeanSummary], allowed: float) -> bool:
    """Return whether the beginnings of many repetitions differ from their ends.

    The difference must be beyond chance and large enough to matter. Further repetitions do not
    change it.
    """
    openings = [ns for run in runs if (ns := run.get("opening_ns")) is not None]
    if not MIN_REPETITIONS <= len(openings) == len(runs):
        return False
    by_chance: float = _native.half_width(openings, DIFFERENCE_CONFIDENCE)
    opening: float = abs(sum(openings)) / len(openings)
    return opening > max(NEGLIGIBLE_SHARE * allowed, by_chance)


def _scatter_half_width(means: Sequence[float], allowed: float, peers: Peers | None) -> float:
    """Return half the width of the interval from the scatter of repetitions [ns]; 0 for one.

    Estimated from eight values, skewness and correlation of neighbours are mostly chance and
    widen an interval several times. Peers estimate them better, where there are any.
    """
    if len(means) < 2:
        return 0.0
    if len(means) >= MIN_REPETITIONS and (peers is None or allowed <= 0):
        return max(
            batch_half_width(means, CONFIDENCE), own_half_width(means, allowed, CONFIDENCE, None)
        )
    if len(means) < MIN_REPETITIONS or peers is None:
        return student_half_width(means, CONFIDENCE)
    theirs = pooled_half_width(peers, Scatter(means, allowed), CONFIDENCE)[0]
    return max(own_half_width(means, allowed, CONFIDENCE, peers), theirs)


def repetitions_needed(means: Sequence[float], allowed: float, peers: Peers | None) -> int:
    """Return the least number of repetitions that an experiment needs."""
    if peers is None or len(means) < 2 or allowed <= 0:
        return 1
    return least_repetitions(peers, Scatter(means, allowed))


def own_half_width(
    means: Sequence[float], allowed: float, confidence: float, peers: Peers | None
) -> float:
    """Return half the width of the interval of the mean from an experiment's own repetitions [ns].

    This is Student's. Without peers like it, the interval allows for any correlation of neighbours.
    """
    has_peers = peers is not None and not is_outlier(peers, Scatter(means, allowed))
    if len(means) < MIN_REPETITIONS or has_peers:
        return student_half_width(means, confidence)
    return averaged_half_width(means, confidence)


def student_half_width(means: Sequence[float], confidence: float) -> float:
    """Return half the width of Student's interval of the mean of two or more repetitions [ns]."""
    n, middle = len(means), sum(means) / len(means)
    variance = sum((each - middle) ** 2 for each in means) / (n - 1)
    return float(_native.student_quantile(1 - confidence, n - 1)) * sqrt(variance / n)


def batch_half_width(means: Sequence[float], confidence: float) -> float:
    """Return half the width of the interval of batch means [ns]; of few, wider than Student's."""
    return float(_native.half_width(list(means), confidence))


def _begin_alike(repetitions: Sequence[MeanSummary]) -> bool:
    """Return whether all of few repetitions have a start-up, or none has.

    If only some have one, it may be a slow episode like any other: an episode at the beginning of
    a run is taken for start-up and left out.
    """
    return len({bool(each.get("startup_ios")) for each in repetitions}) == 1
