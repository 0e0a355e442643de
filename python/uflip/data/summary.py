"""A result folder as one document: the output of `uflip show --json`, and the input of reports.

It is plain data, so that Python and other programs read the same dictionary. This module declares
its keys and their types; mypy checks every access, and a JSON Schema is published.
`uflip.results.summary_document` creates it, and no code changes it. Response times are in ns,
sizes in bytes; unknown numbers are null.
"""

from collections.abc import Iterator
from typing import Literal, NotRequired, TypedDict

from msgspec import Struct

from uflip.data.counters import CounterChange, DriveSummary
from uflip.data.device import DeviceInfo
from uflip.data.document import Count, Instant, Name, Positive, Table, Text
from uflip.data.energy import EnergySummary
from uflip.data.manifest import DeviceState, Interference, Phases, SkippedRun

# Findings of uFLIP-OC on an open-channel device: `open_channel` in its summary. Response times are
# in milliseconds, throughput in MB/s, which count powers of ten.


class OpTimes(TypedDict):
    """Response times of one operation; null percentiles if there are too few (`uflip.stats`)."""

    count: Count
    mean_ms: float
    p5_ms: float | None
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    max_ms: float


class MixFound(TypedDict):
    """A mix of reads and writes; null for a missing direction."""

    mb_per_s: float
    failed: Count
    reads: OpTimes | None
    writes: OpTimes | None


class OneLun(TypedDict):
    """µOC0: mixes on one LUN, and the throughput of every LUN alone, by channel and LUN."""

    mixes: dict[Name, MixFound]
    write_mb_per_s: list[list[float]]
    read_mb_per_s: list[list[float]]


class WornOut(TypedDict):
    """µOC1: a block (channel:LUN:block) that was erased, written and read until it failed."""

    sacrificed: Name
    cycles: Count
    pages: Count
    first_failing_read_cycles: Count | None
    failing_reads_share: float
    failed_writes: Count
    erase_first_ms: float
    erase_last_ms: float
    write_first_ms: float
    write_last_ms: float
    erase_failed: bool


class ScalingFound(TypedDict):
    """Throughput by degree of parallelism, and over that of the lowest degree."""

    over: Text
    mb_per_s: dict[str, float]
    factors: dict[str, float]


class Channels(TypedDict):
    """µOC3: throughput over channels, of all LUNs at once, and of reads during writes."""

    scaling: dict[Name, ScalingFound]
    all_luns_mb_per_s: dict[Name, float]
    mixes: dict[Name, MixFound]


class Rule(Struct, frozen=True):
    """A rule of the unwritten contract, its verdict, and the numbers behind the verdict.

    `uflip.oc.contract` has the verdicts.
    """

    name: Name
    says: Text
    verdict: Text
    evidence: Text


class OpenChannel(TypedDict):
    """The measured micro-benchmarks, and the contract."""

    oc0: NotRequired[OneLun]
    oc1: NotRequired[WornOut]
    oc2: NotRequired[dict[Name, ScalingFound]]
    oc3: NotRequired[Channels]
    contract: NotRequired[list[Rule]]


ResponseTime = Literal[
    "min_ns", "max_ns", "mean_ns", "std_ns",
    "p5_ns", "p50_ns", "p90_ns", "p95_ns", "p99_ns", "p99_9_ns",
]  # fmt: skip
"""A name of a response time in `StatisticsSummary`."""


class StatisticsSummary(TypedDict):
    """Statistics of response times [ns]; a percentile is null if the sample is too small for it.

    Attributes
    ----------
    count : int
        Number of I/Os.
    min_ns, max_ns : int
        The shortest and the longest [ns].
    mean_ns, std_ns : float
        Mean, and standard deviation of the sample, None for a single I/O [ns].
    p5_ns, p50_ns, p90_ns, p95_ns, p99_ns, p99_9_ns : int or None
        Observed percentiles; None if the sample is too small [ns].
    """

    count: Positive
    min_ns: Count
    max_ns: Count
    mean_ns: float
    std_ns: float | None
    p5_ns: Count | None
    p50_ns: Count | None
    p90_ns: Count | None
    p95_ns: Count | None
    p99_ns: Count | None
    p99_9_ns: Count | None


class StopSummary(TypedDict):
    """The length of a run, and the precision of its mean."""

    converged: bool | None
    reasons: list[Name] | None
    half_width_ns: float | None
    startup_ios: Count | None
    period_ios: Count | None
    slow_episodes: Count | None
    opening_ns: float | None


class MeanSummary(StopSummary):
    """The same with the mean."""

    mean_ns: float | None


class RepetitionSummary(MeanSummary):
    """The convergence of one run of an experiment."""

    run: Name
    io_count: Count


class Together(TypedDict):
    """The mean of all repetitions of an experiment, and its interval."""

    mean_ns: float | None
    half_width_ns: float | None
    converged: bool | None


class Certainty(Together):
    """Adds the values that decide on more repetitions: `uflip.results.statistics`."""

    allowed_ns: float | None
    expected_ns: float | None
    supported_ns: float | None
    degrees: float | None
    widened: float | None
    fewest: int
    certainly_converged: bool
    cannot_converge: bool


class Component(TypedDict):
    """One of the two patterns of a mix."""

    pattern: Name | None
    statistics: StatisticsSummary | None


class ModeStatistics(TypedDict):
    """Reads, writes, or another mode of a run that has several."""

    bytes: Count
    ios_per_s: float | None
    bytes_per_s: float | None
    statistics: StatisticsSummary | None


