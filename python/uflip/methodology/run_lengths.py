"""How long runs are: until their mean is known, or as long as the paper says.

**Source**: uFLIP (CIDR 2009) §4.2 names an automatic IOCount as future work; §5.1 has fixed ones.
**Faithful**: `paper` keeps the counts of §5.1.
**Simplified**: a run ends by its budget at the latest; `converged` says whether it had to.
**Ambiguous**: the budgets. What is laid out for a run has room for twice the longest start-up and
ten of the longest periods that baselines may show. Once these are known, a run ends at a
quarter more than the shortest length that follows (`phases`), room for a second look: as many I/Os
again are better spent on repetitions at other times and places (`rounds`).
"""

from dataclasses import replace

from msgspec import structs

from uflip.data.spec import Mix, Spec
from uflip.experiment import PlannedRun
from uflip.microbench.layout import ROUNDS
from uflip.spec import until_converged

# uFLIP §5.1: its shortest run. What happens less often than that may go unseen.
MIN_IOS = 1024
# Of the I/Os that runs of the shortest length make, what there is for all of their repetitions.
TWICE = 2
# A run of seldom slow I/Os on a slow device must end some day.
MAX_TIME_NS = 300_000_000_000
# All I/Os of a mix together: its trace has to fit into memory.
MIX_IOS = 1 << 19


def self_timed(run: PlannedRun) -> PlannedRun:
    """Let a run end when its mean is known; what it was laid out for becomes its budget."""
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
    """Return where a run ends that is not known: a second look is a fifth more I/Os at most."""
    return shortest_ios + -(-shortest_ios // 4)


def shortest(spec: Spec) -> Spec:
    """Return the specification of a run that ends as soon as it may."""
    if spec.stop is None or spec.stop.min_ios is None:
        return spec
    return spec.but(stop=structs.replace(spec.stop, max_ios=spec.stop.min_ios))
