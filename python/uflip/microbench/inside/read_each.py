"""Read each: a sector of every 4 KiB of the window, in order, one at a time. Are all pages equal?

::

    time │▔   ▔   ▔   ▔      pages of three kinds, in the order in which they were written
         │ ▔   ▔   ▔   ▔
         │▁  ▁▁  ▁▁  ▁▁
         └─────────── address

**Source**: Grupp et al. (MICRO 2009) on fast and slow pages; the kinds of pages are LSB, CSB, MSB.
**Faithful**: each page of the window is read by itself.
**Simplified**: 4 KiB are the smallest page; larger pages are read several times.
**Ambiguous**: nothing.

**Identifies** the read times of kinds of pages, as groups of response times, and with them the bits
of a cell. `read_bursts` subtracts the time of each address from the response times of bursts.
**Interval**: of the median of a group. **Assumes** that data in order alternates between the kinds
of pages. **Abstains** from kinds whose times differ by less than 3 %.
"""

from uflip.microbench.experiment import Context, Experiment, IoCounts
from uflip.microbench.inside import Probe, window_bytes
from uflip.microbench.layout import Varying, baseline_spec, lay_out
from uflip.spec import Spec

VARYING = Varying("read_each", "incr", "ios")
STEP_BYTES = 4096


def experiments(context: Context) -> list[Experiment]:
    """Lay out the reads of the window."""
    step = max(STEP_BYTES // context.sector, 1)
    return [lay_out(context, VARYING, "RR", [step], _describe)]


def _describe(context: Context, pattern: str, step: int) -> Spec:
    window = window_bytes(context)
    return baseline_spec(
        context,
        pattern,
        location="ordered",
        incr=step,
        io_size=context.sector,
        counts=IoCounts(window // (step * context.sector), 0),
        target_size=window,
    )


MICRO_BENCHMARK = Probe(
    name=VARYING.micro_benchmark,
    title="Read each",
    experiments=experiments,
    question="Do all pages take the same time to read?",
    how_to_read="The response times of the trace have a band for each kind of page.",
)
