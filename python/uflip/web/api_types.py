"""Types of the documents that the explorer's page requests.

They are plain data, like `uflip.data.summary`: dictionaries with these keys, checked by mypy where
they are made, and written as JSON by `uflip.web.app`. Response times are in nanoseconds, sizes in
bytes; null for an unknown number. Texts are untrusted: the page shows them only as text.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NotRequired, TypedDict

from uflip.data.document import Table
from uflip.data.manifest import StoredWarning
from uflip.data.summary import (
    ModeStatistics,
    RepetitionSummary,
    RoundSummary,
    StatisticsSummary,
    WarningSummary,
)
from uflip.hints import Hint
from uflip.results.comparison import ComparedExperiment

Problem = dict[str, str]
"""The parts of an error, as from `UflipError.parts`."""


class Failed(TypedDict):
    """A folder that cannot be read, and why."""

    key: str
    name: NotRequired[str]
    error: Problem


class Glance(TypedDict):
    """A row of the list, from the manifest of a folder."""

    key: str
    name: str
    device: str
    simulated: bool
    created_utc: str
    scale: str
    state: str
    durability: str
    status: str
    repetitions: int
    planned: int
    run: str | None
    warnings: list[str]
    uflip_version: str


class Tail(TypedDict):
    """Percentiles of the response times of a pattern: p50, p90, p95, p99, p99.9, maximum."""

    pattern: str
    times_ns: list[float | None]


class RunCountsView(TypedDict):
    """Overview of the runs of a folder; `numbers` are those behind the cells."""

    status: str
    finished: int
    planned: int
    experiments: int
    known: int
    cells: list[str] | None
    numbers: list[float | None] | None
    baselines_ms: Mapping[str, float | None]


class RunCountsWithWarnings(RunCountsView):
    """The same with the codes of its warnings, and the tail of a pattern."""

    warnings: list[str]
    tail: Tail | None


class WarningRow(RunCountsWithWarnings):
    """The same, with the key of its folder."""

    key: str


class SweepGlance(TypedDict):
    """A sweep in the list, from its manifest."""

    key: str
    name: str
    device: str
    pattern: str
    vary: list[str]
    points: int
    complete: bool
    created_utc: str


class SweepAxis(TypedDict):
    """An axis of a sweep: a varied value or a measure of each point.

    `better` is -1 if lower is better, 1 if higher is, 0 for varied values. `unit` is "ns", "bytes",
    "bytes_per_s", "per_s", or empty; `words` are the values that are not numbers, in order: points
    then hold indices into them.
    """

    name: str
    varies: bool
    better: int
    unit: str
    logarithmic: bool
    words: list[str] | None


class Sweep(SweepGlance):
    """A sweep with its rows: for each measured point a value for each axis."""

    axes: list[SweepAxis]
    places: list[int]
    devices: list[str]
    rows: list[list[float | None]]


class ResultList(TypedDict):
    """The list of results, and of sweeps."""

    version: str
    roots: list[str]
    columns: Sequence[str]
    note: str
    results: list[Glance | Failed]
    sweeps: list[SweepGlance | Failed]


class Rows(TypedDict):
    """The requested rows."""

    rows: list[WarningRow | Failed]


DeviceAdvice = TypedDict("DeviceAdvice", {"class": str, "hints": list[Hint]})
"""The class of a device and its design hints."""


class ExperimentView(TypedDict):
    """An experiment."""

    pattern: str
    words: str
    parameter: str | None
    value: int | float | None
    label: str
    statistics: StatisticsSummary | None
    half_width_ns: float | None
    converged: bool | None
    runs: list[str]


class ExperimentPoint(ExperimentView):
    """The same with its position on the axis of its figure, and the rounds of each repetition."""

    at: float
    rounds: list[list[RoundSummary]]


class Tick(TypedDict):
    """A value of the varied parameter, and its position on the axis."""

    at: float
    label: str


class Pattern(TypedDict):
    """The experiments of a pattern, in order."""

    pattern: str
    words: str
    points: list[ExperimentPoint]


class MicroBenchmarkView(TypedDict):
    """Figure and texts of a micro-benchmark, for runs that vary one parameter."""

    name: str
    parameter: str | None
    title: str
    question: str
    how_to_read: str
    finding: str
    axis: str
    values: list[Tick]
    levels_ms: Mapping[str, float | None]
    patterns: list[Pattern]
    others: list[ExperimentView]


class WarningView(WarningSummary):
    """A warning about the data, with the ids of its runs."""

    runs: list[str]


class NamedRun(TypedDict):
    """A run in a list."""

    id: str
    micro_benchmark: str
    title: str
    pattern: str
    words: str
    varies: str
    repetition: int


class LabelledText(TypedDict):
    """A fact in words."""

    label: str
    text: str


class PropertyView(TypedDict):
    """A property of the device: its value and interval in words, its probe, and its meaning."""

    key: str
    meaning: str
    value: str
    interval: str
    identified: bool
    probe: str
    title: str
    reason: str


class InsideView(TypedDict):
    """The inferred properties; empty until `command` was run."""

    properties: list[PropertyView]
    check: str
    why_no_twin: str
    bytes_written: int
    command: str


class ResultView(RunCountsView):
    """A result: its numbers, its micro-benchmarks, its warnings, its runs."""

    key: str
    name: str
    device: str
    url: str
    simulated: bool
    is_open_channel: bool
    created_utc: str
    scale: str
    state: str
    durability: str
    durability_means: str
    repetitions: int
    uflip_version: str
    headline: str
    columns: Sequence[str]
    note: str
    characteristics: list[str]
    advice: DeviceAdvice | None
    baselines: list[ExperimentView]
    benchmarks: list[MicroBenchmarkView]
    warnings: list[WarningView]
    missing: int
    skipped: int
    drive: list[LabelledText]
    inside: InsideView | None
    runs: list[NamedRun]


class CauseTime(TypedDict):
    """Mean time of an I/O for a cause."""

    words: str
    ns: float


class RunView(NamedRun):
    """The numbers of a run."""

    key: str
    result: str
    device: str
    simulated: bool
    io_count: int
    io_ignore: int
    elapsed_ns: int
    ios_per_s: float | None
    statistics: StatisticsSummary | None
    by_mode: dict[str, ModeStatistics]
    repetitions: list[RepetitionSummary]
    causes: list[str]
    spent_ns: list[CauseTime]
    counters: dict[str, int]
    write_amplification: float | None
    drive: list[LabelledText]
    spec: Table
    has_inside: bool
    previous: str | None
    next: str | None
    edges_ns: list[float]


class ComparedResult(RunCountsWithWarnings):
    """One of the compared results."""

    key: str
    name: str
    device: str
    created_utc: str
    scale: str
    state: str
    durability: str


@dataclass(frozen=True, slots=True)
class ComparedRow(ComparedExperiment):
    """An experiment of both, in words."""

    title: str
    label: str
    axis: str
    axis_words: str


class ComparedPair(TypedDict):
    """A result compared with the first; see `uflip.results.comparison.ResultComparison`."""

    first: str
    second: str
    devices: dict[str, list[str]]
    conditions: list[StoredWarning]
    verdicts: Mapping[str, int]
    differences: list[str]
    rows: list[ComparedRow]
    only_in_first: list[str]
    only_in_second: list[str]


class ComparisonView(TypedDict):
    """Results next to each other, each compared with the first."""

    results: list[ComparedResult]
    columns: Sequence[str]
    verdicts: Mapping[str, str]
    comparisons: list[ComparedPair]
