"""Throttling: detect I/Os that end with a timer of the host, which limits the rate of the disk.

    timer      |       |       |       |       |       |       |
    I/Os       ▌▌▌▌▌___________|▌▌▌▌▌__|▌▌▌▌▌▌_________|▌▌▌▌▌
                    waits      ends     ends           ends

A rate limiter delays an I/O that comes too early, and checks again when a timer of the kernel
expires: 100, 250, 300 or 1000 times a second. Delayed I/Os end right after a tick, all through a
run. The length of the delay varies: the detection uses *when* an I/O ended. The slow I/Os of a
device follow no clock: each takes a bit more or less, and these differences add up.

**Source** Linux, `block/blk-throttle.c`: what exceeds its budget is dispatched from a timer, whose
grain is the jiffy; `kernel/Kconfig.hz` for the rates. Rayleigh's test for directions (Mardia and
Jupp, Directional Statistics, 2000, §6.3).
**Faithful** All four rates of that list.
**Simplified** I/Os that take half of an interval or more are taken for delayed ones.
**Ambiguous** The number of I/Os and their precision. Here: the mean direction is 0.4 long or more
(a busy host delays some of them), by chance in one of a million runs, ten I/Os at least, a fifth of
all time. A device with a period of exactly a tick looks the same.
"""

from math import exp
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

TICKS_PER_S = (100, 250, 300, 1000)
SLOW_TICK_SHARE = 0.5
LENGTH = 0.4
CHANCE = 1e-6
SHARE_OF_TIME = 0.2
MIN_SLOW_IOS = 10


class TimerTicks(NamedTuple):
    """I/Os that ended with a timer, its interval [ns], and their share of all time."""

    tick_ns: float
    ios: int
    share_of_time: float


def find_ticks(
    submit_ns: NDArray[np.float64], response_time_ns: NDArray[np.float64]
) -> TimerTicks | None:
    """Find the timer that slow I/Os end with; return None without one.

    Parameters
    ----------
    submit_ns, response_time_ns
        Values of all I/Os (n,), on one clock [ns].

    Examples
    --------
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
