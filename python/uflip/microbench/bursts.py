"""Bursts: the baseline patterns in groups of Burst I/Os with a pause between the groups.

**Source**: uFLIP (CIDR 2009) §3.2 (9) and Table 1: Burst in [2^0, ..., 2^6] × 10, Pause "e.g.,
100 ms".
**Faithful**: the whole range, all four baselines, a pause of 100 ms.
**Simplified**: in the quick scale a run has at most `QUICK_GROUPS` groups.
**Ambiguous**: the printed formula, t + (i mod Burst) × Pause, would pause within the groups and not
between them; the text is followed. The ordinary IOCount of 1,024 ends in the second group of 640;
runs have at least two whole groups, and so more than one pause.
"""

from uflip.microbench.experiment import Context, IoCounts
from uflip.microbench.layout import LABELS, Varying, baseline_spec, by_scale
from uflip.microbench.micro_benchmark import MicroBenchmark
from uflip.spec import Spec

VARYING = Varying("bursts", "burst", "ios")
STANDARD = tuple(2**k * 10 for k in range(7))
QUICK = (10, 80, 640)
PAUSE_NS = 100_000_000
MIN_GROUPS = 2
QUICK_GROUPS = 16


def _counts(context: Context, pattern: str, burst: int) -> IoCounts:
    if context.quick:
        ordinary_count = context.plain_counts(pattern).io_count
        io_count = max(MIN_GROUPS * burst, min(ordinary_count, QUICK_GROUPS * burst))
        return context.shortened(pattern, io_count)
    ordinary = context.counts(pattern)
    return IoCounts(max(ordinary.io_count, MIN_GROUPS * burst), ordinary.io_ignore)


def _describe(context: Context, pattern: str, burst: int) -> Spec:
    return baseline_spec(
        context,
        pattern,
        counts=_counts(context, pattern, burst),
        time="burst",
        burst=burst,
        pause=PAUSE_NS,
    )


MICRO_BENCHMARK = MicroBenchmark(
    name=VARYING.micro_benchmark,
    title="Bursts",
    experiments=by_scale(VARYING, LABELS, STANDARD, QUICK, _describe),
    question="How does deferred work pile up within a burst?",
    how_to_read=(
        "A line that rises with the length of the burst shows work put off during the burst that "
        "the pause between bursts could still absorb when bursts were shorter."
    ),
)
