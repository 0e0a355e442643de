"""Further runs of a plan: repetitions of experiments that have not converged, rates near a knee.

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
each stage (`plan`) come before the next stage. They are stored with the plan before the first of
their runs is made.
**Ambiguous** (1) The use of the budget. To converge as many experiments as possible: those come
first whose repetitions are expected to take the fewest I/Os. (2) Repeated looks. An experiment that
is tested again and again may have a narrow interval by chance. Therefore rounds grow, which limits
the looks, a claim has a confidence that allows for some, and the proof of the method
(`benches/method_proof.py`) reports how often the final intervals are right. A plan of fewer than
three repetitions is not extended. (3) Repetitions that follow each other closely are correlated:
they measure the device at one time, whatever their number. So a pass has `MIN_WRITERS_PER_PASS`
runs that write, up to half of them of other experiments than needed: the variance of three
repetitions is uncertain.
(4) Sequential writes are repeated as long as the total written, resets included, stays within the
plan's announcement; on a device that is measured as-is, and never reset, not at all.

Rates of `offered_load` are added by a bisection between the highest sustained one and the next. A
rate is run as often as those of the plan, and is sustained if most of its runs are. A resumed
benchmark that has made runs of a later stage has no further rates.

    sweep       1k ... 32k sustained, 64k too high
    1st to 3rd  45k too high, 38k sustained, 41k sustained: the knee is between 41k and 45k
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

from uflip import _native
from uflip.benchmark import interference
from uflip.benchmark.estimate import estimate
from uflip.benchmark.plan import (
    REPETITIONS,
    SEQUENTIAL,
    Plan,
    is_wide,
    repeat,
    shuffle_disturbing,
    stage_of,
)
from uflip.benchmark.run_lengths import REPETITION_BUDGET
from uflip.benchmark.target_spaces import place_after
from uflip.benchmark_options import MAX_REPETITIONS
from uflip.data.spec import Totals
from uflip.data.summary import Certainty
from uflip.device.resolve import resolve
from uflip.microbench import BASELINE, has_own_length
from uflip.microbench.experiment import PlannedRun, run_seed
from uflip.microbench.iq import offered_load
from uflip.results import ResultsWriter
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
MIN_WRITERS_PER_PASS = 8
# That of a claim (`uflip.results.statistics.CLAIM_CONFIDENCE`).
CONFIDENCE = 0.98

OFFERED_LOAD = offered_load.VARYING.micro_benchmark

Key = tuple[str, str, str, int]


@dataclass(frozen=True, eq=False)
class _Candidate:
    """An experiment, and the repetitions that it needs to converge."""

    runs: Sequence[PlannedRun]
    spec: Spec
    repetitions: int
    """Repetitions in the next round; 0 if it needs none, or if they would not help."""
    ios: int
    """Expected number of I/Os until it converges."""
    ios_each: int
    """I/Os of a repetition."""
    is_wide: bool
    """Whether each repetition needs a reset."""


_Passes = list[list[tuple[_Candidate, int]]]
"""For each pass, the experiments to repeat and the index of their further repetition."""


def next_round(
    plan: Plan,
    finished: int,
    writer: ResultsWriter,
    repetition_spec: Callable[[PlannedRun], Spec],
) -> Plan | None:
    """Return the plan with another round; None if nothing is left to repeat, or no budget.

    `plan`: its first runs are finished, and none of the others. `finished`: number of finished
    runs: all of a stage and of those before. The round belongs to that stage, and comes before the
    next. `writer`: has the finished runs. `repetition_spec`: returns the specification of another
    repetition, by the phases of the baselines.
    """
    if plan.method != "auto" or plan.repetitions < REPETITIONS:
        return None
    done = plan.runs[:finished]
    stage = max((stage_of(run.spec, plan.target_size) for run in done), default=0)
    if plan.state is None and stage == SEQUENTIAL:
        return None
    experiments = _experiments(plan, done)
    granted: list[_Candidate] = []
    remaining_ios = _remaining_ios(plan, writer, experiments, repetition_spec)
    candidates = _candidates(plan, writer, experiments, repetition_spec, _slowest_ns(done, writer))
    candidates = [
        candidate for candidate in candidates if stage_of(candidate.spec, plan.target_size) == stage
    ]
    for candidate in sorted(candidates, key=lambda candidate: (candidate.is_wide, candidate.ios)):
        if not candidate.repetitions:
            continue
        if candidate.ios > remaining_ios:
            break
        remaining_ios -= candidate.ios
        granted.append(candidate)
    others = [candidate for candidate in candidates if candidate not in granted]
    most_bytes = _unwritten_bytes(plan, done, writer)
    new_runs = _fit_byte_limit(
        plan, done, granted, lambda some: _passes(some, others, remaining_ios), most_bytes
    )
    return replace(plan, runs=(*done, *new_runs, *plan.runs[finished:])) if new_runs else None


def _fit_byte_limit(
    plan: Plan,
    done: Sequence[PlannedRun],
    granted: Sequence[_Candidate],
    passes_of: Callable[[Sequence[_Candidate]], _Passes],
    most_bytes: float,
) -> tuple[PlannedRun, ...]:
    """Lay out a round within a limit of bytes, resets included; drop the most expensive ones.

    The wear that was announced before the plan began stays an upper bound.
    """
    count = len(granted)
    while count:
        more = place_after(plan.target_size, done, _lay_out(plan, passes_of(granted[:count])))
        if estimate(replace(plan, runs=more)).bytes_written <= most_bytes:
            return more
        count -= max(count // 16, 1)
    return ()


def _experiments(plan: Plan, runs: Sequence[PlannedRun]) -> dict[Key, list[PlannedRun]]:
    """Return the repetitions of each experiment whose runs have a stop rule."""
    experiments: dict[Key, list[PlannedRun]] = {}
    for run in runs:
        if run.micro_benchmark in (BASELINE, interference.NAME) or has_own_length(run):
            continue
        if run.spec.stop is not None or run.repetition > plan.repetitions:
            key = (run.micro_benchmark, run.pattern, run.parameter, run.value)
            experiments.setdefault(key, []).append(run)
    return experiments


def _slowest_ns(runs: Sequence[PlannedRun], writer: ResultsWriter) -> float | None:
    each = [(run.id, [run.id]) for run in runs if run.micro_benchmark == BASELINE]
    means = (row["mean_ns"] for row in writer.experiment_statistics(each, None))
    return max((mean for mean in means if mean is not None), default=None)


def _totals(plan: Plan, spec: Spec) -> Totals:
    return resolve(spec, plan.device).totals


def _remaining_ios(
    plan: Plan,
    writer: ResultsWriter,
    experiments: Mapping[Key, Sequence[PlannedRun]],
    repetition_spec: Callable[[PlannedRun], Spec],
) -> int:
    """Return the remaining I/Os of a budget of twice those of the plan's shortest runs."""
    remaining = 0
    for runs in experiments.values():
        least = _totals(plan, repetition_spec(runs[0])).total_ios
        planned = sum(run.repetition <= plan.repetitions for run in runs)
        remaining += REPETITION_BUDGET * planned * least - sum(
            writer.ios_of(run.id) for run in runs
        )
    return remaining


