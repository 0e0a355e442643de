"""Fill level: how does write amplification depend on how full the device is?

::

    100 %   |  random writes                              |
    80 %    |  random writes                   | discarded |

**Source**: Haas et al. (PVLDB 2025): a drive that is filled in part; P. Desnoyers (*Analytic
modeling of SSD write performance*, SYSTOR 2012): space without data is spare space.
**Faithful**: random writes to the part with data; the rest is discarded.
**Simplified**: the discarded part is the end of the device, not scattered. The device gets emptier
from run to run, because a discard takes no writes and filling does.
**Ambiguous**: `long_writes`.
"""

from uflip.microbench.experiment import Context, Experiment
from uflip.microbench.iq.long_writes import (
    IO_SIZE,
    PATTERN,
    LongWrites,
    long_writes,
    result_of_each,
)
from uflip.microbench.layout import Varying, lay_out
from uflip.microbench.today.deallocate import (
    PERCENT,
    TRIMS,
    deallocated_begin,
    further_trims,
    without_trims,
)
from uflip.spec import Spec

VARYING = Varying("fill_level", "deallocated_percent", "")
STANDARD = (0, 10, 20, 40, 60)
QUICK = (0, 40)


def experiments(context: Context) -> list[Experiment]:
    """Lay out discards, and random writes to the rest, by the discarded share."""
    values = QUICK if context.quick else STANDARD
    return [
        lay_out(context, VARYING, pattern, pattern_values, _describe, why_not=without_trims)
        for pattern, pattern_values in ((TRIMS, values[1:]), (PATTERN, values))
    ]


def _describe(context: Context, pattern: str, percent: int) -> Spec:
    if pattern == TRIMS:
        values = QUICK if context.quick else STANDARD
        return further_trims(context, values[values.index(percent) - 1], percent)
    io_size = max(IO_SIZE, context.sector)
    filled = deallocated_begin(context, percent) if percent else context.capacity
    size = max(filled // io_size, 1) * io_size
    return long_writes(context, target_size=size)


MICRO_BENCHMARK = LongWrites(
    name=VARYING.micro_benchmark,
    title="Fill level",
    experiments=experiments,
    question="What do random writes cost if the device is filled in part?",
    how_to_read=(
        "A line for each discarded share [%]. Discarded space is spare space, so write "
        "amplification falls quickly as the device gets emptier. If it does not fall, the device "
        "ignores discards."
    ),
    finding=result_of_each(lambda percent: f"{PERCENT - percent} % full"),
)
