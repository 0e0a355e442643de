"""Rounds of further repetitions for experiments that have not converged, within the budget.

    plan      1 2 3 … n   1 2 3 … n   1 2 3 … n      three repetitions of each experiment
    round 1   2 5 … 2 5 … 2 5 … 2 5 … 2 5 …          those that have not converged, but can
    round 2   5 … 5 … 5 …                            … once more

Where the device drifts more slowly than a run lasts, a longer run gains little: its I/Os are
correlated. With the part σ_b² of the variance between runs and the part σ_w² within them, the mean
of n runs of m I/Os has the variance (σ_b² + σ_w²/m) / n: for the same n·m I/Os, many short runs are
never worse than few long ones. So runs end when their mean has converged, or a quarter beyond their
shortest length (`run_lengths`). As many I/Os as the shortest runs take are then spent again on
further repetitions, each of that length, of the experiments whose interval is too wide.

**Source** uFLIP (CIDR 2009) §4.2 names an automatic IOCount as future work. J. Neyman (1934):
sample in proportion to variability. C. Stein (1945): the sample size follows from the scatter of
the first sample.
**Faithful** The number of repetitions follows from the interval of those made so far.
**Simplified** All repetitions have the same weight. Planned runs are not changed: the rounds of
each stage (`order`) come before the next stage. They are stored with the plan before the first of
their runs is made.
**Ambiguous** (1) The use of the budget. To converge as many experiments as possible: those come
first whose repetitions are expected to take the fewest I/Os. (2) Repeated looks. An experiment that
is tested again and again may have a narrow interval by chance. Therefore rounds grow, which limits
the looks, a claim has a confidence that allows for some, and the proof (`python -m uflip.proof
--only repetitions`) reports how often the final intervals are right. A plan of fewer than three
repetitions is not extended. (3) Repetitions that follow each other closely are correlated: they
measure the device at one time, whatever their number. So a pass has `APART` runs that write, up to
half of them of other experiments than needed: the variance of three repetitions is uncertain.
(4) Sequential writes are repeated as long as the total written, resets included, stays within the
plan's announcement; on a device that is measured as-is, and never reset, not at all.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Protocol

from uflip import _native
from uflip.benchmark_options import MAX_REPETITIONS
from uflip.data.spec import Totals
from uflip.data.summary import Certainty
from uflip.device.resolve import resolve
from uflip.experiment import PlannedRun
from uflip.methodology import interference
from uflip.methodology.estimate import estimate
from uflip.methodology.order import (
    BASELINE,
    SEQUENTIAL,
    is_wide,
    repeat,
    shuffle_disturbing,
    stage_of,
)
from uflip.methodology.plan import Plan
from uflip.methodology.plan_options import REPETITIONS
from uflip.methodology.refresh import refresh_bytes
from uflip.methodology.run_lengths import TWICE
from uflip.methodology.space_allocation import place_after
from uflip.microbench import has_own_length
from uflip.spec import Mix, Spec

# Two looks at three and at five repetitions are wrong more often than at three and at eight: the
# scatter of the former is too uncertain.
FEWEST = 8
# A round makes half as many again, so that there are few looks, and at most four times as many, as
# the estimate of the number needed is as uncertain as the mean.
LEAST_GROWTH, GROWTH = 1.5, 4
MARGIN = 1.1  # An estimate is as often too low as too high: a tenth more saves a round.
# On sim:demo half of the variance between repetitions is missing where fewer than eight runs lie
# between them: 43 consecutive ones scattered by 1 %, the eight separate ones before by 8 %.
APART = 8
# That of a claim (`uflip.results.agreement.CLAIM`).
CONFIDENCE = 0.98

Key = tuple[str, str, str, int]


class RepetitionSource(Protocol):
    """Statistics of finished runs; `uflip.results.ResultsWriter` is one."""

    def experiment_statistics(
        self, experiments: Sequence[tuple[str, Sequence[str]]], slowest_ns: float | None
    ) -> Sequence[Certainty]:
        """Return the statistics of the repetitions of each experiment."""

    def ios_of(self, run_id: str) -> int:
        """Return the number of I/Os of a finished run."""


@dataclass(frozen=True, eq=False)
class _Candidate:
    """An experiment, and the repetitions that it needs to converge."""

    runs: Sequence[PlannedRun]
    spec: Spec
    now: int
    """Repetitions in the next round; 0 if it needs none, or if they would not help."""
    ios: int
    """Expected number of I/Os until it converges."""
    each: int
    """I/Os of a repetition."""
    is_wide: bool
    """Whether each repetition needs a reset."""


_Passes = list[list[tuple[_Candidate, int]]]
"""For each pass, the experiments to repeat and the index of their further repetition."""


def next_round(
    plan: Plan, finished: int, told: RepetitionSource, once_more: Callable[[PlannedRun], Spec]
) -> Plan | None:
    """Return the plan with another round; None if nothing is left to repeat, or no budget.

    Parameters
    ----------
    plan : Plan
        Its first runs are finished, and none of the others.
    finished : int
        Number of finished runs: all of a stage and of those before. The round belongs to that
        stage, and comes before the next.
    told : RepetitionSource
        Statistics of the finished runs.
    once_more : callable
        Returns the specification of another repetition, by the phases of the baselines.
    """
    if plan.method != "auto" or plan.repetitions < REPETITIONS:
        return None
    done = plan.runs[:finished]
    now = max((stage_of(run.spec, plan.target_size) for run in done), default=0)
    if plan.state is None and now == SEQUENTIAL:
        return None
    experiments = _experiments(plan, done)
    granted: list[_Candidate] = []
    left = _left_ios(plan, told, experiments, once_more)
    wishes = _candidates(plan, told, experiments, once_more, _slowest_ns(done, told))
    wishes = [wish for wish in wishes if stage_of(wish.spec, plan.target_size) == now]
    for wish in sorted(wishes, key=lambda wish: (wish.is_wide, wish.ios)):
        if not wish.now:
            continue
        if wish.ios > left:
            break
        left -= wish.ios
        granted.append(wish)
    others = [wish for wish in wishes if wish not in granted]
    most_bytes = _unwritten_bytes(plan, done, told)
    more = _within(plan, done, granted, lambda some: _passes(some, others, left), most_bytes)
    return replace(plan, runs=(*done, *more, *plan.runs[finished:])) if more else None


def _within(
    plan: Plan,
    done: Sequence[PlannedRun],
    granted: Sequence[_Candidate],
    turns_of: Callable[[Sequence[_Candidate]], _Passes],
    most_bytes: float,
) -> tuple[PlannedRun, ...]:
    """Lay out a round within a limit of bytes, resets included; drop the most expensive ones.

    The wear that was announced before the plan began stays an upper bound.
    """
    some = len(granted)
    while some:
        more = place_after(plan.target_size, done, _more(plan, turns_of(granted[:some])))
        if estimate(replace(plan, runs=more)).bytes_written <= most_bytes:
            return more
        some -= max(some // 16, 1)
    return ()


def _experiments(plan: Plan, runs: Sequence[PlannedRun]) -> dict[Key, list[PlannedRun]]:
    """Return the repetitions of each experiment whose runs have a stop rule."""
    found: dict[Key, list[PlannedRun]] = {}
    for run in runs:
        if run.micro_benchmark in (BASELINE, interference.NAME) or has_own_length(run):
            continue
        if run.spec.stop is not None or run.repetition > plan.repetitions:
            key = (run.micro_benchmark, run.pattern, run.parameter, run.value)
            found.setdefault(key, []).append(run)
    return found


def _slowest_ns(runs: Sequence[PlannedRun], told: RepetitionSource) -> float | None:
    each = [(run.id, [run.id]) for run in runs if run.micro_benchmark == BASELINE]
    means = (said["mean_ns"] for said in told.experiment_statistics(each, None))
    return max((mean for mean in means if mean is not None), default=None)


def _totals(plan: Plan, spec: Spec) -> Totals:
    return resolve(spec, plan.device).totals


def _left_ios(
    plan: Plan,
    told: RepetitionSource,
    experiments: Mapping[Key, Sequence[PlannedRun]],
    once_more: Callable[[PlannedRun], Spec],
) -> int:
    """Return the remaining I/Os of a budget of twice those of the plan's shortest runs."""
    left = 0
    for runs in experiments.values():
        least = _totals(plan, once_more(runs[0])).total_ios
        planned = sum(run.repetition <= plan.repetitions for run in runs)
        left += TWICE * planned * least - sum(told.ios_of(run.id) for run in runs)
    return left