def _unwritten_bytes(plan: Plan, done: Sequence[PlannedRun], writer: ResultsWriter) -> float:
    """Return the bytes that the plan may still write; resets are as planned."""
    unwritten = 0.0
    for run in done:
        totals = _totals(plan, run.spec)
        most = totals.bytes_written
        made = round(writer.ios_of(run.id) / totals.total_ios * most)
        if run.repetition <= plan.repetitions:
            unwritten += most + plan.refresh_bytes(run, most)
        elif run.reset_before and plan.state is not None:
            unwritten -= plan.state.bytes_written
        unwritten -= made + plan.refresh_bytes(run, made)
    return unwritten


def _candidates(
    plan: Plan,
    writer: ResultsWriter,
    experiments: Mapping[Key, Sequence[PlannedRun]],
    repetition_spec: Callable[[PlannedRun], Spec],
    slowest_ns: float | None,
) -> list[_Candidate]:
    candidates = []
    sorted_runs = [
        (" ".join(key[:2]), [run.id for run in runs]) for key, runs in experiments.items()
    ]
    every = writer.experiment_statistics(sorted_runs, slowest_ns)
    for runs, certainty in zip(experiments.values(), every, strict=True):
        made = len(runs)
        more = max((repetitions_for(certainty, made) or 0) - made, 0)
        spec = repetition_spec(runs[0])
        each = _totals(plan, spec).total_ios
        now = min(more, (GROWTH - 1) * made)
        candidates.append(
            _Candidate(runs, spec, now, more * each, each, is_wide(spec, plan.target_size))
        )
    return candidates


