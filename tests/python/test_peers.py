"""What experiments of a sort say together about how repetitions scatter."""

import numpy as np
import pytest
from scipy import stats

from uflip.results.agreement import CLAIM, claimed, peers_among, together
from uflip.results.peers import FEWEST, Peers, Scatter, peers_of, supported

ALLOWED = 5.0


def drawn(
    random: np.random.Generator, count: int, degrees: float, scatter: float, repetitions: int
) -> list[Scatter]:
    """Experiments of mean 100 whose variances are scaled inverse χ², `scatter` in the middle."""
    scales = scatter * ALLOWED * np.sqrt(degrees / random.chisquare(degrees, count))
    return [Scatter(list(random.normal(100, scale, repetitions)), ALLOWED) for scale in scales]


@pytest.mark.parametrize(("degrees", "low", "high"), [(4.0, 2.0, 8.0), (64.0, 16.0, 256.0)])
@pytest.mark.parametrize("repetitions", [3, 8])
def test_the_distribution_that_scatters_come_from_is_found(
    degrees: float, low: float, high: float, repetitions: int
) -> None:
    found = peers_of(drawn(np.random.default_rng(5), 800, degrees, 0.8, repetitions))
    assert found is not None
    assert low <= found.degrees <= high
    assert found.variance == pytest.approx(0.8**2, rel=0.15)
    assert found.correlation < 0.15
    assert found.together == 800 * (repetitions - 1)


@pytest.mark.parametrize(("correlation", "repetitions"), [(0.0, 3), (0.0, 12), (0.5, 12)])
def test_what_neighbours_have_in_common_is_found_and_made_up_for(
    correlation: float, repetitions: int
) -> None:
    """Its square: the variance of the mean of an AR(1) process, simulated."""
    random = np.random.default_rng(6)
    steps = random.normal(0, 1, (1000, repetitions))
    for place in range(1, repetitions):
        steps[:, place] *= np.sqrt(1 - correlation**2)
        steps[:, place] += correlation * steps[:, place - 1]
    every = [Scatter(list(100 + row), ALLOWED) for row in steps]
    found = peers_of(every)
    assert found is not None
    assert found.correlation == pytest.approx(correlation, abs=0.1)
    width, degrees = supported(found, every[0], CLAIM)
    error = width / stats.t.ppf((1 + CLAIM) / 2, degrees)
    assert error == pytest.approx(steps.mean(axis=1).std(), rel=0.2)


@pytest.mark.parametrize("lent", [0.5, 4.0, 1e6])
def test_an_interval_rests_on_the_scatter_of_both(lent: float) -> None:
    """Student's, by scipy, of the weighted mean of both variances."""
    means = [101.0, 99.0, 103.0]
    peers = Peers(variance=0.25, degrees=lent, together=60, correlation=0.0)
    width, degrees = supported(peers, Scatter(means, ALLOWED), CLAIM)
    both = (lent * 0.25 * ALLOWED**2 + 2 * np.var(means, ddof=1)) / (lent + 2)
    assert degrees == min(lent + 2, 60)
    expected = stats.t.ppf((1 + CLAIM) / 2, degrees) * np.sqrt(both / 3)
    assert width == pytest.approx(expected, rel=2e-3)


def test_few_experiments_are_no_peers_and_a_claim_is_as_it_was() -> None:
    some = drawn(np.random.default_rng(7), FEWEST, 8.0, 0.5, 3)
    assert peers_of(some) is not None
    assert peers_of(some[1:]) is None
    assert peers_of([*some[1:], Scatter([100.0], ALLOWED)]) is None, "one repetition says nothing"
    means = some[0].means
    assert claimed(means, 1.0, ALLOWED, None) > 1.2 * claimed(means, 1.0, ALLOWED, peers_of(some))


