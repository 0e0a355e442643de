"""Read bursts: a few reads of a sector at once, then a pause. Which addresses meet at a die?

::

    different channels    │cmd│ cells │t│
                              │cmd│ cells │t│          later by a command
    same channel          │cmd│ cells │t│
                              │cmd│ cells ··│t│        later by a transfer, if that is longer
    same die              │cmd│ cells │t│
                              │cmd│ ········│ cells │t│   later by cells and transfer

**Source**: ours; F. Chen et al. (HPCA 2011; TOS 2016) find chunk and interleaving by strides.
**Faithful**: reads at known distances on data that was written in order.
**Simplified**: distances are those of random addresses, so no page size need be known.
**Ambiguous**: nothing.

**Identifies** page, dies and their order from the pairs that meet at a die: addresses whose pages
are a multiple of the number of dies apart. The time between two reads that do not meet is that of a
command. Channels, and the division of a read into cells and transfer, come from larger bursts, by
a comparison with simulated ones. **Interval**: settings whose bursts are as close to the measured
ones as repetitions are. **Assumes** that pages are placed in turn. **Abstains** where pairs do not
repeat with any number of dies; from channels where transfers are hidden behind commands.
"""

from uflip.microbench.experiment import Context, Experiment, IoCounts
from uflip.microbench.inside import Probe, window_bytes
from uflip.microbench.layout import Varying, baseline_spec, lay_out
from uflip.spec import Spec

VARYING = Varying("read_bursts", "burst", "")
BURSTS = {2: 4096, 4: 2048, 16: 4096}
"""Reads of a burst, and reads in all."""
PAUSE_NS = 5_000_000


def experiments(context: Context) -> list[Experiment]:
    """Lay out bursts of random reads by their number."""
    return [lay_out(context, VARYING, "RR", BURSTS, _describe)]


def _describe(context: Context, pattern: str, burst: int) -> Spec:
    return baseline_spec(
        context,
        pattern,
        io_size=context.sector,
        counts=IoCounts(BURSTS[burst], 0),
        target_size=window_bytes(context),
        time="burst",
        burst=burst,
        pause=PAUSE_NS,
        queue_depth=max(BURSTS),
    )


MICRO_BENCHMARK = Probe(
    name=VARYING.micro_benchmark,
    title="Read bursts",
    experiments=experiments,
    question="Which reads wait for each other?",
    how_to_read="The more reads are made at once, the more of them meet at a die or a channel.",
)
