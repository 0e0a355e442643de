"""Read size: random reads of increasing size, one at a time. What does a byte cost?

**Source**: uFLIP (CIDR 2009) §3.2 (1), granularity; Kim et al. (IEEE TC 2012), read unit.
**Faithful**: aligned random reads, one at a time.
**Simplified**: within the window that `clear` wrote in order.
**Ambiguous**: nothing.

**Identifies** the rate of the host link, and whether a part of a page is transferred alone: the
slope of the response time below the page size. **Interval**: of the slope through medians, from
their rounding and scatter. **Assumes** that reads are not cached. **Abstains** where the slope is
no larger than its error.
"""

from uflip.microbench.experiment import Context, Experiment, IoCounts
from uflip.microbench.inside import Probe, window_bytes
from uflip.microbench.layout import Varying, baseline_spec, lay_out
from uflip.spec import Spec

VARYING = Varying("read_size", "io_size", "bytes")
SIZES = tuple(512 << k for k in range(12))
IOS = 96


def experiments(context: Context) -> list[Experiment]:
    """Lay out random reads by size."""
    return [lay_out(context, VARYING, "RR", SIZES, _describe)]


def _describe(context: Context, pattern: str, io_size: int) -> Spec:
    window = window_bytes(context)
    return baseline_spec(
        context, pattern, io_size=io_size, counts=IoCounts(IOS, 0), target_size=window
    )


MICRO_BENCHMARK = Probe(
    name=VARYING.micro_benchmark,
    title="Read size",
    experiments=experiments,
    question="What does a read cost as it grows, on data that was written in order?",
    how_to_read="The slope is the time of a byte on the narrowest part of its path.",
)
