"""Queue depth: the baseline patterns with several I/Os in flight. How much does the device overlap?

**Source**: ours, in the style of uFLIP (CIDR 2009) §3.2 (6), which has only concurrent processes;
the relation of throughput and response time is operational analysis: P. Denning, J. Buzen, *The
operational analysis of queueing network models* (Computing Surveys 1978).
**Faithful**: a closed loop without think time; the knee is where its two asymptotes meet: the
throughput can grow with the depth up to depth / R(1), and never exceeds its maximum X:
N* = X × R(1).
**Simplified**: X is the highest throughput of the measured depths. Throughput is that of the steady
part of a run (`results.run_statistics`), in which the queue neither fills nor runs out. Depth /
mean response time would be the same (Little) only for an endless run: the last I/Os wait for fewer
and fewer others, and 1,280 I/Os at a depth of 256 seem a tenth faster than they are.
**Ambiguous**: N* is the parallelism of the device at its best depth, in I/Os of this size: an I/O
that occupies two dies halves it.
"""

from collections.abc import Sequence

from uflip.microbench.experiment import Context, IoCounts
from uflip.microbench.finding import Experiments, Means, Ratios, Run, mean_ns
from uflip.microbench.layout import LABELS, ROUNDS, Varying, baseline_spec, by_scale, target_size
from uflip.microbench.micro_benchmark import MicroBenchmark
from uflip.spec import Spec
from uflip.units import format_count, format_duration_ns

# Throughputs within this share of the highest are equal: those of repetitions differ by more.
EQUAL_SHARE = 0.98
VARYING = Varying("queue_depth", "queue_depth", "")
STANDARD = tuple(2**k for k in range(9))
QUICK = (1, 4, 16, 64, 256)


def _describe(context: Context, pattern: str, depth: int) -> Spec:
    plain = context.counts(pattern)
    counts = IoCounts(
        max(plain.io_count, plain.io_ignore + ROUNDS * depth), max(plain.io_ignore, depth)
    )
    return baseline_spec(
        context,
        pattern,
        counts=counts,
        queue_depth=depth,
        target_size=target_size(context, pattern, counts.io_count, context.io_size),
    )


def rate(run: Run) -> float:
    """Return the throughput of a run [I/Os per second]; 0 if no time passed."""
    return run["ios_per_s"] or 0.0


def smallest_best_depth(runs: Sequence[Run]) -> Run:
    """Return the run of the smallest depth with the highest throughput."""
    highest = max(map(rate, runs))
    return next(run for run in runs if rate(run) >= EQUAL_SHARE * highest)


def knee(runs: Sequence[Run]) -> float | None:
    """Return N* = X × R(1); None if depth 1, or any other, was not measured."""
    if len(runs) < 2 or runs[0]["value"] != 1 or not rate(runs[0]):
        return None
    return max(rate(run) for run in runs) * mean_ns(runs[0]) / 1e9


def finding(measured: Experiments, _baselines: Means, ratios: Ratios) -> str:
    """Return the sentence on throughput, the knee, and the tail at both ends."""
    parts = []
    for pattern, experiment in measured.items():
        runs = list(experiment)
        knee_depth = knee(runs)
        if knee_depth is None:
            continue
        best = smallest_best_depth(runs)
        parts.append(
            f"{pattern}: {format_count(round(rate(runs[0])))} IOPS at depth 1, "
            f"{format_count(round(rate(best)))} at depth {best['value']} "
            f"({ratios.factor(rate(best) / rate(runs[0]), pattern)}); the knee is at depth "
            f"{knee_depth:.1f}{_tails(runs)}"
        )
    if not parts:
        return ""
    return (
        "; ".join(parts)
        + ". Below the knee more outstanding I/Os raise the throughput; above it they only wait."
    )


def _tails(runs: list[Run]) -> str:
    first, last = runs[0]["statistics"]["p99_ns"], runs[-1]["statistics"]["p99_ns"]
    if first is None or last is None:
        return ""
    return (
        f", p99 {format_duration_ns(first)} at depth 1 and {format_duration_ns(last)} at depth "
        f"{runs[-1]['value']}"
    )


MICRO_BENCHMARK = MicroBenchmark(
    name=VARYING.micro_benchmark,
    title="Queue depth",
    experiments=by_scale(VARYING, LABELS, STANDARD, QUICK, _describe),
    question="How many I/Os does the device work on at a time?",
    how_to_read=(
        "While the response time is flat the I/Os overlap, and throughput grows with the depth. "
        "Where it doubles with the depth the device is busy, and more I/Os under way only wait. "
        "Short lines at the bottom mark the knees, where the two meet."
    ),
    finding=finding,
    figure="queue",
    levels=False,
    suites=("today",),
)
