"""Mixes under load: two patterns, drawn at random, several in flight, each on half of the device.

**Source**: ours, in the style of uFLIP (CIDR 2009) §3.2 (7), whose mixes take turns, one I/O at a
time.
**Faithful**: the patterns are the baselines.
**Simplified**: one depth for all devices, `DEPTH`.
**Ambiguous**: the depth of a load. A closed loop of 16 keeps four channels of two dies busy, and is
no more than one queue of any NVMe device.
"""

from uflip.data.summary import ResponseTime, StatisticsSummary
from uflip.microbench.experiment import Context
from uflip.microbench.mix import half_size
from uflip.spec import Mix, Spec, baseline, mix
from uflip.units import format_size

DEPTH = 16
"""Queue depth where several I/Os in flight matter, but their number is not the question."""
QUICK_IOS, IOS = 2048, 8192
"""I/Os of both patterns together: a tail of one in a hundred has twenty of them, or eighty."""


def loaded_mix(context: Context, pattern: str, sizes: tuple[int, int], first_percent: int) -> Mix:
    """Return a mix of random I/Os of two baselines, drawn, on two halves of the device.

    `context`: the device and the scale. `pattern`: for example "RR/RW". `sizes`: I/O sizes of the
    two [bytes]. `first_percent`: chance of the first [%].
    """
    half = half_size(context.capacity, max(sizes))
    # On a device that is too small the target of one I/O gives the reason: at least an I/O.
    first, second = (
        baseline(
            label,
            io_size=size,
            target_offset=index * half,
            target_size=max(half // size, 1) * size,
        )
        for index, (label, size) in enumerate(zip(pattern.split("/"), sizes, strict=True))
    )
    ios = QUICK_IOS if context.quick else IOS
    return mix(
        first,
        second,
        first_percent=first_percent,
        queue_depth=DEPTH,
        io_count=ios,
        io_ignore=ios // 8,
    )


def too_small(context: Context, spec: Spec) -> str | None:
    """Return why two patterns do not fit on half of the device each, or None."""
    first, second = spec.parts
    if first.end <= second.begin:
        return None
    return (
        f"two halves of I/Os of {format_size(first.io_bytes)} and {format_size(second.io_bytes)} "
        f"need more than the device of {format_size(context.capacity)}"
    )


PERCENTILES: tuple[tuple[ResponseTime, str], ...] = (
    ("p99_ns", "p99"), ("p95_ns", "p95"), ("p50_ns", "the median"),
)  # fmt: skip


def tail(one: StatisticsSummary, other: StatisticsSummary) -> tuple[str, float, float]:
    """Return the highest percentile up to p99 that both samples support: its name, and values."""
    for key, name in PERCENTILES:
        first, second = one[key], other[key]
        if first is not None and second is not None:
            return name, first, second
    return "the mean", one["mean_ns"], other["mean_ns"]
