"""Rewrite: the same sectors again and again, then one write each to places far apart.

::

    time │   █   █   █       every block's worth of rewrites fills its log, which is merged (BAST)
         │▁▁▁▁▁▁▁▁▁▁▁▁▁      rewrites leave empty blocks: nothing moves (page map, superblock)
         │      ███████      one more block than there are logs: every write merges one
         │▁▁▁▁▁▁
         └────────── writes

**Source**: uFLIP (CIDR 2009) §3.2, order (Incr = 0) and partitioning; Kim et al. (2002), Lee et al.
(ACM TECS 2007) and Kang et al. (EMSOFT 2006) on merges.
**Faithful**: in-place writes of 4 KiB, one at a time, first 48 KiB from the beginning of the
device, which is no first page of a block, then at its beginning.
**Simplified**: places far apart follow each other by the golden section of the device, so that few
are in the same block.
**Ambiguous**: nothing.

**Identifies** the FTL family (`uflip.inference.family`): which of these writes copy a block.
**Interval**: none. **Assumes** that everything is written, and that a block has 32 pages or more.
**Abstains** from other responses than those of a known family.
"""

from uflip.microbench.experiment import Context, Experiment, IoCounts
from uflip.microbench.inside import Probe
from uflip.microbench.layout import Varying, baseline_spec, lay_out
from uflip.spec import Spec

VARYING = Varying("rewrite", "target_offset", "bytes")
IN_PLACE, SCATTERED = "SW", "RW"
IO_SIZE = 4096
FIRST, LATER = 0, 48 << 10
IOS = {LATER: 576, FIRST: 64}
"""Offset of the writes in place, and their number."""
SCATTERED_IOS = 256
GOLDEN_SECTION = 0.618034


def experiments(context: Context) -> list[Experiment]:
    """Lay out the writes in place, then the scattered ones."""
    return [
        lay_out(context, VARYING, IN_PLACE, IOS, _describe),
        lay_out(context, VARYING, SCATTERED, [0], _describe_scattered),
    ]


def _describe(context: Context, _pattern: str, offset: int) -> Spec:
    return _writes(context, IOS[offset], incr=0, target_offset=offset, target_size=_size(context))


def _describe_scattered(context: Context, _pattern: str, offset: int) -> Spec:
    size = _size(context)
    slots = context.capacity // size
    incr = round(GOLDEN_SECTION * slots)
    return _writes(
        context, SCATTERED_IOS, incr=incr, target_offset=offset, target_size=slots * size
    )


def _writes(context: Context, ios: int, **changes: int) -> Spec:
    counts, size = IoCounts(ios, 0), _size(context)
    return baseline_spec(context, "SW", io_size=size, counts=counts, location="ordered", **changes)


def _size(context: Context) -> int:
    return max(IO_SIZE, context.sector)


MICRO_BENCHMARK = Probe(
    name=VARYING.micro_benchmark,
    title="Rewrite",
    experiments=experiments,
    question="Which small writes copy a whole block?",
    how_to_read="SW are writes in place, RW one each to places far apart; slow ones are merges.",
)
