"""Length of runs: until their mean has converged, or fixed as in the paper.

**Source**: uFLIP (CIDR 2009) §4.2 names an automatic IOCount as future work; §5.1 has fixed ones.
**Faithful**: `paper` keeps the counts of §5.1.
**Simplified**: a run ends by its budget at the latest; `converged` records whether it had to.
**Ambiguous**: the budgets. The planned length has room for twice the longest start-up and ten of
the longest periods that baselines may show. Once these are known, a run ends at a quarter more than
the resulting shortest length (`phases`), room for a second look: more I/Os are better spent on
repetitions at other times and places (`rounds`).
"""

from dataclasses import replace

from msgspec import structs

from uflip.experiment import PlannedRun
from uflip.microbench.layout import ROUNDS
from uflip.spec import Mix, Spec, until_converged

# uFLIP §5.1: its shortest run. Rarer events may go unseen.
MIN_IOS = 1024
# Budget of all repetitions, relative to the I/Os of runs of the shortest length.
TWICE = 2
# Upper limit for a run with rare slow I/Os on a slow device.
MAX_TIME_NS = 300_000_000_000
# All I/Os of a mix together: its trace has to fit into memory.
MIX_IOS = 1 << 19


def with_stop_rule(run: PlannedRun) -> PlannedRun:
    """Let a run end when its mean has converged; its planned length becomes its budget."""
    spec = run.spec
    budget = spec.ios
    if isinstance(spec, Mix):
        budget = min(budget, MIX_IOS // (spec.turns + 1))
    fewest = max(MIN_IOS, ROUNDS * spec.depth)
    stopped = until_converged(
        spec, min_ios=min(fewest, budget), max_ios=budget, max_time_ns=MAX_TIME_NS
    )
    return replace(run, spec=stopped)


def longest(shortest_ios: int) -> int:
    """Return the largest length of an unconverged run: a second look needs at most a fifth more."""
    return shortest_ios + -(-shortest_ios // 4)


def shortest(spec: Spec) -> Spec:
    """Return the specification of a run of the shortest allowed length."""
    if spec.stop is None or spec.stop.min_ios is None:
        return spec
    return spec.but(stop=structs.replace(spec.stop, max_ios=spec.stop.min_ios))
