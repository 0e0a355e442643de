"""Order: sequential patterns with a linear increment: reverse, in place, and with gaps.

**Source**: uFLIP (CIDR 2009) §3.2 (5) and Table 1: Incr in [-1, 0, 2^0, ..., 2^8], sequential
patterns only; address TargetOffset + Incr × i × IOSize.
**Faithful**: the whole range; Incr = 1 is the sequential pattern itself.
**Simplified**: nothing.
**Ambiguous**: the size of the target is not given, and a large Incr soon exceeds any device. The
target holds all I/Os if they fit on the device and into `MAX_TARGET_BYTES`:
max(|Incr|, 1) × IOCount × IOSize. Otherwise addresses wrap, as in an array that is filled column
after column. The number of slots is odd then, and Incr a power of two, so that they wrap beside
earlier writes and not onto them.
"""

from uflip.microbench.experiment import Context
from uflip.microbench.finding import Experiments, Means, Ratios, largest_effect, mean_ns
from uflip.microbench.layout import SEQUENTIAL_LABELS, Varying, baseline_spec, by_scale
from uflip.microbench.micro_benchmark import MicroBenchmark
from uflip.spec import Spec

VARYING = Varying("order", "incr", "")
STANDARD = (-1, 0, *(2**k for k in range(9)))
QUICK = (-1, 0, 1, 16, 256)
# Span of the paper's 1,024 I/Os of 32 KB (§5.1) with the largest Incr [bytes].
MAX_TARGET_BYTES = 8 << 30


def _describe(context: Context, pattern: str, incr: int) -> Spec:
    needed_ios = max(abs(incr), 1) * context.counts(pattern).io_count
    max_ios = max(min(context.capacity, MAX_TARGET_BYTES) // context.io_size, 1)
    ios = needed_ios if needed_ios <= max_ios else max_ios - 1 + max_ios % 2
    return baseline_spec(
        context, pattern, location="ordered", incr=incr, target_size=ios * context.io_size
    )


def finding(measured: Experiments, baselines: Means, ratios: Ratios) -> str:
    """Return the sentence on reverse and in-place writes, and on large increments."""
    runs = {run["value"]: run for run in measured.get("SW", ())}
    if 1 not in runs or len(runs) < 2:
        return largest_effect(measured, baselines, ratios)
    unit = mean_ns(runs[1])
    parts = [
        f"{name} {ratios.times(mean_ns(runs[value]) / unit, 'SW')}"
        for value, name in ((-1, "a reverse write costs"), (0, "an in-place write"))
        if value in runs
    ]
    text = f"Compared with Incr = 1, {' and '.join(parts)} as much." if parts else ""
    largest = max(runs)
    if largest > 1 and (reference := baselines.get("RW")):
        ratio = ratios.times(mean_ns(runs[largest]) / 1e6 / reference, "SW", "RW")
        text += f" With Incr = {largest}, a write costs {ratio} a random one."
    return text.strip()


MICRO_BENCHMARK = MicroBenchmark(
    name=VARYING.micro_benchmark,
    title="Order",
    experiments=by_scale(VARYING, SEQUENTIAL_LABELS, STANDARD, QUICK, _describe),
    question="What if addresses go backwards, stand still, or stride?",
    how_to_read=(
        "Compare with Incr = 1, the sequential pattern: −1 walks backwards, 0 rewrites one place, "
        "larger values leave gaps."
    ),
    finding=finding,
)
