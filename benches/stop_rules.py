"""Stop rules, ours and others as their authors published them, and how often each is right.

Two questions. *Detection*: does the method find an existing start-up, claim none for a series
without one, and find the period? *Run length*: where does a rule stop, after how many I/Os, and
how often does its interval contain the true mean?

Each rule looks at a series from the beginning and returns the number of I/Os that it would have
run, the mean of those that it would not have ignored, and the half width of its interval.

**Source** MSER-5: Spratt 1998, Hoad & Robinson 2010. SNIA: PTS 2.0, definition of steady state.
fio: `steadystate.c`. The interval for independent I/Os: any textbook.
**Faithful** MSER-5 on the response times themselves with its half rule; SNIA's two conditions over
five rounds, 20 % and 10 %; fio's `ss=iops:X%` and `ss=iops_slope:X%` over a window, the reported
number being that of the whole job.
**Simplified** SNIA's round and fio's interval are numbers of I/Os and not seconds: a generated
series has no clock but its own response times.
**Ambiguous** fio's slope is per sample; X = 10 is how users write SNIA's 10 %.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

import generated_series as make
from generated_series import Family, GeneratedSeries, Times
from uflip import _native
from uflip.analysis import analyse, run_length
from uflip.executors import on_all

# uFLIP §5.1: IOCount of its random writes, and the IOIgnore that goes with it.
PAPER_IOS, PAPER_IGNORE = 5120, 128
FIRST_LOOK, GROWTH = 1024, 1.2
Z95 = 1.959964


@dataclass(frozen=True)
class RivalEstimate:
    """The result of a rule on a series: I/Os run, mean and half width [ns], whether it stopped."""

    ios: int
    mean: float
    half_width: float
    stopped: bool


Rule = Callable[[Times, int], RivalEstimate]
"""A rule: gets a series, and the number of I/Os before which it must not stop."""


def ours(times: Times, min_ios: int) -> RivalEstimate:
    """Apply the stop rule of the engine."""
    result = run_length(times, min_ios=min_ios)
    half_width = 0.0 if result.half_width_ns is None else result.half_width_ns
    return RivalEstimate(result.ios, result.mean_ns, half_width, result.stopped)


def independent(times: Times) -> float:
    """Return half the width of the interval for independent I/Os [ns]."""
    return float(Z95 * times.std(ddof=1) / np.sqrt(len(times)))


def paper(times: Times, min_ios: int) -> RivalEstimate:
    """Apply uFLIP's fixed numbers for random writes."""
    del min_ios
    running = times[PAPER_IGNORE:PAPER_IOS]
    return RivalEstimate(PAPER_IOS, float(running.mean()), independent(running), True)


def textbook(times: Times, min_ios: int) -> RivalEstimate:
    """Stop when the interval for independent I/Os is narrow enough."""
    for n in _look_lengths(len(times), min_ios):
        half_width = independent(times[:n])
        if half_width <= 0.05 * times[:n].mean():
            return RivalEstimate(n, float(times[:n].mean()), half_width, True)
    return RivalEstimate(len(times), float(times.mean()), independent(times), False)


