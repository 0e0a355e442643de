"""Clear: everything is deallocated, then the window is written in order. A layout for short probes.

**Source**: ours; ATA's TRIM and NVMe's Deallocate.
**Faithful**: trims are I/Os like any other.
**Simplified**: a device without a command to deallocate is only written. Its collection may then
move pages between those of the host, and the layout may be irregular.
**Ambiguous**: the size of the writes; large ones, one at a time, keep their pages together.

**Identifies** the time of a trim, which is a command without data, and the SLC cache, by a cliff of
durable writes. **Interval**: of the median; of the cliff, a few writes.
**Assumes** that the device places pages of sequential writes on its dies in turn; `read_bursts`
tests it. **Abstains** where the device does not deallocate.
"""

from uflip.microbench.experiment import Context, Experiment, IoCounts
from uflip.microbench.inside import MIB, Probe, window_bytes
from uflip.microbench.layout import Varying, baseline_spec, lay_out
from uflip.spec import Spec, basic

VARYING = Varying("clear", "target_size", "bytes")
TRIMS, WRITES = "ST", "SW"
IO_SIZE = 128 << 10
MAX_TRIM_BYTES = 128 << 20
PARTS = 64


def experiments(context: Context) -> list[Experiment]:
    """Lay out the trims of everything, then the writes of the window."""
    window = [window_bytes(context)]
    return [
        lay_out(context, VARYING, TRIMS, window, _describe_trims, why_not=_why_not),
        lay_out(context, VARYING, WRITES, window, _describe_writes),
    ]


def _describe_trims(context: Context, _pattern: str, window: int) -> Spec:
    size = _trim_bytes(context.capacity, window)
    count = context.capacity // size
    return basic(
        "trim",
        "sequential",
        io_size=size,
        target_offset=context.capacity - count * size,
        target_size=count * size,
        io_count=count,
        io_ignore=0,
    )


def _trim_bytes(capacity: int, window: int) -> int:
    """Return the largest size of trims that leave only a part of the window [bytes]."""
    largest = max(min(capacity // PARTS, MAX_TRIM_BYTES) // MIB, 1)
    return next(size * MIB for size in range(largest, 0, -1) if capacity % (size * MIB) < window)


def _describe_writes(context: Context, pattern: str, target_size: int) -> Spec:
    size = max(IO_SIZE, context.sector)
    counts = IoCounts(max(target_size // size, 1), 0)
    return baseline_spec(context, pattern, io_size=size, counts=counts, target_size=target_size)


def _why_not(context: Context, _spec: Spec) -> str | None:
    if context.info.details.deallocates:
        return None
    return "the device has no command to deallocate (discard)"


MICRO_BENCHMARK = Probe(
    name=VARYING.micro_benchmark,
    title="Clear",
    experiments=experiments,
    question="What does a trim cost, and a write after it?",
    how_to_read="ST are the trims, SW the writes of the window, in the order of addresses.",
)
