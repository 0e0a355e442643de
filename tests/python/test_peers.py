"""Pooled variance of repetitions over experiments of a kind."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from uflip.results.statistics import combined_mean
from uflip.results.statistics.experiment import (
    CLAIM_CONFIDENCE,
    claim_half_width,
    own_half_width,
    peers_among,
    student_half_width,
)
from uflip.results.statistics.scatter import (
    MAX_NEEDED,
    MIN_PEERS,
    Peers,
    Scatter,
    averaged_half_width,
    is_more_correlated,
    is_outlier,
    least_repetitions,
    pool_scatter,
    pooled_half_width,
    sort_correlation,
)

ALLOWED = 5.0


def make_peers(variance: float, degrees: float, degrees_in_all: int = 60) -> Peers:
    """Return peers with equal scatter, whose neighbours are not correlated."""
    return Peers(variance, degrees, degrees_in_all, 0.0, variance, variance, variances_differ=False)


def autoregressive(
    random: np.random.Generator, count: int, repetitions: int, rho: float
) -> np.ndarray:
    """Values (count, repetitions) of AR(1) processes, of variance 1."""
    steps = random.normal(0, 1, (count, repetitions))
    for index in range(1, repetitions):
        steps[:, index] *= np.sqrt(1 - rho**2)
        steps[:, index] += rho * steps[:, index - 1]
    return steps


def draw_scatters(
    random: np.random.Generator, count: int, degrees: float, scatter: float, repetitions: int
) -> list[Scatter]:
    """Experiments of mean 100 whose variances are scaled inverse χ², `scatter` in the middle."""
    scales = scatter * ALLOWED * np.sqrt(degrees / random.chisquare(degrees, count))
    return [Scatter(list(random.normal(100, scale, repetitions)), ALLOWED) for scale in scales]


@pytest.mark.parametrize(("degrees", "low", "high"), [(4.0, 2.0, 8.0), (64.0, 16.0, 256.0)])
@pytest.mark.parametrize("repetitions", [3, 8])
def test_distribution_of_scatters_is_estimated(
    degrees: float, low: float, high: float, repetitions: int
) -> None:
    peers = pool_scatter(draw_scatters(np.random.default_rng(5), 800, degrees, 0.8, repetitions))
    assert peers is not None
    assert low <= peers.degrees <= high
    assert peers.variance == pytest.approx(0.8**2, rel=0.15)
    assert peers.correlation < 0.15
    assert peers.total_degrees == 800 * (repetitions - 1)


@pytest.mark.parametrize(("correlation", "repetitions"), [(0.0, 3), (0.0, 12), (0.5, 12)])
def test_neighbour_correlation_is_found_and_corrected(correlation: float, repetitions: int) -> None:
    """Its square: the variance of the mean of an AR(1) process, simulated."""
    steps = autoregressive(np.random.default_rng(6), 1000, repetitions, correlation)
    every = [Scatter(list(100 + row), ALLOWED) for row in steps]
    peers = pool_scatter(every)
    assert peers is not None
    assert peers.correlation == pytest.approx(correlation, abs=0.1)
    width, degrees = pooled_half_width(peers, every[0], CLAIM_CONFIDENCE)
    error = width / stats.t.ppf((1 + CLAIM_CONFIDENCE) / 2, degrees)
    assert error == pytest.approx(steps.mean(axis=1).std(), rel=0.2)


@pytest.mark.parametrize("pooled_degrees", [0.5, 4.0, 1e6])
def test_interval_weights_own_and_pooled_variance(pooled_degrees: float) -> None:
    """Student's, by scipy, of the weighted mean of both variances."""
    means = [101.0, 99.0, 103.0]
    peers = make_peers(0.25, pooled_degrees)
    width, degrees = pooled_half_width(peers, Scatter(means, ALLOWED), CLAIM_CONFIDENCE)
    variance = (pooled_degrees * 0.25 * ALLOWED**2 + 2 * np.var(means, ddof=1)) / (
        pooled_degrees + 2
    )
    assert degrees == min(pooled_degrees + 2, 60)
    expected = stats.t.ppf((1 + CLAIM_CONFIDENCE) / 2, degrees) * np.sqrt(variance / 3)
    assert width == pytest.approx(expected, rel=2e-3)


