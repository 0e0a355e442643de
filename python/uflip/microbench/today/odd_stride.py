"""Odd stride: strides of powers of two beside odd ones. Which addresses share a channel?

**Source**: ours, in the style of uFLIP (CIDR 2009) §3.2 (5), Order; F. Chen et al., *Essential
roles of exploiting internal parallelism* (HPCA 2011), find channels by strides.
**Faithful**: the location function `ordered`.
**Simplified**: one size of I/O, a page of most devices, and one depth (`loaded.DEPTH`).
**Ambiguous**: the strides. If neighbours lie on n channels in turn, every n-th shares a channel; n
is nearly always a power of two, and 2^k + 1 has no factor in common with it. So the odd neighbours
show the cost of the same reach without a conflict. Devices with a free page allocation have
conflicts only where they were written sequentially (`--state sequential`).
"""

from uflip.microbench.experiment import Context
from uflip.microbench.finding import Experiments, Means, Ratios, Run, mean_ns
from uflip.microbench.layout import SEQUENTIAL_LABELS, Varying, baseline_spec, by_scale
from uflip.microbench.micro_benchmark import MicroBenchmark
from uflip.microbench.today.loaded import DEPTH
from uflip.spec import Spec
from uflip.units import format_size

VARYING = Varying("odd_stride", "incr", "")
STANDARD = (1, *(2**k + odd for k in range(1, 10) for odd in (0, 1)))
QUICK = (1, 4, 5, 64, 65)
IO_SIZE = 4 << 10
# Addresses wrap beside earlier ones: as in Order, no larger than this [bytes].
MAX_TARGET_BYTES = 8 << 30
CONFLICT_FACTOR = 1.3


def _describe(context: Context, pattern: str, incr: int) -> Spec:
    io_size = max(IO_SIZE, context.sector)
    counts = context.counts(pattern, io_size)
    max_slots = max(min(context.capacity, MAX_TARGET_BYTES) // io_size, 1)
    slots = min(incr * counts.io_count, max_slots)
    return baseline_spec(
        context,
        pattern,
        io_size=io_size,
        counts=counts,
        location="ordered",
        incr=incr,
        target_size=slots * io_size,
        queue_depth=DEPTH,
    )


def conflicts(runs: list[Run]) -> dict[int, float]:
    """Return for each power-of-two stride the ratio of its cost to that of its odd neighbour."""
    means = {int(run["value"]): mean_ns(run) for run in runs}
    return {
        stride: means[stride] / means[stride + 1]
        for stride in means
        if stride % 2 == 0 and stride + 1 in means
    }


def finding(measured: Experiments, _baselines: Means, ratios: Ratios) -> str:
    """Return the sentence on the first stride that conflicts, and on the worst."""
    parts = []
    for pattern, runs in measured.items():
        costs = conflicts(list(runs))
        if not costs:
            continue
        worst = max(costs, key=lambda stride: costs[stride])
        if costs[worst] < CONFLICT_FACTOR:
            parts.append(f"{pattern}: no stride conflicts with itself")
            continue
        first = next(stride for stride in sorted(costs) if costs[stride] >= CONFLICT_FACTOR)
        size = int(runs[0]["spec"]["io_size"])
        parts.append(
            f"{pattern}: strides conflict from {first} on ({format_size(first * size)}); "
            f"at {worst} an I/O costs {ratios.times(costs[worst], pattern)} what it does at "
            f"{worst + 1}"
        )
    return "; ".join(parts) + "." if parts else ""


MICRO_BENCHMARK = MicroBenchmark(
    name=VARYING.micro_benchmark,
    title="Odd stride",
    experiments=by_scale(VARYING, SEQUENTIAL_LABELS, STANDARD, QUICK, _describe),
    question="Do addresses a power of two apart meet at one channel or bank?",
    how_to_read=(
        "Compare each power of two with the odd stride beside it, which goes as far: where the "
        "even one is higher, its I/Os wait for the same channel, die or bank."
    ),
    finding=finding,
    levels=False,
    suites=("today",),
)
