"""Results side by side: the same experiments of two devices, or of one device before and after.

**Source** uFLIP (CIDR 2009) §5.1: the same runs repeat "typically within 5%". The interval of a
ratio of two means is that of Fieller, "Some Problems in Interval Estimation", J. R. Stat. Soc. B 16
(1954), for independent estimates.
**Faithful** An experiment is the same where micro-benchmark, pattern, parameter and value are, and
of a replay its I/Os; the interval of each mean is that of `convergence.combined_mean`, from the
intervals of the runs and the scatter of repetitions.
**Simplified** Means decide; percentiles are shown beside them, without an interval.
**Ambiguous** When two means differ. Here: the interval of their ratio does not hold 1, and the
ratio is larger than the factor by which the same pattern differs within either result
(`consistency.repeatability`). They are the same where the whole interval is within `AGREEMENT`.
Of many experiments a few differ by chance: up to 5 % of those that are in truth the same. The
question whether any is slower is therefore tested on all together (`slower_than`), with Holm's
correction. An experiment has no verdict (`comparability.missing_verdict_reason`) if in either
result it was run once, may have measured the start-up of the device, or measured other I/Os of its
runs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import exp, lgamma, log, log1p, sqrt
from statistics import NormalDist, median
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict

from uflip import _native
from uflip.arrow_table import Columns, frame
from uflip.data.device import DeviceInfo
from uflip.data.manifest import StoredWarning
from uflip.data.summary import BaselineRepeats, ExperimentSummary, StatisticsSummary, Summary
from uflip.errors import ErrorDocument
from uflip.results.comparability import (
    NO_INTERVAL,
    cannot_repeat,
    differences,
    is_different_replay,
    missing_verdict_reason,
    single_run_warnings,
    startup_runs,
    unmatched_warnings,
    window_warnings,
)
from uflip.results.consistency import worst_repeatability
from uflip.results.convergence import AGREEMENT, CONFIDENCE
from uflip.results.summary_document import describe_device, experiments_of
from uflip.units import parse_number

if TYPE_CHECKING:
    from arro3.core import Table


CHANCE = (1 - CONFIDENCE) / 2
"""The chance that an interval lies above the true value."""
ROUNDING = 1e-9
"""A mean that differs from the limit by less than this share equals it."""
NORMAL = 1e5
"""Student's distribution counts as normal from this number of degrees of freedom."""

Fact = str | int | float | bool | list[str | int | float | bool] | None
"""A field of a device, or the value of a profile key."""

VERDICTS = {
    "slower": "the second takes longer, by more than chance",
    "faster": "the second takes less time, by more than chance",
    "same": f"the second takes as long, within {AGREEMENT:.0%}",
    "not_apart": "undecided: the interval is too wide, or repetitions differ too much",
    "unknown": "no verdict: unknown_because contains the reason",
}
"""Verdict on two means -> its explanation."""

DEVICE_FACTS = ("url", "model", "serial", "firmware", "capacity_bytes")
SINGLE_RUN_DEGREES = 15
"""Degrees of freedom of the interval of a single run: those of 16 pairs of batches."""
PERCENTILES: tuple[Literal["p50_ns", "p99_ns"], ...] = ("p50_ns", "p99_ns")

COLUMNS: Columns = {
    "micro_benchmark": str, "pattern": str, "parameter": str, "value": int, "unit": str,
    "first_ns": float, "second_ns": float, "ratio": float, "low": float, "high": float,
    "verdict": str, "p50_ratio": float, "p99_ratio": float, "repeats_to": float,
    "first_degrees": int, "second_degrees": int, "unknown_because": str,
}  # fmt: skip
"""Columns of the frame of a comparison: the fields of its rows."""


@dataclass(frozen=True)
class MeanEstimate:
    """A mean, half the width of its interval of 95 %, and the degrees of freedom of that."""

    mean: float
    half_width: float
    degrees: float

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        return self.half_width / float(_native.student_quantile(2 * CHANCE, self.degrees))


