"""Statistics against scipy, hand-computed numbers, and slow definitions."""

import math
import statistics
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from uflip.stats import PERCENTILES, drift, running_mean, summarise

times = st.lists(st.integers(0, 10**12), min_size=1, max_size=300)


def nearest_rank(values: list[int], q: Fraction) -> int:
    """The definition, by counting: the smallest value that a share q does not exceed."""
    n = len(values)
    return next(x for x in sorted(values) if sum(y <= x for y in values) >= q * n)


@given(times)
def test_summary_agrees_with_exact_arithmetic(values: list[int]) -> None:
    summary = summarise(np.array(values, dtype=np.uint64))
    assert (summary["count"], summary["min_ns"], summary["max_ns"]) == (
        len(values),
        min(values),
        max(values),
    )
    assert summary["mean_ns"] == pytest.approx(math.fsum(values) / len(values))
    if len(values) > 1:
        assert summary["std_ns"] == pytest.approx(statistics.stdev(values), rel=1e-9, abs=1e-3)


def test_summary_agrees_with_scipy() -> None:
    values = np.random.default_rng(1).lognormal(13, 1, 5000).astype(np.uint64)
    described = scipy_stats.describe(values.astype(np.float64))
    summary = summarise(values)
    assert (summary["count"], (summary["min_ns"], summary["max_ns"])) == (
        described.nobs,
        described.minmax,
    )
    assert summary["mean_ns"] == pytest.approx(described.mean)
    assert summary["std_ns"] == pytest.approx(math.sqrt(described.variance))
    ranks = np.ceil(5000 * np.array([0.05, 0.5, 0.9, 0.95, 0.99])).astype(int)
    # With plotting positions (k − ½) / n a quantile at one of them is exactly the k-th value.
    nth = scipy_stats.mstats.mquantiles(values, (ranks - 0.5) / 5000, 0.5, 0.5).round().tolist()
    assert [
        summary["p5_ns"],
        summary["p50_ns"],
        summary["p90_ns"],
        summary["p95_ns"],
        summary["p99_ns"],
    ] == nth


@settings(max_examples=50)
@given(st.lists(st.integers(0, 50), min_size=20, max_size=400))
def test_percentiles_are_nearest_ranks(values: list[int]) -> None:
    summary = summarise(values)
    for name, q in PERCENTILES.items():
        percentile = summary[name]
        if percentile is not None:
            assert percentile == nearest_rank(values, Fraction(str(q)))


def test_summary_of_hand_worked_numbers() -> None:
    summary = summarise(range(1, 1001))  # 1, 2, …, 1000: the k-th smallest is k
    assert summary["mean_ns"] == 500.5
    assert summary["std_ns"] == pytest.approx(math.sqrt(1000 * 1001 / 12))  # n(n+1)/12
    assert (summary["p5_ns"], summary["p50_ns"], summary["p90_ns"]) == (50, 500, 900)
    assert (summary["p95_ns"], summary["p99_ns"], summary["p99_9_ns"]) == (950, 990, None)


def test_percentile_between_two_modes_is_one_of_them() -> None:
    summary = summarise([100] * 500 + [30_000] * 500)
    assert summary["p50_ns"] == 100
    assert summary["mean_ns"] == 15_050  # which no I/O ever took


@pytest.mark.parametrize(
    ("name", "count"),
    [("p50_ns", 20), ("p90_ns", 100), ("p5_ns", 200), ("p95_ns", 200), ("p99_ns", 1000),
     ("p99_9_ns", 10_000)],
)  # fmt: skip
def test_percentiles_are_stated_only_with_ten_values_beyond(name: str, count: int) -> None:
    assert summarise(np.arange(count - 1))[name] is None
    assert summarise(np.arange(count))[name] is not None


def test_times_beyond_double_precision_and_32_bits() -> None:
    huge = 2**63 + 12_345
    summary = summarise(np.array([huge] * 25, dtype=np.uint64))
    assert (summary["min_ns"], summary["max_ns"], summary["p50_ns"]) == (huge, huge, huge)
    assert summary["mean_ns"] == pytest.approx(huge)
    assert summary["std_ns"] == 0


def test_single_io_has_no_spread() -> None:
    summary = summarise([7])
    assert (summary["mean_ns"], summary["std_ns"], summary["p50_ns"]) == (7, None, None)


@pytest.mark.parametrize("values", [[], [[1, 2], [3, 4]]])
def test_empty_or_two_dimensional_input_is_an_error(values: list[object]) -> None:
    with pytest.raises(ValueError, match="one-dimensional and not empty"):
        summarise(values)


def test_input_is_not_modified() -> None:
    values = np.array([3, 1, 2], dtype=np.uint64)
    values.flags.writeable = False
    summarise(values)
    assert values.tolist() == [3, 1, 2]


@given(times)
def test_running_mean_is_the_mean_of_every_prefix(values: list[int]) -> None:
    expected = [math.fsum(values[:n]) / n for n in range(1, len(values) + 1)]
    assert running_mean(values) == pytest.approx(expected)


def test_running_mean_of_nothing_is_empty() -> None:
    assert len(running_mean([])) == 0


def test_step_is_a_drift() -> None:
    result = drift([100] * 400 + [200] * 400)
    assert result is not None
    assert (result.first_half_ns, result.second_half_ns, result.change) == (100, 200, 1)
    assert result.z == math.inf


def test_period_is_no_drift() -> None:
    result = drift(([400] * 12 + [27_000] * 4) * 64)
    assert result is not None
    assert result.change == 0


def test_noise_is_rarely_a_drift() -> None:
    rng = np.random.default_rng(5)
    alarms = 0
    for _ in range(300):
        result = drift(rng.lognormal(0, 1, 1024))
        assert result is not None
        alarms += abs(result.z) > 3 and abs(result.change) > 0.2
    assert alarms <= 6  # 2 %: beyond chance at three standard errors of twenty batches


def test_drift_error_matches_welch() -> None:
    values = np.random.default_rng(3).gamma(2, 100, 20 * 32)
    batches = values.reshape(20, 32).mean(axis=1)
    expected = scipy_stats.ttest_ind(batches[10:], batches[:10], equal_var=False)
    result = drift(values)
    assert result is not None
    assert result.z == pytest.approx(expected.statistic)


def test_short_runs_have_no_drift() -> None:
    assert drift([1] * 319) is None
    assert drift([1] * 320) is not None
