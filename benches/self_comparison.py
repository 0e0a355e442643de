"""False alarms of `--fail-if-slower` when a device is compared with itself.

The means of repetitions are drawn from a law of scatter and made into experiments as in `uflip
compare`; then a comparison tests whether any is slower. All are equal, so that each returned one is
a false alarm. The power of the test is shown beside it: the share of comparisons in which the one
experiment that takes 1.5 times as long is returned.

**Source** the guarantee of docs/how-to/compare-two-runs.md: at most one comparison in forty fails.
**Faithful** the interval of the mean (`agreement.combined_mean`), the row, and the test
(`comparison.slower_than`) are those of a comparison.
**Simplified** the mean of a run is exact: all scatter is that of repetitions. An experiment has
nine peers.
**Ambiguous** which laws. Laws outside the guarantee are included: one side that scatters more than
the other, and two states, of which three repetitions may meet either alone.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uflip.executors import on_all
from uflip.results.comparison import ComparedExperiment, compare_experiment, slower_than
from uflip.results.statistics import combined_mean
from uflip.results.statistics.experiment import peers_among
from uflip.results.statistics.scatter import MIN_REPETITIONS

Means = NDArray[np.float64]
Law = Callable[[np.random.Generator, int, int, int], tuple[Means, Means]]
"""Draws means: number of experiments, repetitions of the first result and of the second."""
SORT = 10
"""Number of experiments that are peers of each other."""
SLOWER = 1.5
"""Slow-down of the one slower experiment."""


@dataclass(frozen=True)
class SelfComparison:
    """A law of scatter, and the repetitions of each side."""

    name: str
    law: Law
    first: int
    second: int


@dataclass(frozen=True)
class FailureShares:
    """Shares of comparisons: false alarms; comparisons that find the one slower experiment."""

    failed: float
    detected: float


def normal(first: float, second: float | None = None) -> Law:
    """Return normal scatter, with another one for the second side if given."""
    other = first if second is None else second

    def draw(random: np.random.Generator, n: int, ours: int, theirs: int) -> tuple[Means, Means]:
        return random.normal(1, first, (n, ours)), random.normal(1, other, (n, theirs))

    return draw


def alternating(first: float, second: float) -> Law:
    """Return normal scatter with two standard deviations in turn."""

    def draw(random: np.random.Generator, n: int, ours: int, theirs: int) -> tuple[Means, Means]:
        sigma = np.where(np.arange(n) % 2 == 0, first, second)[:, None]
        return random.normal(1, sigma, (n, ours)), random.normal(1, sigma, (n, theirs))

    return draw


def same_law(draw_one: Callable[[np.random.Generator, tuple[int, int]], Means]) -> Law:
    """Return a law that draws both sides in the same way."""

    def draw(random: np.random.Generator, n: int, ours: int, theirs: int) -> tuple[Means, Means]:
        return draw_one(random, (n, ours)), draw_one(random, (n, theirs))

    return draw


def lognormal(random: np.random.Generator, shape: tuple[int, int]) -> Means:
    """Draw factors with a scatter of 30 %."""
    return random.lognormal(0, 0.3, shape)


def exponential(random: np.random.Generator, shape: tuple[int, int]) -> Means:
    """Draw a level with a tail of 10 % above it."""
    return 1 + random.exponential(0.1, shape)


def two_states(random: np.random.Generator, shape: tuple[int, int]) -> Means:
    """Draw two states: a third of repetitions takes 1.3 times as long, and all scatter by 3 %."""
    return np.where(random.random(shape) < 1 / 3, 1.3, 1.0) * random.normal(1, 0.03, shape)


FAILS_BY_CHANCE = (
    *(SelfComparison(f"normal, 3 %, {n} and {n}", normal(0.03), n, n) for n in (2, 3, 5)),
    SelfComparison("normal, 10 %, 3 and 3", normal(0.1), 3, 3),
    SelfComparison("normal, 3 % and 5 % in turn, 3 and 3", alternating(0.03, 0.05), 3, 3),
    SelfComparison("log-normal, 30 %, 3 and 3", same_law(lognormal), 3, 3),
    SelfComparison("exponential, 10 %, 3 and 3", same_law(exponential), 3, 3),
    SelfComparison("normal, 3 %, 2 and 5", normal(0.03), 2, 5),
    SelfComparison("normal, 3 %, 3 and 10", normal(0.03), 3, 10),
    SelfComparison("second scatters 3 times as much, 3 and 3", normal(0.03, 0.09), 3, 3),
    SelfComparison("second scatters 10 times as much, 3 and 3", normal(0.01, 0.1), 3, 3),
    SelfComparison("first scatters 3 times as much, 2 and 5", normal(0.09, 0.03), 2, 5),
)
"""Laws for which at most one comparison in forty may fail."""
HIDDEN = tuple(
    SelfComparison(f"two states, {n} and {n}", same_law(two_states), n, n) for n in (3, 5, 10)
)
"""Laws whose repetitions do not show their whole scatter."""
ALL = (*FAILS_BY_CHANCE, *HIDDEN)


def measure_self(case: SelfComparison, experiments: int, repeats: int) -> FailureShares:
    """Compare repeatedly, with a number of experiments each."""
    trials = on_all(partial(_trial, ALL.index(case), experiments), range(repeats))
    failed, detected = np.array(trials).mean(axis=0)
    return FailureShares(float(failed), float(detected))


def _trial(case_index: int, experiments: int, seed: int) -> tuple[bool, bool]:
    """Return whether a comparison fails, and whether it finds the one experiment that is slower."""
    case = ALL[case_index]
    random = np.random.default_rng([seed, case_index, experiments])
    first, second = case.law(random, experiments, case.first, case.second)
    failed = bool(slower_than(_rows(first, second), 0.0))
    second[0] *= SLOWER
    rows = _rows(first, second)
    return failed, rows[0] in slower_than(rows, 0.0)


def _rows(first: Means, second: Means) -> list[ComparedExperiment]:
    both = zip(_experiments(first), _experiments(second), strict=True)
    rows = (compare_experiment(("baseline", "RW", "n", n), *pair) for n, pair in enumerate(both))
    return [row for row in rows if row is not None]


def _experiments(means: Means) -> list[Any]:
    """Make experiments, ten of a sort, from repetitions with exact means."""
    every: list[list[Any]] = [
        [
            {"mean_ns": 1e5 * mean, "half_width_ns": 0.0, "converged": True, "reasons": []}
            for mean in each
        ]
        for each in means.tolist()
    ]
    # The interval of fewer repetitions does not use peers.
    uses_peers = means.shape[1] >= MIN_REPETITIONS
    sorts = (every[n : n + SORT] for n in range(0, len(every), SORT))
    peers = [peers_among(each) if uses_peers else None for each in sorts]
    return [
        {
            "unit": None,
            "statistics": None,
            "repetitions": runs,
            "together": combined_mean(runs, peers=peers[n // SORT]),
        }
        for n, runs in enumerate(every)
    ]
