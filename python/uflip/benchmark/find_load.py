"""The largest load that meets a target: arrivals a second, or queue depth, by bisection.

    p99  ──────────────────── target ──────────┐
          met   met   met  │ undecided │ failed     load ▶

Every load is run several times with different seeds. It meets the target, or fails it, if the
interval of the statistic over the repetitions is on one side.

**Source** Bisection; Student's interval of the logarithm of the statistic over repetitions. The
serial dependence of I/Os does not narrow it, since a repetition counts as one value.
**Faithful** Arrivals are Poisson unless the pattern has fixed ones, and response times count from
the arrival.
**Simplified** The response time grows with the load.
**Ambiguous** The state of the device. Before the search the pattern runs as fast as the device
permits, until its start-up is over. Each run of writes begins after such a run, with a full cache,
and is as long: a load that the flash does not sustain never empties the cache again. Runs are
judged by their second half. A start-up that does not end, or a load at which response times still
rise, is marked.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from uflip import _native
from uflip._native import Trace
from uflip.analysis import analyse
from uflip.benchmark.replay import default_queue_depth
from uflip.device.handle import Device
from uflip.errors import UsageError
from uflip.flash_waits import PROGRAM_NS
from uflip.spec import OPEN_TIMES, Basic
from uflip.startup import SPARE_SHARE
from uflip.units import format_size

KINDS = ("rate", "depth")
STATISTICS: Mapping[str, float | None] = {"mean": None, "p50": 0.5, "p99": 0.99, "p999": 0.999}
"""Statistic -> its share; None for the mean."""
Answer = Literal["found", "never", "always"]
MIN_BEYOND = 20
"""I/Os of the judged half beyond a percentile."""
MIN_IOS = 4096
REPETITIONS, MAX_REPETITIONS = 3, 9
CONFIDENCE = 0.95
RESOLUTION = 1.02
"""The search ends when a rate that meets the target and one that fails differ by this factor."""
SLOWEST = 1 / 16
"""The smallest rate, relative to that of the device at full load, which is the largest one."""
WARM_UP_RUNS, WRITE_DEPTH = 6, 32
RISING = 1.1
"""Response times rise if the last quarter of a run is slower than the one before by this factor."""
MIN_INTERVAL_NS = 1


class LoadPoint(Struct, frozen=True, kw_only=True):
    """A load that was run.

    `value_ns` is the geometric mean of the statistic over the repetitions, `low_ns` and `high_ns`
    its interval [ns]; `achieved_per_s` the rate of completions.
    """

    load: float
    value_ns: float
    low_ns: float
    high_ns: float
    repetitions: int
    achieved_per_s: float
    rises: bool


class FoundLoad(Struct, frozen=True, kw_only=True):
    """The answer, and everything that was run."""

    #: Of `KINDS` and `STATISTICS`.
    find: str
    statistic: str
    target_ns: int  #: The target [ns].
    #: "found", "never": the smallest load fails, or "always": the largest one meets the target.
    answer: Answer
    load: float | None  #: The largest load that meets the target [1/s, or I/Os in flight].
    #: Its interval: the largest load that certainly meets it, the smallest that certainly fails.
    low: float | None
    high: float | None
    warnings: tuple[str, ...]  #: Doubts.
    points: tuple[LoadPoint, ...]  #: All loads, in ascending order.


@dataclass(frozen=True)
class LoadTarget:
    """A kind of load, a statistic and its limit [ns]."""

    find: str
    statistic: str
    limit_ns: int

    @property
    def share(self) -> float | None:
        """The share of a percentile; None for the mean."""
        return STATISTICS[self.statistic]

    @property
    def ios(self) -> int:
        """The smallest number of I/Os of a run."""
        share = self.share
        return MIN_IOS if share is None else max(MIN_IOS, round(2 * MIN_BEYOND / (1 - share)))


def find_load(
    device: Device,
    spec: Basic,
    target: LoadTarget,
    on_point: Callable[[LoadPoint], None] = lambda _: None,
) -> FoundLoad:
    """Search the largest load that meets a target.

    `device`: an open device. `spec`: the pattern; its `io_count` is that of each run. `target`:
    what is searched. `on_point`: called after each load.
    """
    _check(spec, target)
    search = _Search(device, spec, target, on_point)
    search.warm_up()
    smallest, largest = search.limits()
    if not search.meets(smallest):
        return search.answer("never", None)
    if search.meets(largest):
        return search.answer("always", largest)
    low, high = smallest, largest
    while (middle := search.between(low, high)) is not None:
        low, high = (middle, high) if search.meets(middle) else (low, middle)
    return search.answer("found", low)


def _check(spec: Basic, target: LoadTarget) -> None:
    if spec.io_count is not None and spec.io_count < target.ios:
        raise UsageError(
            f"The runs are too short for {target.statistic}",
            where="--io-count",
            got=str(spec.io_count),
            allowed=f"at least {target.ios}",
            action="give more I/Os, or omit --io-count",
        )
    if target.find == "depth" and spec.time in OPEN_TIMES:
        raise UsageError(
            "A queue depth can only be found in a closed loop",
            where="--find",
            got=f"depth with --time {spec.time}",
            allowed="--find rate, or --time consecutive",
            action="omit --time and --interval",
        )


class _Search:
    """The runs of a search on one device."""

    def __init__(
        self,
        device: Device,
        spec: Basic,
        target: LoadTarget,
        on_point: Callable[[LoadPoint], None],
    ) -> None:
        self.device, self.target, self.on_point = device, target, on_point
        count = spec.io_count or target.ios
        self.spec = msgspec.structs.replace(spec, io_count=count, io_ignore=0)
        self.depth = default_queue_depth(device.info)
        self.seed = spec.seed or 0
        self.points: dict[float, LoadPoint] = {}
        self.warnings: list[str] = []
        self.full_per_s = 0.0
        self.fill: Basic | None = None

    def warm_up(self) -> None:
        """Run the pattern at full load until its start-up is over; measure its rate.

        Writes that are faster than flash at full load fill a cache: runs become longer until it
        is full.
        """
        # A deep queue hides whether a write waits for flash or for other writes.
        depth = min(self.depth, WRITE_DEPTH) if self.spec.is_write else self.depth
        full = self._with(time="consecutive", interval=None, queue_depth=depth)
        first = self.spec.io_count or MIN_IOS
        written = 0
        for run in range(WARM_UP_RUNS):
            count = first << run
            trace = self._run(msgspec.structs.replace(full, io_count=count))
            took = np.asarray(trace.column("response_time_ns")).astype(np.float64)
            self.full_per_s = len(took) * 1e9 / trace.elapsed_ns()
            if not self.spec.is_write:
                return
            self.fill = msgspec.structs.replace(full, io_count=count)
            self.spec = msgspec.structs.replace(self.spec, io_count=count)
            is_cached = float(np.median(took)) < PROGRAM_NS
            written += trace.bytes_written
            if not is_cached and _has_no_startup(took):
                self._check_free_flash(written)
                return
        # Longer runs would not show more than the warning does.
        self.fill, self.spec = None, msgspec.structs.replace(self.spec, io_count=first)
        self.warnings.append(
            "writes at full load never waited for flash: the load is that of a cache"
            if is_cached
            else "the start-up is not over: give more I/Os (--io-count), or prepare the device"
        )

    def _check_free_flash(self, written: int) -> None:
        capacity = self.device.info.capacity_bytes
        if self.device.info.has_state and written < SPARE_SHARE * capacity:
            self.warnings.append(
                f"{format_size(written)} were written before the search, less than the spare space "
                "of most drives: the load may fall later; give more I/Os (--io-count)"
            )

    def limits(self) -> tuple[float, float]:
        """Return the smallest and the largest load."""
        if self.target.find == "depth":
            return 1, self.depth
        return self.full_per_s * SLOWEST, self.full_per_s

    def between(self, low: float, high: float) -> float | None:
        """Return the next load; None if two loads are near enough."""
        if self.target.find == "depth":
            return None if high - low <= 1 else (low + high) // 2
        return None if high <= low * RESOLUTION else float(np.sqrt(low * high))

    def meets(self, load: float) -> bool:
        """Run a load, repeatedly until its interval is on one side, and return whether it meets."""
        values: list[float] = []
        rates: list[float] = []
        rises = 0
        spec = self._spec_of(load)
        while True:
            if self.fill is not None:
                self._run(self.fill)
            trace = self._run(spec)
            value, rising = self._statistic(trace)
            values.append(value)
            rates.append(len(trace) * 1e9 / max(trace.elapsed_ns(), 1))
            rises += rising
            if len(values) < REPETITIONS:
                continue
            logs = np.log(values)
            quantile = _native.student_quantile(1 - CONFIDENCE, len(values) - 1)
            width = quantile * logs.std(ddof=1) / np.sqrt(len(values))
            low, high = np.exp(logs.mean() - width), np.exp(logs.mean() + width)
            is_decided = not low <= self.target.limit_ns < high
            if is_decided or len(values) >= MAX_REPETITIONS:
                break
        point = LoadPoint(
            load=load,
            value_ns=float(np.exp(logs.mean())),
            low_ns=float(low),
            high_ns=float(high),
            repetitions=len(values),
            achieved_per_s=float(np.mean(rates)),
            rises=2 * rises > len(values),
        )
        self.points[load] = point
        self.on_point(point)
        return point.value_ns <= self.target.limit_ns

    def answer(self, answer: Answer, load: float | None) -> FoundLoad:
        """Return the answer with its interval and doubts."""
        points = sorted(self.points.values(), key=lambda each: each.load)
        limit = self.target.limit_ns
        failing = [each.load for each in points if each.low_ns > limit]
        high = min(failing, default=None)
        meeting = [
            each.load for each in points if each.high_ns <= limit and each.load < (high or np.inf)
        ]
        if load is not None and self.points[load].rises:
            self.warnings.append(
                "response times still rise at this load: it may fail later, when a cache is full"
            )
        return FoundLoad(
            find=self.target.find,
            statistic=self.target.statistic,
            target_ns=limit,
            answer=answer,
            load=load,
            low=max(meeting, default=None),
            high=high,
            warnings=tuple(self.warnings),
            points=tuple(points),
        )

    def _spec_of(self, load: float) -> Basic:
        if self.target.find == "depth":
            return self._with(queue_depth=int(load))
        time = self.spec.time if self.spec.time in OPEN_TIMES else "poisson"
        interval = max(MIN_INTERVAL_NS, round(1e9 / load))
        return self._with(time=time, interval=interval, queue_depth=self.depth)

    def _with(self, **changes: object) -> Basic:
        return msgspec.structs.replace(self.spec, **changes)

    def _run(self, spec: Basic) -> Trace:
        self.seed += 1
        return self.device.run(msgspec.structs.replace(spec, seed=self.seed))

    def _statistic(self, trace: Trace) -> tuple[float, bool]:
        """Return the statistic of the second half of a run, and whether its quarters rise."""
        took = np.asarray(trace.column("response_time_ns"))
        order = np.argsort(np.asarray(trace.column("submit_ns")), kind="stable")
        half = took[order][len(took) // 2 :].astype(np.float64)
        third, fourth = np.array_split(half, 2)
        share = self.target.share
        value = half.mean() if share is None else np.quantile(half, share)
        return float(value), bool(fourth.mean() > RISING * third.mean())


def _has_no_startup(took: NDArray[np.float64]) -> bool:
    """Return whether a run has one level from its first I/O on, or oscillates from there on."""
    if np.ptp(took) == 0:
        return True
    analysis = analyse(took)
    return not analysis.startup_ios and analysis.phase in ("flat", "oscillating")
