"""Further rates of `offered_load`: a bisection between the highest sustained and the next one.

    sweep       1k ... 32k sustained, 64k too high
    1st to 3rd  45k too high, 38k sustained, 41k sustained: the knee is between 41k and 45k

**Source** Bisection.
**Faithful** Each rate is run as often as those of the plan, and is sustained if most of its runs
are.
**Simplified** The rates of the plan are all run first. A resumed benchmark that has made runs of a
later stage has no further rates.
**Ambiguous** When to end: at `RESOLUTION`. The criterion of a sustained rate adds 5 % of its own
(`offered_load.LATE_FACTOR`).
"""

from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from math import ceil, log, log2

from uflip.benchmark.plan import Plan
from uflip.microbench.experiment import PlannedRun, run_seed
from uflip.microbench.iq import offered_load
from uflip.results import ResultsWriter
from uflip.spec import Mix

NAME = offered_load.VARYING.micro_benchmark
RESOLUTION = 1.1


def next_rate(plan: Plan, finished: int, writer: ResultsWriter) -> Plan | None:
    """Return the plan with another rate; None if the knee is known, or the sweep does not show it.

    The first `finished` runs of the plan are made, and none of the others.
    """
    runs = [run for run in plan.runs if run.micro_benchmark == NAME]
    if not runs or any(run.micro_benchmark == NAME for run in plan.runs[finished:]):
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
    if high is None or low is None or high <= RESOLUTION * low:
        return None
    rate = round((low * high) ** 0.5)
    more = [
        _at_rate(plan, run, rate, len(plan.runs) + number)
        for number, run in enumerate((run for run in runs if run.value == low), start=1)
    ]
    return replace(plan, runs=(*plan.runs[:finished], *more, *plan.runs[finished:]))


def most_rates(runs: list[PlannedRun]) -> int:
    """Return the largest number of further rates, from the runs of a plan."""
    rates = sorted({run.value for run in runs})
    steps = [high / low for low, high in pairwise(rates)]
    return max((ceil(log2(log(step) / log(RESOLUTION))) for step in steps), default=0)


def _at_rate(plan: Plan, run: PlannedRun, rate: int, number: int) -> PlannedRun:
    """Return a run at another rate, with the same repetition and target space."""
    assert isinstance(run.spec, Mix)
    repetition = f"-r{run.repetition}" if run.repetition > 1 else ""
    name = f"{NAME}-{run.pattern.replace('/', '+')}-{run.parameter}-{rate}{repetition}"
    seed = run_seed(plan.seed, NAME, run.pattern, rate, run.repetition)
    spec = offered_load.with_rate(run.spec, rate, quick=plan.scale == "quick")
    return replace(
        run, id=f"{number:04d}-{name}", value=rate, spec=spec.but(seed=seed), reset_before=False
    )
