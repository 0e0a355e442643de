"""Parallelism: several processes, each with the same baseline pattern in a subspace of its own.

**Source**: uFLIP (CIDR 2009) §3.2 (6) and Table 1: ParallelDegree in [2^0, ..., 2^4]; process p has
TargetOffset p × TargetSize / ParallelDegree and TargetSize / ParallelDegree.
**Faithful**: the whole range, all four baselines; each process makes IOCount I/Os.
**Simplified**: in the quick scale each process makes fewer I/Os (`QUICK_IO_COUNT`), because the
processes of one run add up.
**Ambiguous**: whether TargetSize grows with the degree. For random patterns it is the whole device;
for sequential ones each process has space for its I/Os, so that no process wraps and overwrites.
"""

from uflip.microbench.experiment import Context
from uflip.microbench.finding import Experiments, Means, Ratios
from uflip.microbench.layout import LABELS, Varying, baseline_spec, by_scale, target_size
from uflip.microbench.micro_benchmark import MicroBenchmark
from uflip.spec import Spec
from uflip.units import format_count

VARYING = Varying("parallelism", "parallel_degree", "")
STANDARD = tuple(2**k for k in range(5))
QUICK = (1, 4, 16)
QUICK_IO_COUNT = 128


def _describe(context: Context, pattern: str, degree: int) -> Spec:
    counts = (
        context.shortened(pattern, QUICK_IO_COUNT, degree)
        if context.quick
        else context.counts(pattern)
    )
    # A multiple of the degree, so that all subspaces are equal and hold whole I/Os.
    step = degree * context.io_size
    whole = target_size(context, pattern, degree * counts.io_count, context.io_size)
    return baseline_spec(
        context,
        pattern,
        counts=counts,
        parallel_degree=degree,
        target_size=whole // step * step,
    )


def finding(measured: Experiments, _baselines: Means, ratios: Ratios) -> str:
    """Return the sentence on IOPS at the lowest and highest degree, without the start-up."""
    parts = []
    for pattern, runs in measured.items():
        first, last = runs[0]["ios_per_s"], runs[-1]["ios_per_s"]
        if len(runs) > 1 and first and last:
            parts.append(
                f"{pattern} {format_count(round(first))} → {format_count(round(last))} "
                f"({ratios.factor(last / first, pattern)})"
            )
    if not parts:
        return ""
    runs = next(iter(measured.values()))
    return (
        f"IOPS with {runs[0]['value']} and with {runs[-1]['value']} processes, without the "
        "start-up: " + ", ".join(parts) + "."
    )


MICRO_BENCHMARK = MicroBenchmark(
    name=VARYING.micro_benchmark,
    title="Parallelism",
    experiments=by_scale(VARYING, LABELS, STANDARD, QUICK, _describe),
    question="Does the device overlap the I/Os of concurrent processes?",
    how_to_read=(
        "Flat: the I/Os overlap perfectly. Doubling with the degree: they wait for one another, "
        "and nothing is gained by submitting them together."
    ),
    finding=finding,
)