@dataclass(frozen=True, slots=True)
class ComparedExperiment:
    """An experiment in both results.

    Attributes
    ----------
    micro_benchmark, pattern, parameter, value, unit
        The identity of the experiment.
    first_ns, second_ns : float
        Mean response times [ns].
    ratio : float
        Second over first.
    low, high : float or None
        Interval of the ratio (95 %); None where a mean has no interval, or where the first may be
        zero.
    verdict : str
        One of `VERDICTS`.
    p50_ratio, p99_ratio : float or None
        Ratios of the medians and of the 99th percentiles, where both samples support them.
    repeats_to : float
        Factor by which the same pattern differs within either result; 1 where neither repeats it.
    first_half_ns, second_half_ns : float or None
        Half the width of the interval of either mean (95 %) [ns].
    repetitions : int
        The smaller number of the two. The interval of one omits the differences between runs.
    first_degrees, second_degrees : int
        Degrees of freedom of the interval of either mean: one less than its repetitions.
    unknown_because : str or None
        Why the verdict is "unknown", one of `comparability.UNKNOWN_REASONS`.
    """

    micro_benchmark: str
    pattern: str
    parameter: str | None
    value: int | float | None
    unit: str | None
    first_ns: float
    second_ns: float
    ratio: float
    low: float | None
    high: float | None
    verdict: str
    p50_ratio: float | None
    p99_ratio: float | None
    repeats_to: float
    first_half_ns: float | None
    second_half_ns: float | None
    repetitions: int
    first_degrees: int
    second_degrees: int
    unknown_because: str | None

    @property
    def estimates(self) -> tuple[MeanEstimate, MeanEstimate] | None:
        """Return both means, where they can be compared."""
        first, second = self.first_half_ns, self.second_half_ns
        if self.verdict == "unknown" or first is None or second is None:
            return None
        return (
            MeanEstimate(self.first_ns, first, self.first_degrees),
            MeanEstimate(self.second_ns, second, self.second_degrees),
        )


@dataclass(frozen=True, slots=True, repr=False)
class ResultComparison:
    """Two results, experiment by experiment.

    Attributes
    ----------
    first, second : str
        One line about the device of each.
    devices : mapping
        Facts about the devices that differ: name -> (first, second).
    conditions : tuple of StoredWarning
        Conditions that differ, and other reasons to doubt the comparison.
    verdicts : mapping
        Number of rows with each verdict.
    rows : tuple of ComparedExperiment
        Experiments in both, in the order of the first.
    only_in_first, only_in_second : tuple of str
        Experiments in only one.
    """

    first: str
    second: str
    devices: Mapping[str, tuple[Fact, Fact]]
    conditions: tuple[StoredWarning, ...]
    verdicts: Mapping[str, int]
    rows: tuple[ComparedExperiment, ...]
    only_in_first: tuple[str, ...]
    only_in_second: tuple[str, ...]

    def count(self) -> dict[str, int]:
        """Return the number of rows with each verdict."""
        return dict(self.verdicts)

    def slower_than(self, share: float) -> list[ComparedExperiment]:
        """Return rows that are slower by more than a share, 0.02 for 2 %, the worst first."""
        return slower_than(self.rows, share)

    def __repr__(self) -> str:
        counts = ", ".join(f"{number} {name}" for name, number in self.verdicts.items())
        return f"<Comparison of {self.first} and {self.second}: {counts}>"

    def frame(self) -> "Table":
        """Return one row per experiment, as an Arrow table; see `uflip.arrow_table`."""
        return frame([asdict(row) for row in self.rows], COLUMNS)


@dataclass(frozen=True, slots=True, repr=False)
class NamedComparison(ResultComparison):
    """A comparison with the names of its folders: the first, and another."""

    results: tuple[str, str]


class Comparisons(TypedDict):
    """Results, each compared with the first; `error` if `--fail-if-slower` found a slower one."""

    comparisons: list[NamedComparison]
    error: NotRequired[ErrorDocument]


