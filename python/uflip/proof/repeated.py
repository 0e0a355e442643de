"""Repetitions whose truth is known: does the interval of all of them hold it, when rounds may end?

An experiment is what a plan makes of it: three runs that end by the rule, a quarter beyond their
shortest length at the latest, then rounds of runs of the shortest length, as many as the interval
that is known asks for, until it is narrow, or would need more than a plan may have. A run is a
stretch of a family, at a level of its own: what the device does at that time and place. Looking
several times may make an interval look narrow by chance; how often it does is what is counted here.

**Source** the families of `families`; the rounds of `uflip.methodology.rounds`.
**Faithful** the same functions as in a plan, but for the budget, which is not bounded here.
**Simplified** all of a run is at one level.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from uflip.analysis import analyse, run_length
from uflip.data.summary import Said
from uflip.executors import on_all
from uflip.methodology.lengths import longest
from uflip.methodology.rounds import GROWTH, needed_repetitions
from uflip.proof import families as make
from uflip.proof.families import Family, Random, Times
from uflip.results.agreement import AGREEMENT
from uflip.results.ended import opening_ns
from uflip.results.said import with_certainty

SHORTEST, FIRST, MOST = 1024, 3, 100
MANY_FIRST = 10
"""What a user may ask for (`--repetitions`) where three runs hide something."""

Levels = Callable[[Random], Times]
"""Makes the levels of all repetitions (MOST,), with mean 1."""


def alike(random: Random) -> Times:
    """All runs are at one level."""
    del random
    return np.ones(MOST)


def scattered(cv: float, neighbours: float = 0.0) -> Levels:
    """Normal levels; neighbours may resemble each other."""

    def levels(random: Random) -> Times:
        steps = random.normal(0, 1, MOST)
        for number in range(1, MOST):
            steps[number] *= np.sqrt(1 - neighbours**2)
            steps[number] += neighbours * steps[number - 1]
        return np.maximum(1 + cv * steps, 0.1)

    return levels


def skewed(cv: float) -> Levels:
    """Levels that are seldom high, by a gamma distribution: variance 2, mean 2."""

    def levels(random: Random) -> Times:
        drawn = random.gamma(2.0, 1.0, MOST)
        return np.asarray(1.0 + (drawn - 2.0) * cv / 2**0.5)

    return levels


def two_states(share: float, ratio: float) -> Levels:
    """Each run finds the device in one of two states."""

    def levels(random: Random) -> Times:
        high = random.random(MOST) < share
        return np.where(high, ratio, 1.0) / (1 + share * (ratio - 1))

    return levels


def slower(step: float) -> Levels:
    """Each run is slower than the one before: there is no mean."""
    return lambda _random: np.arange(MOST, dtype=np.float64) * step + 1.0


@dataclass(frozen=True)
class Case:
    """A family, the levels of its runs, whether there is a mean to be known, and whether three runs
    often hide what is in it.
    """

    name: str
    family: Family
    levels: Levels
    has_mean: bool = True
    hides: bool = False


CASES = (
    Case("flat, scatter 30 %", make.flat(0.3), alike),
    Case("levels ± 3 %", make.flat(0.3), scattered(0.03)),
    Case("levels ± 5 %", make.flat(0.3), scattered(0.05)),
    Case("levels ± 10 %", make.flat(0.3), scattered(0.1)),
    Case("levels ± 15 %", make.flat(0.3), scattered(0.15)),
    Case("levels ± 10 %, neighbours alike, 0.5", make.flat(0.3), scattered(0.1, 0.5), hides=True),
    Case("levels ± 10 %, seldom high", make.flat(0.3), skewed(0.1), hides=True),
    Case(
        "two states, a third of runs 1.3 times", make.flat(0.3), two_states(1 / 3, 1.3), hides=True
    ),
    Case("mtron, levels ± 5 %", make.mtron, scattered(0.05)),
    Case("two levels at random, 30 %", make.two_levels(0.3, 30), alike),
    Case("AR(1), 0.99", make.autoregressive(0.99, 0.3), alike),
    Case("bursts of 100 and 20", make.bursty(100, 20), alike),
    Case("bursts of 2,000 and 400", make.bursty(2000, 400), alike, hides=True),
    Case("one in 500 takes 100 times as long", make.stalls(500, 100), alike),
    Case("slope of 1,000 in each run", make.ramp(1000, 0.3), alike),
    Case("each run 3 % slower", make.flat(0.3), slower(0.03), has_mean=False),
)


@dataclass(frozen=True)
class Repeated:
    """Shares of experiments: `known`; of these, `covered` by their interval, and `false`: further
    off than is allowed. Medians of `repetitions` and `ios`.
    """

    case: str
    known: float
    covered: float | None
    false: float
    repetitions: float
    ios: float


def measure_repeated(case: Case, repeats: int, first: int = FIRST) -> Repeated:
    """Make so many experiments of a family, each of so many runs to begin with."""
    trials = np.array(on_all(partial(_experiment, CASES.index(case), first), range(repeats)))
    known = trials[trials[:, 0] > 0]
    return Repeated(
        case.name,
        len(known) / repeats,
        float(known[:, 1].mean()) if len(known) and case.has_mean else None,
        float(known[:, 2].sum()) / repeats,
        float(np.median(trials[:, 3])),
        float(np.median(trials[:, 4])),
    )


def _experiment(place: int, first: int, seed: int) -> tuple[float, ...]:
    """Say of one experiment: known, covered, falsely claimed, repetitions, I/Os."""
    case, random = CASES[place], np.random.default_rng([place, seed])
    levels, ios, wanted = case.levels(random), 0, first
    runs: list[Said] = []
    while True:
        while len(runs) < wanted:
            series = case.family(random, longest(SHORTEST))
            times, truth = series.times * levels[len(runs)], series.mean
            run, length = _run(times, is_first=len(runs) < first)
            runs.append(run)
            ios += length
        said = with_certainty(runs, None)
        expected, allowed = said["expected_ns"], said["allowed_ns"]
        if said["surely"] or said["hopeless"] or not expected or not allowed:
            break
        needed = needed_repetitions(len(runs), expected / allowed)
        if needed is None or needed <= len(runs):
            break
        wanted = min(needed, GROWTH * len(runs))
    off = abs((said["mean_ns"] or 0.0) - truth)
    covered = off <= (said["half_width_ns"] or 0.0)
    false = bool(said["converged"]) and (not case.has_mean or off > AGREEMENT * truth)
    return (float(said["converged"] or 0), covered, false, len(runs), ios)


def _run(times: Times, *, is_first: bool) -> tuple[Said, int]:
    """Make one run; return what is known of it, and its length."""
    if is_first:
        found: Any = run_length(times, min_ios=SHORTEST)
        converged = found.stopped
    else:
        found = analyse(times[:SHORTEST])
        converged = found.converged
    kept = times[found.startup_ios : found.ios]
    told: Said = {
        "mean_ns": float(kept.mean()),
        "half_width_ns": found.half_width_ns,
        "converged": converged,
        "reasons": sorted(found.reasons),
        "slow_episodes": found.slow_episodes,
        "startup_ios": found.startup_ios,
        "period_ios": None,
        "opening_ns": opening_ns(kept),
    }
    return told, found.ios
