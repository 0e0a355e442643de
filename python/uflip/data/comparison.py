"""Two results side by side as one document: what `uflip compare --json` prints.

Plain data, as `uflip.data.summary` is; `uflip.results.comparison` makes it.
"""

from typing import NotRequired, TypedDict

from uflip.data.document import Count, Name, Text
from uflip.data.summary import WarningSummary

Value = str | int | float | bool
Fact = Value | list[Value] | None
"""A field of a device, or what a key of its profile has."""


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
    """Second over first, experiment by experiment, and what else differs."""

    first: Text
    second: Text
    devices: dict[str, list[Fact]]
    conditions: list[WarningSummary]
    verdicts: dict[str, Count]
    rows: list[ComparedExperimentDocument]
    only_in_first: list[Name]
    only_in_second: list[Name]


class NamedComparison(ComparisonDocument):
    """A comparison with the folders that were named: the first, and another."""

    results: list[Text]


class ComparisonFailure(TypedDict):
    """Why a comparison failed that was told what to fail for: an error as `--json` prints it."""

    kind: Name
    what: Text
    where: Text
    got: Text
    allowed: Text
    action: Text
    exit_code: Count


class Comparisons(TypedDict):
    """Results, each compared with the first; `error` where `--fail-if-slower` found one."""

    comparisons: list[NamedComparison]
    error: NotRequired[ComparisonFailure]
