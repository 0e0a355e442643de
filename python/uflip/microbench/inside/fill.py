"""Fill: the whole device is written once, in order. How often do its dies erase?

::

    time │ ▄        ▄        ▄     the dies open new blocks, which they erase first
         │▄█▄▄▄▄▄▄▄▄█▄▄▄▄▄▄▄▄█▄▄▄
         └─────────── written

**Source**: ours; uFLIP (CIDR 2009) §4.1, the sequential state; Kim et al. (IEEE TC 2012), erase
unit.
**Faithful**: every sector is written once, in the order of addresses.
**Simplified**: large writes, one at a time.
**Ambiguous**: nothing.

**Identifies** the pages of a block, by the period of slow writes, and the time of an erase, by
which they are slower. **Interval**: of the median of slow writes, and what a command and the link
can hide. **Assumes** that a device that was written before erases a block when it opens one.
**Abstains** where slow writes have no period, as on a new device.
"""

from uflip.microbench.experiment import Context, Experiment, IoCounts
from uflip.microbench.inside import Probe
from uflip.microbench.inside.clear import IO_SIZE, WRITES
from uflip.microbench.layout import Varying, baseline_spec, lay_out
from uflip.spec import Spec

VARYING = Varying("fill", "target_size", "bytes")


def experiments(context: Context) -> list[Experiment]:
    """Lay out the writes of the whole device."""
    size = max(IO_SIZE, context.sector)
    whole = max(context.capacity // size, 1) * size
    return [lay_out(context, VARYING, WRITES, [whole], _describe)]


def _describe(context: Context, pattern: str, target_size: int) -> Spec:
    size = max(IO_SIZE, context.sector)
    counts = IoCounts(target_size // size, 0)
    return baseline_spec(context, pattern, io_size=size, counts=counts, target_size=target_size)


MICRO_BENCHMARK = Probe(
    name=VARYING.micro_benchmark,
    title="Fill",
    experiments=experiments,
    question="What does it cost to write everything once, in order?",
    how_to_read="The mean of the writes of the whole device; `uflip infer` reads their period.",
)
