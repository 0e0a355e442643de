"""How much a plan will do, how long it will take, and how much of that is left.

I/Os, bytes and pauses are counted exactly: they follow from the specifications. Time is a guess
until the first runs are over, and the guess says on what it rests.
"""

from dataclasses import dataclass

from uflip.experiment import PlannedRun
from uflip.methodology.plan import Plan
from uflip.run import resolve
from uflip.units import format_duration_ns


@dataclass(frozen=True)
class Cost:
    """What an I/O is assumed to take, on the wall clock."""

    read_ns: float
    write_ns: float
    ns_per_byte: float
    pauses: bool = True
    """Whether pauses take time: in virtual time they do not."""

    def describe(self) -> str:
        """Say it in words."""
        per_mib = format_duration_ns(self.ns_per_byte * 2**20)
        return (
            f"a read takes {format_duration_ns(self.read_ns)}, "
            f"a write {format_duration_ns(self.write_ns)}, and each MiB {per_mib} more"
        )


# A solid-state disk of today behind direct, synchronous I/O, seen through a file system.
_REAL = Cost(read_ns=100_000, write_ns=600_000, ns_per_byte=1.5)
_COSTS = {
    "file": _REAL,
    "block": _REAL,
    "sim": Cost(read_ns=1_000, write_ns=1_500, ns_per_byte=0.06, pauses=False),
    "null": Cost(read_ns=100, write_ns=100, ns_per_byte=0.0),
}


@dataclass(frozen=True)
class RunEstimate:
    """What one run does, and its time on the wall clock [ns], the pause before it included."""

    ios: int
    bytes_read: int
    bytes_written: int
    time_ns: int


@dataclass(frozen=True)
class Estimate:
    """What a plan does. `each` holds the same for every run, in order."""

    runs: int
    ios: int
    bytes_read: int
    bytes_written: int
    time_ns: int
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
    cost = _COSTS[plan.device["kind"]]
    each = tuple(_estimate_run(plan, run, cost) for run in plan.runs)
    return Estimate(
        runs=len(each),
        ios=sum(run.ios for run in each),
        bytes_read=sum(run.bytes_read for run in each),
        bytes_written=sum(run.bytes_written for run in each),
        time_ns=sum(run.time_ns for run in each),
        assumptions=cost.describe(),
        each=each,
    )


def _estimate_run(plan: Plan, run: PlannedRun, cost: Cost) -> RunEstimate:
    totals = resolve(run.spec, plan.device)["totals"]
    ios, read, written = totals["total_ios"], totals["bytes_read"], totals["bytes_written"]
    written_ios = ios * written / (read + written)
    time_ns = (
        (ios - written_ios) * cost.read_ns
        + written_ios * cost.write_ns
        + (read + written) * cost.ns_per_byte
    )
    if cost.pauses:
        time_ns += totals["pause_ns"] + plan.pause_ns
    return RunEstimate(ios, read, written, round(time_ns))


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
