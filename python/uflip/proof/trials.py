"""Trials: how often a rule is right on many series of one family.

Two questions. *Detection*: does the method find an existing start-up, claim none for a series
without one, and find the period? *Run length*: where does a rule stop, after how many I/Os, and how
often does its interval contain the true mean?
"""

from collections import Counter
from dataclasses import dataclass
from functools import partial

import numpy as np

from uflip.analysis import analyse
from uflip.executors import on_all
from uflip.proof import families as make
from uflip.proof.families import Family, GeneratedSeries
from uflip.proof.rivals import RULES

# A start-up is found if it is within this share, or these I/Os, of the truth.
STARTUP_SHARE, STARTUP_IOS = 0.1, 5


@dataclass(frozen=True)
class TrialCase:
    """A family, the length of its series, and the I/Os before which no rule may stop.

    `converges`: whether a mean can be found within the series.
    """

    name: str
    family: Family
    ios: int
    min_ios: int = 1024
    converges: bool = True


# I/Os before the first look, after a start-up that was seen in a long baseline.
AFTER_FAST = 4 * 8192 // 3 + 8
AFTER_20000 = 4 * 20_000 // 3 + 8

DETECTION = (
    TrialCase("flat, scatter 2 %", make.flat(0.02), 5120),
    TrialCase("flat, scatter 100 %", make.flat(1.0), 5120),
    TrialCase("Pareto tail, 1 in 100", make.heavy_tail(0.01, 2.5), 5120),
    TrialCase("two levels at random, 30 %", make.two_levels(0.3, 30), 5120),
    TrialCase("two levels at random, 3 %", make.two_levels(0.03, 60), 5120),
    TrialCase("mtron: 125, then period 3", make.mtron, 5120),
    TrialCase("kdti: period 128", make.kdti, 5120),
    TrialCase("fast: 8,192, then period 64", make.fast, 20_480),
    TrialCase("periods 2 … 512, 2 … 4 levels", make.any_periodic, 5120),
    TrialCase("start-ups 5 … 20,000", make.any_startup, 5120),
    TrialCase("slope of 1,000", make.ramp(1000, 0.3), 5120),
    TrialCase("exponential approach", make.decaying(0.05), 5120),
    TrialCase("distances 64 ± 8", make.jittered(64, 8), 5120),
    TrialCase("bursts of 200 and 40", make.bursty(200, 40), 20_480),
    TrialCase("bursts of 2,000 and 400", make.bursty(2000, 400), 20_480),
    TrialCase("bursts of 2,000 and 400, short", make.bursty(2000, 400), 5120),
    TrialCase("AR(1), 0.9", make.autoregressive(0.9, 0.3), 5120),
    TrialCase("AR(1), 0.99", make.autoregressive(0.99, 0.3), 20_480),
    TrialCase("drift, 30 %", make.drifting(0.3), 5120),
)

LENGTH = (
    TrialCase("flat, scatter 30 %", make.flat(0.3), 20_000),
    TrialCase("flat, scatter 100 %", make.flat(1.0), 60_000),
    TrialCase("Pareto tail, 1 in 100", make.heavy_tail(0.01, 3.5), 100_000),
    TrialCase("two levels at random, 30 %", make.two_levels(0.3, 30), 60_000),
    TrialCase("two levels at random, 3 %", make.two_levels(0.03, 60), 200_000),
    TrialCase("mtron: 125, then period 3", make.mtron, 20_000),
    TrialCase("kdti: period 128", make.kdti, 20_000),
    TrialCase("period 7", make.periodic(7, (30.0,)), 20_000),
    TrialCase("period 512, 3 levels", make.periodic(512, (30.0, 80.0)), 30_000),
    TrialCase("fast: 8,192, then period 64", make.fast, 60_000, AFTER_FAST),
    TrialCase("20,000, then period 3", make.after_startup(20_000, make.periodic(3, (60.0,))),
         90_000, AFTER_20000),
    TrialCase("500, then two levels", make.after_startup(500, make.two_levels(0.3, 30)), 60_000),
    TrialCase("slope of 1,000", make.ramp(1000, 0.3), 20_000),
    TrialCase("distances 64 ± 8", make.jittered(64, 8), 30_000),
    TrialCase("bursts of 20 and 4", make.bursty(20, 4), 150_000),
    TrialCase("bursts of 100 and 20", make.bursty(100, 20), 400_000),
    TrialCase("AR(1), 0.9", make.autoregressive(0.9, 0.3), 60_000),
    TrialCase("AR(1), 0.99", make.autoregressive(0.99, 0.3), 200_000),
    TrialCase("exponential approach", make.decaying(0.05), 20_000),
    TrialCase("drift, 11 times", make.drifting(10.0), 20_000, converges=False),
    TrialCase("bursts of 2,000 and 400", make.bursty(2000, 400), 60_000, 24_000, converges=False),
)  # fmt: skip