def _unwritten_bytes(plan: Plan, done: Sequence[PlannedRun], told: RepetitionSource) -> float:
    """Return the bytes that the plan may still write; resets are as planned."""
    left = 0.0
    for run in done:
        totals = _totals(plan, run.spec)
        most = totals.bytes_written
        made = round(told.ios_of(run.id) / totals.total_ios * most)
        if run.repetition <= plan.repetitions:
            left += most + refresh_bytes(plan, run, most)
        elif run.reset_before and plan.state is not None:
            left -= plan.state.bytes_written
        left -= made + refresh_bytes(plan, run, made)
    return left


def _candidates(
    plan: Plan,
    told: RepetitionSource,
    experiments: Mapping[Key, Sequence[PlannedRun]],
    once_more: Callable[[PlannedRun], Spec],
    slowest_ns: float | None,
) -> list[_Candidate]:
    wishes = []
    asked = [(" ".join(key[:2]), [run.id for run in runs]) for key, runs in experiments.items()]
    every = told.experiment_statistics(asked, slowest_ns)
    for runs, said in zip(experiments.values(), every, strict=True):
        made = len(runs)
        more = max((repetitions_for(said, made) or 0) - made, 0)
        spec = once_more(runs[0])
        each = _totals(plan, spec).total_ios
        now = min(more, (GROWTH - 1) * made)
        wishes.append(
            _Candidate(runs, spec, now, more * each, each, is_wide(spec, plan.target_size))
        )
    return wishes