def repetitions_for(certainty: Certainty, made: int) -> int | None:
    """Return the repetitions that an experiment needs, by its own scatter and that of its peers."""
    expected, allowed = certainty["expected_ns"], certainty["allowed_ns"]
    if (
        certainty["certainly_converged"]
        or certainty["cannot_converge"]
        or expected is None
        or not allowed
    ):
        return made
    own, supported = needed_repetitions(made, expected / allowed), certainty["supported_ns"]
    if own is None:
        return None
    # More repetitions estimate the correlation of neighbours better: no reason to give up.
    own = min(ceil(own * (certainty["widened"] or 1.0)), MAX_REPETITIONS)
    if supported is None:
        return max(own, certainty["fewest"])
    if max(expected, supported) <= allowed and made < certainty["fewest"]:
        return certainty["fewest"]
    theirs = needed_repetitions(
        made, supported / allowed, (certainty["degrees"] or 0.0) - (made - 1)
    )
    return None if theirs is None else max(own, theirs, certainty["fewest"])


def needed_repetitions(made: int, excess: float, peer_degrees: float = 0.0) -> int | None:
    """Return the repetitions that narrow an interval enough, by the scatter so far.

    >>> needed_repetitions(3, 2.0), needed_repetitions(12, 1.2), needed_repetitions(12, 5.0)
    (8, 18, None)
    """
    needed = float(made)
    for _ in range(4):
        narrower = _student(max(needed, made) + peer_degrees) / _student(made + peer_degrees)
        needed = made * (excess * min(narrower, 1.0)) ** 2
    if needed > MAX_REPETITIONS:
        return None
    fewest = max(FEWEST, ceil(LEAST_GROWTH * made))
    return min(max(ceil(MARGIN * needed), fewest), MAX_REPETITIONS)


def _student(repetitions: float) -> float:
    return float(_native.student_quantile(1 - CONFIDENCE, repetitions - 1))


def _passes(granted: Sequence[_Candidate], others: Sequence[_Candidate], left_ios: int) -> _Passes:
    """Return, per pass, the experiments to repeat and their repetition numbers.

    Passes with few writing runs are filled up to `MIN_WRITERS_PER_PASS`, first with the cheapest
    experiments, of these with the least repeated. If more than half of a pass would have to be
    filled up, nothing in it writes, as the cost exceeds the gain. The round ends when no I/Os are
    left.
    """
    made: Counter[int] = Counter()
    passes: _Passes = []
    writers = [
        candidate
        for candidate in (*granted, *others)
        if candidate.spec.writes and not candidate.is_wide
    ]
    for number in range(1, max((candidate.repetitions for candidate in granted), default=0) + 1):
        repeated = [candidate for candidate in granted if number <= candidate.repetitions]
        writing = sum(candidate.spec.writes for candidate in repeated)
        least = min(MIN_WRITERS_PER_PASS, len(writers))
        if 2 * writing < least:
            repeated = [candidate for candidate in repeated if not candidate.spec.writes]
        elif writing < least:
            waiting = [candidate for candidate in writers if candidate not in repeated]
            waiting = [
                candidate
                for candidate in waiting
                if len(candidate.runs) + made[id(candidate)] < MAX_REPETITIONS
            ]
            waiting.sort(
                key=lambda candidate: (
                    candidate.ios_each,
                    len(candidate.runs) + made[id(candidate)],
                )
            )
            filling = waiting[: least - writing]
            left_ios -= sum(candidate.ios_each for candidate in filling)
            if left_ios < 0:
                break
            repeated += filling
        if not repeated:
            break
        made.update(map(id, repeated))
        passes.append([(candidate, made[id(candidate)]) for candidate in repeated])
    return passes


