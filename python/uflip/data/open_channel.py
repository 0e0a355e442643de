"""Findings of uFLIP-OC on an open-channel device: `open_channel` in its summary.

Plain data, as `uflip.data.summary` is; `uflip.oc.benchmark` makes it. Response times are in
milliseconds, throughput in MB/s, which count powers of ten.
"""

from typing import NotRequired, TypedDict

from uflip.data.document import Count, Name, Text


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


class RuleFound(TypedDict):
    """A rule of the unwritten contract, and its verdict."""

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
    contract: NotRequired[list[RuleFound]]
