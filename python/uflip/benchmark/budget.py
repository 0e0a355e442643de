"""The part of a device and of a plan that fits into a time, and what is given up for it.

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

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from uflip.benchmark.estimate import estimate, within_limits
from uflip.benchmark.plan import Plan
from uflip.data.summary import WarningSummary
from uflip.units import format_duration_ns, format_size

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
