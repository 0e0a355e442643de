"""Generated series of response times with known truth: start-up, period, mean.

A family draws its parameters and its noise from one generator; the same seed gives the same series.
Noise is multiplicative and log-normal: response times are positive and skewed.

**Source** uFLIP (CIDR 2009) §4.2 (cheap start-up, then oscillation between two or more values);
Myers & Sinclair (2010) for FAST, small merges in large ones; bursts are a two-state Markov chain.
**Faithful** the figures' levels and periods where a name is a device's: mtron 0.4 and 27 ms, period
3, 125 cheap writes; kdti period 128; fast 0.101, 5.548 and 356.6 ms, 8,192 writes.
**Simplified** the level of an I/O does not depend on its address.
**Ambiguous** where a start-up ends if it looks like the running phase: there the truth is None, and
a method must not claim a start-up.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.float64]
Random = np.random.Generator


@dataclass(frozen=True)
class GeneratedSeries:
    """Response times (n,) [ns] and the parameters behind them.

    Attributes
    ----------
    times : ndarray
        Response times [ns].
    startup : (int, int) or None
        First and last I/O that count as the begin of the running phase: a cheap part of the
        period just after the start-up may belong to either. None: no start-up.
    period : int or None
        I/Os of a period; 1 for none; None where the trial does not test it.
    mean : float
        Expected mean of the running phase [ns].
    identifiable : bool
        Whether the start-up differs from the running phase; else a method may abstain.
    cheap : int
        I/Os before the first one that would, in this running phase, have been at the lowest level.
    """

    times: Times
    startup: tuple[int, int] | None
    period: int | None
    mean: float
    identifiable: bool = True
    cheap: int = 0


Family = Callable[[Random, int], GeneratedSeries]
"""Makes a series of (about) a given number of I/Os."""


def noise(random: Random, n: int, sigma: float) -> Times:
    """Return noise factors (n,) with mean 1."""
    return np.exp(random.normal(-sigma * sigma / 2, sigma, n))


def flat(sigma: float) -> Family:
    """Return independent I/Os at one level."""

    def make(random: Random, n: int) -> GeneratedSeries:
        return GeneratedSeries(1e5 * noise(random, n, sigma), None, 1, 1e5)

    return make


def heavy_tail(share: float, alpha: float) -> Family:
    """Return one level, and a share of I/Os with a Pareto tail that begins at ten times of it."""

    def make(random: Random, n: int) -> GeneratedSeries:
        tail = random.random(n) < share
        times = 1e5 * noise(random, n, 0.1)
        times[tail] = 1e6 * (1 + random.pareto(alpha, int(tail.sum())))
        return GeneratedSeries(
            times, None, 1, (1 - share) * 1e5 + share * 1e6 * alpha / (alpha - 1)
        )

    return make


def stalls(every: int, ratio: float) -> Family:
    """Return one level, and random slow I/Os, one in `every`, that take a multiple of it."""

    def make(random: Random, n: int) -> GeneratedSeries:
        slow = random.random(n) < 1 / every
        times = 1e5 * np.where(slow, ratio, 1) * noise(random, n, 0.1)
        return GeneratedSeries(times, None, 1, 1e5 * (1 + (ratio - 1) / every))

    return make


def two_levels(share: float, ratio: float) -> Family:
    """Return I/Os that are slow at random."""

    def make(random: Random, n: int) -> GeneratedSeries:
        slow = random.random(n) < share
        times = 4e5 * np.where(slow, ratio, 1) * noise(random, n, 0.1)
        return GeneratedSeries(times, None, 1, 4e5 * (1 + share * (ratio - 1)))

    return make


def periodic(period: int, levels: tuple[float, ...], sigma: float = 0.05) -> Family:
    """Return oscillation from the first I/O on: mostly cheap, one I/O per period at each level."""
    one = np.full(period, 4e5)
    for number, ratio in enumerate(levels):
        one[(number + 1) * period // len(levels) - 1] = 4e5 * ratio

    def make(random: Random, n: int) -> GeneratedSeries:
        begin = int(random.integers(period))
        times = one[(np.arange(n) + begin) % period] * noise(random, n, sigma)
        before = one[(begin - 1 - np.arange(period)) % period]
        cheap = int(np.argmax(before > 4e5))
        return GeneratedSeries(times, None, period, float(one.mean()), cheap=cheap)

    return make


def after_startup(startup: int, running: Family, cheap: float = 4e5, sigma: float = 0.05) -> Family:
    """Return cheap I/Os first, then the running phase of another family."""

    def make(random: Random, n: int) -> GeneratedSeries:
        run = running(random, n - startup)
        times = np.concatenate([cheap * noise(random, startup, sigma), run.times])
        # I/Os before the first slow one may belong to either phase.
        slow = int(np.argmax(run.times > 2 * cheap)) if run.times.max() > 2 * cheap else 0
        first = startup - run.cheap
        # A start-up that changes the mean by less than 3 % is not tested.
        identifiable = first > 0 and abs(cheap / run.mean - 1) > 0.04
        truth = (max(0, first), startup + slow)
        return GeneratedSeries(times, truth, run.period, run.mean, identifiable)

    return make


def mtron(random: Random, n: int) -> GeneratedSeries:
    """Make UFLIP figure 3: 125 cheap writes, then two of 0.4 ms and one of 27 ms in turn."""
    one = np.array([4e5, 4e5, 27e6])
    times = np.concatenate([np.full(125, 4e5), np.resize(one, n - 125)])
    return GeneratedSeries(times * noise(random, n, 0.05), (125, 127), 3, float(one.mean()))


def kdti(random: Random, n: int) -> GeneratedSeries:
    """Make UFLIP figure 4: no start-up, one slow write in 128."""
    return periodic(128, (60.0,))(random, n)


def fast(random: Random, n: int) -> GeneratedSeries:
    """Make Myers & Sinclair's FAST: a merge every 64 writes, later full ones too."""
    index = np.arange(n)
    times = np.where(index % 64 == 63, 5.548e6, 1.01e5)
    full = (index >= 8192) & (index % 64 == 31)
    times = np.where(full, 3.566e8, times)
    mean = (62 * 1.01e5 + 5.548e6 + 3.566e8) / 64
    # The running phase first shows at the first full merge.
    return GeneratedSeries(times * noise(random, n, 0.05), (8192 - 32, 8192 + 31), 64, mean)


