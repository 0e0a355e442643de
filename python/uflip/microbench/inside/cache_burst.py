"""Cache burst: two bursts of writes that need not be durable, with a pause before the second.

::

    time │             ▁▂██████               the cache is full: a write waits for a program
         │▁▁▁▁▁▁▁▁▁▁▁▁▁
         └────────────│──────── written
                    cliff

**Source**: ours, as `cache_cliff` of the suite `today`; Kim et al. (IEEE TC 2012), write buffer.
**Faithful**: small random writes, which fill a cache of pages fastest, and large ones in order,
which fill a cache of bytes fastest; both on a device that holds little data.
**Simplified**: a pause of two seconds between bursts. A cache that needs longer to drain appears
smaller in the second one.
**Ambiguous**: nothing.

**Identifies** the size of the write cache and whether it drains at once or when it is full, by
simulated bursts whose cliffs lie at the same writes; and the rate at which it drains, from the
writes beyond the cliff. **Interval**: all sizes with the same cliffs. **Assumes** that the cache
holds whole mapping units. **Abstains** where a burst has no cliff: the flash is as fast as the
host, or the cache is larger than the burst.
"""

from uflip.durability import CACHED
from uflip.microbench.experiment import Context, Experiment, IoCounts
from uflip.microbench.inside import MIB, Probe
from uflip.microbench.layout import Varying, baseline_spec, lay_out
from uflip.spec import Spec

VARYING = Varying("cache_burst", "io_size", "bytes")
SMALL, LARGE = 4096, 128 << 10
SMALL_BURST_BYTES, PAUSE_NS = 32 * MIB, 2_000_000_000
# Parts of the device that a burst of small, and of large writes covers.
SMALL_PART, LARGE_PART = 16, 16


def experiments(context: Context) -> list[Experiment]:
    """Lay out small random writes, and large ones in order."""
    small, large = (max(size, context.sector) for size in (SMALL, LARGE))
    return [
        lay_out(context, VARYING, "RW", [small], _describe),
        lay_out(context, VARYING, "SW", [large], _describe),
    ]


def _describe(context: Context, pattern: str, io_size: int) -> Spec:
    part = context.capacity // LARGE_PART
    if pattern == "RW":
        part = min(SMALL_BURST_BYTES, context.capacity // SMALL_PART)
    burst = max(part // io_size, 1)
    return baseline_spec(
        context,
        pattern,
        io_size=io_size,
        counts=IoCounts(2 * burst, 0),
        target_size=context.capacity // io_size * io_size,
        time="burst",
        burst=burst,
        pause=PAUSE_NS,
    )


MICRO_BENCHMARK = Probe(
    name=VARYING.micro_benchmark,
    title="Cache burst",
    experiments=experiments,
    durability=CACHED,
    question="How many writes does a cache take before it is full?",
    how_to_read="The trace has a cliff at the write that finds the cache full.",
)
