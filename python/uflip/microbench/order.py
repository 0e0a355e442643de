"""Order: sequential patterns with a linear increment: reverse, in place, and with gaps.

**Source**: uFLIP (CIDR 2009) §3.2 (5) and Table 1: Incr in [-1, 0, 2^0, ..., 2^8], sequential
patterns only; address TargetOffset + Incr × i × IOSize.
**Faithful**: the whole range; Incr = 1 is the sequential pattern itself.
**Simplified**: nothing.
**Ambiguous**: the size of the target is not given, and a large Incr soon leaves any device. The
target holds all I/Os where the device does, max(|Incr|, 1) × IOCount × IOSize; where it does not,
the target is the whole device and addresses wrap, so that a large Incr comes round.
"""

from uflip.experiment import Context, Experiment
from uflip.microbench.layout import SEQUENTIAL_LABELS, Varying, baseline_spec, lay_out
from uflip.spec import Spec

VARYING = Varying("order", "incr", "")
STANDARD = (-1, 0, *(2**k for k in range(9)))
QUICK = (-1, 0, 1, 16, 256)


def experiments(context: Context) -> list[Experiment]:
    """Lay out one experiment for sequential reads and one for sequential writes."""
    values = QUICK if context.quick else STANDARD
    return [lay_out(context, VARYING, pattern, values, _describe) for pattern in SEQUENTIAL_LABELS]


def _describe(context: Context, pattern: str, incr: int) -> Spec:
    wanted = max(abs(incr), 1) * context.counts(pattern).io_count
    ios = min(wanted, context.capacity // context.io_size)
    return baseline_spec(
        context, pattern, location="ordered", incr=incr, target_size=ios * context.io_size
    )
