"""What slow I/Os have in common: mode, size, alignment, place, sequence, idle time, writes nearby.

A property is compared with the slow I/Os at their true positions, and at all positions shifted
along the series. A shift keeps bursts of slow I/Os, and rows of I/Os with the property, together:
both may be correlated in themselves without being correlated with each other.

**Source** Permutation by circular shifts (Politis and Romano 1992); Holm (1979) for the number of
properties that were tested.
**Faithful** All shifts, by a Fourier transform, except those within `NEAR` of the series.
**Simplified** The mode is tested first; then size, within a mode; then the others, among I/Os of a
mode and size. A property is one bit. A series of a million I/Os or more is cut to a length whose
transform is fast.
**Ambiguous** A property that recurs with the period of the slow I/Os fits by chance at one in so
many shifts: it stays undecided.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uflip.explain.finding import ABSENT, FOUND, Finding, Number, undecided
from uflip.explain.io_log import READ, WRITE, Flags, Floats, Integers, IoLog
from uflip.explain.slow_set import slow_flags
from uflip.units import format_duration_ns, format_size

TOPIC, CAUSES_TOPIC = "slow I/Os", "causes"
MIN_IOS, MIN_SLOW = 500, 20
MIN_SHARE = 0.01
"""A property of fewer I/Os, or of all but so few, is not tested."""
SIGNIFICANCE = 0.01
"""Of all properties together."""
MIN_RATIO = 1.5
"""Ratio of the shares of slow I/Os with and without a property."""
NEAR = 0.02
LONG_SERIES = 1 << 20
ALIGNMENTS = (4096, 8192, 16384, 32768, 65536)
REGIONS = 16
CHUNK_BYTES = 65536
RECENT_IOS = 64
IDLE_MEDIANS, IDLE_NS = 10, 1_000_000
NEAR_WRITE_MEDIANS = 5
MOST_CAUSES, MIN_CAUSE_SHARE = 4, 0.01
"""Causes in a statement, and the least share of the extra time of each."""


@dataclass(frozen=True)
class Property:
    """A property of I/Os, and the result of its test.

    `share` and `slow_share` are the shares of all and of the slow I/Os that have it; `ratio` is the
    risk of an I/O with it to be slow, over that without.
    """

    name: str
    share: float
    slow_share: float
    ratio: float
    p_value: float


def describe_slow_ios(log: IoLog, subject: str, rows: Integers) -> tuple[Finding, list[Property]]:
    """Return what the slow I/Os of a mode have in common, and all tested properties."""
    slow = slow_flags(log, rows)
    count = 0 if slow is None else int(slow[0].sum())
    if slow is None or len(rows) < MIN_IOS or count < MIN_SLOW:
        reason = f"{count} slow of {len(rows)} {subject}; {MIN_SLOW} of {MIN_IOS} are needed"
        return undecided(TOPIC, subject, reason, ios=len(rows), slow_ios=count), []
    flags, bound = slow
    raw = slow_flags(log, rows, by_size=False)
    tested = [compare_with_shifts(name, has, flags) for name, has in _properties(log, rows)]
    if raw is not None and raw[0].sum() >= MIN_SLOW:
        tested += [compare_with_shifts(name, has, raw[0]) for name, has in _sizes(log, rows)]
    tested = [each for each in tested if each is not None]
    numbers: dict[str, Number] = {
        "ios": len(rows),
        "slow_ios": count,
        "slow_from_medians": bound,
        "tested": len(tested),
    }
    if not tested:
        reason = f"the {subject} have no property in which they differ"
        return undecided(TOPIC, subject, reason, **numbers), []
    ranked = sorted((each for each in tested if each), key=lambda each: each.p_value)
    common = [each for each in significant(ranked) if each.ratio >= MIN_RATIO]
    name = f"slow {subject} ({count / len(rows):.1%}, from {bound:.1f} medians on)"
    if not common:
        least = ranked[0]
        finding = Finding(
            topic=TOPIC,
            subject=subject,
            verdict=ABSENT,
            statement=f"{name} have none of {len(ranked)} properties in common beyond chance; the "
            f"nearest is {least.name!r} (p {least.p_value:.2g})",
            numbers=numbers,
        )
        return finding, ranked
    for index, each in enumerate(common, 1):
        numbers |= {
            f"property_{index}": each.name,
            f"property_{index}_slow_share": each.slow_share,
            f"property_{index}_share": each.share,
            f"property_{index}_ratio": each.ratio,
            f"property_{index}_p_value": each.p_value,
        }
    text = "; ".join(
        f"{each.slow_share:.0%} are {each.name} (of all {each.share:.0%}; {each.ratio:.1f} times "
        f"the risk)"
        for each in common
    )
    return Finding(
        topic=TOPIC, subject=subject, verdict=FOUND, statement=f"{name}: {text}", numbers=numbers
    ), ranked


def describe_modes(log: IoLog) -> Finding | None:
    """Return whether slow I/Os are reads or writes, in a mixed trace."""
    if log.mode is None or len(log.subjects) < 2:
        return None
    bound = float(np.quantile(log.took, 0.99))
    slow = log.took > bound
    if len(log) < MIN_IOS or slow.sum() < MIN_SLOW:
        return undecided(TOPIC, "I/Os", f"{int(slow.sum())} slow of {len(log)} I/Os")
    tested = [
        compare_with_shifts(name, log.mode == mode, slow)
        for name, mode in (("reads", READ), ("writes", WRITE))
    ]
    of_mode = [each for each in tested if each and each.ratio >= MIN_RATIO]
    if not of_mode or of_mode[0].p_value > SIGNIFICANCE:
        return Finding(
            topic=TOPIC,
            subject="I/Os",
            verdict=ABSENT,
            statement="the slowest hundredth of the I/Os has reads and writes as all have",
        )
    each = of_mode[0]
    return Finding(
        topic=TOPIC,
        subject="I/Os",
        verdict=FOUND,
        statement=f"{each.slow_share:.0%} of the slowest hundredth (from "
        f"{format_duration_ns(bound)} on) are {each.name}, of all {each.share:.0%}",
        numbers={
            "slow_from_ns": bound,
            "mode": each.name,
            "slow_share": each.slow_share,
            "share": each.share,
            "p_value": each.p_value,
        },
    )


def compare_with_shifts(name: str, has: Flags, slow: Flags) -> Property | None:
    """Test a property (n,) against slow I/Os (n,); None if too few I/Os have or lack it.

    The p-value is the share of shifts at which as many slow I/Os or more have the property.
    """
    n, share = len(has), float(has.mean())
    if not MIN_SHARE <= share <= 1 - MIN_SHARE:
        return None
    shifted = _fast_length(n)
    spectrum = _spectrum(slow[:shifted]) * np.conj(_spectrum(has[:shifted]))
    overlaps = np.rint(np.fft.irfft(spectrum, shifted))
    near = max(1, round(NEAR * shifted))
    far = overlaps[near : shifted - near]
    p_value = (1 + float((far >= overlaps[0]).sum())) / (1 + len(far))
    true = float((slow & has).sum())
    slow_share = true / float(slow.sum())
    with_it, without = true / has.sum(), float((slow & ~has).sum()) / float((~has).sum())
    ratio = with_it / without if without else float(n)
    return Property(name, share, slow_share, ratio, p_value)


def _spectrum(flags: Flags) -> NDArray[np.complex128]:
    return np.fft.rfft(flags.astype(np.float64))


def _fast_length(n: int) -> int:
    """Return n or, of a long series, the largest length up to n whose transform is fast.

    A length with a large prime factor takes ten times as long; less than 1 % is left out.
    """
    if n < LONG_SERIES:
        return n

    def is_smooth(length: int) -> bool:
        for prime in (2, 3, 5, 7, 11):
            while length % prime == 0:
                length //= prime
        return length == 1

    return next(length for length in range(n, 0, -1) if is_smooth(length))


def significant(ranked: list[Property]) -> list[Property]:
    """Return the properties that are significant together, by Holm's step-down method.

    >>> few = [Property("a", 0.5, 0.9, 9.0, 0.001), Property("b", 0.5, 0.6, 1.5, 0.009)]
    >>> [each.name for each in significant(few)]
    ['a', 'b']
    >>> [each.name for each in significant([*few, Property("c", 0.5, 0.5, 1.0, 0.5)])]
    ['a']
    """
    found = []
    for index, each in enumerate(ranked):
        if each.p_value > SIGNIFICANCE / (len(ranked) - index):
            break
        found.append(each)
    return found


def _properties(log: IoLog, rows: Integers) -> Iterator[tuple[str, Flags]]:
    """Yield the properties of some I/Os other than mode and size."""
    if log.offset is not None and log.size is not None:
        yield from _places(log.offset[rows], log.size[rows])
        yield "where a write was shortly before", _after_write(log)[rows]
    if log.idle_before is not None:
        limit = max(IDLE_NS, IDLE_MEDIANS * float(np.median(log.took)))
        yield (
            f"after more than {format_duration_ns(limit)} of idle time",
            (log.idle_before[rows] > limit),
        )
    if log.in_flight is not None and log.in_flight.any():
        usual = float(np.median(log.in_flight[rows]))
        yield f"submitted with more than {usual:.0f} others in flight", log.in_flight[rows] > usual
    if log.mode is not None and len(log.subjects) > 1:
        limit = NEAR_WRITE_MEDIANS * float(np.median(log.took[rows]))
        near = _since_write(log)[rows] < limit
        yield f"within {format_duration_ns(limit)} of a write", near


def _sizes(log: IoLog, rows: Integers) -> Iterator[tuple[str, Flags]]:
    """Yield whether I/Os are larger than the powers of two between their sizes."""
    if log.size is None:
        return
    size = log.size[rows]
    middle = int(np.median(size))
    yield f"larger than {format_size(middle)}", size > middle
    yield f"smaller than {format_size(middle)}", size < middle


def _places(offset: Integers, size: Integers) -> Iterator[tuple[str, Flags]]:
    for unit in ALIGNMENTS:
        yield f"not aligned to {format_size(unit)}", offset % unit != 0
    yield "not sequential", np.concatenate([[False], offset[1:] != (offset + size)[:-1]])
    low, high = int(offset.min()), int((offset + size).max())
    width = max(1, -(-(high - low) // REGIONS))
    region = (offset - low) // width
    for number in range(REGIONS):
        begin = low + number * width
        yield (
            f"from {format_size(begin)} to {format_size(min(begin + width, high))}",
            region == number,
        )


def _after_write(log: IoLog) -> Flags:
    """Return whether one of the last `RECENT_IOS` I/Os wrote into the same 64 KiB."""
    assert log.offset is not None
    assert log.mode is not None
    chunk = log.offset // CHUNK_BYTES
    index = np.arange(len(log))
    order = np.lexsort((index, chunk))
    is_write = (log.mode == WRITE)[order]
    # The last write before each I/O, in its chunk: a running maximum that starts anew in a chunk.
    first = np.concatenate([[True], chunk[order][1:] != chunk[order][:-1]])
    group = np.cumsum(first) - 1
    base = len(log) * group
    last = np.maximum.accumulate(np.where(is_write, order, -1) + base + 1)
    earlier = np.concatenate([[0], last[:-1]])
    number = np.where(first, -1, earlier - base - 1)
    result = np.zeros(len(log), bool)
    result[order] = (number >= 0) & (order - number <= RECENT_IOS)
    return result


def _since_write(log: IoLog) -> Floats:
    """Return the time from the end of the last write to each submission [ns]; infinite without."""
    assert log.mode is not None
    assert log.completed is not None
    assert log.submitted is not None
    ends = np.maximum.accumulate(np.where(log.mode == WRITE, log.completed, -np.inf))
    since = np.full(len(log), np.inf)
    since[1:] = log.submitted[1:] - ends[:-1]
    return since


def describe_causes(log: IoLog) -> list[Finding]:
    """Return what the slow I/Os of a simulated device spent more time on than the others."""
    findings = []
    for subject, rows in log.subjects if log.causes else []:
        slow = slow_flags(log, rows)
        if slow is None or slow[0].all():
            continue
        flags = slow[0]
        extra = {
            name: float(column[rows][flags].mean() - column[rows][~flags].mean())
            for name, column in log.causes.items()
        }
        total = sum(each for each in extra.values() if each > 0)
        ranked = sorted(extra, key=lambda name: -extra[name])[:MOST_CAUSES]
        shown = [name for name in ranked if extra[name] > MIN_CAUSE_SHARE * total]
        numbers: dict[str, Number] = {f"extra_{name}": extra[name] for name in shown}
        numbers["slow_ios"] = int(flags.sum())
        text = ", ".join(
            f"{name.removesuffix('_ns').replace('_', ' ')} {extra[name] / total:.0%}"
            for name in shown
        )
        statement = f"recorded by the simulator: the extra time of slow {subject} went to {text}"
        findings.append(
            Finding(
                topic=CAUSES_TOPIC,
                subject=subject,
                verdict=FOUND,
                statement=statement,
                numbers=numbers,
            )
        )
    return findings
