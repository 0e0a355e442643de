"""Types of the page's documents about single I/Os, dies and open channels.

See `uflip.web.api_types` for those about results, runs and comparisons.
"""

from typing import NotRequired, TypedDict

from uflip.data.summary import Rule


class Cause(TypedDict):
    """A cause of an I/O's response time."""

    name: str
    code: int
    words: str
    ns: int


class DieOperation(TypedDict):
    """An operation of a die, and its originator, if known: an I/O or a job of the FTL."""

    what: str
    die: int
    io: NotRequired[int]
    job: NotRequired[int]
    made: NotRequired[str]
    block: NotRequired[int]
    valid: NotRequired[int]


class Share(DieOperation):
    """Operations of one purpose and job, summed up."""

    count: int
    ns: int


class OperationGroup(Share):
    """The same, with their dies."""

    dies: list[int]


class Wait(TypedDict):
    """A wait for the write cache or a free page [ns since the first I/O], and its die's work."""

    kind: str
    page: int
    die: int
    begin: int
    end: int
    ns: int
    waited_for: list[Share]


class Flash(TypedDict):
    """Flash operations and waits of an I/O.

    `rows`: the operations made for it, or whose end it waited for.
    """

    did: list[OperationGroup]
    waited_for: list[Share]
    waits: list[Wait]
    rows: list[int]


class Operation(DieOperation):
    """One operation: requested, start and end time [ns since the run began]."""

    asked: int
    begin: int
    end: int
    cells: int
    waited_ns: int
    waited_for: list[Share]
    channel_waited_ns: int
    channel_waited_for: list[Share]


class Lane(TypedDict):
    """A row of the Gantt chart: a channel (die -1), or one of its dies."""

    name: str
    channel: int
    die: int


class Io(TypedDict):
    """One I/O; its columns are those of its log, of a block device or an open-channel device."""

    number: int
    causes: list[Cause]
    begin_ns: int
    response_time_ns: NotRequired[int]
    submit_ns: NotRequired[int]
    stream: NotRequired[int]
    offset_bytes: NotRequired[int]
    io_size_bytes: NotRequired[int]
    mode: NotRequired[int]
    component: NotRequired[int]
    ignored: NotRequired[int]
    idle_before_ns: NotRequired[int]
    host_gap_ns: NotRequired[int]
    host: NotRequired[str]
    flash: NotRequired[Flash]
    chain: NotRequired[str]


class CommonTrait(TypedDict):
    """A trait: its share among the slow I/Os, and among all."""

    name: str
    value: str
    slow: float
    every: float
    lift: float


class Slowest(TypedDict):
    """The slowest I/Os of a part of a run, and their common traits."""

    ios: list[Io]
    slow: int
    least_ns: int | None
    count: int
    traits: list[CommonTrait]


class CauseMeans(TypedDict):
    """Mean time of an I/O for a cause: of all I/Os of a range, and of the slow ones."""

    name: str
    words: str
    every_ns: float
    slow_ns: float


class RangeCauses(TypedDict):
    """Causes of the response times of a range, and of its slowest hundredth.

    `count` is the number of I/Os that were read, `least_ns` the shortest time of the slow ones.
    """

    count: int
    slow: int
    sampled: bool
    least_ns: int | None
    causes: list[CauseMeans]


class Spread(TypedDict):
    """Histogram of the response times of some runs, with the maximum."""

    runs: int
    count: int
    counts: list[int]
    edges_ns: list[float]
    longest_ns: int


class ResponseBands(TypedDict):
    """Response times of a mix, thinned out."""

    mix: str
    ios: int
    at: list[int]
    op: list[int]
    ms: list[float]
    top_ms: float
    mb_per_s: float


class Luns(TypedDict):
    """Throughput of every LUN, one row per channel."""

    write_mb_per_s: list[list[float]]
    read_mb_per_s: list[list[float]]


class BlockWear(TypedDict):
    """Times and failed reads over the erases of a block."""

    block: str
    cycles: int
    at: list[int]
    erase_ms: list[float]
    write_ms: list[float]
    read_ms: list[float]
    failing_share: list[float]
    first_failure: int | None
    erase_failed: bool


class ScalingCurve(TypedDict):
    """Throughput by the degree of parallelism."""

    name: str
    over: str
    degrees: list[int]
    mb_per_s: list[float]


class Channel(TypedDict):
    """The findings about an open-channel device."""

    bands: list[ResponseBands]
    shares: list[ResponseBands]
    luns: Luns | None
    wear: BlockWear | None
    scaling: list[ScalingCurve]
    rules: list[Rule]


class Die(TypedDict):
    """A die, and its channel."""

    channel: int
    die: int


class DeviceLogView(TypedDict):
    """The device log of a simulated device."""

    ios: list[int]
    at_ns: list[int]
    erased_blocks: list[int]
    least_erased_blocks: list[int]
    write_amplification: list[float | None]
    dies: list[Die]
    blocks_per_die: int
    erases: list[list[int]]
    erased: int
    pages_per_block: int
    valid: list[int] | None
