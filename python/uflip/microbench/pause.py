"""Pause: the baseline patterns with a pause after every I/O. Does the device work when left alone?

**Source**: uFLIP (CIDR 2009) §3.2 (8) and Table 1: Pause in [2^0, ..., 2^8] × 0.1 ms.
**Faithful**: the whole range, all four baselines.
**Simplified**: in the quick scale long pauses come with fewer I/Os, so that the pauses of a run add
up to at most `QUICK_LONGEST_NS`; `io_count` of each run is stored.
**Ambiguous**: nothing.
"""

from uflip.experiment import Context, Counts, Experiment
from uflip.microbench.layout import LABELS, Varying, baseline_spec, lay_out
from uflip.spec import Spec

VARYING = Varying("pause", "pause", "ns")
PAUSE_UNIT_NS = 100_000
STANDARD = tuple(2**k * PAUSE_UNIT_NS for k in range(9))
QUICK = (PAUSE_UNIT_NS, 2**4 * PAUSE_UNIT_NS, 2**8 * PAUSE_UNIT_NS)
QUICK_LONGEST_NS = 1_500_000_000


def experiments(context: Context) -> list[Experiment]:
    """Lay out one experiment for each baseline pattern."""
    values = QUICK if context.quick else STANDARD
    return [lay_out(context, VARYING, pattern, values, _describe) for pattern in LABELS]


def _counts(context: Context, pattern: str, pause_ns: int) -> Counts:
    if not context.quick:
        return context.counts(pattern)
    most = context.plain_counts(pattern).io_count
    return context.shortened(pattern, min(most, QUICK_LONGEST_NS // pause_ns))


def _describe(context: Context, pattern: str, pause_ns: int) -> Spec:
    return baseline_spec(
        context,
        pattern,
        counts=_counts(context, pattern, pause_ns),
        time="pause",
        pause=pause_ns,
    )
