"""A single run as a document: the output of `uflip pattern --json`.

Plain data, as `uflip.data.summary` is; `uflip.results.run_statistics` makes it.
"""

from collections.abc import Mapping
from typing import NotRequired, TypedDict

from uflip.data.device import DeviceInfo
from uflip.data.spec import Pattern

Numbers = Mapping[str, int | float | None]
"""Statistics of response times [ns] by name; a percentile is null if the sample is too small."""


class SeriesDocument(TypedDict):
    """The mean of one series of a run, and its interval."""

    mean_ns: float
    half_width_ns: float | None
    reasons: list[str]


class StopDocument(TypedDict):
    """The end of a run with a stop rule."""

    converged: bool
    ended_by: str
    series: list[SeriesDocument]


class ModeDocument(TypedDict):
    """Statistics of the reads, writes or trims of a run."""

    bytes: int
    ios_per_s: float | None
    bytes_per_s: float | None
    statistics: Numbers


class OneRun(TypedDict):
    """A run, its rates, and the statistics of the I/Os that were not ignored."""

    device: DeviceInfo
    durability: str
    spec: Pattern
    ios: int
    ignored: int
    bytes: int
    elapsed_ns: int
    ios_per_s: float | None
    bytes_per_s: float | None
    statistics: Numbers
    causes_ns: dict[str, float]
    counters: dict[str, int] | None
    write_amplification: float | None
    ended: StopDocument | None
    components: NotRequired[dict[str, Numbers]]
    by_mode: NotRequired[Mapping[str, ModeDocument]]
    disturbed: NotRequired[Mapping[str, int]]
