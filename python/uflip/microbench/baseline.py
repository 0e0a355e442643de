"""Baseline: one long run of each of SR, RR, SW and RW, for phases and for comparison.

**Source**: uFLIP (CIDR 2009) §4.2 and Figures 3 and 4: "we run all four baseline patterns with a
very large IOCount" to see start-up and running phase; Table 1, first row.
**Faithful**: consecutive I/Os of 32 KiB; random over the whole device, sequential without wrapping.
**Simplified**: the length is fixed; the analysis reports a start-up that is longer as not over.
**Ambiguous**: "very large" is given no number; 10,240 is ten times the ordinary IOCount.
"""

from uflip.microbench.experiment import Context, Experiment
from uflip.microbench.layout import LABELS, Varying, baseline_spec, lay_out
from uflip.microbench.micro_benchmark import MicroBenchmark
from uflip.spec import Spec

VARYING = Varying("baseline", "io_size", "bytes")


def experiments(context: Context) -> list[Experiment]:
    """Lay out the four long baseline runs."""
    return [lay_out(context, VARYING, pattern, [context.io_size], _describe) for pattern in LABELS]


def _describe(context: Context, pattern: str, io_size: int) -> Spec:
    return baseline_spec(context, pattern, io_size=io_size, counts=context.long_counts(pattern))


MICRO_BENCHMARK = MicroBenchmark(
    VARYING.micro_benchmark, "Baseline", experiments, suites=("uflip", "today", "iq")
)
