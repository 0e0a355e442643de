"""Hot stream: hot data in a write stream of its own, against hot and cold data in one.

**Source**: R. Stoica & A. Ailamaki (PVLDB 2013): data of different update frequencies should not
share blocks; NVM Express Flexible Data Placement, with which a host keeps them apart.
**Faithful**: the same addresses in both runs; only the stream of the hot writes differs.
**Simplified**: two areas: a tenth of the addresses gets nine tenths of the writes.
**Ambiguous**: a device may separate hot data by itself; then both runs have the same result.
"""

from uflip.microbench.experiment import Context, Experiment
from uflip.microbench.iq.long_writes import PATTERN, LongWrites, long_writes, result_of_each
from uflip.microbench.layout import Varying, lay_out
from uflip.microbench.streams import why_no_stream
from uflip.spec import Spec

VARYING = Varying("hot_stream", "hot_write_stream", "")
VALUES = (0, 1)
HOT_IO_PERCENT, HOT_SPACE_PERCENT = 90, 10


def experiments(context: Context) -> list[Experiment]:
    """Lay out skewed writes, by the stream of the hot ones."""
    return [lay_out(context, VARYING, PATTERN, VALUES, _describe, why_not=why_no_stream)]


def _describe(context: Context, _pattern: str, hot_write_stream: int) -> Spec:
    return long_writes(
        context,
        location="hotcold",
        hot_io_percent=HOT_IO_PERCENT,
        hot_space_percent=HOT_SPACE_PERCENT,
        hot_write_stream=hot_write_stream,
    )


MICRO_BENCHMARK = LongWrites(
    name=VARYING.micro_benchmark,
    title="Hot stream",
    experiments=experiments,
    question="What does a write stream for hot data save?",
    how_to_read=(
        "Stream 0: hot and cold writes share a stream. Stream 1: the hot ones have their own. The "
        "difference in write amplification is what the host's knowledge saves."
    ),
    finding=result_of_each(lambda stream: "own stream" if stream else "one stream"),
    suites=("streams",),
)
