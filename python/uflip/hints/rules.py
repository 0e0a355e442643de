"""The seven design hints of uFLIP, each checked against the measurements of a device.

**Source** uFLIP (CIDR 2009) §5.3, hints 1 to 7.
**Faithful** Each claim is checked with the micro-benchmark from which the paper draws it.
**Simplified** Means are compared, not distributions.
**Ambiguous** The paper's words as numbers, none of which was tuned to a device: "significantly" is
more than rounds to "=" on the scale of Table 3 (`LIKE_FACTOR`); "no improvement" is at most 5 %, by
which the paper's own repetitions differed (`REPEATS`). A hint is undecided, and gives no advice, if
an interval includes the limit, if there is no interval, or if a run that supports it measured the
start-up of the device or its write cache. A hint to limit something is contradicted if the limit
brings no gain. Hints make no statement about values between measured ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile
from math import ceil, log2
from typing import Any, TypeVar

from msgspec import Struct

from uflip.data.summary import KeyCharacteristics
from uflip.hints.means import (
    ENTRY_BYTES,
    LARGE_BYTES,
    Lines,
    alignment_unit,
    baseline,
    block_sizes,
    break_even_s,
    cost_line,
    cost_of_small,
    gains,
    larger_reads,
    mixes,
    pauses,
    smaller_writes,
    unaligned,
)
from uflip.microbench.labels import PATTERN_NAMES, format_ratio
from uflip.results.key_characteristics import LIKE_FACTOR, MIN_AREA_BYTES, areas, is_smallest
from uflip.results.startup_check import MARKED
from uflip.results.statistics import AGREEMENT, Factor, first_mark, mean_ratio
from uflip.units import format_duration_ns, format_size

CONFIRMED, CONTRADICTED = "confirmed", "contradicted"

UNDECIDED, NOT_MEASURED = "undecided", "not measured"

VERDICTS = (CONFIRMED, CONTRADICTED, UNDECIDED, NOT_MEASURED)

REPEATS = 1 + AGREEMENT

PATTERNS = tuple(PATTERN_NAMES)

T = TypeVar("T")

Number = str | int | float | bool | None

Numbers = dict[str, Number]

Row = KeyCharacteristics
"""`key_characteristics` of a summary."""


class Hint(Struct, frozen=True):
    """The outcome of a hint."""

    number: int  #: As in §5.3.
    statement: str  #: The statement about flash devices.
    #: One of `VERDICTS`: undecided if a run that supports it is inside the start-up or the write
    #: cache, or if an interval includes the limit; not measured if runs are missing.
    verdict: str
    because: str  #: The numbers, in a sentence.
    advice: str  #: Advice for this device; empty unless the hint is confirmed or contradicted.
    #: Name with unit -> value: the numbers behind the verdict, and the limit.
    numbers: Mapping[str, Number]
    micro_benchmark: str  #: The micro-benchmark whose figure shows it.
    decided_by: str = ""  #: The command of a run that would decide an open hint; otherwise empty.

    @property
    def next_step(self) -> str:
        """The advice, or the run that would decide the hint."""
        return self.advice or (f"to decide: {self.decided_by}" if self.decided_by else "")


def latency(lines: Lines) -> Hint:
    """Return hint 1: latency of I/Os."""
    heading = (1, "I/Os have a latency: larger ones are beneficial, even for reads")
    factor, line = cost_of_small(lines), cost_line(lines.get("granularity SR", {}))
    if factor is None:
        return _unknown(*heading, "granularity", "reads of 4 KiB and of 32 KiB")
    holds = factor.exceeds(REPEATS)
    numbers: Numbers = {**factor_numbers("cost_of_4_kib_over_32_kib", factor), "limit": REPEATS}
    because = (
        f"a byte in reads of 4 KiB costs {format_factor(factor)} as much as in reads of 32 KiB"
    )
    because += _doubt(factor, REPEATS)
    advice = ""
    if line is not None:
        half, most = line.size_for(0.5), line.size_for(0.9)
        numbers |= {
            "fixed_ns": line.fixed_ns, "rate_bytes_per_s": line.bytes_per_s,
            "half_rate_bytes": half, "nine_tenths_bytes": most,
        }  # fmt: skip
        because += f"; {format_duration_ns(line.fixed_ns)} of a read do not depend on its size"
        advice = (
            f"read {_block(half)} at a time for half of the rate that long reads reach, "
            f"{_block(most)} for nine tenths of it"
        )
    return Hint(*heading, verdict_of(holds), because, advice, numbers, "granularity")


def block_size(
    lines: Lines,
    entry_bytes: int = ENTRY_BYTES,
    prices: tuple[float, float] | None = None,
) -> Hint:
    """Return hint 2: block size; prices are that of the device, and of a GiB of memory."""
    heading = (2, "Blocks of 32 KB are a good trade-off between reads and writes")
    reads, writes = (lines.get(f"granularity {pattern}", {}) for pattern in ("RR", "RW"))
    sizes = block_sizes(reads, writes, entry_bytes)
    if sizes is None:
        return _unknown(*heading, "granularity", "random reads and writes of several sizes")
    larger = larger_reads(reads, LARGE_BYTES, entry_bytes)
    smaller = smaller_writes(writes, LARGE_BYTES)
    exceeded = True if larger is None else bool(larger) and most_decisive(larger, 1.0)[2]
    undercut = bool(smaller) and most_decisive(smaller, 1 / LIKE_FACTOR)[2]
    mark = first_mark([*reads.values(), *writes.values()])
    holds = None if mark else _neither(exceeded, undercut)
    numbers: Numbers = {
        "best_for_reads_bytes": sizes.reads, "enough_for_writes_bytes": sizes.writes,
        "between_bytes": sizes.between, "entry_bytes": entry_bytes, "limit": LIKE_FACTOR,
    }  # fmt: skip
    because = (
        f"pages of {format_size(sizes.reads)} are best for lookups (entries of {entry_bytes} "
        f"bytes), and random writes are cheapest per byte from {format_size(sizes.writes)} on"
    )
    parts: list[str] = []
    if holds is None:
        reason = MARKED[mark] if mark else f"the interval includes {format_size(LARGE_BYTES)}"
        because += f"; undecided: {reason}"
    else:
        low, high = sorted((sizes.reads, sizes.writes))
        parts.append(f"use blocks of {format_size(sizes.between if low < high else low)}")
        if low < high:
            more_often = "depending on which is more frequent"
            parts.append(f"{format_size(low)} to {format_size(high)}, {more_often}")
    if prices is not None:
        interval = break_even_s(sizes.reads, reads[sizes.reads], *prices)
        numbers |= {
            "break_even_s": interval, "device_price": prices[0], "memory_price_per_gib": prices[1],
        }  # fmt: skip
        because += (
            f"; five-minute rule: pages of {format_size(sizes.reads)} that are read again within "
            f"{format_duration_ns(interval * 1e9)} belong in memory"
        )
    return Hint(*heading, verdict_of(holds), because, "; ".join(parts), numbers, "granularity")


def _neither(one: bool | None, other: bool | None) -> bool | None:
    """Return whether neither holds; None if that is unknown."""
    if one or other:
        return False
    return None if None in (one, other) else True


def alignment(lines: Lines) -> Hint:
    """Return hint 3: alignment."""
    heading = (3, "Blocks should be aligned to flash pages; others have a severe penalty")
    by_pattern = {pattern: unaligned(lines, pattern) for pattern in PATTERNS}
    cases = {
        (p, shift): factor for p, factors in by_pattern.items() for shift, factor in factors.items()
    }
    if not cases:
        return _unknown(*heading, "alignment", "shifted I/Os")
    (pattern, shift), factor, beyond = most_decisive(cases, LIKE_FACTOR)
    numbers = {
        **factor_numbers("unaligned_over_aligned", factor), "pattern": pattern,
        "shift_bytes": shift, "limit": LIKE_FACTOR,
    }  # fmt: skip
    because = f"{PATTERN_NAMES[pattern]}s off by {format_size(shift)} cost {format_factor(factor)}"
    because += _doubt(factor, LIKE_FACTOR)
    advice = "alignment does not matter"
    if beyond:
        unit = alignment_unit(by_pattern[pattern], LIKE_FACTOR)
        numbers["unit_bytes"] = unit
        advice = f"align to {format_size(unit)}"
    return Hint(
        *heading, verdict_of(beyond), because, advice if beyond is not None else "", numbers,
        "alignment",
    )  # fmt: skip


def focus(lines: Lines, row: Row) -> Hint:
    """Return hint 4: focused random writes."""
    heading = (4, "Random writes should be limited to a focused area")
    finding, cost = row["locality"], _random_over_sequential(lines)
    if cost is None or finding["verdict"] == "not_measured":
        return _unknown(*heading, "locality", "random writes within areas of several sizes")
    numbers: Numbers = {**factor_numbers("random_over_sequential", cost), "limit": LIKE_FACTOR}
    anywhere = f"random writes cost {format_factor(cost)} as much as sequential ones"
    beyond = cost.exceeds(LIKE_FACTOR)
    if beyond is False:
        advice = "random writes may go anywhere"
        return Hint(*heading, CONTRADICTED, anywhere, advice, numbers, "locality")
    if beyond is None:
        because = anywhere + _doubt(cost, LIKE_FACTOR)
        return Hint(*heading, UNDECIDED, because, "", numbers, "locality")
    if (open_reason := UNDECIDED_REASONS.get(finding["verdict"])) is not None:
        because = f"{anywhere}; undecided: {open_reason}"
        return Hint(*heading, UNDECIDED, because, "", numbers, "locality")
    if finding["verdict"] == "none":
        advice = "avoid random writes: write sequentially, as a log does"
        because = f"{anywhere}, and no area from {format_size(MIN_AREA_BYTES)} on makes them cheap"
        return Hint(*heading, CONTRADICTED, because, advice, numbers, "locality")
    return _within(heading, lines, _present(finding.get("locality_bytes")), anywhere, numbers)


def _within(
    heading: tuple[int, str], lines: Lines, largest: float, anywhere: str, numbers: Numbers
) -> Hint:
    """Return hint 4 for a device with areas without degradation: whether they are cheaper."""
    random, sequential = (_present(baseline(lines, pattern)) for pattern in ("RW", "SW"))
    curve = areas(lines["locality RW"])
    gains = {area: mean_ratio(random, mean) for area, mean in curve.items() if area <= largest}
    cheap = list(takewhile(lambda area: gains[area].exceeds(LIKE_FACTOR), gains))
    if not cheap:
        smallest = min(gains)
        gain = gains[smallest]
        holds = gain.exceeds(LIKE_FACTOR)
        because = f"{anywhere}, and {format_factor(gain)} as much as within {format_size(smallest)}"
        because += _doubt(gain, LIKE_FACTOR)
        if holds is False and not is_smallest(smallest, MIN_AREA_BYTES):
            because += "; undecided: smaller areas were not measured"
        if holds is None or not is_smallest(smallest, MIN_AREA_BYTES):
            return Hint(*heading, UNDECIDED, because, "", numbers, "locality")
        advice = "random writes may go anywhere: no area is cheaper"
        return Hint(*heading, CONTRADICTED, because, advice, numbers, "locality")
    area = cheap[-1]
    worst = mean_ratio(max((curve[one] for one in cheap), key=lambda mean: mean.ns), sequential)
    numbers |= {"area_bytes": area, "cost_within_over_sequential": worst.value}
    because = f"{anywhere}, within {format_size(area)} at most {format_ratio(worst.value)}"
    after = next((size for size in curve if size > area), None)
    if after is None:
        because += ", the largest area that was measured"
    else:
        because += f", and within {format_size(after)}, the next that was measured, "
        because += format_ratio(mean_ratio(curve[after], sequential).value)
    advice = f"keep random writes within {format_size(area)} for a while, then move on"
    return Hint(*heading, CONFIRMED, because, advice, numbers, "locality")


def partitions(lines: Lines, row: Row) -> Hint:
    """Return hint 5: partitions."""
    heading = (5, "Sequential writes should be limited to a few partitions")
    finding, sequential = row["partitions"], baseline(lines, "SW")
    if sequential is None or finding["verdict"] == "not_measured":
        return _unknown(*heading, "partitioning", "sequential writes to several partitions")
    if (open_reason := UNDECIDED_REASONS.get(finding["verdict"])) is not None:
        because = f"undecided: {open_reason}"
        return Hint(*heading, UNDECIDED, because, "", {}, "partitioning")
    numbers: Numbers = {
        "partitions": finding.get("partitions"), "cost_over_sequential": finding["factor"],
    }  # fmt: skip
    if finding["verdict"] == "none":
        because = "writes to two partitions cost far more than to one"
        advice = "write to one place at a time"
        return Hint(*heading, CONFIRMED, because, advice, numbers, "partitioning")
    many = round(_present(finding.get("partitions")))
    cost = format_ratio(_present(finding["factor"]))
    because = f"{many} partitions cost at most {cost} as much as one"
    if finding["verdict"] == "everywhere":
        because += ", and that is the largest number that was measured"
        advice = f"{many} places may be written in parallel"
        return Hint(*heading, CONTRADICTED, because, advice, numbers, "partitioning")
    curve = lines["partitioning SW"]
    after = next(value for value in curve if value > many)
    numbers["next_partitions"] = after
    because += f", {after}, the next that were measured, "
    because += format_ratio(mean_ratio(curve[after], sequential).value)
    advice = f"write to {many} places at a time (runs of a merge, levels, logs), not to {after}"
    return Hint(*heading, CONFIRMED, because, advice, numbers, "partitioning")


def mixing(lines: Lines) -> Hint:
    """Return hint 6: mixes."""
    heading = (6, "Combining a limited number of patterns is acceptable")
    cases = mixes(lines)
    if not cases:
        return _unknown(*heading, "mix", "mixes of two patterns")
    (pattern, ratio), factor, beyond = most_decisive(cases, LIKE_FACTOR)
    numbers = {
        **factor_numbers("mix_over_its_parts", factor), "mix": pattern, "ratio": ratio,
        "limit": LIKE_FACTOR,
    }  # fmt: skip
    frequent, rare = (PATTERN_NAMES[part] for part in pattern.split("/"))
    because = (
        f"{ratio} {frequent}{'s' * (ratio > 1)} per {rare} cost {format_factor(factor)} as much as "
        "separately"
    )
    because += _doubt(factor, LIKE_FACTOR)
    advice = ""
    if beyond is not None:
        advice = (
            f"keep {frequent}s and {rare}s apart in time" if beyond else "patterns may be combined"
        )
    holds = None if beyond is None else not beyond
    return Hint(*heading, verdict_of(holds), because, advice, numbers, "mix")


def waiting(lines: Lines) -> Hint:
    """Return hint 7: concurrent and delayed I/Os."""
    heading = (7, "Neither concurrent nor delayed I/Os improve the performance")
    parallel = {
        (pattern, degree): gain
        for pattern in PATTERNS
        for degree, gain in gains(lines, pattern).items()
        if degree > 1
    }
    # Gain of a pause: the inverse of the cost of pause and I/O together.
    delayed = {pause: inverse(total) for pause, total in pauses(lines).items()}
    if not parallel or not delayed:
        return _unknown(*heading, "parallelism", "parallel processes, and pauses before writes")
    (pattern, degree), gain, concurrent = most_decisive(parallel, REPEATS)
    pause, saving, paused = most_decisive(delayed, REPEATS)
    numbers = {
        **factor_numbers("throughput_gain", gain), "pattern": pattern, "processes": degree,
        **factor_numbers("pause_gain", saving), "pause_ns": pause, "limit": REPEATS,
    }  # fmt: skip
    because = (
        f"{degree} processes of {PATTERN_NAMES[pattern]}s have {format_factor(gain)} the "
        f"throughput of one; with a pause of {format_duration_ns(pause)} random writes have "
        f"{format_factor(saving)}"
    )
    answers = (concurrent, paused)
    holds = False if True in answers else None if None in answers else True
    if holds is None:
        because += _doubt(saving if paused is None else gain, REPEATS)
    advice = ""
    if holds is not None:
        advice = "issue I/Os one after the other, without pauses"
        if concurrent:
            advice = f"keep several I/Os in flight ({PATTERN_NAMES[pattern]}s: {degree})"
        if paused:
            advice = f"leave {format_duration_ns(pause)} between random writes" + (
                f"; {advice}" if concurrent else ""
            )
    return Hint(*heading, verdict_of(holds), because, advice, numbers, "parallelism")


def _present(value: T | None) -> T:
    """Return a value that is present with every verdict "found"."""
    assert value is not None, "a finding without its value"
    return value


def _block(size: float) -> str:
    """Return a size as text, rounded up to a power of two."""
    return format_size(1 << max(ceil(log2(max(size, 1.0))), 9))


def inverse(factor: Factor) -> Factor:
    """Return the inverse of a factor.

    >>> inverse(Factor(2.0, 1.0, 4.0))
    Factor(value=0.5, low=0.25, high=1.0, mark=None)
    """
    if factor.low is None or factor.high is None or factor.low <= 0:
        return Factor(1 / factor.value, mark=factor.mark)
    return Factor(1 / factor.value, 1 / factor.high, 1 / factor.low, factor.mark)


UNDECIDED_REASONS = {
    "undecided": "a run that supports it is inside the start-up, or never left the write cache",
    "not_repeatable": "the same pattern differs by more when it is measured again",
}
"""Verdict of a key characteristic that leaves a hint undecided -> the reason."""


def _doubt(factor: Factor, limit: float) -> str:
    """Return why a factor is undecided against a limit; empty if it is decided."""
    if factor.exceeds(limit) is not None:
        return ""
    if factor.mark:
        return f"; undecided: {MARKED[factor.mark]}"
    if factor.low is None:
        return "; undecided: a mean has no interval"
    return f"; undecided: the interval includes ×{limit:.2f}"


def _random_over_sequential(lines: Lines) -> Factor | None:
    random, sequential = (baseline(lines, pattern) for pattern in ("RW", "SW"))
    return None if random is None or sequential is None else mean_ratio(random, sequential)


def _unknown(number: int, statement: str, micro_benchmark: str, runs: str) -> Hint:
    because = f"the result contains no {runs}"
    return Hint(number, statement, NOT_MEASURED, because, "", {}, micro_benchmark)


def verdict_of(holds: bool | None) -> str:
    """Return the verdict of a measured statement; None is undecided.

    >>> verdict_of(True), verdict_of(None)
    ('confirmed', 'undecided')
    """
    if holds is None:
        return UNDECIDED
    return CONFIRMED if holds else CONTRADICTED


def most_decisive(factors: Mapping[Any, Factor], limit: float) -> tuple[Any, Factor, bool | None]:
    """Return the case that best decides whether any factor is beyond a limit, with the answer.

    This is the largest of the cases that are certainly beyond; else of the undecided; else of all.

    >>> most_decisive({"a": Factor(1.3, 1.1, 1.5), "b": Factor(1.25, 1.23, 1.27)}, 1.2)
    ('b', Factor(value=1.25, low=1.23, high=1.27, mark=None), True)
    >>> most_decisive({"a": Factor(1.3, 1.1, 1.5), "b": Factor(1.0, 0.9, 1.1)}, 1.2)[2] is None
    True
    >>> most_decisive({"a": Factor(1.5, 1.4, 1.6), "b": Factor(1.7)}, 1.2)[0]
    'a'
    """
    for answer in (True, None, False):
        cases = {
            name: factor for name, factor in factors.items() if factor.exceeds(limit) is answer
        }
        if cases:
            name = max(cases, key=lambda case: cases[case].value)
            return name, cases[name], answer
    raise ValueError("no factor was given")


def format_factor(factor: Factor) -> str:
    """Return a factor with its interval as text; a marked factor is shown without interval.

    >>> format_factor(Factor(1.5, 1.35, 1.65)), format_factor(Factor(2.0))
    ('×1.5 (×1.4 to ×1.6)', '×2.0')
    """
    if factor.low is None or factor.high is None or factor.mark:
        return format_ratio(factor.value)
    low = max(factor.low, 0.0)
    return f"{format_ratio(factor.value)} ({format_ratio(low)} to {format_ratio(factor.high)})"


def factor_numbers(name: str, factor: Factor) -> dict[str, float | None]:
    """Return a factor with its interval as plain data."""
    return {name: factor.value, f"{name}_low": factor.low, f"{name}_high": factor.high}
