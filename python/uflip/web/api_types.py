"""What the explorer's page is told, as types: the documents behind its addresses.

They are plain data, as `uflip.data.summary` is: dictionaries whose keys stand here, checked by mypy
wherever one is made, and written as JSON by `uflip.web.app`. Response times are in nanoseconds,
sizes in bytes; null where a number is not known. Texts may be anybody's: the page shows them as
text.
"""

from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

from uflip.data import comparison
from uflip.data.document import Table
from uflip.data.summary import ModeStatistics, RepetitionSummary, StatisticsSummary, WarningSummary
from uflip.hints.hint import HintSaid

Problem = dict[str, str]
"""The parts of an error, as `UflipError.parts` has them."""


class Failed(TypedDict):
    """A folder that cannot be read, and why."""

    key: str
    name: NotRequired[str]
    error: Problem


class Glance(TypedDict):
    """A row of the list, of what the manifest of a folder says."""

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
    warnings: list[str]
    uflip_version: str


class RunCountsView(TypedDict):
    """What the runs of a folder say at a glance; `numbers` are those behind the cells."""

    status: str
    finished: int
    planned: int
    experiments: int
    known: int
    cells: list[str] | None
    numbers: list[float | None] | None
    baselines_ms: Mapping[str, float | None]


class Known(RunCountsView):
    """The same with the codes of its doubts."""

    warnings: list[str]


class WarningRow(Known):
    """The same, and of which folder."""

    key: str


class SweepGlance(TypedDict):
    """A sweep in the list: what its manifest says."""

    key: str
    name: str
    device: str
    pattern: str
    vary: list[str]
    points: int
    complete: bool
    created_utc: str


class SweepAxis(TypedDict):
    """What a sweep has a number or a word of at each point.

    `better` is -1 where less is better, 1 where more is, 0 of what varies. `unit` is "ns", "bytes",
    "bytes_per_s", "per_s", or empty; `words` are the values that are no numbers, in order: the
    points then have their places.
    """

    name: str
    varies: bool
    better: int
    unit: str
    logarithmic: bool
    words: list[str] | None


class Sweep(SweepGlance):
    """A sweep with its rows: for each point that was measured a value for each axis."""

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
    """Rows that were asked for."""

    rows: list[WarningRow | Failed]


Advised = TypedDict("Advised", {"class": str, "hints": list[HintSaid]})
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
    """The same where it stands on the axis of its figure."""

    at: float


class Tick(TypedDict):
    """A value of the parameter that varied, and where it stands."""

    at: float
    label: str


class Pattern(TypedDict):
    """The experiments of a pattern, in their order."""

    pattern: str
    words: str
    points: list[ExperimentPoint]


class MicroBenchmarkView(TypedDict):
    """What is drawn and said of a micro-benchmark, of those runs in which one parameter varies."""

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
    """A doubt about the data, and the runs that it names."""

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
    is_job: bool


class ResultView(RunCountsView):
    """A result: its numbers, its micro-benchmarks, its doubts, its runs."""

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
    advice: Advised | None
    baselines: list[ExperimentView]
    benchmarks: list[MicroBenchmarkView]
    warnings: list[WarningView]
    missing: int
    skipped: int
    runs: list[NamedRun]


class Spent(TypedDict):
    """Time that went into a cause, an I/O on average."""

    words: str
    ns: float


class RunView(NamedRun):
    """What a run says in numbers."""

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
    spent_ns: list[Spent]
    counters: dict[str, int]
    write_amplification: float | None
    spec: Table
    has_inside: bool
    previous: str | None
    next: str | None
    edges_ns: list[float]


class Side(Known):
    """One of the results that are compared."""

    key: str
    name: str
    device: str
    created_utc: str
    scale: str
    state: str
    durability: str


class ComparedRow(comparison.ComparedExperimentDocument):
    """An experiment of both, in words."""

    title: str
    label: str
    axis: str


class Pair(TypedDict):
    """A result beside the first; as `uflip.data.comparison.ComparisonDocument`, facts as text."""

    first: str
    second: str
    devices: dict[str, list[str]]
    conditions: list[WarningSummary]
    verdicts: dict[str, int]
    rows: list[ComparedRow]
    only_in_first: list[str]
    only_in_second: list[str]


class ComparisonView(TypedDict):
    """Results side by side, each with the first."""

    results: list[Side]
    columns: Sequence[str]
    verdicts: Mapping[str, str]
    comparisons: list[Pair]
