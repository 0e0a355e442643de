"""Overwrite a part: random writes to an eighth of the device. Does the rest move all the same?

::

    blocks   | cold      | cold      | hot  ·  ·  | cold      | ·  hot  ·  |
    greedy                             collects these, nearly empty
    cyclic     collects these, full, in their turn

**Source**: ours; Van Houdt (SIGMETRICS 2013) on victims under hot and cold data; Haas et al. (PVLDB
2025), hot zones and read-only shares.
**Faithful**: a uniformly written part, and the rest written once.
**Simplified**: one share and one length.
**Ambiguous**: nothing.

**Identifies** the victim policy: collecting in turn moves the cold pages, collecting the emptiest
block leaves them. **Interval**: none; policies with the same course are listed. **Assumes** that
the device is a page map. **Abstains** where several policies give the same course.
"""

from uflip.durability import CACHED
from uflip.microbench.experiment import Context, Experiment, IoCounts
from uflip.microbench.inside import Probe
from uflip.microbench.inside.overwrite import DEPTH, IO_SIZE
from uflip.microbench.layout import Varying, baseline_spec, lay_out
from uflip.spec import Spec

VARYING = Varying("overwrite_part", "target_size", "bytes")
# Written bytes, in percent of the device, and the part that they are written to.
WRITTEN_PERCENT = 40
PART = 8


def experiments(context: Context) -> list[Experiment]:
    """Lay out the random writes to the part."""
    size = max(IO_SIZE, context.sector)
    part = max(context.capacity // PART // size, 1) * size
    return [lay_out(context, VARYING, "RW", [part], _describe)]


def _describe(context: Context, pattern: str, target_size: int) -> Spec:
    size = max(IO_SIZE, context.sector)
    counts = IoCounts(max(context.capacity * WRITTEN_PERCENT // 100 // size, 1), 0)
    return baseline_spec(
        context,
        pattern,
        io_size=size,
        counts=counts,
        target_size=target_size,
        queue_depth=DEPTH,
    )


MICRO_BENCHMARK = Probe(
    name=VARYING.micro_benchmark,
    title="Overwrite a part",
    experiments=experiments,
    durability=CACHED,  # durable writes of parts of a page would pad it
    question="Do pages move that are not written any more?",
    how_to_read="Lower than `overwrite` where cold pages stay in place.",
)
