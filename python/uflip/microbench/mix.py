"""Mix: two baseline patterns interleaved in a fixed ratio.

**Source**: uFLIP (CIDR 2009) §3.2 (7) and Table 1: the six pairs of baselines, Ratio (#1/#2) in
[2^0, ..., 2^6]; §5.1: IOCount and IOIgnore are scaled for mixed workloads.
**Faithful**: all pairs in the order of the table; `ratio` I/Os of the first pattern, then one of
the second; counts are those of the rarer pattern, so that its start-up is passed (§4.2 warns of
measuring only the start-up of rare random writes).
**Simplified**: in the quick scale the rarer pattern makes at least `QUICK_MIN_IOS` I/Os instead of
all of them; sequential components that outgrow their half of the device wrap inside it.
**Ambiguous**: (1) where the two patterns lie. On disjoint halves of the device, so that neither
overwrites or reads what the other has just written. (2) The extent of sequential writes. With 64 of
them to each of 5,120 random writes they would cover 10 GiB, and seven ratios in three repetitions
more than twice a device whose state is "never reset" (§4.2): they wrap inside `MAX_TARGET_BYTES`.
"""

import math

from uflip.microbench.experiment import Context, IoCounts
from uflip.microbench.finding import Experiments, Means, Ratios, Run, mean_ns
from uflip.microbench.layout import SEQUENTIAL_LABELS, Varying, by_scale
from uflip.microbench.micro_benchmark import MicroBenchmark
from uflip.spec import Basic, Spec, baseline, mix

VARYING = Varying("mix", "ratio", "")
PAIRS = ("SR/RR", "SR/SW", "SR/RW", "RR/SW", "RR/RW", "SW/RW")
STANDARD = tuple(2**k for k in range(7))
QUICK = (1, 8, 64)
# After a start-up of a third, the rarer pattern keeps 30 I/Os: enough for a mean.
QUICK_MIN_IOS = 45
# Where both patterns write, more of the first per one of the rarer leave less room for the start-up
# of the latter: 64 to one would write 512 MiB.
SHORTENED = 32
# Sequential writes wrap within this size [bytes]: more than the logs and caches of such a device.
MAX_TARGET_BYTES = 256 << 20
# Halves begin where flash blocks do (uFLIP §4.1: "the flash block size, 128 KB") [bytes].
BLOCK = 128 << 10


def _describe(context: Context, pair: str, ratio: int) -> Spec:
    first, second = pair.split("/")
    counts = _counts(context, first, second, ratio)
    return mix(
        _half(context, first, 0, counts.io_count * ratio),
        _half(context, second, 1, counts.io_count),
        ratio,
        io_count=counts.io_count,
        io_ignore=counts.io_ignore,
    )


def _counts(context: Context, first: str, rarer: str, ratio: int) -> IoCounts:
    """Return the number of I/Os of the rarer pattern."""
    if not context.quick:
        return context.counts(rarer)
    io_count = max(QUICK_MIN_IOS, context.plain_counts(rarer).io_count // (ratio + 1))
    return context.shortened(rarer, io_count, -(-ratio // SHORTENED) if first == "SW" else 1)


def half_size(capacity: int, io_size: int) -> int:
    """Return the size of half a device, whole I/Os and whole blocks if it has any [bytes]."""
    unit = math.lcm(io_size, BLOCK)
    return capacity // 2 // unit * unit or capacity // io_size // 2 * io_size


def _half(context: Context, pattern: str, half: int, io_count: int) -> Basic:
    """Return one component, on the first or the second half of the device."""
    size = half_size(context.capacity, context.io_size)
    needed = min(size, io_count * context.io_size) if pattern in SEQUENTIAL_LABELS else size
    needed = (
        min(needed, _whole_ios(MAX_TARGET_BYTES, context.io_size)) if pattern == "SW" else needed
    )
    return baseline(pattern, io_size=context.io_size, target_offset=half * size, target_size=needed)


def _whole_ios(size: int, io_size: int) -> int:
    """Return a size cut to whole I/Os, at least one [bytes]."""
    return max(size // io_size, 1) * io_size


def finding(measured: Experiments, baselines: Means, ratios: Ratios) -> str:
    """Return the sentence on the mix that deviates most from the cost of its two baselines."""
    deviations = [
        (abs(actual / expected - 1), run, actual / expected)
        for runs in measured.values()
        for run in runs
        if (expected := expected_mix_ms(run, baselines)) and (actual := mean_ns(run) / 1e6)
    ]
    if not deviations:
        return ""
    _, run, ratio = max(deviations, key=lambda deviation: deviation[0])
    return (
        f"Furthest from its baselines is {run['pattern']} at {run['value']} : 1, with "
        f"{ratios.times(ratio, *run['pattern'].split('/'))} the cost that they have apart, in the "
        "same proportion."
    )


def expected_mix_ms(run: Run, baselines: Means) -> float | None:
    """Return the mean of a mix if its patterns did not disturb each other [ms].

    With n I/Os of the first per one of the second: (n × first + second) / (n + 1).
    """
    first, _, second = str(run["pattern"]).partition("/")
    first_ms, second_ms = baselines.get(first), baselines.get(second)
    if first_ms is None or second_ms is None:
        return None
    ratio = int(run["value"])
    return (ratio * first_ms + second_ms) / (ratio + 1)


MICRO_BENCHMARK = MicroBenchmark(
    name=VARYING.micro_benchmark,
    title="Mix",
    experiments=by_scale(VARYING, PAIRS, STANDARD, QUICK, _describe),
    question="Do two patterns disturb each other?",
    how_to_read=(
        "The dotted line is what the two baselines would cost in the same proportion. Where the "
        "solid line (all I/Os) leaves it, the patterns interact; the faint lines show which "
        "of the two pays."
    ),
    finding=finding,
    figure="mix",
)
