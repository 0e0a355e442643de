"""Pause: the baseline patterns with a pause after every I/O. Does the device work when idle?

**Source**: uFLIP (CIDR 2009) §3.2 (8) and Table 1: Pause in [2^0, ..., 2^8] × 0.1 ms.
**Faithful**: the whole range, all four baselines.
**Simplified**: in the quick scale long pauses come with fewer I/Os, so that the pauses of a run add
up to at most `QUICK_LONGEST_NS`; `io_count` of each run is stored.
**Ambiguous**: nothing.
"""

from uflip.microbench.experiment import Context, IoCounts
from uflip.microbench.finding import (
    Experiments,
    Means,
    Ratios,
    format_ms,
    largest_effect,
    mean_ns,
)
from uflip.microbench.labels import format_value
from uflip.microbench.layout import LABELS, Varying, baseline_spec, by_scale
from uflip.microbench.micro_benchmark import MicroBenchmark
from uflip.spec import Spec
from uflip.units import format_duration_ns

VARYING = Varying("pause", "pause", "ns")
PAUSE_UNIT_NS = 100_000
STANDARD = tuple(2**k * PAUSE_UNIT_NS for k in range(9))
QUICK = (PAUSE_UNIT_NS, 2**4 * PAUSE_UNIT_NS, 2**8 * PAUSE_UNIT_NS)
QUICK_LONGEST_NS = 1_500_000_000


def _counts(context: Context, pattern: str, pause_ns: int) -> IoCounts:
    if not context.quick:
        return context.counts(pattern)
    ordinary_count = context.plain_counts(pattern).io_count
    return context.shortened(pattern, min(ordinary_count, QUICK_LONGEST_NS // pause_ns))


def _describe(context: Context, pattern: str, pause_ns: int) -> Spec:
    return baseline_spec(
        context,
        pattern,
        counts=_counts(context, pattern, pause_ns),
        time="pause",
        pause=pause_ns,
    )


def finding(measured: Experiments, baselines: Means, ratios: Ratios) -> str:
    """Return the sentence on random writes with the longest pause, and without one."""
    runs, reference = measured.get("RW", ()), baselines.get("RW")
    if not runs or not reference:
        return largest_effect(measured, baselines, ratios)
    last = runs[-1]
    length = format_value(last["value"], last["unit"])
    return (
        f"With {length} after each I/O a random write takes {format_duration_ns(mean_ns(last))}, "
        f"without a pause {format_ms(reference)}."
    )


MICRO_BENCHMARK = MicroBenchmark(
    name=VARYING.micro_benchmark,
    title="Pause",
    experiments=by_scale(VARYING, LABELS, STANDARD, QUICK, _describe),
    question="Does the device use idle time to prepare?",
    how_to_read=(
        "A line that falls as the pause grows shows work done in the background. The pause itself "
        "is not part of the response time: compare what is saved with what is waited."
    ),
    finding=finding,
)
