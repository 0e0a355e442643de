"""Open zones: several zones are written in turn. How many does the device keep apart?

::

    1 open    |▓▓▓▓▓▓▓▓|        |▓▓▓>    |        |        |
    3 open    |▓▓▓>    |        |▓▓▓>    |        |▓▓▓>    |     in turn, a write each

**Source**: Haas et al. (PVLDB 2025): an increasing number of zones that are written at a time.
**Faithful**: as `zone_size`.
**Simplified**: the zones of a set begin and end together (location `zones`).
**Ambiguous**: their size: `ZONE_BYTES`, smaller on a small device.
"""

from uflip.microbench.experiment import Context
from uflip.microbench.iq.long_writes import LongWrites, result_of_each
from uflip.microbench.iq.zone_size import (
    PATTERN,
    scaled,
    size_of_write,
    why_not,
    zone_writes,
)
from uflip.microbench.layout import Varying, by_scale
from uflip.spec import Spec

VARYING = Varying("open_zones", "open_zones", "")
ZONE_BYTES, QUICK_ZONE_BYTES = 1 << 30, 64 << 20
STANDARD = (1, 2, 4, 8, 16)
QUICK = (1, 8)


def _describe(context: Context, _pattern: str, open_zones: int) -> Spec:
    zone_bytes = QUICK_ZONE_BYTES if context.quick else ZONE_BYTES
    zone_bytes = max(scaled(context, zone_bytes), size_of_write(context))
    return zone_writes(context, zone_bytes, open_zones)


MICRO_BENCHMARK = LongWrites(
    name=VARYING.micro_benchmark,
    title="Open zones",
    experiments=by_scale(VARYING, [PATTERN], STANDARD, QUICK, _describe, why_not=why_not),
    question="How many zones can be written at a time at the cost of one?",
    how_to_read=(
        "A line for each number of zones that are written in turn. A device that puts all writes "
        "into one block mixes the zones: data that are discarded at different times share a block, "
        "and write amplification rises."
    ),
    finding=result_of_each(lambda zones: f"{zones} open", PATTERN),
    rounds=(PATTERN,),
)
