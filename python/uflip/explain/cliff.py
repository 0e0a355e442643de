"""Bytes that a device takes at its fast rate, until the rate falls: cache, or free flash.

    rate   ────────────┐
                       └──────────────
           0         cliff           bytes written

**Source** ours. The split in two parts that explains the logarithms of block means best; then the
I/O in its neighbourhood.
**Faithful** The bytes are those that the host wrote, from the first write of the file on.
**Simplified** One cliff. A cache that is also emptied while it fills holds less than was written:
the lower bound subtracts what flows out at the later rate.
**Ambiguous** A write cache and a reserve of free blocks look alike. Writes faster than a program of
the fastest flash cannot have waited for it: those before the cliff were buffered.
"""

from dataclasses import dataclass

import numpy as np

from uflip.explain.finding import ABSENT, FOUND, Finding, undecided
from uflip.explain.io_log import WRITE, Floats, Integers, IoLog
from uflip.explain.levels import are_apart
from uflip.flash_waits import PROGRAM_NS
from uflip.units import format_duration_ns, format_size

TOPIC = "cache"
MIN_WRITES = 256
BLOCKS = 256
MIN_BLOCK_IOS = 4
MIN_BLOCKS_BEFORE = 4
MIN_RATIO = 1.5
"""Smallest ratio of the mean response times after and before a cliff."""
# A drop of the log-likelihood by this much leaves the interval of 95 % (chi-squared, one degree).
LOG_LIKELIHOOD = 1.92


@dataclass(frozen=True)
class Split:
    """The best division of a series: first value of the second part, and its interval."""

    at: int
    low: int
    high: int


def describe_cliff(log: IoLog) -> Finding:
    """Return the bytes written until the rate falls."""
    writes = log.rows(WRITE) if log.mode is not None else np.zeros(0, np.int64)
    if log.size is None or not len(writes):
        return undecided(TOPIC, "writes", "the file has no sizes of writes")
    took, sizes = log.took[writes], log.size[writes]
    if len(took) < MIN_WRITES:
        reason = f"fewer than {MIN_WRITES} writes"
        return undecided(TOPIC, "writes", reason, ios=len(took))
    written = np.concatenate([[0], np.cumsum(sizes)])
    split = best_split(took)
    before, after = took[: split.at], took[split.at :]
    ratio = float(after.mean() / before.mean())
    numbers = {
        "bytes": int(written[split.at]),
        "low_bytes": int(written[split.low]),
        "high_bytes": int(written[split.high]),
        "before_ns": float(before.mean()),
        "after_ns": float(after.mean()),
        "ratio": ratio,
    }
    if ratio < MIN_RATIO or not are_apart(before, after):
        return Finding(
            topic=TOPIC,
            subject="writes",
            verdict=ABSENT,
            statement=f"the rate does not fall for good within {format_size(int(written[-1]))}",
            numbers={"written_bytes": int(written[-1]), "ratio": ratio},
        )
    return _found(log, writes, split, numbers)


def _found(log: IoLog, writes: Integers, split: Split, numbers: dict[str, float]) -> Finding:
    assert log.submitted is not None
    assert log.completed is not None
    assert log.size is not None
    at = writes[split.at]
    begin, end = float(log.submitted[writes[0]]), float(log.completed.max())
    middle = float(log.submitted[at])
    fast = numbers["bytes"] * 1e9 / max(middle - begin, 1.0)
    slow = float(log.size[writes[split.at :]].sum()) * 1e9 / max(end - middle, 1.0)
    held = numbers["bytes"] * max(1 - slow / fast, 0.0)
    buffered = float(np.median(log.took[writes[: split.at]])) < PROGRAM_NS
    holder = (
        "a write cache: they are faster than any program of flash"
        if buffered
        else "a cache or a reserve of free flash: the times do not tell which"
    )
    statement = (
        f"the rate falls after {format_size(int(numbers['bytes']))} "
        f"[{format_size(int(numbers['low_bytes']))}, {format_size(int(numbers['high_bytes']))}], "
        f"from {fast / 1e6:,.1f} to {slow / 1e6:,.1f} MB/s "
        f"({format_duration_ns(numbers['before_ns'])} to {format_duration_ns(numbers['after_ns'])} "
        f"a write); the first bytes went to {holder}; at the later rate "
        f"{format_size(int(numbers['bytes'] - held))} flowed out meanwhile, so it holds "
        f"{format_size(int(held))} or more"
    )
    return Finding(
        topic=TOPIC,
        subject="writes",
        verdict=FOUND,
        statement=statement,
        numbers=numbers
        | {
            "fast_bytes_per_s": fast,
            "slow_bytes_per_s": slow,
            "holds_at_least_bytes": int(held),
            "is_buffered": int(buffered),
        },
    )


def best_split(took: Floats) -> Split:
    """Return the best split of a series in two parts, by the logarithms of block means.

    >>> best_split(np.r_[np.ones(300), 5 * np.ones(900)]).at
    300
    """
    length = max(MIN_BLOCK_IOS, len(took) // BLOCKS)
    count = len(took) // length
    means = np.log(took[: count * length].reshape(count, length).mean(axis=1))
    least = min(MIN_BLOCKS_BEFORE, count // 2)
    cost = _costs(means)[least : count - least]
    block = least + int(np.argmin(cost))
    near = cost <= cost.min() * np.exp(2 * LOG_LIKELIHOOD / count) + 1e-12
    low, high = least + np.flatnonzero(near)[[0, -1]]
    # Within a block to either side: the I/O at which single times divide best.
    begin, end = max(0, (block - 2) * length), min(len(took), (block + 3) * length)
    inner = _costs(np.log(took[begin:end]))
    at = begin + 1 + int(np.argmin(inner[1:-1]))
    return Split(
        at, min(int(low - 1) * length, at), min(max(int(high + 1) * length, at), len(took))
    )


def _costs(values: Floats) -> Floats:
    """Return the sum of squares around the means of two parts, for each first value of the second.

    The first element, without a first part, is infinite.
    """
    n = len(values)
    sums, squares = np.cumsum(values)[:-1], float((values**2).sum())
    first = np.arange(1, n)
    cost = squares - sums**2 / first - (values.sum() - sums) ** 2 / (n - first)
    return np.concatenate([[np.inf], np.maximum(cost, 0.0)])
