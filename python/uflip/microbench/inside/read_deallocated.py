"""Read deallocated: reads of a range that holds no data. What does a command cost without flash?

**Source**: ours; the range is what `clear` deallocated and did not write.
**Faithful**: random reads, one at a time.
**Simplified**: a range of 1 MiB at the end of the device.
**Ambiguous**: a device may read a page of its map, or answer with zeros it keeps on flash; then
the reads cost as much as others, and nothing follows from them.

**Identifies** the time of a read command, and of a byte on the host link. **Interval**: of the line
through the medians. **Assumes** that the answer needs no flash. **Abstains** where the device does
not deallocate, or the reads take as long as those of data.
"""

from uflip.microbench.experiment import Context, Experiment, IoCounts
from uflip.microbench.inside import Probe, deallocated_bytes
from uflip.microbench.layout import Varying, baseline_spec, lay_out
from uflip.spec import Spec

VARYING = Varying("read_deallocated", "io_size", "bytes")
SIZES = tuple(512 << k for k in range(8))
IOS = 32


def experiments(context: Context) -> list[Experiment]:
    """Lay out random reads by size."""
    return [lay_out(context, VARYING, "RR", SIZES, _describe, why_not=_why_not)]


def _describe(context: Context, pattern: str, io_size: int) -> Spec:
    size = deallocated_bytes(context) or io_size
    return baseline_spec(
        context,
        pattern,
        io_size=io_size,
        counts=IoCounts(IOS, 0),
        target_offset=context.capacity - size,
        target_size=size,
    )


def _why_not(context: Context, _spec: Spec) -> str | None:
    if deallocated_bytes(context):
        return None
    return "the device has no command to deallocate (discard)"


MICRO_BENCHMARK = Probe(
    name=VARYING.micro_benchmark,
    title="Read deallocated",
    experiments=experiments,
    question="What does a read cost that needs no flash?",
    how_to_read="The line begins at the time of a command, and rises with the link.",
)