def mser5(times: Times, min_ios: int) -> RivalEstimate:
    """Cut by MSER-5, stop when the interval for independent I/Os is narrow enough."""
    for n in _look_lengths(len(times), min_ios):
        means = times[: n // 5 * 5].reshape(-1, 5).mean(axis=1)
        counts = np.arange(len(means), 0, -1)
        sums, squares = means[::-1].cumsum()[::-1], (means**2)[::-1].cumsum()[::-1]
        errors = (squares - sums**2 / counts) / counts**2
        cut = int(np.argmin(errors[: len(means) // 2]))
        if cut == len(means) // 2 - 1:
            continue
        running = times[5 * cut : n]
        if independent(running) <= 0.05 * running.mean():
            return RivalEstimate(n, float(running.mean()), independent(running), True)
    return RivalEstimate(len(times), float(times.mean()), independent(times), False)


def snia(times: Times, min_ios: int, rounds: int = 5) -> RivalEstimate:
    """Stop at five rounds within 20 % of their mean, whose line changes by 10 % at most."""
    length = max(min_ios // rounds, 1)
    y = times[: len(times) // length * length].reshape(-1, length).mean(axis=1)
    x = np.arange(rounds)
    for end in range(rounds, len(y) + 1):
        window = y[end - rounds : end]
        centre = window.mean()
        slope = np.polyfit(x, window, 1)[0]
        if np.ptp(window) <= 0.2 * centre and abs(slope) * (rounds - 1) <= 0.1 * centre:
            last_rounds = times[(end - rounds) * length : end * length]
            return RivalEstimate(end * length, float(centre), independent(last_rounds), True)
    return RivalEstimate(len(times), float(times.mean()), independent(times), False)


def fio(kind: str, percent: float, samples: int = 30) -> Rule:
    """Return a rule of fio: `mean` for `ss=iops:X%`, `slope` for `ss=iops_slope:X%`."""

    def rule(times: Times, min_ios: int) -> RivalEstimate:
        length = max(min_ios // samples, 1)
        rates = 1 / times[: len(times) // length * length].reshape(-1, length).mean(axis=1)
        x = np.arange(samples) - (samples - 1) / 2
        for end in range(samples, len(rates) + 1):
            window = rates[end - samples : end]
            if kind == "mean":
                distance = np.abs(window - window.mean()).max()
            else:
                distance = abs((x * window).sum() / (x * x).sum())
            if 100 * distance / window.mean() < percent:
                whole = times[: end * length]
                return RivalEstimate(end * length, float(whole.mean()), independent(whole), True)
        return RivalEstimate(len(times), float(times.mean()), independent(times), False)

    return rule


RULES: dict[str, Rule] = {
    "uflip": ours,
    "uFLIP 2009: 5120, 128 ignored": paper,
    "independent I/Os": textbook,
    "MSER-5": mser5,
    "SNIA PTS": snia,
    "fio ss=iops:10%": fio("mean", 10.0),
    "fio ss=iops_slope:10%": fio("slope", 10.0),
}
"""Name of a rule -> the rule."""


def _look_lengths(n: int, min_ios: int) -> list[int]:
    """Return the lengths at which our own rule looks."""
    lengths = [max(min_ios, FIRST_LOOK)]
    while lengths[-1] * GROWTH <= n:
        lengths.append(int(lengths[-1] * GROWTH))
    return [look for look in lengths if look <= n]


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


# I/Os that our rule uses, against the fewest of a fixed rule chosen with hindsight.
# The fixed rule uses knowledge that is not available beforehand: the end of the start-up, and the
# length of a period. It ignores exactly the start-up and takes the fewest whole periods, five at
# least, whose batch means give the requested half width in nineteen of twenty series. The half
# widths are so narrow that the minimum of 1,024 I/Os does not matter.


MIN_PERIODS = 5
NARROW_SHARE = 0.95


@dataclass(frozen=True)
class EconomyRow:
    """I/Os for a half width [share of the mean]: fewest of any fixed rule, ours (median), ratio."""

    case: str
    half_width: float
    fewest: int
    ours: int
    ratio: float


ECONOMY_CASES: tuple[tuple[str, Family, int, float], ...] = (
    ("mtron: 125, then period 3", make.mtron, 20_000, 0.005),
    ("kdti: period 128", make.kdti, 60_000, 0.01),
    ("period 7", make.periodic(7, (30.0,)), 40_000, 0.005),
    ("period 512, 3 levels", make.periodic(512, (30.0, 80.0)), 60_000, 0.01),
    ("fast: 8,192, then period 64", make.fast, 60_000, 0.02),
    ("20,000, then period 3", make.after_startup(20_000, make.periodic(3, (60.0,))), 60_000, 0.05),
)  # fmt: skip


def economy(repeats: int) -> list[EconomyRow]:
    """Compare both on `repeats` series of each family."""
    return [_compare(*case, repeats) for case in ECONOMY_CASES]


def _compare(name: str, family: Family, ios: int, half_width: float, repeats: int) -> EconomyRow:
    all_series = [family(np.random.default_rng(seed), ios) for seed in range(repeats)]
    fewest = _shortest_fixed_rule(all_series, half_width)
    first = all_series[0].startup
    # A start-up is known from a long baseline: see `min_ios`.
    start = max(1024, 0 if first is None else 4 * first[1] // 3 + 8)
    lengths = [
        run_length(each.times, half_width=half_width, min_ios=start).ios for each in all_series
    ]
    ours = int(np.median(lengths))
    return EconomyRow(name, half_width, fewest, ours, ours / fewest)


def _shortest_fixed_rule(all_series: list[GeneratedSeries], half_width: float) -> int:
    """Return the I/Os of the shortest fixed rule, trying numbers of periods in steps of 5 %."""
    startup = 0 if all_series[0].startup is None else all_series[0].startup[1]
    period = all_series[0].period or 1
    periods = max(MIN_PERIODS, -(-32 // period))
    while True:
        n = startup + periods * period
        if n > len(all_series[0].times):
            raise ValueError(f"no fixed rule within {len(all_series[0].times)} I/Os")
        narrow = sum(_is_narrow(each, startup, n, half_width) for each in all_series)
        if narrow >= NARROW_SHARE * len(all_series):
            return n
        periods = max(periods + 1, int(periods * 1.05))


def _is_narrow(series: GeneratedSeries, startup: int, n: int, half_width: float) -> bool:
    """Return whether batch means in whole periods give a narrow enough interval."""
    running = series.times[startup:n]
    period = series.period or 1
    batches = min(32, len(running) // period)
    length = len(running) // period // batches * period
    means = running[len(running) - batches * length :].reshape(batches, length).mean(axis=1)
    t = _native.student_quantile(0.05, batches - 1)
    return bool(t * means.std(ddof=1) / np.sqrt(batches) <= half_width * means.mean())