def bursty(dwell_fast: float, dwell_slow: float, ratio: float = 10.0) -> Family:
    """Return garbage collection in bursts: two states that last geometric numbers of I/Os."""

    def make(random: Random, n: int) -> GeneratedSeries:
        pairs = int(n / (dwell_fast + dwell_slow) * 2) + 20
        lengths = np.empty(2 * pairs, dtype=np.int64)
        lengths[0::2] = random.geometric(1 / dwell_fast, pairs)
        lengths[1::2] = random.geometric(1 / dwell_slow, pairs)
        state = np.repeat(np.tile([1.0, ratio], pairs), lengths)
        while len(state) < 2 * n:
            state = np.concatenate([state, state[::-1]])
        # The begin is random, so that the first state is as long as any.
        begin = int(random.integers(len(state) - n))
        share = dwell_slow / (dwell_fast + dwell_slow)
        times = 1e5 * state[begin : begin + n] * noise(random, n, 0.1)
        return GeneratedSeries(times, None, 1, 1e5 * (1 + share * (ratio - 1)))

    return make


def autoregressive(rho: float, sigma: float) -> Family:
    """Return correlated neighbours: an AR(1) process of the logarithm."""

    def make(random: Random, n: int) -> GeneratedSeries:
        from numpy.lib.stride_tricks import sliding_window_view

        # A moving average over ten correlation times equals the process up to 5e-5.
        reach = int(10 / (1 - rho))
        weights = rho ** np.arange(reach)
        weights *= sigma / np.sqrt((weights * weights).sum())
        steps = random.normal(size=n + reach - 1)
        if n * reach > 20_000_000:
            size = len(steps)
            spectrum = np.fft.rfft(steps, 2 * size) * np.fft.rfft(weights, 2 * size)
            logs = np.fft.irfft(spectrum)[reach - 1 : reach - 1 + n]
        else:
            logs = sliding_window_view(steps, reach) @ weights[::-1]
        return GeneratedSeries(1e5 * np.exp(logs - sigma * sigma / 2), None, 1, 1e5)

    return make


def drifting(change: float) -> Family:
    """Return a level that rises by this share from the first I/O to the last: it has no mean."""

    def make(random: Random, n: int) -> GeneratedSeries:
        line = 1 + change * np.arange(n) / n
        return GeneratedSeries(1e5 * line * noise(random, n, 0.1), None, 1, float("nan"))

    return make


def climbing(change: float, period: int, ratio: float) -> Family:
    """Return oscillation between two levels that rise by this share over the series."""

    def make(random: Random, n: int) -> GeneratedSeries:
        line = 1 + change * np.arange(n) / n
        level = np.where(np.arange(n) % period == 0, ratio, 1.0)
        return GeneratedSeries(
            1e5 * line * level * noise(random, n, 0.1), None, period, float("nan")
        )

    return make