def compare(first: Summary, second: Summary) -> ResultComparison:
    """Compare two results."""
    ours, theirs = _experiments(first), _experiments(second)
    repeated = (first["repeatability"], second["repeatability"])
    both = [
        key
        for key in ours
        if key in theirs and not is_different_replay(first, second, ours[key], theirs[key])
    ]
    jobs = "physical" in (first["device"].addresses, second["device"].addresses)
    early = startup_runs(first) | startup_runs(second)
    unknown = {
        key: missing_verdict_reason(ours[key], theirs[key], early, jobs=jobs) for key in both
    }
    compared = (
        compare_experiment(key, ours[key], theirs[key], repeated, unknown[key]) for key in both
    )
    rows = tuple(row for row in compared if row is not None)
    named = [(experiment_name(*key), unknown[key], ours[key], theirs[key]) for key in both]
    only_in_first = tuple(experiment_name(*key) for key in ours if key not in both)
    only_in_second = tuple(experiment_name(*key) for key in theirs if key not in both)
    return ResultComparison(
        first=describe_device(first["device"]),
        second=describe_device(second["device"]),
        devices=_devices(first["device"], second["device"]),
        conditions=(
            *differences(first, second),
            *window_warnings(named),
            *unmatched_warnings(only_in_first, only_in_second),
            *single_run_warnings(
                [row.repetitions for row in rows],
                exist_once=all(cannot_repeat(ours[key], jobs=jobs) for key in both),
            ),
        ),
        verdicts={name: sum(row.verdict == name for row in rows) for name in VERDICTS},
        rows=rows,
        only_in_first=only_in_first,
        only_in_second=only_in_second,
    )


def slower_than(rows: Sequence[ComparedExperiment], share: float) -> list[ComparedExperiment]:
    """Return rows that are slower by more than a share, the worst first.

    A row must be slower beyond chance, corrected for the number of rows: if in truth none is, at
    most one case in forty returns one. It must also exceed the repeatability of its pattern. Rows
    without a verdict are left out. The kind of verdict does not matter: a row within `AGREEMENT` is
    "same" and may still be slower than a smaller share. An experiment that is slower by exactly the
    share is not returned. A share that is not a number, as 0.02 for 2 %, is a `UsageError`.
    """
    limit = 1 + parse_number(share, "share")
    judged = [row for row in rows if row.low is not None and row.estimates is not None]
    pairs = [each for row in judged if (each := row.estimates) is not None]
    spread = typical_spread(pairs)
    rejected = holm([difference_chance(*pair, limit, spread) for pair in pairs])
    bound = limit * (1 + ROUNDING)
    slower = [
        row
        for row, is_rejected in zip(judged, rejected, strict=True)
        if is_rejected and row.low is not None and row.low > bound and row.ratio > row.repeats_to
    ]
    return sorted(slower, key=lambda row: -row.ratio)


def experiment_name(micro_benchmark: str, pattern: str, parameter: str | None, value: Any) -> str:
    """Return the name of an experiment, in the form of run names.

    Examples
    --------
    >>> experiment_name("granularity", "RW", "io_size", 4096)
    'granularity RW io_size 4096'
    """
    varies = () if parameter is None else (parameter, str(value))
    return " ".join((micro_benchmark, pattern, *varies))


Key = tuple[str, str, str | None, Any]
RepeatabilityByPattern = Mapping[str, BaselineRepeats | None]
"""Repeatability of a result, by pattern."""


def _experiments(document: Summary) -> dict[Key, ExperimentSummary]:
    """Return the experiments of a summary by their key."""
    return {
        (name, run["pattern"], run["parameter"], run["value"]): run
        for name, run in experiments_of(document)
    }


def compare_experiment(
    key: Key,
    first: ExperimentSummary,
    second: ExperimentSummary,
    repeated: Sequence[RepeatabilityByPattern] = (),
    unknown: str | None = None,
) -> ComparedExperiment | None:
    """Compare one experiment; return None if a result has no mean for it."""
    one, other = first["together"], second["together"]
    if not one["mean_ns"] or not other["mean_ns"]:
        return None
    bounds = ratio_interval(
        one["mean_ns"], one["half_width_ns"], other["mean_ns"], other["half_width_ns"]
    )
    ratio = other["mean_ns"] / one["mean_ns"]
    repeats_to = _repeats_to(key[1], repeated)
    low, high = bounds or (None, None)
    median_ratio, tail_ratio = (
        _ratio_of(first["statistics"], second["statistics"], name) for name in PERCENTILES
    )
    return ComparedExperiment(
        *key[:4],
        unit=first["unit"],
        first_ns=one["mean_ns"],
        second_ns=other["mean_ns"],
        ratio=ratio,
        low=low,
        high=high,
        verdict="unknown" if unknown else _verdict(ratio, bounds, repeats_to),
        p50_ratio=median_ratio,
        p99_ratio=tail_ratio,
        repeats_to=repeats_to,
        first_half_ns=one["half_width_ns"],
        second_half_ns=other["half_width_ns"],
        repetitions=min(len(each["repetitions"]) for each in (first, second)),
        first_degrees=_degrees(first),
        second_degrees=_degrees(second),
        unknown_because=unknown or (None if bounds else NO_INTERVAL),
    )


