"""Read arrivals: reads of a sector at random times. Do reads of two dies ever meet at a channel?

::

    in turn    die A │ cells │t│ cells │t│        commands keep reads apart: the same distance in
               die B   │ cells │t│ cells │t│      every round, so that transfers never meet
    at random  die A │ cells │t│ cells │t│        any distance occurs, also less than a transfer
               die B  │ cells │·t│

**Source**: ours; open-loop arrivals as in queueing models of drives.
**Faithful**: Poisson arrivals, whose distances have every length.
**Simplified**: four rates, of which one at least keeps dies busy part of the time.
**Ambiguous**: nothing.

**Identifies** channels, by simulated reads with the same arrivals: a device whose dies share no
channel differs from one with fast channels. **Interval**: none. **Assumes** that a host submits
reads at their arrival. **Abstains** where commands take longer than reads of the cells.
"""

from uflip.microbench.experiment import Context, Experiment, IoCounts
from uflip.microbench.inside import Probe, window_bytes
from uflip.microbench.layout import Varying, baseline_spec, lay_out
from uflip.spec import Spec

VARYING = Varying("read_arrivals", "interval", "ns")
INTERVALS_NS = tuple(20_000 << k for k in range(4))
IOS, DEPTH = 2048, 16


def experiments(context: Context) -> list[Experiment]:
    """Lay out reads by the mean time between arrivals."""
    return [lay_out(context, VARYING, "RR", INTERVALS_NS, _describe)]


def _describe(context: Context, pattern: str, interval: int) -> Spec:
    return baseline_spec(
        context,
        pattern,
        io_size=context.sector,
        counts=IoCounts(IOS, 0),
        target_size=window_bytes(context),
        time="poisson",
        interval=interval,
        queue_depth=DEPTH,
    )


MICRO_BENCHMARK = Probe(
    name=VARYING.micro_benchmark,
    title="Read arrivals",
    experiments=experiments,
    question="Which reads wait for each other if they arrive at random times?",
    how_to_read="Where dies are busy part of the time, reads also meet at channels.",
)