@pytest.mark.parametrize("degrees", [2.0, 8.0, 100.0])
def test_claims_are_seldom_false_however_often_one_looks(degrees: float) -> None:
    """As a posterior: looks at 3, 8, 12, 20, 32 repetitions end at the first claim."""
    random, claims, false = np.random.default_rng(8), 0, 0
    for _ in range(25):
        every = drawn(random, 40, degrees, 0.8, 32)
        made = [3] * len(every)
        is_claimed = [False] * len(every)
        for look in (3, 8, 12, 20, 32):
            made = [count if done else look for count, done in zip(made, is_claimed, strict=True)]
            now = [
                Scatter(one.means[:count], ALLOWED) for one, count in zip(every, made, strict=True)
            ]
            peers = peers_of(now)
            assert peers is not None
            is_claimed = [supported(peers, one, CLAIM)[0] <= ALLOWED for one in now]
        claims += sum(is_claimed)
        false += sum(
            abs(np.mean(one.means) - 100) > ALLOWED
            for one, done in zip(now, is_claimed, strict=True)
            if done
        )
    assert claims > 500
    assert false <= stats.binom.ppf(0.999, claims, 0.02)


@pytest.mark.parametrize("lent", [4.0, 1e6])
@pytest.mark.parametrize("theirs", [0.01, 4.0])
def test_of_many_the_wider_of_its_own_interval_and_that_of_its_sort(
    theirs: float, lent: float
) -> None:
    """Both Student's, by scipy; one value far off stretches neither."""
    means = [100.0, 99.0, 101.0, 100.5, 99.5, 100.0, 99.8, 104.0]
    peers = Peers(variance=theirs, degrees=lent, together=60, correlation=0.0)
    runs = [{"mean_ns": x, "half_width_ns": 1.0, "converged": True} for x in means]
    both = (lent * theirs * ALLOWED**2 + 7 * np.var(means, ddof=1)) / (lent + 7)

    def wider(confidence: float) -> float:
        own = stats.t.ppf((1 + confidence) / 2, 7) * stats.sem(means)
        sort = stats.t.ppf((1 + confidence) / 2, min(lent + 7, 60)) * np.sqrt(both / 8)
        assert (own > sort) == (theirs < 1)
        return float(max(own, sort))

    found = together(runs, None, peers)
    allowed = 0.05 * np.mean(means)
    assert found["half_width_ns"] == pytest.approx(wider(0.95), rel=0.02)
    assert claimed(means, 0.0, ALLOWED, peers) == pytest.approx(wider(0.98), rel=2e-3)
    assert found["converged"] is bool(wider(0.98) <= allowed)
    alone = together(runs)["half_width_ns"]
    assert alone > 1.3 * stats.t.ppf(0.975, 7) * stats.sem(means), "skewness, of one alone"


def test_one_that_scatters_more_than_its_peers_is_not_believed_for_their_sake() -> None:
    """Eight that scatter by 8 %: as often as Student's interval of 98 % is narrow, by scipy."""
    random, believed, by_peers = np.random.default_rng(9), 0, 0
    quiet = Peers(variance=0.25, degrees=256.0, together=500, correlation=0.0)
    for _ in range(1000):
        means = random.normal(100, 8, 8).tolist()
        runs = [{"mean_ns": x, "half_width_ns": 1.0, "converged": True} for x in means]
        believed += bool(together(runs, None, quiet)["converged"])
        by_peers += supported(quiet, Scatter(means, ALLOWED), CLAIM)[0] <= ALLOWED
    assert by_peers == 1000
    narrow = 5 * np.sqrt(8) / stats.t.ppf(0.99, 7)
    share = stats.chi2.cdf(7 * (narrow / 8) ** 2, 7)
    assert believed == pytest.approx(1000 * share, rel=0.25)


def test_three_that_agree_where_others_do_not_are_not_believed() -> None:
    def runs(means: list[float]) -> list[dict[str, object]]:
        return [{"mean_ns": x, "half_width_ns": 1.0, "converged": True} for x in means]

    alike = runs([100.0, 100.4, 99.9])
    others = [runs([100.0 + x, 100.0 - x, 100.0]) for x in (9.0, 11.0, 8.0, 12.0, 10.0)]
    assert together(alike, None, peers_among([*others, alike]))["converged"] is False
    quiet = [runs([100.0 + x, 100.0 - x, 100.0]) for x in (0.9, 1.1, 0.8, 1.2, 1.0)]
    assert together(alike, None, peers_among([*quiet, alike]))["converged"] is True