# Behaviour that is invisible to every rule that looks after 1,024 I/Os.
UNDETECTABLE = (
    TrialCase("one in 500 takes 100 times as long", make.stalls(500, 100), 100_000),
    TrialCase("the same, first look after 4,096", make.stalls(500, 100), 100_000, 4096),
    TrialCase("one in 5,000 takes 500 times as long", make.stalls(5000, 500), 60_000),
    TrialCase("bursts of 2,000 and 400", make.bursty(2000, 400), 60_000),
    TrialCase("fast: 8,192, then period 64", make.fast, 60_000),
)

# A level that wanders at all time scales.
MEMORY = tuple(
    TrialCase(f"long memory, d = {d}", make.long_memory(d), 20_000) for d in (0.1, 0.2, 0.3, 0.4)
)

# A moving level, at increasing lengths: does it get a period, and which phase?
MOVING: tuple[tuple[str, Family], ...] = (
    ("flat, scatter 30 %", make.flat(0.3)),
    ("drift, 2 %", make.drifting(0.02)),
    ("drift, 5 %", make.drifting(0.05)),
    ("drift, 10 %", make.drifting(0.1)),
    ("drift, 20 %", make.drifting(0.2)),
    ("scatter 5 % … 120 %", make.widening(0.05, 1.2)),
    ("middle third 1.5 times", make.shifted(1.5)),
    ("middle third 3 times", make.shifted(3.0)),
    ("middle third 10 times", make.shifted(10.0)),
    ("sine ± 40 %, 3 cycles", make.wave(0.4, 3)),
    ("sine ± 40 %, 20 cycles", make.wave(0.4, 20)),
    ("AR(1), 0.9", make.autoregressive(0.9, 0.3)),
    ("AR(1), 0.99", make.autoregressive(0.99, 0.3)),
    ("period 40 that drifts by 10 %", make.climbing(0.1, 40, 3.0)),
)
MOVING_IOS = (5120, 20_480, 40_960)


@dataclass(frozen=True)
class DetectionShares:
    """Shares of series: start-up found, where possible; claimed wrongly; period right."""

    case: str
    startup_found: float | None
    claimed_wrongly: float
    period: float | None


@dataclass(frozen=True)
class MovingLevelShares:
    """Shares of series: with a period; by phase; converged."""

    period: float
    phases: dict[str, float]
    converged: float


@dataclass(frozen=True)
class RunLengthShares:
    """The results of a rule on a family.

    `stopped` is the share of series in which it stopped; of these, `covered` the share whose
    interval contains the true mean, `ios` the median of I/Os run, `error` the mean distance from
    the true mean relative to it, `half_width` the mean half width likewise.
    """

    case: str
    rule: str
    stopped: float
    covered: float | None
    ios: float | None
    error: float | None
    half_width: float | None


