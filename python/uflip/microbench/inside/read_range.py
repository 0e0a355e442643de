"""Read range: random reads by the size of their range. From which range on is the map read, too?

::

    time │          ╱‾‾‾‾‾‾   nearly all reads first read a part of the map
         │ ________╱
         └────────│────────── range
               the part of the map in memory

**Source**: Gupta et al. (ASPLOS 2009), DFTL; *Queenie* (SYSTOR 2022), map cache.
**Faithful**: random reads of 4 KiB, one at a time, on data that was written in order.
**Simplified**: the first half of each run fills the cache, and does not count.
**Ambiguous**: a cache of the data that was read looks the same.

**Identifies** the bytes whose map is cached: the share of quick reads times the range.
**Interval**: the sizes of a cache whose means fit. **Assumes** that a read without its map takes
one more read of flash. **Abstains** where every range takes the same time.
"""

from uflip.microbench.experiment import Context, Experiment, IoCounts
from uflip.microbench.inside import MIB, Probe
from uflip.microbench.layout import Varying, baseline_spec, lay_out
from uflip.spec import Spec

VARYING = Varying("read_range", "target_size", "bytes")
SMALLEST, IO_SIZE, IOS = MIB, 4096, 16_384


def experiments(context: Context) -> list[Experiment]:
    """Lay out random reads, by their range."""
    sizes = []
    size = context.capacity // MIB * MIB
    while size >= SMALLEST:
        sizes.append(size)
        size = size // 4 // MIB * MIB
    return [lay_out(context, VARYING, "RR", sizes[::-1], _describe)]


def _describe(context: Context, pattern: str, size: int) -> Spec:
    io_size = max(IO_SIZE, context.sector)
    return baseline_spec(
        context, pattern, io_size=io_size, counts=IoCounts(IOS, IOS // 2), target_size=size
    )


MICRO_BENCHMARK = Probe(
    name=VARYING.micro_benchmark,
    title="Read range",
    experiments=experiments,
    question="Do random reads take longer on a larger range?",
    how_to_read="A step shows the range whose map is in memory.",
)
