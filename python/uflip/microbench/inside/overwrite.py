"""Overwrite: random writes to a whole device, with a queue. When is no free block left?

::

    rate │███████████
         │███████████▆▅▄▃▃▂▂▂▂▂▂▂    free, or without valid pages   │ pages must move
         └───────────│──────────
               spare space

**Source**: ours; the preparation of the SNIA PTS; Desnoyers (SYSTOR 2012) and Haas et al. (PVLDB
2025) on write amplification, spare space and victims.
**Faithful**: uniform random writes until the rate is nearly steady.
**Simplified**: a little more than the device holds; `uflip.inference` compares the whole course
with a simulated one, so that no steady state is needed.
**Ambiguous**: nothing.

**Identifies** the spare space, by the writes until pages move, and with `overwrite_part` the victim
policy.
**Interval**: see `uflip.inference.collection`. **Assumes** that the device is a page map, and that
every die collects for itself. The writes need not be durable: they are many times a write cache.
**Abstains** where several policies give the same course.
"""

from uflip.durability import CACHED
from uflip.microbench.experiment import Context, Experiment, IoCounts
from uflip.microbench.inside import Probe
from uflip.microbench.layout import Varying, baseline_spec, lay_out
from uflip.spec import Spec

VARYING = Varying("overwrite", "target_size", "bytes")
IO_SIZE = 16 << 10
DEPTH = 32
# Written bytes, in percent of the device.
WRITTEN_PERCENT = 115


def experiments(context: Context) -> list[Experiment]:
    """Lay out the random writes to the whole device."""
    size = max(IO_SIZE, context.sector)
    whole = max(context.capacity // size, 1) * size
    return [lay_out(context, VARYING, "RW", [whole], _describe)]


def _describe(context: Context, pattern: str, target_size: int) -> Spec:
    size = max(IO_SIZE, context.sector)
    counts = IoCounts(max(target_size * WRITTEN_PERCENT // 100 // size, 1), 0)
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
    title="Overwrite",
    experiments=experiments,
    durability=CACHED,  # durable writes of parts of a page would pad it
    question="How much can be overwritten before pages must move?",
    how_to_read="While the line is low there is free space, and no page moves.",
)
