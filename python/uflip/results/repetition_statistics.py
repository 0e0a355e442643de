"""Statistics of the repetitions of a running benchmark, updated after each round.

Each trace is read once; then only its repetition record is in memory.
"""

from collections.abc import Callable, Sequence
from typing import cast

from uflip import _native
from uflip.data import summary
from uflip.data.summary import Certainty, RepetitionSummary
from uflip.results.agreement import (
    CLAIM_CONFIDENCE,
    MIN_PLACES,
    allowed_ns,
    beginnings_differ,
    combined_mean,
    covers_few_places,
    own_half_width,
    peers_among,
    repetitions_needed,
    student_half_width,
)
from uflip.results.columns import measured_column
from uflip.results.convergence import repetition_convergence
from uflip.results.repetition_scatter import MIN_REPETITIONS, Peers, Scatter, pooled_half_width

Experiments = Sequence[tuple[str, Sequence[str]]]
"""The sort of each experiment, which its peers share, and the runs that are its repetitions."""


def repetition_certainty(
    repetitions: Sequence[summary.MeanSummary], slowest_ns: float | None, peers: Peers | None = None
) -> Certainty:
    """Return the statistics of repetitions, with the values that decide the next round.

    Returns
    -------
    dict
        As `combined_mean`, and: `allowed_ns`, the half width that is narrow enough; `expected_ns`,
        the half width from which more repetitions are planned, at the confidence of a claim and
        with the scatter so far; `widened`, its factor without peers like it; `supported_ns`, the
        half width from the pooled scatter, with its `degrees` of freedom; `fewest`, the number of
        repetitions needed; `certainly_converged`, whether it has converged and few repetitions
        begin alike; `cannot_converge`, whether there is a reason against it that more repetitions
        do not remove.
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
    experiments: Sequence[Sequence[summary.MeanSummary]],
    slowest_ns: float | None,
) -> Sequence[Certainty]:
    """Return the same for all experiments of a plan; those of one sort are peers."""
    groups: dict[str, list[Sequence[summary.MeanSummary]]] = {}
    for sort, runs in zip(sorts, experiments, strict=True):
        groups.setdefault(sort, []).append(runs)
    peers = {sort: peers_among(group, slowest_ns) for sort, group in groups.items()}
    return [
        repetition_certainty(runs, slowest_ns, peers[sort])
        for sort, runs in zip(sorts, experiments, strict=True)
    ]


def _begin_alike(repetitions: Sequence[summary.MeanSummary]) -> bool:
    """Return whether all of few repetitions have a start-up, or none has.

    If only some have one, it may be a slow episode like any other: an episode at the beginning of
    a run is taken for start-up and left out.
    """
    return len({bool(each.get("startup_ios")) for each in repetitions}) == 1


class RepetitionStatistics:
    """Caches the convergence of each run.

    Parameters
    ----------
    trace_of : callable
        Returns the trace of a finished run; None if it is missing.
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
