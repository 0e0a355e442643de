"""Granularity: the baseline patterns with varying IOSize. Which I/O sizes does a device favour?

**Source**: uFLIP (CIDR 2009) §3.2 (1) and Table 1: IOSize in [2^0, ..., 2^9] × 512 B "(plus some
non-powers of 2)"; Figures 6 and 7.
**Faithful**: the whole range of powers of two, all four baselines, aligned to IOSize.
**Simplified**: IOCount stays the same for all sizes, so that large I/Os touch more of the device.
**Ambiguous**: the non-powers are not named. The values are 3 × 2^k × 512 B for every other k:
half-way
between two powers, where a device that maps in powers of two shows it.
"""

from uflip.microbench.experiment import Context
from uflip.microbench.finding import Experiments, Means, Ratios, Run, mean_ns
from uflip.microbench.labels import format_value
from uflip.microbench.layout import LABELS, Varying, baseline_spec, by_scale
from uflip.microbench.micro_benchmark import MicroBenchmark
from uflip.spec import Spec

VARYING = Varying("granularity", "io_size", "bytes")
POWERS = tuple(2**k * 512 for k in range(10))
NON_POWERS = tuple(3 * 2**k * 512 for k in (0, 2, 4, 6))
STANDARD = tuple(sorted(POWERS + NON_POWERS))
QUICK = (512, 4096, 16384, 32768, 262144)


def _describe(context: Context, pattern: str, io_size: int) -> Spec:
    counts = context.counts(pattern, io_size)
    return baseline_spec(context, pattern, io_size=io_size, counts=counts)


def finding(measured: Experiments, _baselines: Means, _ratios: Ratios) -> str:
    """Return the sentence on throughput at the smallest and largest size."""
    parts = []
    for pattern, runs in measured.items():
        first, last = runs[0], runs[-1]
        parts.append(f"{pattern} {_throughput(first)} → {_throughput(last)}")
    small = format_value(next(iter(measured.values()))[0]["value"], "bytes")
    large = format_value(next(iter(measured.values()))[-1]["value"], "bytes")
    return f"Throughput of one I/O at a time, from {small} to {large}: " + ", ".join(parts) + "."


def _throughput(run: Run) -> str:
    megabytes = run["value"] / mean_ns(run) * 1e3  # bytes/ns → MB/s
    return f"{megabytes:,.0f} MB/s" if megabytes >= 9.95 else f"{megabytes:.2g} MB/s"


MICRO_BENCHMARK = MicroBenchmark(
    name=VARYING.micro_benchmark,
    title="Granularity",
    experiments=by_scale(VARYING, LABELS, STANDARD, QUICK, _describe),
    question="What does an I/O cost as it grows?",
    how_to_read=(
        "Where a line is flat, a fixed cost per I/O dominates and a larger I/O comes almost free; "
        "where it doubles with the size, the device has reached its bandwidth."
    ),
    finding=finding,
    levels=False,
)
