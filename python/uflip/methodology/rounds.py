"""More repetitions of what is not known yet, at other times and places, as far as the budget goes.

    plan      1 2 3 … n   1 2 3 … n   1 2 3 … n      three repetitions of each experiment
    round 1   2 5 … 2 5 … 2 5 … 2 5 … 2 5 …          of those that are not known, and can be
    round 2   5 … 5 … 5 …                            … once more

Where what a device does drifts more slowly than a run lasts, a longer run hardly knows more: its
I/Os resemble each other. With the part σ_b² of the variance that lies between runs and the part
σ_w² within them, n runs of m I/Os know their mean to (σ_b² + σ_w²/m) / n: of the same n·m I/Os,
many short runs never know less than few long ones. So runs end when they are known, or a
quarter beyond their shortest length (`lengths`), and as many I/Os as the shortest would take again
go into further repetitions, each of that length, of the experiments whose interval is too wide.

**Source** uFLIP (CIDR 2009) §4.2 names an automatic IOCount as future work. J. Neyman (1934): what
varies more is asked more often. C. Stein (1945): how often follows from the scatter of the first.
**Faithful** The number of repetitions follows from the interval that those made so far have.
**Simplified** A repetition counts as much as any other. What is planned stays as it is: rounds of
each stage (`order`) come before the next. They are stored with the plan before the first run of
them is made.
**Ambiguous** (1) What the budget is spent on. To know as many experiments as possible: those come
first whose repetitions take the fewest I/Os by what is known of them. (2) Looks. An experiment may
be looked at again and again until its interval is narrow by chance; therefore rounds grow, which
allows for few looks, a claim has a confidence that allows for some, and the proof (`python -m
uflip.proof --only repetitions`) says how often the intervals hold at which they end. A plan of
fewer than three stays as somebody wanted it. (3) Repetitions that follow each other closely are
alike: they meet the device at one time, however many they are. So a turn has `APART` runs that
write, up to half of them others than those that are asked for: what three repetitions say has not
been tried often. (4) Sequential writes are repeated as long as all that was written, resets
included, is no more than the plan said; on a device that is measured as it is, whose state nobody
resets, not at all.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Protocol

from uflip import _native
from uflip.benchmark_options import MOST_REPETITIONS
from uflip.data.spec import Totals
from uflip.data.summary import Certainty
from uflip.device.resolve import resolve
from uflip.experiment import PlannedRun
from uflip.methodology import interference
from uflip.methodology.estimate import estimate
from uflip.methodology.order import BASELINE, SEQUENTIAL, by_chance, is_wide, repeat, stage_of
from uflip.methodology.plan import Plan
from uflip.methodology.plan_options import REPETITIONS
from uflip.methodology.refresh import refresh_bytes
from uflip.methodology.run_lengths import TWICE
from uflip.methodology.space_allocation import behind
from uflip.microbench import keeps_its_length
from uflip.spec import Mix, Spec

# Two looks at three and at five repetitions are wrong more often than at three and at eight: their
# scatter is known too badly.
FEWEST = 8
# A round makes half as many again, so that there are few looks, and at most four times as many, as
# what they are counted by is known as badly as what is measured.
LEAST_GROWTH, GROWTH = 1.5, 4
MARGIN = 1.1  # An estimate is as often too low as too high: a tenth more saves a round.
# On sim:demo half of the variance between repetitions is missing where fewer than eight runs lie
# between them: 43 that followed each other scattered by 1 %, the eight before, apart, by 8 %.
APART = 8
# That of a claim (`uflip.results.agreement.CLAIM`).
CONFIDENCE = 0.98

Key = tuple[str, str, str, int]


class RepetitionSource(Protocol):
    """What is known of finished runs; `uflip.results.ResultsWriter` is one."""

    def together(
        self, experiments: Sequence[tuple[str, Sequence[str]]], slowest_ns: float | None
    ) -> Sequence[Certainty]:
        """Return the statistics of the repetitions of each experiment."""

    def ios_of(self, run_id: str) -> int:
        """How many I/Os a finished run made."""


@dataclass(frozen=True, eq=False)
class _Wish:
    """An experiment, and what would make it known."""

    runs: Sequence[PlannedRun]
    spec: Spec
    now: int
    """Repetitions in the next round; 0 if none are needed, or as many would not help."""
    ios: int
    """I/Os until it is known, by what is known of it."""
    each: int
    """I/Os of a repetition."""
    is_wide: bool
    """Whether each repetition takes a reset of its own."""


_Turns = list[list[tuple[_Wish, int]]]
"""For each turn whose how manyth further repetition is made."""


def next_round(
    plan: Plan, finished: int, told: RepetitionSource, once_more: Callable[[PlannedRun], Spec]
) -> Plan | None:
    """Return the plan with another round, or None if there is nothing to do, or to do it with.

    Parameters
    ----------
    plan : Plan
        Its first runs are finished, and none of the others.
    finished : int
        How many are: all of a stage (`plan.stages`) and of those before. The round is of what
        belongs to that stage, and comes before the next.
    told : Told
        What they say.
    once_more : callable
        Returns the specification of another repetition, by what the baselines show.
    """
    if plan.method != "auto" or plan.repetitions < REPETITIONS:
        return None
    done = plan.runs[:finished]
    now = max((stage_of(run.spec, plan.target_size) for run in done), default=0)
    if plan.state is None and now == SEQUENTIAL:
        return None
    experiments = _experiments(plan, done)
    granted: list[_Wish] = []
    left = _left_ios(plan, told, experiments, once_more)
    wishes = _wishes(plan, told, experiments, once_more, _slowest_ns(done, told))
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
    more = _within(plan, done, granted, lambda some: _turns(some, others, left), most_bytes)
    return replace(plan, runs=(*done, *more, *plan.runs[finished:])) if more else None


def _within(
    plan: Plan,
    done: Sequence[PlannedRun],
    granted: Sequence[_Wish],
    turns_of: Callable[[Sequence[_Wish]], _Turns],
    most_bytes: float,
) -> tuple[PlannedRun, ...]:
    """Lay out a round that writes so much at most, resets included; the dearest are left out.

    What was said about the wear of the device before the plan began stays true.
    """
    some = len(granted)
    while some:
        more = behind(plan.target_size, done, _more(plan, turns_of(granted[:some])))
        if estimate(replace(plan, runs=more)).bytes_written <= most_bytes:
            return more
        some -= max(some // 16, 1)
    return ()


def _experiments(plan: Plan, runs: Sequence[PlannedRun]) -> dict[Key, list[PlannedRun]]:
    """Return the repetitions of each experiment whose runs end by a rule."""
    found: dict[Key, list[PlannedRun]] = {}
    for run in runs:
        if run.micro_benchmark in (BASELINE, interference.NAME) or keeps_its_length(run):
            continue
        if run.spec.stop is not None or run.repetition > plan.repetitions:
            key = (run.micro_benchmark, run.pattern, run.parameter, run.value)
            found.setdefault(key, []).append(run)
    return found


def _slowest_ns(runs: Sequence[PlannedRun], told: RepetitionSource) -> float | None:
    each = [(run.id, [run.id]) for run in runs if run.micro_benchmark == BASELINE]
    means = (said["mean_ns"] for said in told.together(each, None))
    return max((mean for mean in means if mean is not None), default=None)


def _totals(plan: Plan, spec: Spec) -> Totals:
    return resolve(spec, plan.device).totals


def _left_ios(
    plan: Plan,
    told: RepetitionSource,
    experiments: Mapping[Key, Sequence[PlannedRun]],
    once_more: Callable[[PlannedRun], Spec],
) -> int:
    """Return what is left if there is twice what the shortest runs of the plan would make."""
    left = 0
    for runs in experiments.values():
        least = _totals(plan, once_more(runs[0])).total_ios
        planned = sum(run.repetition <= plan.repetitions for run in runs)
        left += TWICE * planned * least - sum(told.ios_of(run.id) for run in runs)
    return left


def _unwritten_bytes(plan: Plan, done: Sequence[PlannedRun], told: RepetitionSource) -> float:
    """Return how much less was written than the plan may write at most; resets are as planned."""
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


def _wishes(
    plan: Plan,
    told: RepetitionSource,
    experiments: Mapping[Key, Sequence[PlannedRun]],
    once_more: Callable[[PlannedRun], Spec],
    slowest_ns: float | None,
) -> list[_Wish]:
    wishes = []
    asked = [(" ".join(key[:2]), [run.id for run in runs]) for key, runs in experiments.items()]
    every = told.together(asked, slowest_ns)
    for runs, said in zip(experiments.values(), every, strict=True):
        made = len(runs)
        more = max((needed_by(said, made) or 0) - made, 0)
        spec = once_more(runs[0])
        each = _totals(plan, spec).total_ios
        now = min(more, (GROWTH - 1) * made)
        wishes.append(_Wish(runs, spec, now, more * each, each, is_wide(spec, plan.target_size)))
    return wishes


def needed_by(said: Certainty, made: int) -> int | None:
    """How many repetitions make an experiment known, by its own scatter and that of its peers.

    Returns
    -------
    int or None
        So many as there are if no more are asked for; None if more than `MOST_REPETITIONS`.
    """
    expected, allowed = said["expected_ns"], said["allowed_ns"]
    if said["surely"] or said["hopeless"] or expected is None or not allowed:
        return made
    own, supported = needed_repetitions(made, expected / allowed), said["supported_ns"]
    if own is None:
        return None
    # What neighbours may have in common is known better by more: no reason to give up.
    own = min(ceil(own * (said["widened"] or 1.0)), MOST_REPETITIONS)
    if supported is None:
        return max(own, said["fewest"])
    if max(expected, supported) <= allowed and made < said["fewest"]:
        return said["fewest"]
    theirs = needed_repetitions(made, supported / allowed, (said["degrees"] or 0.0) - (made - 1))
    return None if theirs is None else max(own, theirs, said["fewest"])


def needed_repetitions(made: int, excess: float, lent: float = 0.0) -> int | None:
    """How many repetitions narrow an interval enough, by the scatter of those that were made.

    Parameters
    ----------
    made : int
        Repetitions, two or more.
    excess : float
        How many times the half width is what is allowed. If it is not wide, what is doubted is
        something else, which is told from `FEWEST` on.
    lent : float
        Degrees of freedom of the scatter that come from others.

    Returns
    -------
    int or None
        None if there would have to be more than `MOST_REPETITIONS`.

    Examples
    --------
    >>> needed_repetitions(3, 2.0), needed_repetitions(12, 1.2), needed_repetitions(12, 5.0)
    (8, 18, None)
    """
    needed = float(made)
    for _ in range(4):
        narrower = _student(max(needed, made) + lent) / _student(made + lent)
        needed = made * (excess * min(narrower, 1.0)) ** 2
    if needed > MOST_REPETITIONS:
        return None
    fewest = max(FEWEST, ceil(LEAST_GROWTH * made))
    return min(max(ceil(MARGIN * needed), fewest), MOST_REPETITIONS)


def _student(repetitions: float) -> float:
    return float(_native.student_quantile(1 - CONFIDENCE, repetitions - 1))


def _turns(granted: Sequence[_Wish], others: Sequence[_Wish], left_ios: int) -> _Turns:
    """Return whose how manyth further repetition each turn of a round is made of.

    Turns in which few write are filled up to `APART` with those who cost least, of these with those
    who were repeated least. Nobody writes where more than half of a turn would have to be filled
    up, which costs more than it tells, and the round ends where no I/Os are left.
    """
    made: Counter[int] = Counter()
    turns: _Turns = []
    everyone = [wish for wish in (*granted, *others) if wish.spec.writes and not wish.is_wide]
    for turn in range(1, max((wish.now for wish in granted), default=0) + 1):
        now = [wish for wish in granted if turn <= wish.now]
        writing = sum(wish.spec.writes for wish in now)
        apart = min(APART, len(everyone))
        if 2 * writing < apart:
            now = [wish for wish in now if not wish.spec.writes]
        elif writing < apart:
            idle = [wish for wish in everyone if wish not in now]
            idle = [wish for wish in idle if len(wish.runs) + made[id(wish)] < MOST_REPETITIONS]
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


def _more(plan: Plan, turns: _Turns) -> list[PlannedRun]:
    """Lay out a round: in turn, so that repetitions of one experiment lie apart.

    Mixes with sequential writes need half of the device undisturbed: they come before the others,
    as in a plan.
    """
    runs: list[PlannedRun] = []
    for turn in turns:
        now = [_repetition(plan, wish, number) for wish, number in turn]
        runs += by_chance(now, plan.seed, plan.target_size)
    runs.sort(key=lambda run: run.spec.writes_sequentially and not isinstance(run.spec, Mix))
    return [
        replace(run, id=f"{number:04d}-{run.id}")
        for number, run in enumerate(runs, start=len(plan.runs) + 1)
    ]


def _repetition(plan: Plan, wish: _Wish, number: int) -> PlannedRun:
    first = wish.runs[0]
    bare = replace(first, id=first.id.split("-", 1)[1], spec=wish.spec, reset_before=False)
    return repeat(bare, len(wish.runs) + number, plan.seed, plan.target_size)
