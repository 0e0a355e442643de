"""Write size: random writes of increasing size, one at a time. From which size on are they whole?

::

    time │████ ████ ████
         │████ ████ ████ ███  ███  ████    a part of a unit: read, modify, write
         └512──1K───2K───4K───8K───16K     a whole unit: only write

**Source**: Kim et al. (IEEE TC 2012), write unit; uFLIP (CIDR 2009) §3.2 (1), granularity.
**Faithful**: aligned random writes, one at a time, durable as the run is.
**Simplified**: within the window that `clear` wrote in order.
**Ambiguous**: nothing.

**Identifies** the mapping unit, the smallest size without the step, and the program time, what is
left of a write of a page without command, link and transfer. **Interval**: that of the times that
are subtracted. **Assumes** that a part of a unit needs a read. **Abstains** from both where a
write cache takes the data.
"""

from uflip.microbench.experiment import Context, Experiment, IoCounts
from uflip.microbench.inside import Probe, window_bytes
from uflip.microbench.layout import Varying, baseline_spec, lay_out
from uflip.spec import Spec

VARYING = Varying("write_size", "io_size", "bytes")
SIZES = tuple(512 << k for k in range(8))
IOS = 64
PAUSE_NS = 50_000_000


def experiments(context: Context) -> list[Experiment]:
    """Lay out random writes by size, each after a pause, in which collection ends."""
    return [lay_out(context, VARYING, "RW", SIZES, _describe)]


def _describe(context: Context, pattern: str, io_size: int) -> Spec:
    return baseline_spec(
        context,
        pattern,
        io_size=io_size,
        counts=IoCounts(IOS, 0),
        target_size=window_bytes(context),
        time="pause",
        pause=PAUSE_NS,
    )


MICRO_BENCHMARK = Probe(
    name=VARYING.micro_benchmark,
    title="Write size",
    experiments=experiments,
    question="From which size on does a write need no read?",
    how_to_read="Where the line falls, the I/O covers a whole mapping unit.",
)