def _degrees(experiment: ExperimentSummary) -> int:
    """Return the degrees of freedom of the interval of a mean.

    The interval of the runs may be wider than that of their scatter. The degrees of freedom of the
    scatter then overestimate the chance of a difference.
    """
    return len(experiment["repetitions"]) - 1 or SINGLE_RUN_DEGREES


def _verdict(ratio: float, bounds: tuple[float, float] | None, repeats_to: float) -> str:
    if bounds is None:
        return "unknown"
    low, high = bounds
    if low >= 1 / (1 + AGREEMENT) and high <= 1 + AGREEMENT:
        return "same"
    if low > 1 and ratio > repeats_to:
        return "slower"
    if high < 1 and ratio < 1 / repeats_to:
        return "faster"
    return "not_apart"


def _repeats_to(pattern: str, repeated: Sequence[RepeatabilityByPattern]) -> float:
    """Return the largest factor by which a result differs between repeats of the same pattern."""
    worst = (worst_repeatability(each, pattern.split("/")) for each in repeated)
    return max((float(row[1]["factor"]) for row in worst if row is not None), default=1.0)


def _ratio_of(
    first: StatisticsSummary | None,
    second: StatisticsSummary | None,
    name: Literal["p50_ns", "p99_ns"],
) -> float | None:
    one, other = (None if each is None else each[name] for each in (first, second))
    return other / one if one and other else None


def _devices(first: DeviceInfo, second: DeviceInfo) -> dict[str, tuple[Fact, Fact]]:
    """Return the device facts that differ; for simulated devices, also the profile keys."""
    facts = {
        name: (getattr(first, name), getattr(second, name))
        for name in DEVICE_FACTS
        if getattr(first, name) != getattr(second, name)
    }
    one, other = (dict(_keys(each.profile_table)) for each in (first, second))
    changed = [name for name in {**one, **other} if one.get(name) != other.get(name)]
    return facts | {name: (one.get(name), other.get(name)) for name in sorted(changed)}


