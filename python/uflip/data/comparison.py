"""A comparison of two results as one document: the output of `uflip compare --json`.

Plain data, as `uflip.data.summary` is; `uflip.results.comparison` makes it.
"""

from typing import NotRequired, TypedDict

from uflip.data.document import Count, Name, Text
from uflip.data.summary import WarningSummary

Value = str | int | float | bool
Fact = Value | list[Value] | None
"""A field of a device, or the value of a profile key."""


class ComparedExperimentDocument(TypedDict):
    """An experiment of both results, see `uflip.results.comparison.ComparedExperiment`."""

    micro_benchmark: Name
    pattern: Name
    parameter: Text | None
    value: int | float | None
    unit: Text | None
    first_ns: float
    second_ns: float
    ratio: float
    low: float | None
    high: float | None
    verdict: Name
    p50_ratio: float | None
    p99_ratio: float | None
    repeats_to: float
    first_half_ns: float | None
    second_half_ns: float | None
    repetitions: Count
    first_degrees: Count
    second_degrees: Count
    unknown_because: Name | None


class ComparisonDocument(TypedDict):
    """Second over first, experiment by experiment, and other differences."""

    first: Text
    second: Text
    devices: dict[str, list[Fact]]
    conditions: list[WarningSummary]
    verdicts: dict[str, Count]
    rows: list[ComparedExperimentDocument]
    only_in_first: list[Name]
    only_in_second: list[Name]


class NamedComparison(ComparisonDocument):
    """A comparison with the names of its folders: the first, and another."""

    results: list[Text]


class ComparisonFailure(TypedDict):
    """The error of a comparison that found a regression, as `--json` prints it."""

    kind: Name
    what: Text
    where: Text
    got: Text
    allowed: Text
    action: Text
    exit_code: Count


class Comparisons(TypedDict):
    """Results, each compared with the first; `error` if `--fail-if-slower` found a slower one."""

    comparisons: list[NamedComparison]
    error: NotRequired[ComparisonFailure]
