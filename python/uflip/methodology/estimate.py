"""How much a plan will do, how long it will take, and how much of that is left.

I/Os, bytes and pauses are counted exactly: they follow from the specifications. Where a run ends
when its mean is known, there are two counts: the fewest I/Os that it may end with, and the most.
Time is a guess until the first runs are over, and the guess says on what it rests.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from uflip.device.resolving import resolve
from uflip.experiment import PlannedRun
from uflip.methodology.cost import Cost, cost_of
from uflip.methodology.lengths import shortest
from uflip.methodology.plan import Plan
from uflip.spec import Spec


@dataclass(frozen=True)
class RunEstimate:
    """What one run does, and its time on the wall clock [ns].

    The pause before it is included, and so is a reset of the state.
    """

    ios: int
    bytes_read: int
    bytes_written: int
    time_ns: int


@dataclass(frozen=True)
class Estimate:
    """What a plan does at most; `fewest` is what it does at least.

    `each` holds the most for every run, in order.
    """

    runs: int
    ios: int
    bytes_read: int
    bytes_written: int
    time_ns: int
    fewest: RunEstimate
    assumptions: str
    each: tuple[RunEstimate, ...]


def estimate(plan: Plan) -> Estimate:
    """Count what a plan does and guess how long it takes. Nothing is touched.

    Parameters
    ----------
    plan : Plan

    Returns
    -------
    Estimate

    Raises
    ------
    UsageError
        If the native part refuses one of the specifications.
    """
    cost = cost_of(plan.device["kind"])
    each = tuple(_estimate_run(plan, run, run.spec, cost) for run in plan.runs)
    fewest = [_estimate_run(plan, run, shortest(run.spec), cost) for run in plan.runs]
    most = _sum(each)
    return Estimate(
        runs=len(each),
        ios=most.ios,
        bytes_read=most.bytes_read,
        bytes_written=most.bytes_written,
        time_ns=most.time_ns,
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


def _estimate_run(plan: Plan, run: PlannedRun, spec: Spec, cost: Cost) -> RunEstimate:
    totals = resolve(spec, plan.device)["totals"]
    ios, read, written = totals["total_ios"], totals["bytes_read"], totals["bytes_written"]
    written_ios = ios * written / (read + written)
    pauses_ns = totals["pause_ns"] + plan.pause_ns
    time_ns = cost.run_time_ns(ios - written_ios, written_ios, read + written, pauses_ns)
    if run.reset_before and plan.state is not None:
        written += plan.state.bytes_written
        time_ns += plan.state.time_ns
    return RunEstimate(ios, read, written, time_ns)


class TimeLeft:
    """Corrects an estimate by the runs that are over, pattern by pattern.

    Reads come first in a plan: their pace says nothing about writes, so each pattern keeps its own.

    Parameters
    ----------
    plan : Plan
        The plan that is executed.
    estimated : Estimate
        Its estimate.
    """

    def __init__(self, plan: Plan, estimated: Estimate) -> None:
        self._patterns = [run.pattern for run in plan.runs]
        self._times_ns = [run.time_ns for run in estimated.each]
        self._estimated_ns: dict[str, float] = {}
        self._taken_ns: dict[str, float] = {}

    def grown(self, plan: Plan) -> None:
        """Take note that the plan has more runs."""
        self._patterns = [run.pattern for run in plan.runs]
        self._times_ns = [run.time_ns for run in estimate(plan).each]

    def finished(self, index: int, taken_ns: int) -> None:
        """Note how long run number `index` took, with the pause before it [ns]."""
        pattern = self._patterns[index]
        self._estimated_ns[pattern] = self._estimated_ns.get(pattern, 0) + self._times_ns[index]
        self._taken_ns[pattern] = self._taken_ns.get(pattern, 0) + taken_ns

    def after(self, index: int, share_done: float = 0.0) -> float:
        """Return the time left [ns] when the given share of run number `index` is done."""
        left = [self._expected_ns(number) for number in range(index, len(self._times_ns))]
        return sum(left) - share_done * left[0] if left else 0.0

    def _expected_ns(self, number: int) -> float:
        pattern = self._patterns[number]
        estimated = self._estimated_ns.get(pattern, 0)
        pace = self._taken_ns[pattern] / estimated if estimated else 1.0
        return self._times_ns[number] * pace
