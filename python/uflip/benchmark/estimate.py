"""Estimate of a plan: its I/Os, its duration, the time left; limits of both, and a time budget.

I/Os, bytes and pauses are counted exactly from the specifications. A run that ends when its mean
has converged has two counts: the smallest and the largest number of I/Os. Time is an assumption
until the first runs are over; the estimate names the assumption.

With a budget a plan uses the part of a device that fits into the time:

::

    --budget 2h    whole plan  ─▶  smaller target  ─▶  one repetition  ─▶  quick  ─▶  fewer runs

On a large device the state takes longer than all runs: it writes four times the target. Each step
includes those before it. The first step that fits is taken, with the largest target that fits, and
each concession is a warning of the plan, so that results contain it.

**Source**: ours. uFLIP (CIDR 2009) §4.1 enforces the state of the whole device.
**Faithful**: without a budget a standard plan uses the whole device.
**Simplified**: a quick plan uses the largest part of a real device that fits into `QUICK_NS`. Time
is the estimate, at the assumed rates (`cost`); `--budget` also ends the runs by the clock.
**Ambiguous**: the order of the steps. A smaller target keeps every question of the suite but those
about a full device. So a target of at least a `FEWEST_PARTS`th comes first; fewer repetitions widen
intervals; the quick scale has fewer values, and runs that do not converge.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil, log, log2
from types import MappingProxyType

from uflip.benchmark import run_lengths
from uflip.benchmark.cost import Cost, cost_of
from uflip.benchmark.interference import group_unpaused, pause_before
from uflip.benchmark.plan import REFRESH_IO_SIZE, Plan
from uflip.benchmark.run_lengths import at_shortest_length
from uflip.data.summary import WarningSummary
from uflip.device.resolve import resolve
from uflip.errors import UsageError
from uflip.microbench.experiment import PlannedRun, Skipped
from uflip.microbench.iq import offered_load
from uflip.spec import Spec
from uflip.units import format_duration_ns, format_size

# Share of a run from which its pace predicts the rest.
PACE_SHARE = 0.05
NOTHING: Mapping[str, float] = MappingProxyType({})
# Prefix of skip reasons that are limits.
MAY = "the plan may "
# A day: a longer pause is probably a typing error.
LONGEST_PAUSE_NS = 86_400 * 10**9


@dataclass(frozen=True)
class RunEstimate:
    """I/Os of one run, and its time on the wall clock [ns].

    Includes the pause before it, and a reset of the state.
    """

    ios: int
    bytes_read: int
    bytes_written: int
    time_ns: int


@dataclass(frozen=True)
class PlanEstimate(RunEstimate):
    """The most that a plan does; `fewest` is the least.

    `each` holds the most for every run, in order.
    """

    runs: int
    fewest: RunEstimate
    assumptions: str
    each: tuple[RunEstimate, ...]


def estimate(plan: Plan) -> PlanEstimate:
    """Count the I/Os of a plan and estimate its duration. The device is not touched."""
    cost = cost_of(plan.device.kind)
    with_pauses = list(zip(plan.runs, _pauses_ns(plan), strict=True))
    each = tuple(
        _with_longer_baseline(plan, run, _estimate_run(plan, run, run.spec, cost, ns), cost, ns)
        for run, ns in with_pauses
    )
    each = _with_further_rates(plan, each)
    fewest = [
        _estimate_run(plan, run, at_shortest_length(run.spec), cost, ns) for run, ns in with_pauses
    ]
    return PlanEstimate(
        **vars(_sum(each)),
        runs=len(each),
        fewest=_sum(fewest),
        assumptions=cost.describe(),
        each=each,
    )


def _sum(runs: Iterable[RunEstimate]) -> RunEstimate:
    each = list(runs)
    return RunEstimate(
        ios=sum(run.ios for run in each),
        bytes_read=sum(run.bytes_read for run in each),
        bytes_written=sum(run.bytes_written for run in each),
        time_ns=sum(run.time_ns for run in each),
    )


def _pauses_ns(plan: Plan) -> list[int]:
    """Return the idle time before each run [ns]."""
    return [
        pause_before(run, before, plan.pause_ns, plan.device)
        for before, run in zip((None, *plan.runs), plan.runs, strict=False)
    ]


def _estimate_run(plan: Plan, run: PlannedRun, spec: Spec, cost: Cost, rest_ns: int) -> RunEstimate:
    totals = resolve(spec, plan.device).totals
    ios, read, written = totals.total_ios, totals.bytes_read, totals.bytes_written
    # A trim transfers nothing, and costs about as much as a write.
    changed = written + totals.bytes_trimmed
    moved = read + changed
    # A command that transfers nothing costs about as much as a write.
    written_ios = ios * changed / moved if moved else ios
    read_ios = ios - written_ios
    pauses_ns = totals.pause_ns + rest_ns
    sequential = written if _is_in_sequence(spec) else 0
    refresh = plan.refresh_bytes(run, written)
    written, written_ios = written + refresh, written_ios + refresh / REFRESH_IO_SIZE
    depth = max((part.processes * spec.depth for part in spec.parts), default=spec.depth)
    time_ns = cost.run_time_ns(
        (read_ios, written_ios), (read, written), pauses_ns, depth, sequential
    )
    if spec.time_limit_ns is not None and time_ns - rest_ns > spec.time_limit_ns:
        share = spec.time_limit_ns / (time_ns - rest_ns)
        ios, read, written = (ceil(each * share) for each in (ios, read, written))
        time_ns = spec.time_limit_ns + rest_ns
    if run.reset_before and plan.state is not None:
        written += plan.state.bytes_written
        time_ns += plan.state.time_ns
    return RunEstimate(ios, read, written, time_ns)


def _is_in_sequence(spec: Spec) -> bool:
    """Return whether all writes of a pattern are sequential, or fill zones one by one."""
    writes = [part for part in spec.parts if part.is_write]
    return bool(writes) and all(part.location in ("sequential", "zones") for part in writes)


def _with_longer_baseline(
    plan: Plan, run: PlannedRun, laid_out: RunEstimate, cost: Cost, rest_ns: int
) -> RunEstimate:
    """Add the longer repeats of a baseline, as on a device that answers from a buffer."""
    longer = plan.longer_baseline(run)
    if longer is None:
        return laid_out
    totals = resolve(longer, plan.device).totals
    ios, written = totals.total_ios, totals.bytes_written
    # Refresh after the longest of them.
    planned_bytes = resolve(run.spec, plan.device).totals.bytes_written
    refresh = plan.refresh_bytes(run, written) - plan.refresh_bytes(run, planned_bytes)
    took_ns = min(cost.run_time_ns((0, ios), (0, written), 0), run_lengths.BASELINE_NS)
    return RunEstimate(
        ios=laid_out.ios + ios,
        bytes_read=laid_out.bytes_read,
        bytes_written=laid_out.bytes_written + written + refresh,
        time_ns=laid_out.time_ns + took_ns + rest_ns,
    )


def _with_further_rates(plan: Plan, each: tuple[RunEstimate, ...]) -> tuple[RunEstimate, ...]:
    """Add the most that a search of the knee takes to the last of its planned runs."""
    indices = [
        n
        for n, run in enumerate(plan.runs)
        if run.micro_benchmark == offered_load.VARYING.micro_benchmark
    ]
    if not indices:
        return each
    runs = [plan.runs[index] for index in indices]
    repetitions = max(run.repetition for run in runs)
    rates = sorted({run.value for run in runs})
    steps = [log(high / low) / log(offered_load.RESOLUTION) for low, high in pairwise(rates)]
    count = max((ceil(log2(step)) for step in steps), default=0) * repetitions
    slowest = max((each[index] for index in indices), key=lambda cost: cost.time_ns)
    last = indices[-1]
    return (*each[:last], _sum([each[last], *count * [slowest]]), *each[last + 1 :])


class TimeLeft:
    """Corrects an estimate by finished runs, and by the current one, pattern by pattern.

    Reads come first in a plan, and their pace does not predict writes, so each pattern has its own.
    """

    def __init__(self, plan: Plan, estimated: PlanEstimate) -> None:
        self._set_plan(plan, estimated)
        self._finished: dict[str, list[tuple[float, float]]] = {}  # (estimated, taken) [ns]
        self._paces: dict[str, float] = {}

    def update_plan(self, plan: Plan) -> None:
        """Use a plan with more runs."""
        self._set_plan(plan, estimate(plan))

    def _set_plan(self, plan: Plan, estimated: PlanEstimate) -> None:
        self._patterns = [run.pattern for run in plan.runs]
        self._times_ns = [run.time_ns for run in estimated.each]
        # In virtual time a pause takes no wall-clock time.
        self._pauses_ns = [0 if plan.device.simulated else ns for ns in _pauses_ns(plan)]

    def record_run(self, index: int, taken_ns: int) -> None:
        """Record the duration of run number `index`, with the pause before it [ns]."""
        pattern = self._patterns[index]
        runs = self._finished.setdefault(pattern, [])
        runs.append((self._times_ns[index], taken_ns))
        # One run may take long for a reason of its own, such as collection in a pause before it.
        runs.sort(key=lambda each: each[1] - each[0])
        estimated, taken = map(sum, zip(*(runs[:-1] or runs), strict=True))
        if estimated:
            self._paces[pattern] = taken / estimated

    def remaining_ns(self, index: int, share_done: float = 0.0, taken_ns: float = 0.0) -> float:
        """Return the time left [ns] when the given share of run number `index` is done.

        `index`: the current run. `share_done`: its finished share, 0 to 1. `taken_ns`: time taken
        so far without the pause before it [ns]. It predicts the rest of the run, and other runs of
        its pattern until one is finished.
        """
        if index >= len(self._times_ns):
            return 0.0
        pattern = self._patterns[index]
        has_pace = taken_ns > 0 and share_done >= PACE_SHARE
        whole_ns = taken_ns / share_done if has_pace else self._expected_ns(index)
        pace = (
            {pattern: (whole_ns + self._pauses_ns[index]) / self._times_ns[index]}
            if has_pace
            else NOTHING
        )
        others = range(index + 1, len(self._times_ns))
        return (1 - share_done) * whole_ns + sum(self._expected_ns(each, pace) for each in others)

    def _expected_ns(self, number: int, paces: Mapping[str, float] = NOTHING) -> float:
        """Return the expected time of a run, from finished runs of its pattern, else `paces`."""
        pattern = self._patterns[number]
        return self._times_ns[number] * self._paces.get(pattern, paces.get(pattern, 1.0))


def within_limits(plan: Plan, max_bytes_written: int | None, max_time_ns: int | None) -> Plan:
    """Leave out runs that exceed a limit.

    Runs are taken in their order as long as they fit. One that does not is skipped with the reason,
    and a smaller one after it may still be made. Runs that follow each other at once (the batches
    of the interference experiment) are taken or left together. A reset that is left out with its
    run is done before the next run that writes sequentially.

    `plan`: the whole plan. `max_bytes_written`: of all runs and resets [bytes]; the state before
    the first run not included. `max_time_ns`: by the estimate [ns]. During execution the clock
    decides, see `execute`.
    """
    if max_bytes_written is None and max_time_ns is None:
        return plan
    included: list[PlannedRun] = []
    skipped = list(plan.skipped)
    written, time_ns, reset_due = 0, 0, False
    costs = estimate(plan).each
    for group in group_unpaused(enumerate(plan.runs)):
        first = group[0][1]
        reset_due = reset_due or first.reset_before
        resets = reset_due and first.spec.writes_sequentially
        # The cost of a postponed reset belongs to the run that it now precedes.
        postponed_reset = plan.state if resets and not first.reset_before else None
        more_bytes = written + sum(costs[index].bytes_written for index, _ in group)
        more_time_ns = time_ns + sum(costs[index].time_ns for index, _ in group)
        more_bytes += postponed_reset.bytes_written if postponed_reset else 0
        more_time_ns += postponed_reset.time_ns if postponed_reset else 0
        reason = None
        if max_bytes_written is not None and more_bytes > max_bytes_written:
            reason = f"{MAY}write {format_size(max_bytes_written)} at most"
        elif max_time_ns is not None and more_time_ns > max_time_ns:
            reason = f"{MAY}take {format_duration_ns(max_time_ns)} at most"
        if reason is not None:
            skipped += [
                Skipped(run.micro_benchmark, run.pattern, run.parameter, run.value, reason)
                for _, run in group
            ]
            continue
        included += [replace(first, reset_before=resets), *(run for _, run in group[1:])]
        reset_due = reset_due and not resets
        written, time_ns = more_bytes, more_time_ns
    return replace(plan, runs=tuple(included), skipped=tuple(skipped))


def check_worth_running(plan: Plan) -> None:
    """Refuse a plan that would end at once, or never."""
    if not plan.runs:
        raise _nothing_left(plan)
    if plan.pause_ns > LONGEST_PAUSE_NS:
        raise UsageError(
            "The pause between runs is too long",
            where="--pause",
            got=format_duration_ns(plan.pause_ns),
            allowed=f"up to {format_duration_ns(LONGEST_PAUSE_NS)}",
            action="give a shorter --pause",
        )


def _nothing_left(plan: Plan) -> UsageError:
    """Return the error for a plan without runs, with the reasons and remedies."""
    reasons = sorted({skip.reason for skip in plan.skipped})
    limited = any(reason.startswith(MAY) for reason in reasons)
    others = "choose other micro-benchmarks (--only, --suite), or another device"
    return UsageError(
        "The plan has no runs",
        where=plan.device.url,
        got=f"{len(plan.skipped)} runs skipped: {'; '.join(reasons)}" if reasons else "no run",
        allowed="a plan of one run or more",
        action=f"raise --budget, --max-time or --max-bytes-written, or {others}"
        if limited
        else others,
    )


QUICK_NS = 600_000_000_000
"""Time of a quick plan on a large device."""
FEWEST_PARTS = 16
# No part is smaller [bytes].
SMALLEST_PART = 1 << 30


@dataclass(frozen=True)
class Reduction:
    """Settings that replace those of the user; None keeps them."""

    target_size: int | None = None
    repetitions: int | None = None
    scale: str | None = None


MakePlan = Callable[[Reduction], Plan]
PreparationTime = Callable[[Plan], int]
"""Plan -> time until the device is in the state of the plan [ns]; 0 if it is in it already."""


def fit_to_budget(
    make: MakePlan,
    preparation_ns: PreparationTime,
    budget_ns: int,
    *,
    fixed: Sequence[str] = (),
    only_target: bool = False,
) -> Plan:
    """Return the plan, reduced until its estimate is within a budget.

    `make`: makes the plan with a reduction. `preparation_ns`: returns the time before the first run
    of a plan. `budget_ns`: time for the state and all runs [ns]. `fixed`: fields of `Reduction`
    that the user has set. `only_target`: reduce the target, and nothing else; a plan that does not
    fit has the smallest one.
    """

    def needed_ns(plan: Plan) -> int:
        return preparation_ns(plan) + estimate(plan).time_ns

    whole = make(Reduction())
    if needed_ns(whole) <= budget_ns:
        return whole
    best = whole
    for step, smallest in _steps(whole, fixed, only_target=only_target):
        sizes = [None, *([] if "target_size" in fixed else _part_sizes(whole, smallest))]
        plan = _largest_fitting(
            [replace(step, target_size=size) for size in sizes], make, needed_ns, budget_ns
        )
        best = _with_warnings(plan, whole, budget_ns)
        if needed_ns(plan) <= budget_ns:
            return best
    return best if only_target else _without_some_runs(best, preparation_ns(best), budget_ns)


def _steps(
    whole: Plan, fixed: Sequence[str], *, only_target: bool
) -> Iterator[tuple[Reduction, int]]:
    """Yield each step, with the smallest part of the device that it may use [bytes]."""
    part = max(whole.device.capacity_bytes // FEWEST_PARTS, SMALLEST_PART)
    yield Reduction(), SMALLEST_PART if only_target else part
    if only_target:
        return
    repetitions = None if "repetitions" in fixed else 1
    if repetitions and whole.repetitions > 1:
        yield Reduction(repetitions=repetitions), part
    scale = None if "scale" in fixed or whole.scale == "quick" else "quick"
    yield Reduction(repetitions=repetitions, scale=scale), SMALLEST_PART


def _part_sizes(whole: Plan, smallest: int) -> list[int]:
    """Return powers of two below the size of the target, in descending order [bytes]."""
    top = (whole.target_size - 1).bit_length() - 1
    return [
        1 << power for power in range(top, smallest.bit_length() - 2, -1) if 1 << power >= smallest
    ]


def _largest_fitting(
    reductions: Sequence[Reduction],
    make: MakePlan,
    needed_ns: Callable[[Plan], int],
    budget_ns: int,
) -> Plan:
    """Return the plan of the first reduction that fits, or of the last one, by bisection."""
    first, last = 0, len(reductions) - 1
    found = make(reductions[last])
    while first < last:
        middle = (first + last) // 2
        plan = make(reductions[middle])
        if needed_ns(plan) <= budget_ns:
            last, found = middle, plan
        else:
            first = middle + 1
    return found


def _without_some_runs(plan: Plan, preparation_ns: int, budget_ns: int) -> Plan:
    """Leave out runs that do not fit after the state."""
    limited = within_limits(plan, None, max(budget_ns - preparation_ns, 0))
    left_out = len(plan.runs) - len(limited.runs)
    warning: WarningSummary = {
        "code": "runs_left_out",
        "message": f"{left_out} of {len(plan.runs)} runs are left out, to take "
        f"{format_duration_ns(budget_ns)} at most",
        "numbers": {"runs_left_out": left_out, "budget_ns": budget_ns},
        "advice": "give a longer --budget, or name micro-benchmarks (--only)",
    }
    return replace(limited, warnings=(*plan.warnings, warning))


def _with_warnings(plan: Plan, whole: Plan, budget_ns: int) -> Plan:
    """Add a warning for each setting that differs from that of the whole plan."""
    limit = f"to take {format_duration_ns(budget_ns)} at most"
    warnings: list[WarningSummary] = []
    if plan.target_size < whole.target_size:
        size, of_all = format_size(plan.target_size), format_size(whole.target_size)
        warnings.append(
            {
                "code": "part_of_device",
                "message": f"The plan uses the first {size} of {of_all}, {limit}: the rest stays "
                "as it is, and write amplification, garbage collection and mapping caches of a "
                "full device are not measured",
                "numbers": {
                    "target_bytes": plan.target_size,
                    "capacity_bytes": whole.target_size,
                    "budget_ns": budget_ns,
                },
                "advice": f"give --target-size {whole.target_size} for all of it",
            }
        )
    if plan.repetitions < whole.repetitions:
        warnings.append(
            {
                "code": "fewer_repetitions",
                "message": f"Each run is made {plan.repetitions} instead of {whole.repetitions} "
                f"times, {limit}: intervals do not contain differences between repetitions",
                "numbers": {
                    "repetitions": plan.repetitions,
                    "of": whole.repetitions,
                    "budget_ns": budget_ns,
                },
                "advice": f"give --repetitions {whole.repetitions}, or a longer --budget",
            }
        )
    if plan.scale != whole.scale:
        warnings.append(
            {
                "code": "reduced_scale",
                "message": f"The scale is {plan.scale} instead of {whole.scale}, {limit}: fewer "
                "values, and runs of a fixed length that may not have converged",
                "numbers": {"budget_ns": budget_ns},
                "advice": f"give --scale {whole.scale}, or a longer --budget",
            }
        )
    return replace(plan, warnings=(*plan.warnings, *warnings))