def test_few_experiments_are_not_pooled() -> None:
    some = draw_scatters(np.random.default_rng(7), MIN_PEERS, 8.0, 0.5, 3)
    assert pool_scatter(some) is not None
    assert pool_scatter(some[1:]) is None
    assert pool_scatter([*some[1:], Scatter([100.0], ALLOWED)]) is None, (
        "one repetition shows no scatter"
    )
    means = some[0].means
    assert claim_half_width(means, 1.0, ALLOWED, None) > 1.2 * claim_half_width(
        means, 1.0, ALLOWED, pool_scatter(some)
    )


@pytest.mark.parametrize("degrees", [2.0, 8.0, 100.0])
def test_repeated_looks_make_few_false_claims(degrees: float) -> None:
    """As a posterior: looks at 3, 8, 12, 20, 32 repetitions end at the first claim."""
    random, claims, false = np.random.default_rng(8), 0, 0
    for _ in range(25):
        every = draw_scatters(random, 40, degrees, 0.8, 32)
        made = [3] * len(every)
        is_claimed = [False] * len(every)
        for look in (3, 8, 12, 20, 32):
            made = [count if done else look for count, done in zip(made, is_claimed, strict=True)]
            now = [
                Scatter(one.means[:count], ALLOWED) for one, count in zip(every, made, strict=True)
            ]
            peers = pool_scatter(now)
            assert peers is not None
            is_claimed = [
                pooled_half_width(peers, one, CLAIM_CONFIDENCE)[0] <= ALLOWED for one in now
            ]
        claims += sum(is_claimed)
        false += sum(
            abs(np.mean(one.means) - 100) > ALLOWED
            for one, done in zip(now, is_claimed, strict=True)
            if done
        )
    assert claims > 500
    assert false <= stats.binom.ppf(0.999, claims, 0.02)


@pytest.mark.parametrize("pooled_degrees", [4.0, 1e6])
@pytest.mark.parametrize("pooled_variance", [0.05, 4.0])
def test_wider_of_own_and_pooled_interval_is_used(
    pooled_variance: float, pooled_degrees: float
) -> None:
    """Both Student's, by scipy; one value far off stretches neither."""
    means = [100.0, 99.0, 101.0, 100.5, 99.5, 100.0, 99.8, 104.0]
    peers = make_peers(pooled_variance, pooled_degrees)
    runs = [{"mean_ns": x, "half_width_ns": 1.0, "converged": True} for x in means]
    variance = (pooled_degrees * pooled_variance * ALLOWED**2 + 7 * np.var(means, ddof=1)) / (
        pooled_degrees + 7
    )

    def wider(confidence: float) -> float:
        ours = stats.t.ppf((1 + confidence) / 2, 7) * stats.sem(means)
        sort = stats.t.ppf((1 + confidence) / 2, min(pooled_degrees + 7, 60)) * np.sqrt(
            variance / 8
        )
        assert (ours > sort) == (pooled_variance < 1)
        return float(max(ours, sort))

    combined = combined_mean(runs, None, peers)
    allowed = 0.05 * np.mean(means)
    assert combined["half_width_ns"] == pytest.approx(wider(0.95), rel=0.02)
    assert claim_half_width(means, 0.0, ALLOWED, peers) == pytest.approx(wider(0.98), rel=2e-3)
    assert combined["converged"] is bool(wider(0.98) <= allowed)
    without = combined_mean(runs)["half_width_ns"]
    assert without > 1.3 * stats.t.ppf(0.975, 7) * stats.sem(means), "skewness, if it is alone"


def test_outlier_does_not_borrow_scatter_of_peers() -> None:
    """Eight values that scatter by 8 %: their own 98 % interval decides, regardless of peers."""
    random, believed, by_peers, by_student, narrow = np.random.default_rng(9), 0, 0, 0, 0
    peers = make_peers(0.25, 256.0, 500)
    for _ in range(1000):
        means = random.normal(100, 8, 8).tolist()
        runs = [{"mean_ns": x, "half_width_ns": 1.0, "converged": True} for x in means]
        believed += bool(combined_mean(runs, None, peers)["converged"])
        by_peers += (
            pooled_half_width(peers, Scatter(means, ALLOWED), CLAIM_CONFIDENCE)[0] <= ALLOWED
        )
        by_student += stats.t.ppf(0.99, 7) * stats.sem(means) <= ALLOWED
        narrow += averaged_half_width(means, CLAIM_CONFIDENCE) <= ALLOWED
    assert by_peers == 1000
    share = stats.chi2.cdf(7 * (5 * np.sqrt(8) / stats.t.ppf(0.99, 7) / 8) ** 2, 7)
    assert by_student == pytest.approx(1000 * share, rel=0.25)
    assert narrow <= believed <= by_student
    assert narrow < 0.5 * by_student


