"""Each stream: random writes through one write stream, or placement handle, after the other.

**Source**: NVM Express Base Specification 2.1, Flexible Data Placement: a write names a placement
handle, and the drive counts bytes of the host and of the medium for all handles together.
**Faithful**: one handle a run, so that the counters before and after a run are those of a handle.
**Simplified**: uniform writes to the whole device through one handle; the others are not written.
**Ambiguous**: handles of a drive may have different types (initially or persistently isolated).
"""

from uflip.microbench.experiment import Context
from uflip.microbench.iq.long_writes import PATTERN, LongWrites, long_writes, result_of_each
from uflip.microbench.layout import Varying, by_scale
from uflip.microbench.streams import MAX_STREAMS, why_no_stream
from uflip.spec import Spec

VARYING = Varying("each_stream", "write_stream", "")
STANDARD = tuple(range(MAX_STREAMS))
QUICK = (0, 1)


def _describe(context: Context, _pattern: str, write_stream: int) -> Spec:
    return long_writes(context, write_stream=write_stream)


MICRO_BENCHMARK = LongWrites(
    name=VARYING.micro_benchmark,
    title="Each stream",
    experiments=by_scale(VARYING, [PATTERN], STANDARD, QUICK, _describe, why_not=why_no_stream),
    question="What do random writes through each write stream cost?",
    how_to_read=(
        "A line for each write stream or placement handle. Streams of one kind have the same rate "
        "and write amplification; one that differs has other blocks, or another kind of isolation."
    ),
    finding=result_of_each(lambda stream: f"stream {stream}"),
    suites=("streams",),
)
