"""Locality: the baseline patterns with varying TargetSize. Are localised I/Os cheaper?

**Source**: uFLIP (CIDR 2009) §3.2 (3) and Table 1: TargetSize in [2^0, ..., 2^16] × IOSize for
random and [2^0, ..., 2^8] × IOSize for sequential patterns; sequential addresses are taken modulo
TargetSize; Figure 8.
**Faithful**: both ranges; down to a target of one I/O, where every I/O is in place.
**Simplified**: nothing.
**Ambiguous**: on a device smaller than 2^16 × IOSize (2 GiB at 32 KiB) the largest targets do not
fit; they are skipped, not cut, because a cut one would be shown at a wrong value.
"""

from uflip.microbench.experiment import Context, Experiment
from uflip.microbench.finding import Experiments, Means, Ratios, largest_effect, mean_ns
from uflip.microbench.labels import format_value
from uflip.microbench.layout import LABELS, SEQUENTIAL_LABELS, Varying, baseline_spec, lay_out
from uflip.microbench.micro_benchmark import MicroBenchmark
from uflip.spec import Spec

VARYING = Varying("locality", "target_size", "bytes")
# Unit: I/Os.
STANDARD_RANDOM = tuple(2**k for k in range(17))
STANDARD_SEQUENTIAL = tuple(2**k for k in range(9))
QUICK_RANDOM = (1, 2**4, 2**8, 2**12, 2**16)
QUICK_SEQUENTIAL = (1, 2**4, 2**8)


def experiments(context: Context) -> list[Experiment]:
    """Lay out one experiment for each baseline pattern."""
    return [
        lay_out(context, VARYING, pattern, _values(context, pattern), _describe)
        for pattern in LABELS
    ]


def _values(context: Context, pattern: str) -> list[int]:
    if pattern in SEQUENTIAL_LABELS:
        ios = QUICK_SEQUENTIAL if context.quick else STANDARD_SEQUENTIAL
    else:
        ios = QUICK_RANDOM if context.quick else STANDARD_RANDOM
    return [count * context.io_size for count in ios]


def _describe(context: Context, pattern: str, target_size: int) -> Spec:
    return baseline_spec(context, pattern, target_size=target_size)


def finding(measured: Experiments, baselines: Means, ratios: Ratios) -> str:
    """Return the sentence on random writes in the smallest and the largest area."""
    runs, reference = measured.get("RW", ()), baselines.get("SW")
    if len(runs) < 2 or not reference:
        return largest_effect(measured, baselines, ratios)
    parts = [
        f"{ratios.times(mean_ns(run) / 1e6 / reference, 'SW', 'RW')} within "
        f"{format_value(run['value'], 'bytes')}"
        for run in (runs[0], runs[-1])
    ]
    return f"A random write costs {parts[0]} and {parts[1]}, relative to the sequential baseline."


MICRO_BENCHMARK = MicroBenchmark(
    name=VARYING.micro_benchmark,
    title="Locality",
    experiments=experiments,
    question="Are random I/Os cheaper inside a small area?",
    how_to_read=(
        "Follow RW from left to right: it leaves the level of SW where the area grows beyond what "
        "the device keeps in order at once."
    ),
    finding=finding,
)
