"""Read beside writes: a read of a sector for each durable write. Does a read wait for a program?

::

    without    │ program of the die ··············│ cells │t│     up to a program
    suspend    │ program │stop│ cells │t│ the rest ·········     up to the time to stop

**Source**: Wu & He (FAST 2012), program and erase suspension; `read_under_write` of the suite
`today`.
**Faithful**: reads and writes on the same dies, with a queue.
**Simplified**: one depth, and as many reads as writes.
**Ambiguous**: a wait for an erase looks like one for several programs.

**Identifies** whether programs stop for a read, and how long that takes: the longest waits.
**Interval**: of the median of the waits that are neither short nor for another read. **Assumes**
that a queue of four meets a die that programs. **Abstains** where too few reads meet one.
"""

from uflip.microbench.experiment import Context, Experiment
from uflip.microbench.inside import Probe, window_bytes
from uflip.microbench.layout import Varying, lay_out
from uflip.spec import Spec, baseline, mix

VARYING = Varying("read_beside_writes", "queue_depth", "")
PATTERN = "RR/RW"
DEPTH, IOS, WRITE_BYTES = 4, 2048, 16 << 10


def experiments(context: Context) -> list[Experiment]:
    """Lay out the reads and the writes."""
    return [lay_out(context, VARYING, PATTERN, [DEPTH], _describe)]


def _describe(context: Context, _pattern: str, depth: int) -> Spec:
    window = window_bytes(context)
    reads = baseline("RR", io_size=context.sector, target_size=window)
    writes = baseline("RW", io_size=max(WRITE_BYTES, context.sector), target_size=window)
    return mix(reads, writes, 1, queue_depth=depth, io_count=IOS, io_ignore=0)


MICRO_BENCHMARK = Probe(
    name=VARYING.micro_benchmark,
    title="Read beside writes",
    experiments=experiments,
    question="Does a read wait until a program is over?",
    how_to_read="The slowest reads take as long as a program, or only as long as it takes to stop.",
)
