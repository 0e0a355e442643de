"""Results side by side: the same experiments of two devices, or of one device before and after.

**Source** uFLIP (CIDR 2009) §5.1: the same runs repeat "typically within 5%".
**Faithful** An experiment is the same where micro-benchmark, pattern, parameter and value are, and
of a replay its I/Os; the interval of each mean is that of `statistics.combined_mean`, from the
intervals of the runs and the scatter of repetitions; `statistics.verdict` decides.
**Simplified** Means decide; percentiles are shown beside them, without an interval.
**Ambiguous** Of many experiments a few differ by chance: up to 5 % of those that are in truth the
same. The question whether any is slower is therefore tested on all together (`slower_than`), with
Holm's correction. An experiment has no verdict (`comparability.missing_verdict_reason`) if in
either result it was run once, may have measured the start-up of the device, or measured other I/Os
of its runs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict

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
from uflip.results.statistics import (
    ROUNDING,
    VERDICTS,
    Mean,
    difference_chance,
    holm,
    mean_ratio,
    typical_spread,
    verdict,
)
from uflip.results.summary_document import describe_device, experiments_of
from uflip.units import parse_number

if TYPE_CHECKING:
    from arro3.core import Table


Fact = str | int | float | bool | list[str | int | float | bool] | None
"""A field of a device, or the value of a profile key."""

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


@dataclass(frozen=True, slots=True)
class ComparedExperiment:
    """An experiment in both results."""

    #: The identity of the experiment.
    micro_benchmark: str
    pattern: str
    parameter: str | None
    value: int | float | None
    unit: str | None
    #: Mean response times [ns].
    first_ns: float
    second_ns: float
    ratio: float  #: Second over first.
    #: Interval of the ratio (95 %); None where a mean has no interval, or where the first may be
    #: zero.
    low: float | None
    high: float | None
    verdict: str  #: One of `VERDICTS`.
    #: Ratios of the medians and of the 99th percentiles, where both samples support them.
    p50_ratio: float | None
    p99_ratio: float | None
    #: Factor by which the same pattern differs within either result; 1 where neither repeats it.
    repeats_to: float
    #: Half the width of the interval of either mean (95 %) [ns].
    first_half_ns: float | None
    second_half_ns: float | None
    #: The smaller number of the two. The interval of one omits the differences between runs.
    repetitions: int
    #: Degrees of freedom of the interval of either mean: one less than its repetitions.
    first_degrees: int
    second_degrees: int
    #: Why the verdict is "unknown", one of `comparability.UNKNOWN_REASONS`.
    unknown_because: str | None

    @property
    def estimates(self) -> tuple[Mean, Mean] | None:
        """Return both means, where they can be compared."""
        first, second = self.first_half_ns, self.second_half_ns
        if self.verdict == "unknown" or first is None or second is None:
            return None
        return (
            Mean(self.first_ns, first, degrees=self.first_degrees),
            Mean(self.second_ns, second, degrees=self.second_degrees),
        )


@dataclass(frozen=True, slots=True, repr=False)
class ResultComparison:
    """Two results, experiment by experiment."""

    #: One line about the device of each.
    first: str
    second: str
    #: Facts about the devices that differ: name -> (first, second).
    devices: Mapping[str, tuple[Fact, Fact]]
    #: Conditions that differ, and other reasons to doubt the comparison.
    conditions: tuple[StoredWarning, ...]
    verdicts: Mapping[str, int]  #: Number of rows with each verdict.
    rows: tuple[ComparedExperiment, ...]  #: Experiments in both, in the order of the first.
    #: Experiments in only one.
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
    ratio = mean_ratio(
        Mean(other["mean_ns"], other["half_width_ns"]), Mean(one["mean_ns"], one["half_width_ns"])
    )
    repeats_to = _repeats_to(key[1], repeated)
    median_ratio, tail_ratio = (
        _ratio_of(first["statistics"], second["statistics"], name) for name in PERCENTILES
    )
    return ComparedExperiment(
        *key[:4],
        unit=first["unit"],
        first_ns=one["mean_ns"],
        second_ns=other["mean_ns"],
        ratio=ratio.value,
        low=ratio.low,
        high=ratio.high,
        verdict="unknown" if unknown else verdict(ratio, repeats_to),
        p50_ratio=median_ratio,
        p99_ratio=tail_ratio,
        repeats_to=repeats_to,
        first_half_ns=one["half_width_ns"],
        second_half_ns=other["half_width_ns"],
        repetitions=min(len(each["repetitions"]) for each in (first, second)),
        first_degrees=_degrees(first),
        second_degrees=_degrees(second),
        unknown_because=unknown or (NO_INTERVAL if ratio.low is None else None),
    )


def _degrees(experiment: ExperimentSummary) -> int:
    """Return the degrees of freedom of the interval of a mean.

    The interval of the runs may be wider than that of their scatter. The degrees of freedom of the
    scatter then overestimate the chance of a difference.
    """
    return len(experiment["repetitions"]) - 1 or SINGLE_RUN_DEGREES


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