def _keys(profile: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the keys of a profile, prefixed with their tables, and the values."""
    for name, value in (profile or {}).items():
        if isinstance(value, Mapping):
            yield from _keys(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def ratio_interval(
    first: float, first_half: float | None, second: float, second_half: float | None
) -> tuple[float, float] | None:
    """Return the interval of second / first, from the half widths of both (Fieller 1954).

    Response times are positive, so the interval does not begin below 0.

    Examples
    --------
    >>> ratio_interval(100.0, 0.0, 150.0, 15.0)
    (1.35, 1.65)
    >>> ratio_interval(100.0, 100.0, 150.0, 1.0) is None
    True
    >>> ratio_interval(100.0, 0.0, 150.0, 200.0)
    (0.0, 3.5)
    """
    if first_half is None or second_half is None or first <= 0:
        return None
    ours, theirs, ratio = first_half / first, second_half / first, second / first
    if ours >= 1:
        return None
    middle = ratio / (1 - ours * ours)
    half = sqrt((ratio * ours) ** 2 + theirs * theirs * (1 - ours * ours)) / (1 - ours * ours)
    return max(0.0, middle - half), middle + half


def difference_chance(
    first: MeanEstimate, second: MeanEstimate, limit: float, spread: float = 1.0
) -> float:
    """Return the chance of so large a ratio of second to first, if the true ratio is the limit.

    **Source** E. C. Fieller, "Some Problems in Interval Estimation", J. R. Stat. Soc. B 16 (1954):
    the interval of a ratio. B. L. Welch (1947) and F. E. Satterthwaite (1946): the degrees of
    freedom of a difference of two means. S. Holm, "A Simple Sequentially Rejective Multiple Test
    Procedure", Scand. J. Stat. 6 (1979): many tests at once.
    **Faithful** All three, with exact tails of Student's distribution. Holm's procedure holds for
    any dependence between the tests.
    **Simplified** Half widths are taken for those of Student's intervals of 95 %.
    **Ambiguous** The chance of a difference with few repetitions. Two faults of Welch's test show
    far out in the tails, where one of hundreds of tests is decided. (1) Where one side scatters
    more than the other, a small scatter of that side by chance is taken for many degrees of
    freedom. So the degrees of freedom are limited to those of the typical ratio of the scatters,
    over all experiments of the comparison. (2) Where one side was repeated more often than the
    other, its smaller error by chance does the same. So the test with one variance for both sides
    must agree: it has no such fault where both scatter alike.

    Examples
    --------
    >>> known = MeanEstimate(100.0, 0.0, 2)
    >>> round(difference_chance(known, MeanEstimate(150.0, 15.0, 2), 1.35), 3)
    0.025
    >>> difference_chance(known, MeanEstimate(150.0, 0.0, 2), 1.5)
    1.0
    >>> difference_chance(known, known, 0.9)
    0.0
    """
    beyond = second.mean - limit * first.mean
    if beyond <= ROUNDING * second.mean:
        return 1.0
    one, other = (limit * first.error) ** 2, second.error**2
    total = one + other
    if total == 0:
        return 0.0
    ours, theirs = first.degrees, second.degrees

    def welch(share: float) -> float:
        return 1 / (share**2 / ours + (1 - share) ** 2 / theirs)

    degrees = min(welch(one / total), welch(1 / (1 + spread)))
    chance = student_tail(beyond / sqrt(total), degrees)
    # A mean of n repetitions has n − 1 degrees of freedom, and an nth of the variance of one.
    variance = (ours * one * (ours + 1) + theirs * other * (theirs + 1)) / (ours + theirs)
    error = sqrt(variance * (1 / (ours + 1) + 1 / (theirs + 1)))
    return max(chance, student_tail(beyond / error, ours + theirs))


def typical_spread(pairs: Sequence[tuple[MeanEstimate, MeanEstimate]]) -> float:
    """Return the typical ratio of the squared relative errors, second over first.

    The median over all pairs in which both have an error; 1 without such a pair.

    Examples
    --------
    >>> typical_spread([(MeanEstimate(100.0, 1.0, 2), MeanEstimate(200.0, 4.0, 2))])
    4.0
    """
    ratios = [
        (second.error / second.mean / (first.error / first.mean)) ** 2
        for first, second in pairs
        if first.half_width > 0 and second.half_width > 0
    ]
    return median(ratios) if ratios else 1.0


def holm(chances: Sequence[float], level: float = CHANCE) -> list[bool]:
    """Return which hypotheses are rejected; a false rejection has at most the chance `level`.

    Examples
    --------
    >>> holm([0.02, 0.001, 0.012]), holm([0.02])
    ([True, True, True], [True])
    >>> holm([0.02, 0.001, 0.013])
    [False, True, False]
    """
    rejected = [False] * len(chances)
    for rank, index in enumerate(sorted(range(len(chances)), key=chances.__getitem__)):
        if chances[index] > level / (len(chances) - rank):
            break
        rejected[index] = True
    return rejected


def student_tail(t: float, degrees: float) -> float:
    """Return the probability that a Student variable exceeds t, by the incomplete beta function.

    Examples
    --------
    >>> round(student_tail(4.302653, 2), 6), round(student_tail(-12.7062, 1), 6)
    (0.025, 0.975)
    >>> f"{student_tail(51.0, 2):.3e}"
    '1.921e-04'
    """
    if degrees >= NORMAL:
        return NormalDist().cdf(-t)
    square = t * t
    if square == 0:
        return 0.5
    a, b = degrees / 2, 0.5
    x, y = degrees / (degrees + square), square / (degrees + square)
    log_x = -log1p(square / degrees)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log_x + b * log(y))
    if x < (a + 1) / (a + b + 2):
        both = front * _beta_fraction(a, b, x) / a
    else:
        both = 1 - front * _beta_fraction(b, a, y) / b
    return both / 2 if t > 0 else 1 - both / 2


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Evaluate the continued fraction of the incomplete beta function (Lentz's method)."""
    least = 1e-300
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1) or least)
    value = d
    for m in range(1, 10_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d, c = 1 / (1 + term * d or least), 1 + term / c or least
            value *= d * c
        if abs(d * c - 1) < 1e-14:
            break
    return value