def repetitions_for(said: Certainty, made: int) -> int | None:
    """Return the repetitions that an experiment needs, by its own scatter and that of its peers.

    Returns
    -------
    int or None
        The current number if no more are needed; None if more than `MAX_REPETITIONS`.
    """
    expected, allowed = said["expected_ns"], said["allowed_ns"]
    if said["certainly_converged"] or said["cannot_converge"] or expected is None or not allowed:
        return made
    own, supported = needed_repetitions(made, expected / allowed), said["supported_ns"]
    if own is None:
        return None
    # More repetitions estimate the correlation of neighbours better: no reason to give up.
    own = min(ceil(own * (said["widened"] or 1.0)), MAX_REPETITIONS)
    if supported is None:
        return max(own, said["fewest"])
    if max(expected, supported) <= allowed and made < said["fewest"]:
        return said["fewest"]
    theirs = needed_repetitions(made, supported / allowed, (said["degrees"] or 0.0) - (made - 1))
    return None if theirs is None else max(own, theirs, said["fewest"])


def needed_repetitions(made: int, excess: float, lent: float = 0.0) -> int | None:
    """Return the repetitions that narrow an interval enough, by the scatter so far.

    Parameters
    ----------
    made : int
        Repetitions, two or more.
    excess : float
        Half width over allowed half width. If it is not above one, the reason for doubt is
        another one, which shows from `FEWEST` on.
    lent : float
        Degrees of freedom of the scatter that come from peers.

    Returns
    -------
    int or None
        None if more than `MAX_REPETITIONS` would be needed.

    Examples
    --------
    >>> needed_repetitions(3, 2.0), needed_repetitions(12, 1.2), needed_repetitions(12, 5.0)
    (8, 18, None)
    """
    needed = float(made)
    for _ in range(4):
        narrower = _student(max(needed, made) + lent) / _student(made + lent)
        needed = made * (excess * min(narrower, 1.0)) ** 2
    if needed > MAX_REPETITIONS:
        return None
    fewest = max(FEWEST, ceil(LEAST_GROWTH * made))
    return min(max(ceil(MARGIN * needed), fewest), MAX_REPETITIONS)


def _student(repetitions: float) -> float:
    return float(_native.student_quantile(1 - CONFIDENCE, repetitions - 1))


def _passes(granted: Sequence[_Candidate], others: Sequence[_Candidate], left_ios: int) -> _Passes:
    """Return, per pass, the experiments to repeat and their repetition numbers.

    Passes with few writing runs are filled up to `APART`, first with the cheapest experiments, of
    these with the least repeated. If more than half of a pass would have to be filled up, nothing
    in it writes, as the cost exceeds the gain. The round ends when no I/Os are left.
    """
    made: Counter[int] = Counter()
    turns: _Passes = []
    everyone = [wish for wish in (*granted, *others) if wish.spec.writes and not wish.is_wide]
    for turn in range(1, max((wish.now for wish in granted), default=0) + 1):
        now = [wish for wish in granted if turn <= wish.now]
        writing = sum(wish.spec.writes for wish in now)
        apart = min(APART, len(everyone))
        if 2 * writing < apart:
            now = [wish for wish in now if not wish.spec.writes]
        elif writing < apart:
            idle = [wish for wish in everyone if wish not in now]
            idle = [wish for wish in idle if len(wish.runs) + made[id(wish)] < MAX_REPETITIONS]
            idle.sort(key=lambda wish: (wish.each, len(wish.runs) + made[id(wish)]))
            filling = idle[: apart - writing]
            left_ios -= sum(wish.each for wish in filling)
            if left_ios < 0:
                break
            now += filling
        if not now:
            break
        made.update(map(id, now))
        turns.append([(wish, made[id(wish)]) for wish in now])
    return turns


def _more(plan: Plan, turns: _Passes) -> list[PlannedRun]:
    """Lay out a round pass by pass, so that repetitions of one experiment lie apart.

    Mixes with sequential writes need half of the device undisturbed: they come before the others,
    as in a plan.
    """
    runs: list[PlannedRun] = []
    for turn in turns:
        now = [_repetition(plan, wish, number) for wish, number in turn]
        runs += shuffle_disturbing(now, plan.seed, plan.target_size)
    runs.sort(key=lambda run: run.spec.writes_sequentially and not isinstance(run.spec, Mix))
    return [
        replace(run, id=f"{number:04d}-{run.id}")
        for number, run in enumerate(runs, start=len(plan.runs) + 1)
    ]


def _repetition(plan: Plan, wish: _Candidate, number: int) -> PlannedRun:
    first = wish.runs[0]
    bare = replace(first, id=first.id.split("-", 1)[1], spec=wish.spec, reset_before=False)
    return repeat(bare, len(wish.runs) + number, plan.seed, plan.target_size)
