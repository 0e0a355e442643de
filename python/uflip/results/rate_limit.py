"""Traces of the host in results: a rate limit, a trend over the benchmark, ticks of a timer.

    IOPS                                        mean of SW
      |  read  ______________ 500                 |            ·
      |  write ______________ 500                 |      ·  ·
      |  16 KiB, 32 KiB: 500                      |·  ·
      +--------------------- time                 +--------------- the same pattern again and again

A disk of a cloud, or of a control group, is limited to a rate of I/Os or bytes, whatever the load.
No device reads 512 bytes and 256 KiB equally often a second. But a host and a device that take
equally long for every small I/O do so for some sizes. A limited disk never exceeds its limit, at
any queue depth. A pattern that is measured several times in a benchmark, and is slower each time,
shows that the device changed meanwhile.

**Source** For trends: Mann (Econometrica 1945) and Kendall, the number of pairs in order. For
limits: a token bucket gives out at a constant rate (Turner, IEEE Communications 1986).
**Faithful** Both.
**Simplified** Rates are those of the second half of a run, where the bucket is empty.
**Ambiguous** (1) What is equal: within 5 %; a limiter of the kernel counts in slices of 0.1 s. (2)
How much evidence is needed: `MIN_RUNS` runs, and either reads whose largest size is
`MIN_SIZE_RATIO` times the smallest, or reads and writes of two sizes each. Random writes alone are
not enough: all of them may cost a merge. Reads and writes may have separate limits, so only a
faster run of a limited mode is evidence against a limit. (3) What a trend is: pairs in order beyond
three standard errors, over all patterns that were measured four times, where a pair differs by more
than 2 %. (4) The size of a trend: twice the difference between the medians of a pattern's first and
second half, as if it changed evenly; of several patterns the median.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from uflip.data.spec import Basic, Spec

TICKS_PER_S = (100, 250, 300, 1000)
SLOW_TICK_SHARE = 0.5
LENGTH = 0.4
CHANCE = 1e-6
SHARE_OF_TIME = 0.2
MIN_SLOW_IOS = 10
SAME_RATE_TOLERANCE = 0.05
MIN_RUNS = 3
MIN_SIZE_RATIO = 64
MIN_IOS = 64
NEGLIGIBLE_TREND = 0.02
MIN_MEASUREMENTS = 4
TREND_Z = 3.0


@dataclass(frozen=True)
class RunRate:
    """The steady rate of a run without pauses."""

    run_id: str
    mode: str
    io_size: int
    ios_per_s: float

    @property
    def bytes_per_s(self) -> float:
        """The rate in bytes."""
        return self.ios_per_s * self.io_size


def steady_rate(
    run_id: str,
    spec: Spec,
    submit_ns: NDArray[Any],
    response_time_ns: NDArray[Any],
) -> RunRate | None:
    """Return the rate of a run of consecutive I/Os, over its second half; None for other runs.

    With several processes it is the total.
    """
    if not isinstance(spec, Basic) or len(submit_ns) < MIN_IOS * spec.processes:
        return None
    if not spec.moves_data or spec.time not in (None, "consecutive"):
        return None
    submitted = submit_ns.astype(np.int64)
    completed = submitted + response_time_ns.astype(np.int64)
    half = len(submitted) // 2
    lasted = int(completed.max()) - int(np.sort(submitted)[half])
    if lasted <= 0:
        return None
    return RunRate(run_id, spec.mode, spec.io_bytes, (len(submitted) - half) * 1e9 / lasted)


@dataclass(frozen=True)
class RateLimit:
    """A rate limit that runs of several kinds reach."""

    unit: str
    per_s: float
    runs: tuple[str, ...]


def find_rate_limit(run_rates: Sequence[RunRate]) -> RateLimit | None:
    """Return the rate that runs of several sizes share and none exceeds; None without one."""
    limits = []
    for unit in ("ios_per_s", "bytes_per_s"):
        rates = np.array([getattr(run, unit) for run in run_rates])
        for rate in rates:
            near = np.flatnonzero(np.abs(rates - rate) <= SAME_RATE_TOLERANCE * rate)
            at_limit = [run_rates[int(index)] for index in near]
            beyond = np.flatnonzero(rates > (1 + SAME_RATE_TOLERANCE) * rates[near].max())
            faster = {run_rates[int(index)].mode for index in beyond}
            if _shows_limit(at_limit) and faster.isdisjoint(run.mode for run in at_limit):
                names = tuple(run.run_id for run in at_limit)
                limits.append(RateLimit(unit, float(np.median(rates[near])), names))
    return max(limits, key=lambda each: len(each.runs), default=None)


def _shows_limit(run_rates: Sequence[RunRate]) -> bool:
    """Return whether these runs of one rate show a limit, and not a property of the device."""
    reads, writes = (
        {run.io_size for run in run_rates if run.mode == mode} for mode in ("read", "write")
    )
    if len(run_rates) < MIN_RUNS or not reads:
        return False
    return max(reads) >= MIN_SIZE_RATIO * min(reads) or min(len(reads), len(writes)) >= 2


@dataclass(frozen=True)
class Trend:
    """Change of repeatedly measured patterns: its z score, and the pattern that changed most.

    `change` is the relative change of all patterns from the first to the last measurement.
    """

    z: float
    change: float
    pattern: str
    first_ns: float
    last_ns: float
    measurements: int


def find_trend(means_ns: Mapping[str, Sequence[float]]) -> Trend | None:
    """Test whether the same patterns become slower, or quicker, in the course of a benchmark.

    `means_ns`: pattern -> its means in the order in which they were measured [ns].
    """
    score, variance = 0, 0.0
    repeated = {name: each for name, each in means_ns.items() if len(each) >= MIN_MEASUREMENTS}
    for means in repeated.values():
        n = len(means)
        score += sum(_in_order(means[i], means[j]) for i in range(n) for j in range(i + 1, n))
        variance += n * (n - 1) * (2 * n + 5) / 18
    if not repeated:
        return None
    # Continuity correction.
    z = (abs(score) - 1) / sqrt(variance) * (1 if score > 0 else -1)
    if abs(z) < TREND_Z:
        return None
    changes = {name: abs(np.log(each[-1] / each[0])) for name, each in repeated.items()}
    worst = max(changes, key=lambda name: changes[name])
    return Trend(
        z=z,
        change=_common_change([*repeated.values()]),
        pattern=worst,
        first_ns=repeated[worst][0],
        last_ns=repeated[worst][-1],
        measurements=len(repeated[worst]),
    )


def _common_change(patterns: Sequence[Sequence[float]]) -> float:
    """Return the change that half of all measurements exceed, from first to last, relative."""
    halves = [
        np.log(np.median(means[-(len(means) // 2) :]) / np.median(means[: len(means) // 2]))
        for means in patterns
    ]
    common = np.median(np.repeat(halves, [len(means) for means in patterns]))
    return float(np.expm1(2 * common))


def _in_order(before: float, after: float) -> int:
    if abs(after - before) <= NEGLIGIBLE_TREND * before:
        return 0
    return 1 if after > before else -1


class TimerTicks(NamedTuple):
    """I/Os that ended with a timer, its interval [ns], and their share of all time."""

    tick_ns: float
    ios: int
    share_of_time: float


def find_ticks(
    submit_ns: NDArray[np.float64], response_time_ns: NDArray[np.float64]
) -> TimerTicks | None:
    """Find the timer of the host that slow I/Os end with; return None without one.

    ::

        timer      |       |       |       |       |       |       |
        I/Os       ▌▌▌▌▌___________|▌▌▌▌▌__|▌▌▌▌▌▌_________|▌▌▌▌▌
                        waits      ends     ends           ends

    A rate limiter delays an I/O that comes too early, and checks again when a timer of the kernel
    expires: 100, 250, 300 or 1000 times a second. Delayed I/Os end right after a tick, all through
    a run. The length of the delay varies: the detection uses *when* an I/O ended. The slow I/Os of
    a device follow no clock: each takes a bit more or less, and these differences add up.

    **Source** Linux, `block/blk-throttle.c`: what exceeds its budget is dispatched from a timer,
    whose grain is the jiffy; `kernel/Kconfig.hz` for the rates. Rayleigh's test for directions
    (Mardia and Jupp, Directional Statistics, 2000, §6.3).
    **Faithful** All four rates of that list.
    **Simplified** I/Os that take half of an interval or more are taken for delayed ones.
    **Ambiguous** The number of I/Os and their precision. Here: the mean direction is 0.4 long or
    more (a busy host delays some of them), by chance in one of a million runs, ten I/Os at least, a
    fifth of all time. A device with a period of exactly a tick looks the same.

    `submit_ns`, `response_time_ns`: values of all I/Os (n,), on one clock [ns].

    >>> ended = np.repeat(np.arange(1, 101), 2) * 4e6 + np.tile([0, 110_000.0], 100)
    >>> submit = np.concatenate([[0], ended[:-1]])
    >>> find_ticks(submit, ended - submit).tick_ns
    4000000.0
    """
    submit = np.asarray(submit_ns, dtype=np.float64)
    times = np.asarray(response_time_ns, dtype=np.float64)
    candidates = (_ticks_at(submit, times, 1e9 / rate) for rate in TICKS_PER_S)
    # The longest interval comes first: I/Os in step with 4 ms are also in step with 1 ms.
    return next((each for each in candidates if each is not None), None)


def _ticks_at(
    submit: NDArray[np.float64], times: NDArray[np.float64], tick_ns: float
) -> TimerTicks | None:
    slow = times >= SLOW_TICK_SHARE * tick_ns
    count = int(slow.sum())
    if count < MIN_SLOW_IOS:
        return None
    share = float(times[slow].sum() / times.sum())
    angles = 2 * np.pi * ((submit[slow] + times[slow]) % tick_ns) / tick_ns
    length = float(np.hypot(np.cos(angles).mean(), np.sin(angles).mean()))
    by_chance = exp(-count * length**2)
    if share < SHARE_OF_TIME or length < LENGTH or by_chance > CHANCE:
        return None
    return TimerTicks(tick_ns, count, share)
