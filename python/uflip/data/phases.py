"""Phases of the long baseline runs, and the interference of random writes.

Plain data in the manifest and the summary of a result. Fields that a version added are absent from
older ones, and optional.
"""

from typing import NotRequired, TypedDict

from uflip.data.document import Count, Name, Positive, Table


class OneLevel(TypedDict):
    """A level of the running phase: its mean [ns], and the share of its I/Os."""

    mean_ns: float
    share: float


class PhasesOfPattern(TypedDict):
    """The analysis of a series of response times: the fields of `uflip.analysis.Analysis`.

    `settled_ios`: I/Os until the means of parts of the run equal those of the running phase;
    unlike `startup_ios`, chance does not prolong it. `settling_ns` is the mean of these,
    `running_ns` that of all others [ns].
    """

    ios: Count
    startup_ios: Count
    settled_ios: NotRequired[Count]
    settling_ns: NotRequired[float]
    running_ns: NotRequired[float]
    period_ios: Count
    phase: Name
    levels: list[OneLevel]
    mean_ns: float
    half_width_ns: float | None
    mean_ios: NotRequired[Count]
    confidence: NotRequired[float]
    converged: NotRequired[bool]
    reasons: list[Name]
    slow_bound_ns: NotRequired[float | None]
    slow_episodes: NotRequired[Count]
    percentiles: NotRequired[list[Table]]
    change_points: NotRequired[list[Count]]


class Phases(TypedDict):
    """Phases of the baseline patterns, by label; `again`: after the longest rest.

    `startup_ios` and `period_ios` are the bounds across the patterns.
    """

    patterns: dict[str, PhasesOfPattern]
    again: NotRequired[dict[str, PhasesOfPattern]]
    startup_ios: Count
    period_ios: Count


class Windows(TypedDict):
    """Means and maxima of the windows of a batch of I/Os [ns]."""

    mean_ns: list[int | float]
    max_ns: list[int | float]


class Batches(TypedDict):
    """The data of uFLIP's Figure 5; `ios`: per window."""

    ios: Positive
    before: Windows
    writes: NotRequired[Windows | None]
    after: Windows


class Interference(TypedDict):
    """Effect of random writes: the fields of `uflip.benchmark.interference.Lingering`."""

    reads_affected: Count
    lingering_ns: Count
    over: bool
    slow_ns: float
    device_busy_ns: NotRequired[Count | None]
    gap_ns: NotRequired[int | None]
    pause_ns: Count
    windows: NotRequired[Batches | None]
