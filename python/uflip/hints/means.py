"""Means of a benchmark by experiment, and ratios of them with their intervals.

**Source** E. C. Fieller, "Some Problems in Interval Estimation", J. R. Stat. Soc. B 16 (1954): the
interval of a ratio.
**Faithful** An interval is that of all repetitions of an experiment (`results.agreement`).
**Simplified** Two means are assumed to be independent.
**Ambiguous** Whether a ratio exceeds a limit that its interval includes: it is undecided
(`exceeds`). So is a ratio without an interval: the mean of too few I/Os has no interval, and
Fieller gives none if the denominator may be zero. An exact value, like the single response time of
a simulated read, has an interval of zero width.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import hypot

from uflip.data.summary import ExperimentSummary, Summary
from uflip.results.convergence import Mark
from uflip.results.ratios import ratio_interval
from uflip.results.startup_check import mark_of
from uflip.results.summary_document import BASELINE, experiments_of


@dataclass(frozen=True)
class Mean:
    """A mean response time, and the half-width of its interval, None if unknown [ns].

    `mark` is that of its runs, if they measured the start-up of the device or its write cache.
    """

    ns: float
    half_width_ns: float | None = None
    mark: Mark | None = None

    def times(self, factor: float) -> "Mean":
        """Return a multiple of the mean.

        Examples
        --------
        >>> Mean(10.0, 1.0).times(2)
        Mean(ns=20.0, half_width_ns=2.0, mark=None)
        """
        half = self.half_width_ns
        return Mean(self.ns * factor, None if half is None else half * abs(factor), self.mark)

    def plus(self, ns: float) -> "Mean":
        """Return the mean plus a duration [ns]."""
        return Mean(self.ns + ns, self.half_width_ns, self.mark)


def sum_of_means(parts: Iterable[Mean]) -> Mean:
    """Return the sum of independent means, with its interval.

    Examples
    --------
    >>> sum_of_means([Mean(10.0, 3.0), Mean(20.0, 4.0)])
    Mean(ns=30.0, half_width_ns=5.0, mark=None)
    """
    means = list(parts)
    halves = [part.half_width_ns for part in means]
    known_halves = [half for half in halves if half is not None]
    return Mean(
        sum(part.ns for part in means),
        hypot(*known_halves) if len(known_halves) == len(halves) else None,
        first_mark(means),
    )


def first_mark(parts: Iterable["Mean | Factor"]) -> Mark | None:
    """Return the mark of the first part that has one."""
    return next((part.mark for part in parts if part.mark), None)


@dataclass(frozen=True)
class Factor:
    """A ratio of two means, and its interval; None if the interval is unknown.

    A factor with a `mark` decides nothing: one of its means includes the start-up or the cache.
    """

    value: float
    low: float | None = None
    high: float | None = None
    mark: Mark | None = None

    def exceeds(self, limit: float) -> bool | None:
        """Return whether the factor is above a limit; None if its interval includes the limit.

        Also None without an interval, and for a marked factor.

        Examples
        --------
        >>> Factor(1.5, 1.4, 1.6).exceeds(1.2), Factor(1.5, 1.1, 1.9).exceeds(1.2)
        (True, None)
        >>> Factor(1.7).exceeds(1.2) is None, Factor(1.7, 1.7, 1.7).exceeds(1.2)
        (True, True)
        """
        if self.mark or self.low is None or self.high is None:
            return None
        if self.low <= limit <= self.high:
            return None
        return self.value > limit


def mean_ratio(first: Mean, second: Mean) -> Factor:
    """Return the ratio of the first to the second mean.

    It has no interval if one of the means has none, or if that of the second includes zero.

    Examples
    --------
    >>> mean_ratio(Mean(150.0, 15.0), Mean(100.0, 0.0))
    Factor(value=1.5, low=1.35, high=1.65, mark=None)
    >>> mean_ratio(Mean(22.1, 16.2), Mean(17.7, 27.9)).exceeds(1.2) is None
    True
    """
    bounds = ratio_interval(second.ns, second.half_width_ns, first.ns, first.half_width_ns)
    low, high = bounds or (None, None)
    return Factor(first.ns / second.ns, low, high, first_mark((first, second)))


Curve = Mapping[int, Mean]
"""Value of the varying parameter -> mean, ascending."""
Lines = Mapping[str, Curve]
"""Micro-benchmark and pattern, as in "granularity RW" -> curve; baselines have one value, 0."""


def lines_of(document: Summary) -> Lines:
    """Extract the means from a summary of results.

    Parameters
    ----------
    document
        From `uflip.results.summary`.
    """
    curves: dict[str, dict[int, Mean]] = {}
    for name, run in experiments_of(document):
        mean = _mean(run)
        value = 0 if name == BASELINE else run["value"]
        if mean is None or value is None:
            continue
        curves.setdefault(f"{name} {run['pattern']}", {})[int(value)] = mean
    return {name: dict(sorted(curve.items())) for name, curve in curves.items()}


def _mean(run: ExperimentSummary) -> Mean | None:
    combined = run["together"]
    if combined["mean_ns"]:
        return Mean(combined["mean_ns"], combined["half_width_ns"], mark_of(run))
    statistics = run["statistics"]
    if not statistics or not statistics["mean_ns"]:
        return None
    return Mean(float(statistics["mean_ns"]), None, mark_of(run))


def baseline(lines: Lines, pattern: str) -> Mean | None:
    """Return the mean of a baseline, None if it was not measured."""
    return lines.get(f"{BASELINE} {pattern}", {}).get(0)


def baselines(lines: Lines, patterns: Sequence[str]) -> list[Mean] | None:
    """Return the means of baselines, None if one of them was not measured."""
    means = [baseline(lines, pattern) for pattern in patterns]
    measured = [mean for mean in means if mean is not None]
    return measured if len(measured) == len(means) else None
