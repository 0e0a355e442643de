"""Other rules for cutting a start-up and for stopping, as their authors published them.

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

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from uflip.analysis import run_length
from uflip.proof.families import Times

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
