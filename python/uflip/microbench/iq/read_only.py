"""Read-only share: a share of the device is never written again.

::

    40 %    |  random writes               |  written once      |

**Source**: Haas et al. (PVLDB 2025): a zone that gets no writes, of 20 to 90 % of the device.
**Faithful**: the shares; uniform writes to the rest.
**Simplified**: the written part is the beginning of the device, not scattered pages. The first run
writes the whole device.
**Ambiguous**: a device prepared by random writes has pages of both parts in the same blocks. The
collection separates them only as long as it moves the pages that are only read; `long_writes`.
"""

from uflip.microbench.experiment import Context
from uflip.microbench.iq.long_writes import (
    IO_SIZE,
    PATTERN,
    LongWrites,
    long_writes,
    result_of_each,
)
from uflip.microbench.layout import Varying, by_scale
from uflip.spec import Spec

VARYING = Varying("read_only", "read_only_percent", "")
STANDARD = (0, 20, 40, 60, 80, 90)
QUICK = (0, 60)


def _describe(context: Context, _pattern: str, read_only_percent: int) -> Spec:
    io_size = max(IO_SIZE, context.sector)
    written = context.capacity * (100 - read_only_percent) // 100
    return long_writes(context, target_size=max(written // io_size, 1) * io_size)


MICRO_BENCHMARK = LongWrites(
    name=VARYING.micro_benchmark,
    title="Read-only share",
    experiments=by_scale(VARYING, [PATTERN], STANDARD, QUICK, _describe),
    question="What do random writes cost if a share of the device is only read?",
    how_to_read=(
        "A line for each share that is only read [%]. The spare space serves a smaller written "
        "part, so write amplification falls with the share if the device leaves read-only data "
        "where they are. If it does not fall, the device moves them all the same, for example to "
        "level wear."
    ),
    finding=result_of_each(lambda percent: f"{percent} % only read"),
)
