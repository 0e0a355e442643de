"""Write bursts: two writes at once, then a pause. When can the next command begin?

**Source**: ours, as `read_bursts`.
**Faithful**: writes of a sector, which the link carries in no time worth naming.
**Simplified**: those that read the same die first, or meet an erase, are outliers.
**Ambiguous**: nothing.

**Identifies** the time of a write command: the second write of a pair ends later by it.
**Interval**: half the distance between quartiles over the root of the number of pairs. **Assumes**
that both are executed by one processor, one after the other. **Abstains** where a write cache takes
the data, or link and command take as long.
"""

from uflip.microbench.experiment import Context, Experiment, IoCounts
from uflip.microbench.inside import Probe, window_bytes
from uflip.microbench.layout import Varying, baseline_spec, lay_out
from uflip.spec import Spec

VARYING = Varying("write_bursts", "burst", "")
BURSTS = (2,)
IOS = 256
PAUSE_NS = 20_000_000


def experiments(context: Context) -> list[Experiment]:
    """Lay out pairs of random writes."""
    return [lay_out(context, VARYING, "RW", BURSTS, _describe)]


def _describe(context: Context, pattern: str, burst: int) -> Spec:
    return baseline_spec(
        context,
        pattern,
        io_size=context.sector,
        counts=IoCounts(IOS, 0),
        target_size=window_bytes(context),
        time="burst",
        burst=burst,
        pause=PAUSE_NS,
        queue_depth=max(BURSTS),
    )


MICRO_BENCHMARK = Probe(
    name=VARYING.micro_benchmark,
    title="Write bursts",
    experiments=experiments,
    question="How soon after a write does the next one end?",
    how_to_read="The second of two writes waits for the command of the first.",
)
