"""Traits of the slowest I/Os of a run: how much more frequent is a property among them?

**Source** Traits are ranked by their lift, as in association rule mining: the share among the slow
I/Os over the share among all.
**Faithful** Every I/O is counted.
**Simplified** One trait at a time, never two together.
**Ambiguous** "Slow". Here: the slowest hundredth, at least `MIN_SLOW` and at most `MAX_SLOW` I/Os.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import log2, sqrt
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from uflip.data.host_load import DISTURBANCES, HostRecord
from uflip.data.run import Coincidence, HostSummary
from uflip.results.columns import PIECE_IOS
from uflip.units import format_count, format_duration_ns

SHARE, MIN_SLOW, MAX_SLOW = 0.01, 10, 10_000
DEVIATIONS = 3.0
"""Required standard deviations beyond chance, since some fifty traits are tried."""
HOST_LIFT = 2.0
"""A disturbance explains slow I/Os if it is this much more frequent among them."""


@dataclass(frozen=True)
class Trait:
    """A common trait of I/Os."""

    #: The property and its value.
    name: str
    value: str
    #: Number of slow I/Os with the trait, and of all I/Os with it.
    slow: int
    every: int
    #: Number of slow I/Os, and of all.
    of_slow: int
    of_every: int

    @property
    def lift(self) -> float:
        """Frequency among the slow I/Os relative to all."""
        return (self.slow / self.of_slow) / (self.every / self.of_every)

    @property
    def beyond_chance(self) -> bool:
        """Whether the trait is more frequent than in a random selection of that size."""
        share = self.every / self.of_every
        expected = share * self.of_slow
        return self.slow - expected > DEVIATIONS * sqrt(expected * (1 - share))

    @property
    def rank(self) -> float:
        """Score for sorting: the share of the slow I/Os that it explains beyond chance."""
        return (self.slow / self.of_slow - self.every / self.of_every) * log2(self.lift)


class ReadColumn(Protocol):
    """Reads I/Os `start` to `stop` of a column."""

    def __call__(self, name: str, start: int, stop: int, /) -> object:
        """Return an array, or what numpy can view as one."""
        ...


def slow_count(count: int) -> int:
    """Return how many of `count` I/Os count as slow."""
    return min(max(int(count * SHARE), MIN_SLOW), MAX_SLOW, count)


def piece_ranges(start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of at most `PIECE_IOS` I/Os."""
    for low in range(start, stop, PIECE_IOS):
        yield low, min(low + PIECE_IOS, stop)


def slowest_numbers(column: ReadColumn, start: int, stop: int, some: int) -> NDArray[np.int64]:
    """Return the numbers of the slowest I/Os, the slowest first; of equal ones the first."""
    numbers, times = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for low, high in piece_ranges(start, stop):
        more = _integers(column, "response_time_ns", low, high)
        if len(times) == some:
            numbers = np.concatenate([numbers, np.flatnonzero(more > times.min()) + low])
            times = np.concatenate([times, more[more > times.min()]])
        else:
            numbers = np.concatenate([numbers, np.arange(low, high)])
            times = np.concatenate([times, more])
        order = np.lexsort((numbers, -times))[:some]
        numbers, times = numbers[order], times[order]
    return numbers


def host_marks(
    host: HostRecord, column: ReadColumn, low: int, high: int
) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Yield every disturbance by the host, and which I/Os of a range lie in its windows."""
    begin = _integers(column, "submit_ns", low, high)
    end = begin + _integers(column, "response_time_ns", low, high)
    for name, windows in host.disturbed().items():
        yield DISTURBANCES[name], host.touched(windows, begin, end)


def summarise_host(column: ReadColumn, count: int, host: HostRecord) -> HostSummary:
    """Return the disturbances by the host, and those that coincide with the slow I/Os.

    `column`, `count`: the I/Os of a run. `host`: the counters that were sampled beside it.
    """
    some = slow_count(count)
    slow = np.sort(slowest_numbers(column, 0, count, some))
    counts: dict[str, list[int]] = {}
    for low, high in piece_ranges(0, count):
        slow_here = slow[(slow >= low) & (slow < high)] - low
        for words, has in host_marks(host, column, low, high):
            found = counts.setdefault(words, [0, 0])
            found[0] += int(has[slow_here].sum())
            found[1] += int(has.sum())
    traits = [
        Trait("host", words, in_slow, in_all, some, count)
        for words, (in_slow, in_all) in counts.items()
    ]
    common = [
        each
        for each in traits
        if each.slow and each.lift >= HOST_LIFT and each.beyond_chance and some < count
    ]
    return {
        "windows": len(host.ends_ns),
        "window_ns": host.window_ns if host.ends_ns else 0,
        "disturbed": {
            DISTURBANCES[name]: int(windows.sum()) for name, windows in host.disturbed().items()
        },
        "slow_ios": some,
        "ios": count,
        "coincide": [
            {"what": each.value, "slow_ios": each.slow, "ios": each.every}
            for each in sorted(common, key=lambda each: -each.rank)
        ],
    }


def host_facts(host: HostSummary) -> list[tuple[str, str]]:
    """Return the summary as lines of text, each with its label; none without a disturbance."""
    length = format_duration_ns(host["window_ns"])
    lines = [describe_coincidence(host, each) for each in host["coincide"]]
    if host["disturbed"] and not lines:
        found = "; ".join(f"{what} in {n}" for what, n in host["disturbed"].items())
        lines = [
            f"of {format_count(host['windows'])} windows of {length}: {found}; the slow I/Os do "
            "not coincide with them"
        ]
    return [("host" if not number else "", line) for number, line in enumerate(lines)]


def describe_coincidence(host: HostSummary, each: Coincidence) -> str:
    """Return a coincidence as a sentence."""
    return (
        f"{format_count(each['slow_ios'])} of the {format_count(host['slow_ios'])} slowest I/Os "
        f"lie in windows of {format_duration_ns(host['window_ns'])} with {each['what']} (of all "
        f"I/Os {each['ios'] / host['ios']:.1%})"
    )


def _integers(column: ReadColumn, name: str, low: int, high: int) -> NDArray[np.int64]:
    return np.asarray(column(name, low, high)).astype(np.int64)