def _lay_out(plan: Plan, passes: _Passes) -> list[PlannedRun]:
    """Lay out a round pass by pass, so that repetitions of one experiment lie apart.

    Mixes with sequential writes need half of the device undisturbed: they come before the others,
    as in a plan.
    """
    runs: list[PlannedRun] = []
    for one_pass in passes:
        repetitions = [_repetition(plan, candidate, number) for candidate, number in one_pass]
        runs += shuffle_disturbing(repetitions, plan.seed, plan.target_size)
    runs.sort(key=lambda run: run.spec.writes_sequentially and not isinstance(run.spec, Mix))
    return [
        replace(run, id=f"{number:04d}-{run.id}")
        for number, run in enumerate(runs, start=len(plan.runs) + 1)
    ]


def _repetition(plan: Plan, candidate: _Candidate, number: int) -> PlannedRun:
    first = candidate.runs[0]
    bare = replace(first, id=first.id.split("-", 1)[1], spec=candidate.spec, reset_before=False)
    return repeat(bare, len(candidate.runs) + number, plan.seed, plan.target_size)


def next_rate(plan: Plan, finished: int, writer: ResultsWriter) -> Plan | None:
    """Return the plan with another rate; None if the knee is known, or the sweep does not show it.

    The first `finished` runs of the plan are made, and none of the others.
    """
    runs = [run for run in plan.runs if run.micro_benchmark == OFFERED_LOAD]
    if not runs or any(run.micro_benchmark == OFFERED_LOAD for run in plan.runs[finished:]):
        return None
    votes: dict[int, list[bool]] = defaultdict(list)
    for run in runs:
        trace = writer.trace_of(run.id)
        if trace is not None and isinstance(run.spec, Mix):
            interval = run.spec.interval or 0
            votes[run.value].append(
                offered_load.is_sustained(trace.elapsed_ns(), interval, len(trace))
            )
    sustained = {rate: 2 * sum(each) > len(each) for rate, each in votes.items()}
    high = min((rate for rate, keeps_up in sustained.items() if not keeps_up), default=None)
    low = max((rate for rate in sustained if high is not None and rate < high), default=None)
    if high is None or low is None or high <= offered_load.RESOLUTION * low:
        return None
    rate = round((low * high) ** 0.5)
    more = [
        _at_rate(plan, run, rate, len(plan.runs) + number)
        for number, run in enumerate((run for run in runs if run.value == low), start=1)
    ]
    return replace(plan, runs=(*plan.runs[:finished], *more, *plan.runs[finished:]))


def _at_rate(plan: Plan, run: PlannedRun, rate: int, number: int) -> PlannedRun:
    """Return a run at another rate, with the same repetition and target space."""
    assert isinstance(run.spec, Mix)
    repetition = f"-r{run.repetition}" if run.repetition > 1 else ""
    name = f"{OFFERED_LOAD}-{run.pattern.replace('/', '+')}-{run.parameter}-{rate}{repetition}"
    seed = run_seed(plan.seed, OFFERED_LOAD, run.pattern, rate, run.repetition)
    spec = offered_load.with_rate(run.spec, rate, quick=plan.scale == "quick")
    return replace(
        run, id=f"{number:04d}-{name}", value=rate, spec=spec.but(seed=seed), reset_before=False
    )
