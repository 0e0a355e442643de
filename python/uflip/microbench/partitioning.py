"""Partitioning: sequential patterns over several partitions in turn, as in a merge of runs.

**Source**: uFLIP (CIDR 2009) §3.2 (4) and Table 1: Partitions in [2^0, ..., 2^8], sequential
patterns only; partition i mod Partitions, in each of them one I/O after the other.
**Faithful**: the whole range; the same target for all values of an experiment.
**Simplified**: nothing.
**Ambiguous**: the size of the target is not given. Half of the device, at most 1 GiB: then 256
partitions are 4 MiB each, larger than the blocks of most devices, and the device has room for a
second target. The formula for the offset in a partition needs ⌊i/Partitions⌋ × IOSize instead of
the printed ⌊i/Partitions × IOSize⌋, which would not be whole I/Os.
"""

from uflip.microbench.experiment import Context
from uflip.microbench.finding import Experiments, Means, Ratios, largest_effect, mean_ns
from uflip.microbench.layout import SEQUENTIAL_LABELS, Varying, baseline_spec, by_scale
from uflip.microbench.micro_benchmark import MicroBenchmark
from uflip.spec import Spec

VARYING = Varying("partitioning", "partitions", "")
STANDARD = tuple(2**k for k in range(9))
QUICK = (1, 4, 32, 256)
MAX_TARGET_BYTES = 1 << 30


def target_size(context: Context) -> int:
    """Return the size of the divided target [bytes]: each partition is a whole number of I/Os."""
    ios = min(context.capacity // 2, MAX_TARGET_BYTES) // context.io_size
    most = max(STANDARD)
    # On a small device: the largest power of two, which the smaller degrees divide.
    ios = ios // most * most if ios >= most else 1 << max(ios.bit_length() - 1, 0)
    return ios * context.io_size


def _describe(context: Context, pattern: str, partitions: int) -> Spec:
    return baseline_spec(
        context,
        pattern,
        location="partitioned",
        partitions=partitions,
        target_size=target_size(context),
    )


def finding(measured: Experiments, baselines: Means, ratios: Ratios) -> str:
    """Return the sentence on sequential writes to many partitions."""
    runs = measured.get("SW", ())
    if len(runs) < 2:
        return largest_effect(measured, baselines, ratios)
    first, last = runs[0], runs[-1]
    text = (
        f"With {last['value']} partitions a write costs "
        f"{ratios.times(mean_ns(last) / mean_ns(first), 'SW')} what it costs with {first['value']}"
    )
    if reference := baselines.get("RW"):
        text += f", and {ratios.times(mean_ns(last) / 1e6 / reference, 'SW', 'RW')} a random write"
    return text + "."


MICRO_BENCHMARK = MicroBenchmark(
    name=VARYING.micro_benchmark,
    title="Partitioning",
    experiments=by_scale(VARYING, SEQUENTIAL_LABELS, STANDARD, QUICK, _describe),
    question="How many sequential streams can be interleaved?",
    how_to_read=(
        "Writes stay flat for as many partitions as the device keeps open at a time; "
        "beyond that, interleaved sequential writes cost as much as random ones."
    ),
    finding=finding,
)
