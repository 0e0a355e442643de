"""Hot zone: a small part of the device gets most of the writes.

::

    90    ▇▁▁▁▁▁▁▁▁▁    10 % of the addresses get 90 % of the writes

**Source**: Haas et al. (PVLDB 2025): two zones, of 60/40 to 95/5.
**Faithful**: the shares: 100 − x per cent of the addresses get x per cent of the writes.
**Simplified**: the hot addresses are those of the engine's `hotcold`: one extent, not scattered. A
page map does not see the difference.
**Ambiguous**: `long_writes`.
"""

from uflip.microbench.experiment import Context
from uflip.microbench.iq.long_writes import PATTERN, LongWrites, long_writes, result_of_each
from uflip.microbench.layout import Varying, by_scale
from uflip.spec import Spec

VARYING = Varying("hot_zone", "hot_io_percent", "")
# Share of the writes that the hot zone gets [%]; it is the rest of the addresses.
STANDARD = (60, 70, 80, 90, 95)
QUICK = (60, 90)


def _describe(context: Context, _pattern: str, hot_io_percent: int) -> Spec:
    return long_writes(
        context,
        location="hotcold",
        hot_io_percent=hot_io_percent,
        hot_space_percent=100 - hot_io_percent,
    )


MICRO_BENCHMARK = LongWrites(
    name=VARYING.micro_benchmark,
    title="Hot zone",
    experiments=by_scale(VARYING, [PATTERN], STANDARD, QUICK, _describe),
    question="What do random writes cost if a small zone gets most of them?",
    how_to_read=(
        "A line for each share of the writes that the hot zone gets [%]; the zone is the remaining "
        "share of the addresses. If the device stores hot and cold data in separate blocks, write "
        "amplification falls with the share."
    ),
    finding=result_of_each(lambda percent: f"{percent}/{100 - percent}"),
)