class RoundSummary(TypedDict):
    """A part of a long run of writes: its end and its statistics.

    `written_bytes` and `ended_ns` count from the begin of the run; write amplification is null
    if unknown.
    """

    written_bytes: Count
    ended_ns: Count
    ios_per_s: float | None
    p99_ns: Count
    write_amplification: float | None


class Steadiness(TypedDict):
    """The verdict on the steady state of random writes: `uflip.results.steady_state`.

    Rate, p99 and write amplification are means of the last half of all repetitions.
    `needed_bytes` and `needed_ns` are the totals that a verdict takes, or took.
    """

    steady: bool
    reasons: list[Name]
    ios_per_s: float
    p99_ns: float | None
    write_amplification: float | None
    written_bytes: Count
    needed_bytes: Count
    needed_ns: Count | None
    first_minute_ios_per_s: float | None
    disagreement: float | None


class Repetitions(TypedDict):
    """All repetitions of one run."""

    run: Name
    pattern: Name
    parameter: Text | None
    unit: Text | None
    io_count: Count
    io_ignore: Count
    elapsed_ns: Count
    ios_per_s: float | None
    repetitions: list[RepetitionSummary]
    disagreement: float | None
    components: NotRequired[dict[str, Component]]
    by_mode: NotRequired[dict[str, ModeStatistics]]
    rounds: NotRequired[list[list[RoundSummary]]]
    time_spent_ns: NotRequired[dict[str, float]]
    counters: NotRequired[dict[str, Count]]
    write_amplification: NotRequired[float | None]
    drive: NotRequired[CounterChange]
    energy: NotRequired[EnergySummary]
    spec: Table
    together: Together


class ExperimentSummary(Repetitions):
    """The varied value, and the statistics; null if the run contained only start-up."""

    value: int | float | None
    statistics: StatisticsSummary | None
    steadiness: NotRequired[Steadiness]


class NamedExperiment(ExperimentSummary):
    """An experiment with the name of its micro-benchmark."""

    micro_benchmark: Name


class MeasuredExperiment(Repetitions):
    """An experiment with a value and statistics: the input of figures and findings."""

    value: int | float
    statistics: StatisticsSummary
    steadiness: NotRequired[Steadiness]


class BaselineRepeats(TypedDict):
    """The spread of the repeats of one baseline pattern."""

    experiments: Positive
    smallest_ns: float
    largest_ns: float
    factor: float


class CharacteristicVerdict(TypedDict):
    """One key characteristic; `uflip.results.key_characteristics` defines the words."""

    verdict: Name
    factor: float | None
    pause_ns: NotRequired[float | None]
    pause_from_ns: NotRequired[float | None]
    pause_to_ns: NotRequired[float | None]
    locality_bytes: NotRequired[float | None]
    partitions: NotRequired[float | None]
    reference: NotRequired[Text | None]


Characteristic = Literal[
    "pause", "locality", "partitions", "reverse", "in_place", "large_increments"
]
"""A name of a verdict in `KeyCharacteristics`."""
CHARACTERISTICS: tuple[Characteristic, ...] = (
    "pause", "locality", "partitions", "reverse", "in_place", "large_increments",
)  # fmt: skip


class KeyCharacteristics(TypedDict):
    """The device's row of Table 3 of uFLIP."""

    SR_ms: float | None
    RR_ms: float | None
    SW_ms: float | None
    RW_ms: float | None
    pause: CharacteristicVerdict
    locality: CharacteristicVerdict
    partitions: CharacteristicVerdict
    reverse: CharacteristicVerdict
    in_place: CharacteristicVerdict
    large_increments: CharacteristicVerdict


class TargetSpace(TypedDict):
    """The space that a run writes sequentially."""

    run: Name
    micro_benchmark: Name
    begin_bytes: Count
    end_bytes: Count
    reset_before: bool


class WarningSummary(TypedDict):
    """A warning about the data."""

    code: Name
    message: Text
    numbers: Table
    advice: Text


class BenchmarkSummary(TypedDict):
    """The findings of a benchmark."""

    baselines_ms: dict[str, float | None]
    baseline_io_size_bytes: Positive | None
    repeatability: dict[str, BaselineRepeats | None]
    key_characteristics: KeyCharacteristics | None
    baselines: list[ExperimentSummary]
    micro_benchmarks: dict[str, list[ExperimentSummary]]
    open_channel: NotRequired[OpenChannel]


class Summary(BenchmarkSummary):
    """The whole document: the findings, and the conditions of the measurement."""

    format: Name
    format_version: Positive
    uflip_version: Name
    status: Name
    device: DeviceInfo
    created_utc: Instant
    finished_utc: Instant | None
    elapsed_s: float | None
    scale: Name
    seed: int
    pause_ns: Count
    target_size_bytes: Positive | None
    repetitions: Positive
    method: Name
    durability: Text
    phases: Phases | None
    interference: Interference | None
    state: DeviceState
    runs_planned: Count
    runs_finished: Count
    missing: list[Name]
    target_spaces: list[TargetSpace]
    skipped: list[SkippedRun]
    warnings: list[WarningSummary]
    harness: Table
    host: Table
    drive: DriveSummary | None


def experiments_of(document: Summary) -> Iterator[tuple[str, ExperimentSummary]]:
    """Yield each experiment after the name of its micro-benchmark; first the baselines."""
    for run in document["baselines"]:
        yield "baseline", run
    for name, runs in document["micro_benchmarks"].items():
        for run in runs:
            yield name, run