def test_lone_interval_accounts_for_possible_correlation() -> None:
    """Compute it with whole matrices: the likelihood of contrasts, of mean 0, by their density."""
    means = [100.0, 101.0, 103.0, 102.5, 99.5, 98.0, 98.2, 101.0, 104.0]
    n = len(means)
    contrasts = np.linalg.svd(np.ones((1, n)))[2][1:]
    z = contrasts @ np.array(means)
    likely, variances = [], []
    for rho in np.arange(0, 0.951, 0.05):
        alike = rho ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
        scale = contrasts @ alike @ contrasts.T
        variance = z @ np.linalg.solve(scale, z) / (n - 1)
        density = stats.multivariate_normal(np.zeros(n - 1), variance * scale)
        likely.append(density.logpdf(z))
        variances.append(variance * alike.sum() / n**2)
    weights = np.exp(np.array(likely) - max(likely))
    expected = stats.t.ppf(0.99, n - 1) * np.sqrt(np.average(variances, weights=weights))
    assert averaged_half_width(means, CLAIM_CONFIDENCE) == pytest.approx(expected, rel=2e-3)
    assert expected > 1.3 * stats.t.ppf(0.99, n - 1) * stats.sem(means)
    assert averaged_half_width([100.0] * 5, CLAIM_CONFIDENCE) == 0


@pytest.mark.parametrize("rho", [0.0, 0.5])
def test_lone_interval_covers_mean(rho: float) -> None:
    """Student's of 98 % holds that of neighbours that are alike three times in four."""
    every = autoregressive(np.random.default_rng(10), 600, 24, rho)
    held = sum(
        abs(row.mean()) <= averaged_half_width(row.tolist(), CLAIM_CONFIDENCE) for row in every
    )
    by_student = sum(abs(row.mean()) <= stats.t.ppf(0.99, 23) * stats.sem(row) for row in every)
    assert held >= stats.binom.ppf(0.001, 600, 0.95)
    assert (by_student >= stats.binom.ppf(0.001, 600, 0.95)) == (rho == 0)


def test_fewer_than_five_repetitions_show_no_correlation() -> None:
    rising = [[100.0 + step + 10 * one for step in range(12)] for one in range(20)]
    assert sort_correlation([row[:4] for row in rising]) == (0, 0)
    assert sort_correlation([row[:5] for row in rising])[0] > 0.5
    assert not is_more_correlated(rising[0][:4], 0.0)
    assert is_more_correlated(rising[0], 0.0)
    assert not is_more_correlated(rising[0], 0.95), "no more than others"


def test_false_correlations_are_rare() -> None:
    """And those of some to be more alike than those of others as seldom."""
    random = np.random.default_rng(12)
    every = [sort_correlation(random.normal(100, 5, (20, 8)).tolist()) for _ in range(400)]
    assert sum(rho > 0 for rho, _ in every) <= stats.binom.ppf(0.999, 400, 0.012)
    assert sum(some for _, some in every) <= stats.binom.ppf(0.999, 400, 0.012)
    for repetitions in (8, 16):
        plans = [100 + autoregressive(random, 20, repetitions, 0.5) for _ in range(100)]
        alike = [sort_correlation(plan.tolist()) for plan in plans]
        assert sum(rho > 0 or some for rho, some in alike) >= 92, "all or some, at eight"
    assert np.mean([rho for rho, _ in alike]) == pytest.approx(0.5, abs=0.06)
    assert sum(some for _, some in alike) <= 20


def test_mixed_correlation_makes_experiments_use_own_intervals() -> None:
    """Four of twenty: a quiet one may be correlated too, and twelve values cannot show it."""
    random, mixed_plans, noticed, wider = np.random.default_rng(15), 0, 0, []
    for _ in range(100):
        rows = [*autoregressive(random, 3, 48, 0.5), *autoregressive(random, 17, 12, 0.0)]
        rows[-1] = autoregressive(random, 1, 12, 0.5)[0]
        every = [Scatter((100 + row).tolist(), ALLOWED) for row in rows]
        peers, last = pool_scatter(every), every[-1].means
        assert peers is not None
        mixed_plans += peers.correlations_differ
        noticed += is_more_correlated(last, peers.correlation)
        wider.append(
            own_half_width(last, ALLOWED, CLAIM_CONFIDENCE, peers)
            / student_half_width(last, CLAIM_CONFIDENCE)
        )
        assert is_outlier(peers, every[-1]) or not peers.correlations_differ
    assert mixed_plans >= 75
    assert noticed <= 30
    assert np.mean(np.array(wider) > 1.2) >= 0.7