def shifted(ratio: float, sigma: float = 0.3) -> Family:
    """Return a level that is higher by this ratio in the middle third only."""

    def make(random: Random, n: int) -> GeneratedSeries:
        index = np.arange(n)
        level = np.where((index >= n // 3) & (index < 2 * n // 3), ratio, 1.0)
        return GeneratedSeries(1e5 * level * noise(random, n, sigma), None, 1, float("nan"))

    return make


def wave(amplitude: float, cycles: float, sigma: float = 0.3) -> Family:
    """Return a level that follows a sine of `cycles` cycles: fewer than six do not show as one."""

    def make(random: Random, n: int) -> GeneratedSeries:
        phase = random.uniform(0, 2 * np.pi)
        level = 1 + amplitude * np.sin(2 * np.pi * cycles * np.arange(n) / n + phase)
        return GeneratedSeries(1e5 * level * noise(random, n, sigma), None, 1, 1e5)

    return make


def widening(first: float, last: float) -> Family:
    """Return a scatter that grows from the first I/O to the last, with a constant mean."""

    def make(random: Random, n: int) -> GeneratedSeries:
        sigma = np.linspace(first, last, n)
        times = 1e5 * np.exp(random.normal(-sigma * sigma / 2, sigma))
        return GeneratedSeries(times, None, 1, 1e5)

    return make


def long_memory(d: float, sigma: float = 0.3) -> Family:
    """Return correlation at all distances: ARFIMA(0, d, 0) of the logarithm.

    The correlation at distance k is Γ(1 − d) Γ(k + d) / (Γ(d) Γ(k + 1 − d)) (Hosking 1981), and the
    mean of n I/Os scatters by n^(d − 1/2). The series is exact: by circulant embedding (Davies and
    Harte 1987).
    """

    def make(random: Random, n: int) -> GeneratedSeries:
        k = np.arange(1, n + 1)
        half = np.concatenate([[1.0], np.cumprod((k - 1 + d) / (k - d))])
        spectrum = np.fft.rfft(np.concatenate([half, half[-2:0:-1]])).real.clip(min=0)
        white = np.fft.rfft(random.normal(size=2 * n))
        logs = sigma * np.fft.irfft(np.sqrt(spectrum) * white, 2 * n)[:n]
        return GeneratedSeries(1e5 * np.exp(logs - sigma * sigma / 2), None, 1, 1e5)

    return make


def decaying(share: float, height: float = 4.0) -> Family:
    """Return an exponential approach to the level within this share, from a multiple of it.

    The start-up ends where the distance falls below 10 %, or 1 %, of the level.
    """

    def make(random: Random, n: int) -> GeneratedSeries:
        curve = 1 + height * np.exp(-np.arange(n) / (share * n))
        ends = tuple(int(share * n * np.log(height / distance)) for distance in (0.1, 0.01))
        startup = (ends[0], ends[1])
        return GeneratedSeries(
            1e5 * curve * noise(random, n, 0.1), startup, 1, 1e5, ends[1] < n / 2
        )

    return make


def jittered(period: int, jitter: int) -> Family:
    """Return slow I/Os at distances that vary around a period."""

    def make(random: Random, n: int) -> GeneratedSeries:
        steps = random.integers(period - jitter, period + jitter + 1, 2 * n // period + 8)
        positions = np.cumsum(steps)
        times = np.full(n, 4e5)
        times[positions[positions < n]] = 4e5 * 30
        return GeneratedSeries(times * noise(random, n, 0.05), None, None, 4e5 * (1 + 29 / period))

    return make


def ramp(length: int, change: float) -> Family:
    """Return a start-up that climbs evenly to the running level."""

    def make(random: Random, n: int) -> GeneratedSeries:
        climb = np.minimum(1.0, change + (1 - change) * np.arange(n) / length)
        return GeneratedSeries(1e5 * climb * noise(random, n, 0.05), (length, length), 1, 1e5)

    return make


def any_periodic(random: Random, n: int) -> GeneratedSeries:
    """Make a random period of 1 to 512 I/Os, with two to four levels and no start-up."""
    period = int(np.exp(random.uniform(np.log(2), np.log(513))))
    count = int(random.integers(1, min(4, period + 1)))
    # Each level is at least half as high again as the one below: the noise would merge closer ones.
    levels = tuple(float(x) for x in np.cumprod(random.uniform(1.5, 6.0, count)) * 2)
    return periodic(period, levels, float(random.uniform(0.01, 0.15)))(random, n)


def any_startup(random: Random, n: int) -> GeneratedSeries:
    """Make a random start-up of 5 to 20,000 I/Os before a running phase; n grows if needed."""
    startup = int(np.exp(random.uniform(np.log(5), np.log(20_000))))
    n = max(n, 3 * startup)
    kind = int(random.integers(3))
    if kind == 0:
        return after_startup(startup, any_periodic)(random, n)
    if kind == 1:
        share = float(random.uniform(0.1, 0.5))
        series = after_startup(startup, two_levels(share, float(random.uniform(5, 60))))(random, n)
        # Where a cheap part a third as long comes by chance, the start-up is not identifiable.
        by_chance = n * (1 - share) ** (startup / 3)
        return replace(series, identifiable=by_chance < 0.01)
    sigma = float(random.uniform(0.02, 0.15))
    cheap = 1e5 * float(random.choice([0.2, 0.5, 0.7, 2.0, 5.0]))
    series = after_startup(startup, flat(sigma), cheap=cheap, sigma=sigma)(random, n)
    return replace(series, startup=(startup, startup))
