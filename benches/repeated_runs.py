"""Repetitions with known truth: coverage of their interval when rounds may end at any time.

An experiment is made as in a plan: three runs that end by the stop rule, a quarter beyond their
shortest length at the latest. Then come rounds of runs of the shortest length, as many as the
current interval requires, until it is narrow, or would need more than the limit of a plan. A plan
has twenty experiments of a family, peers of each other (`uflip.results.statistics`), or one
of each family. A run is a part of a family, at a level of its own: the state of the device at
that time and place. Looking several times may make an interval look narrow by chance; these trials
count how often.

**Source** the families of `generated_series`; the rounds of `uflip.benchmark.rounds`.
**Faithful** the same functions as in a plan, but with an unlimited budget.
**Simplified** all of a run is at one level. Runs of a family are drawn from a bank of `BANK`, which
are analysed once: another level scales the times and changes nothing else.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

import generated_series as make
from generated_series import Family, Random, Times
from stop_rules import Z95
from uflip.analysis import analyse, run_length
from uflip.benchmark.rounds import GROWTH, repetitions_for
from uflip.benchmark.run_lengths import max_unconverged_ios
from uflip.data.summary import MeanSummary, Together
from uflip.executors import on_all
from uflip.results.statistics import AGREEMENT
from uflip.results.statistics.experiment import plan_certainty
from uflip.results.statistics.run import opening_ns

SHORTEST, FIRST, MAX_RUNS = 1024, 3, 100
BANK = 400
MANY_REPETITIONS = 10
"""A number of repetitions for users (`--repetitions`) whose three runs may hide something."""
PEER_EXPERIMENTS = 20
"""Experiments of a plan, which are peers."""
SEED = 26
"""Seed of the trials; no series used in the design of the rules had it."""
MIXED = "one of each, side by side"
ODD_EXPERIMENTS = 4
"""Number of odd experiments in a plan that has some."""

Levels = Callable[[Random], Times]
"""Makes the levels of all repetitions (MAX_RUNS,), with mean 1."""


def equal_levels(random: Random) -> Times:
    """Return one level for all runs."""
    del random
    return np.ones(MAX_RUNS)


def normal_levels(cv: float, neighbours: float = 0.0) -> Levels:
    """Return normally distributed levels; neighbours may be correlated."""

    def levels(random: Random) -> Times:
        steps = random.normal(0, 1, MAX_RUNS)
        for number in range(1, MAX_RUNS):
            steps[number] *= np.sqrt(1 - neighbours**2)
            steps[number] += neighbours * steps[number - 1]
        return np.maximum(1 + cv * steps, 0.1)

    return levels


def gamma_levels(cv: float) -> Levels:
    """Return levels that are rarely high, by a gamma distribution: variance 2, mean 2."""

    def levels(random: Random) -> Times:
        drawn = random.gamma(2.0, 1.0, MAX_RUNS)
        return np.asarray(1.0 + (drawn - 2.0) * cv / 2**0.5)

    return levels


def two_states(share: float, ratio: float) -> Levels:
    """Return levels of a device that is in one of two states in each run."""

    def levels(random: Random) -> Times:
        high = random.random(MAX_RUNS) < share
        return np.where(high, ratio, 1.0) / (1 + share * (ratio - 1))

    return levels


def rising_levels(step: float) -> Levels:
    """Return levels that rise from run to run: they have no mean."""
    return lambda _random: np.arange(MAX_RUNS, dtype=np.float64) * step + 1.0


@dataclass(frozen=True)
class RepetitionCase:
    """A family, the levels of its runs, whether it has a true mean, and whether three runs
    often hide a part of it.
    """

    name: str
    family: Family
    levels: Levels
    has_mean: bool = True
    hides: bool = False


FLAT = make.flat(0.3)

CASES = (
    RepetitionCase("flat, scatter 30 %", FLAT, equal_levels),
    RepetitionCase("levels ± 3 %", FLAT, normal_levels(0.03)),
    RepetitionCase("levels ± 5 %", FLAT, normal_levels(0.05)),
    RepetitionCase("levels ± 10 %", FLAT, normal_levels(0.1)),
    RepetitionCase("levels ± 15 %", FLAT, normal_levels(0.15)),
    RepetitionCase(
        "levels ± 10 %, neighbours alike, 0.5", FLAT, normal_levels(0.1, 0.5), hides=True
    ),
    RepetitionCase("levels ± 10 %, seldom high", FLAT, gamma_levels(0.1), hides=True),
    RepetitionCase(
        "two states, a third of runs 1.3 times", FLAT, two_states(1 / 3, 1.3), hides=True
    ),
    RepetitionCase("mtron, levels ± 5 %", make.mtron, normal_levels(0.05)),
    RepetitionCase("two levels at random, 30 %", make.two_levels(0.3, 30), equal_levels),
    RepetitionCase("AR(1), 0.99", make.autoregressive(0.99, 0.3), equal_levels),
    RepetitionCase("bursts of 100 and 20", make.bursty(100, 20), equal_levels),
    RepetitionCase("bursts of 2,000 and 400", make.bursty(2000, 400), equal_levels, hides=True),
    RepetitionCase("one in 500 takes 100 times as long", make.stalls(500, 100), equal_levels),
    RepetitionCase("slope of 1,000 in each run", make.ramp(1000, 0.3), equal_levels),
    RepetitionCase("each run 3 % slower", FLAT, rising_levels(0.03), has_mean=False),
)


ODD_FAMILIES = (
    ("levels ± 10 %", "levels ± 3 %"),
    ("levels ± 10 %", "levels ± 5 %"),
    ("levels ± 10 %, neighbours alike, 0.5", "levels ± 5 %"),
    ("levels ± 10 %, seldom high", "levels ± 3 %"),
    ("two states, a third of runs 1.3 times", "levels ± 3 %"),
    ("two states, a third of runs 1.3 times", "flat, scatter 30 %"),
)
"""The families of the `ODD_EXPERIMENTS` odd experiments of a plan, and of the others."""


@dataclass(frozen=True)
class CoverageShares:
    """Shares of experiments: `converged`; of these, `covered` by their interval, and
    `false`, further off than allowed, with the interval of 95 % of that share. Medians of
    `repetitions` and `ios`.
    """

    case: str
    converged: float
    covered: float | None
    false: float
    between: tuple[float, float]
    repetitions: float
    ios: float


def measure_repeated(
    case: RepetitionCase, repeats: int, first: int = FIRST, together: int = PEER_EXPERIMENTS
) -> CoverageShares:
    """Measure experiments of one family, `together` per plan, each with `first` runs at first."""
    plans = -(-repeats // together)
    return _coverage_shares(case.name, (CASES.index(case),) * together, plans, first)


def measure_mixed(repeats: int) -> CoverageShares:
    """Measure plans with one experiment of each family."""
    return _coverage_shares(MIXED, tuple(range(len(CASES))), -(-repeats // len(CASES)), FIRST)


def measure_odd(few: str, others: str, repeats: int) -> CoverageShares:
    """Measure plans in which a few scatter differently from their peers; return their shares."""
    index_of = {case.name: index for index, case in enumerate(CASES)}
    cases = (index_of[few],) * ODD_EXPERIMENTS + (index_of[others],) * (
        PEER_EXPERIMENTS - ODD_EXPERIMENTS
    )
    return _coverage_shares(
        f"{few}, among {others}", cases, -(-repeats // ODD_EXPERIMENTS), FIRST, of=ODD_EXPERIMENTS
    )


def _coverage_shares(
    name: str, cases: tuple[int, ...], plans: int, first: int, of: int | None = None
) -> CoverageShares:
    every = np.array(on_all(partial(_plan, cases, first), range(plans)))[:, :of]
    trials = every.reshape(-1, every.shape[2])
    converged = trials[trials[:, 0] > 0]
    has_mean = any(CASES[index].has_mean for index in cases)
    return CoverageShares(
        name,
        len(converged) / len(trials),
        float(converged[:, 1].mean()) if len(converged) and has_mean else None,
        float(trials[:, 2].mean()),
        interval_of_share(every[:, :, 2]),
        float(np.median(trials[:, 3])),
        float(np.median(trials[:, 4])),
    )


def interval_of_share(happened: Times) -> tuple[float, float]:
    """Return the interval of 95 % of a share of experiments (plans, together), 1 or 0.

    E. B. Wilson's (1927), with the effective number of independent experiments: experiments of one
    plan are correlated (L. Kish 1965, the design effect).

    Examples
    --------
    >>> low, high = interval_of_share(np.repeat([[1.0], [0.0]], [2, 98], axis=0))
    >>> round(low, 4), round(high, 4)
    (0.0055, 0.0704)
    """
    share, n = float(happened.mean()), happened.size
    if 0 < share < 1 and len(happened) > 1:
        of_independent = share * (1 - share) / happened.shape[1]
        n /= max(float(happened.mean(axis=1).var(ddof=1)) / of_independent, 1.0)
    middle = (share + Z95**2 / (2 * n)) / (1 + Z95**2 / n)
    reach = Z95 / (1 + Z95**2 / n) * (share * (1 - share) / n + Z95**2 / (4 * n * n)) ** 0.5
    return max(middle - reach, 0.0), min(middle + reach, 1.0)


class _Experiment:
    """An experiment of a plan: its family, the levels of all its runs, and the runs made so far."""

    def __init__(self, case: RepetitionCase, seed: Sequence[int]) -> None:
        self.case, self.random = case, np.random.default_rng(seed)
        self.levels, self.runs, self.ios, self.truth = case.levels(self.random), [], 0, 0.0

    levels: Times
    runs: list[MeanSummary]

    def make(self, count: int, first: int) -> None:
        """Make runs up to a number; the first ones may end by the stop rule."""
        while len(self.runs) < count:
            bank, self.truth = _bank(self.case.family, len(self.runs) < first)
            run, length = bank[self.random.integers(len(bank))]
            self.runs.append(_at_level(run, self.levels[len(self.runs)]))
            self.ios += length

    def trial(self, combined: Together) -> tuple[float, ...]:
        """Return: converged, covered, falsely claimed, repetitions, I/Os."""
        error = abs((combined["mean_ns"] or 0.0) - self.truth)
        covered = error <= (combined["half_width_ns"] or 0.0)
        is_off = not self.case.has_mean or error > AGREEMENT * self.truth
        converged = bool(combined["converged"])
        return (float(converged), covered, float(converged and is_off), len(self.runs), self.ios)


def _plan(cases: Sequence[int], first: int, seed: int) -> list[tuple[float, ...]]:
    """Return for each experiment of a plan: converged, covered, falsely claimed, runs, I/Os."""
    numbered = enumerate(cases)
    every = [_Experiment(CASES[index], [SEED, index, seed, number]) for number, index in numbered]
    targets = [first] * len(every)
    while True:
        for one, count in zip(every, targets, strict=True):
            one.make(count, first)
        means = plan_certainty([""] * len(every), [one.runs for one in every], None)
        for number, (one, mean) in enumerate(zip(every, means, strict=True)):
            runs_made = len(one.runs)
            targets[number] = min(
                max(repetitions_for(mean, runs_made) or 0, runs_made), GROWTH * runs_made
            )
        if all(len(one.runs) == count for one, count in zip(every, targets, strict=True)):
            return [one.trial(mean) for one, mean in zip(every, means, strict=True)]


@lru_cache
def _bank(family: Family, is_first: bool) -> tuple[list[tuple[MeanSummary, int]], float]:
    """Return runs of a family, with their lengths, and their true mean [ns]."""
    every = [
        family(np.random.default_rng([SEED, is_first, number]), max_unconverged_ios(SHORTEST))
        for number in range(BANK)
    ]
    return [_run(each.times, is_first=is_first) for each in every], every[0].mean


def _at_level(run: MeanSummary, level: float) -> MeanSummary:
    """Return a run scaled to another level."""
    mean, half_width, opening = run["mean_ns"], run["half_width_ns"], run.get("opening_ns")
    scaled = run.copy()
    scaled["mean_ns"] = None if mean is None else level * mean
    scaled["half_width_ns"] = None if half_width is None else level * half_width
    scaled["opening_ns"] = None if opening is None else level * opening
    return scaled


def _run(times: Times, *, is_first: bool) -> tuple[MeanSummary, int]:
    """Make one run; return its convergence, and its length."""
    if is_first:
        analysis: Any = run_length(times, min_ios=SHORTEST)
        converged = analysis.stopped
    else:
        analysis = analyse(times[:SHORTEST])
        converged = analysis.converged
    running = times[analysis.startup_ios : analysis.ios]
    run: MeanSummary = {
        "mean_ns": float(running.mean()),
        "half_width_ns": analysis.half_width_ns,
        "converged": converged,
        "reasons": sorted(analysis.reasons),
        "slow_episodes": analysis.slow_episodes,
        "startup_ios": analysis.startup_ios,
        "period_ios": None,
        "opening_ns": opening_ns(running),
    }
    return run, analysis.ios