def test_outliers_are_found_and_others_rarely() -> None:
    """Bartlett's test by scipy, one of twenty against the others, at one in twenty of one side."""
    random, odd, by_scipy, detected = np.random.default_rng(13), 0, 0, 0
    for _ in range(150):
        rows = random.normal(100, 4, (20, 8))
        every = [Scatter(row.tolist(), ALLOWED) for row in rows]
        peers = pool_scatter(every)
        odd += is_outlier(replace(peers, variances_differ=False), every[0])
        residuals = (rows[1:] - rows[1:].mean(axis=1, keepdims=True)).ravel()
        # Scipy counts a sample's degrees of freedom itself: one of 133 with the others' variance.
        residuals = np.resize([1.0, -1.0], 134) * np.sqrt((residuals @ residuals) / 133 * 133 / 134)
        statistic, _ = stats.bartlett(rows[0], residuals)
        by_scipy += rows[0].var(ddof=1) > (residuals @ residuals) / 133 and statistic > 1.645**2
        loud = [Scatter((3 * rows[0] - 200).tolist(), ALLOWED), *every[1:]]
        detected += is_outlier(pool_scatter(loud), loud[0])
    assert abs(odd - by_scipy) <= 4, "but for neighbours that happen to be alike"
    assert odd <= stats.binom.ppf(0.999, 150, 0.07)
    assert detected >= 140


@pytest.mark.parametrize(
    ("largest_scatter", "least"),
    [(0.5, 3), (1.0, 6), (1.3, 9), (2.0, MAX_NEEDED), (9.0, MAX_NEEDED)],
)
def test_quiet_experiment_needs_enough_repetitions_to_exclude_rare_state(
    largest_scatter: float, least: int
) -> None:
    """Try all states: count the repetitions that miss a relevant one in 2 % of cases."""
    share = np.linspace(0.01, 0.99, 9801)
    matters = share[largest_scatter * np.sqrt(share / (1 - share)) >= 1]
    missed = np.log(0.02) / np.log(1 - matters.min())
    assert min(int(np.ceil(round(missed, 2))), MAX_NEEDED) == least
    peers = Peers(
        0.01, 1.0, 60, 0.0, pooled=0.4, max_variance=largest_scatter**2, variances_differ=True
    )
    steady, scattered = [100.0, 100.1, 99.9], [100.0, 105.0, 95.0]
    assert least_repetitions(peers, Scatter(steady, ALLOWED)) == least
    assert least_repetitions(peers, Scatter(scattered, ALLOWED)) == 2
    alike = Peers(
        0.01, 1.0, 60, 0.0, pooled=0.4, max_variance=largest_scatter**2, variances_differ=False
    )
    assert least_repetitions(alike, Scatter(steady, ALLOWED)) == 2


def test_three_repetitions_are_not_enough_when_peers_have_rare_states() -> None:
    """A third of repetitions take 1.3 times as long: one in three of three meets none."""

    def runs(means: list[float]) -> list[dict[str, object]]:
        return [{"mean_ns": x, "half_width_ns": 1.0, "converged": True} for x in means]

    random = np.random.default_rng(14)
    flat = [runs(random.normal(100, 0.5, 3).tolist()) for _ in range(16)]
    states = [runs([91.0, 118.0, 91.5]), runs([90.5, 91.0, 118.5])]
    for count, believed in ((3, False), (MAX_NEEDED, True)):
        missed = runs(random.normal(91, 0.5, count).tolist())
        combined = combined_mean(missed, None, peers_among([*flat, *states, missed]))
        assert combined["converged"] is believed
        assert combined_mean(missed, None, peers_among([*flat, missed]))["converged"] is True


def test_agreeing_repetitions_with_scattered_peers_do_not_converge() -> None:
    def runs(means: list[float]) -> list[dict[str, object]]:
        return [{"mean_ns": x, "half_width_ns": 1.0, "converged": True} for x in means]

    alike = runs([100.0, 100.4, 99.9])
    others = [runs([100.0 + x, 100.0 - x, 100.0]) for x in (9.0, 11.0, 8.0, 12.0, 10.0)]
    assert combined_mean(alike, None, peers_among([*others, alike]))["converged"] is False
    steady = [runs([100.0 + x, 100.0 - x, 100.0]) for x in (0.9, 1.1, 0.8, 1.2, 1.0)]
    assert combined_mean(alike, None, peers_among([*steady, alike]))["converged"] is True
