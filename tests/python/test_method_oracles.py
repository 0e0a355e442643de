"""The kernels of the method against statsmodels, ruptures and ArviZ.

Each of them defines its quantity a little differently; the test then states the largest
difference. scipy and naive searches are the oracles of test_analyse.py.
"""

from collections.abc import Callable

import numpy as np
import pytest
import ruptures
from arviz_stats.base import array_stats
from scipy import optimize, signal, stats
from statsmodels.tsa.stattools import acf

import generated_series as make
from uflip import _native
from uflip.analysis import analyse

IOS = 20_000


def autoregressive(rho: float, seed: int, n: int = IOS) -> np.ndarray:
    return make.autoregressive(rho, 0.3)(np.random.default_rng(seed), n).times


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9, 0.99])
def test_autocorrelation_agrees_with_statsmodels(rho: float) -> None:
    """statsmodels uses one mean and variance for both sides of a pair; uflip one for each side.

    The difference is of the order of the variance of a mean, in units of that of single values.
    """
    logs = np.log(autoregressive(rho, seed=7))
    expected = acf(logs, adjusted=True, nlags=200, fft=False)
    mean_variance = (1 + rho) / (1 - rho) / IOS
    assert np.abs(_native.autocorrelation(logs, 200) - expected).max() < mean_variance


@pytest.mark.parametrize("period", [3, 7, 128, 512])
def test_period_agrees_with_statsmodels_peak(period: int) -> None:
    series = make.periodic(period, (30.0,))(np.random.default_rng(period), IOS)
    peaks = acf(np.log(series.times), adjusted=True, nlags=3 * period // 2, fft=True)
    assert analyse(series.times).period_ios == 2 + int(np.argmax(peaks[2:])) == period


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("penalty", [4.0, 20.0])
def test_change_points_agree_with_ruptures(seed: int, penalty: float) -> None:
    """PELT with squares of deviations, any length of segment and every place: the same optimum."""
    random = np.random.default_rng(seed)
    levels = random.normal(0, 2, 6).repeat(random.integers(8, 60, 6))
    values = levels + random.normal(size=len(levels))
    search = ruptures.Pelt(model="l2", min_size=1, jump=1).fit(values)
    assert [*_native.pelt(values, penalty), len(values)] == search.predict(pen=penalty)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9, 0.97])
def test_interval_width_agrees_with_arviz_ess(rho: float) -> None:
    """The same variance of the mean by another way: autocorrelations summed by Geyer's rule.

    Half widths scatter by a sixth, as 32 batches know a variance; ours takes the wider of two
    divisions and is corrected for skewness, so that it is somewhat wider on average.
    """
    ratios = []
    for seed in range(25):
        times = autoregressive(rho, seed)
        analysis = analyse(times)
        running = times[analysis.startup_ios :]
        ess = float(array_stats.ess(running[None, :], chain_axis=0, draw_axis=1, method="mean"))
        expected = stats.norm.ppf(0.975) * running.std(ddof=1) / np.sqrt(ess)
        assert analysis.half_width_ns is not None
        ratios.append(analysis.half_width_ns / expected)
    assert 1.0 < np.median(ratios) < 1.45, ratios


def test_few_independent_values_do_not_converge() -> None:
    """A hundred effective values know a mean to a fifth of the scatter, which is as large as it."""
    for seed in range(25):
        times = make.bursty(2000, 400)(np.random.default_rng(seed), IOS).times
        ess = float(array_stats.ess(times[None, :], chain_axis=0, draw_axis=1, method="mean"))
        assert ess < 100
        assert not analyse(times).converged


# Percentiles


def slowly_moving(random: np.random.Generator, n: int) -> np.ndarray:
    """Return values correlated over 100 I/Os; log-normal with median 1."""
    innovations = random.normal(size=n + 1000)
    logs = signal.lfilter([np.sqrt(1 - 0.99**2)], [1, -0.99], innovations)
    return np.asarray(np.exp(0.5 * logs[1000:]))


def bursts(random: np.random.Generator, n: int) -> np.ndarray:
    """Eight times as slow in bursts of 100 I/Os on average, 400 apart."""
    slow: list[bool] = []
    now = random.random() < 0.2
    while len(slow) < n:
        slow += [now] * int(random.geometric(1 / (100 if now else 400)))
        now = not now
    return np.where(slow[:n], 8, 1) * np.exp(0.5 * random.normal(size=n))


def below_bursts(x: float) -> float:
    return float(0.8 * stats.norm.cdf(np.log(x) / 0.5) + 0.2 * stats.norm.cdf(np.log(x / 8) / 0.5))


@pytest.mark.parametrize(
    ("series", "share", "true"),
    [
        (slowly_moving, 0.5, 1.0),
        (bursts, 0.5, optimize.brentq(lambda x: below_bursts(x) - 0.5, 0.01, 100)),
        (bursts, 0.9, optimize.brentq(lambda x: below_bursts(x) - 0.9, 0.01, 100)),
    ],
)
def test_percentile_intervals_cover_correlated_ios(
    series: Callable[[np.random.Generator, int], np.ndarray], share: float, true: float
) -> None:
    """The nominal level is 95 %: by chance 5 % of such tests have 16 wrong intervals or more."""
    random, intervals, wrong = np.random.default_rng(4), 0, 0
    for _ in range(200):
        for percentile in analyse(1e5 * series(random, 4096)).percentiles:
            if percentile.share == share:
                intervals += 1
                wrong += not percentile.low_ns <= 1e5 * true <= percentile.high_ns
    assert intervals > 40
    assert wrong <= 15