def is_within(startup_ios: int, truth: tuple[int, int]) -> bool:
    """Return whether a found start-up is close to the true one."""
    first, last = truth
    reach = max(STARTUP_IOS, STARTUP_SHARE * last)
    return first - reach <= startup_ios <= last + reach


# Trials in other processes identify a case by its index here: a family is a closure.
ALL = (*DETECTION, *LENGTH, *UNDETECTABLE, *MEMORY)


def _series(case: TrialCase, seed: int) -> GeneratedSeries:
    return case.family(np.random.default_rng(seed), case.ios)


def _detect(case_index: int, seed: int) -> tuple[bool | None, bool, bool | None]:
    series = _series(ALL[case_index], seed)
    analysis = analyse(series.times)
    right = series.startup is not None and is_within(analysis.startup_ios, series.startup)
    period = None
    if series.period is not None:
        period = analysis.period_ios == series.period
        period |= series.period > 1 and analysis.period_ios % series.period == 0
    detected = right if series.startup is not None and series.identifiable else None
    return detected, analysis.startup_ios > 0 and not right, period


def detect(case: TrialCase, repeats: int) -> DetectionShares:
    """Detect start-up and period in `repeats` series of a family."""
    trials = on_all(partial(_detect, ALL.index(case)), range(repeats))
    startups = [detected for detected, _, _ in trials if detected is not None]
    periods = [period for _, _, period in trials if period is not None]
    return DetectionShares(
        case.name,
        _share(startups),
        sum(claimed for _, claimed, _ in trials) / repeats,
        _share(periods),
    )


def _analyse_moving(index: int, ios: int, seed: int) -> tuple[bool, str, bool]:
    series = MOVING[index][1](np.random.default_rng(seed), ios)
    analysis = analyse(series.times)
    return analysis.period_ios > 1, analysis.phase, analysis.converged


def analyse_moving(index: int, ios: int, repeats: int) -> MovingLevelShares:
    """Analyse a number of series of a family of `MOVING`, each of a number of I/Os."""
    trials = on_all(partial(_analyse_moving, index, ios), range(repeats))
    periods, phases, converged = zip(*trials, strict=True)
    phase_counts = Counter(phases).most_common()
    return MovingLevelShares(
        sum(periods) / repeats,
        {phase: count / repeats for phase, count in phase_counts},
        sum(converged) / repeats,
    )


def _measure(case_index: int, rules: tuple[str, ...], seed: int) -> list[tuple[float, ...]]:
    case = ALL[case_index]
    series = _series(case, seed)
    rows: list[tuple[float, ...]] = []
    for rule in rules:
        estimate = RULES[rule](series.times, case.min_ios)
        error = abs(estimate.mean - series.mean) / series.mean
        rows.append((estimate.stopped, error, estimate.ios, estimate.half_width / series.mean))
    return rows


def measure(
    case: TrialCase, repeats: int, rules: tuple[str, ...] = tuple(RULES)
) -> list[RunLengthShares]:
    """Apply rules to `repeats` series of a family."""
    trials = np.array(on_all(partial(_measure, ALL.index(case), rules), range(repeats)))
    results = []
    for index, rule in enumerate(rules):
        rows = trials[:, index]
        stopped = rows[rows[:, 0] > 0]
        name, share = case.name, len(stopped) / repeats
        if len(stopped) == 0:
            results.append(RunLengthShares(name, rule, share, None, None, None, None))
            continue
        if np.isnan(stopped[:, 1]).any():  # there is no true mean
            results.append(
                RunLengthShares(
                    name, rule, share, None, float(np.median(stopped[:, 2])), None, None
                )
            )
            continue
        covered = float((stopped[:, 1] <= stopped[:, 3]).mean())
        ios, error = float(np.median(stopped[:, 2])), float(stopped[:, 1].mean())
        results.append(
            RunLengthShares(name, rule, share, covered, ios, error, float(stopped[:, 3].mean()))
        )
    return results


def _share(values: list[bool]) -> float | None:
    return sum(values) / len(values) if values else None
