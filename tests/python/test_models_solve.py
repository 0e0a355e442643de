"""The numerical tools of the models against SciPy."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from uflip.errors import UsageError
from uflip.models import _solve


@given(st.floats(1e-6, 1e9))
def test_digamma_matches_scipy(x: float) -> None:
    assert _solve.digamma(x) == pytest.approx(special.digamma(x), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("n", [0, 1, 2, 7, 11, 12, 13, 64, 1024])
def test_harmonic_at_whole_numbers_is_the_sum(n: int) -> None:
    direct = math.fsum(1 / k for k in range(1, n + 1))
    assert _solve.harmonic(n) == pytest.approx(direct, abs=1e-13)


@given(st.floats(1.0001, 500), st.floats(0, 1))
def test_invalid_share_is_the_lambert_w_root(turnover: float, share_of_limit: float) -> None:
    # 1 - y = exp(h - t y) has y = 1 + W0(-t exp(h - t))/t; roots exist up to h = t - 1 - ln t.
    head_start = 0.999 * share_of_limit * (turnover - 1 - math.log(turnover))
    share = _solve.invalid_share(turnover=turnover, head_start=head_start)
    argument = -turnover * math.exp(head_start - turnover)
    oracle = 1 + special.lambertw(argument).real / turnover
    assert share == pytest.approx(oracle, rel=1e-6, abs=1e-9)
    residual = share + math.expm1(head_start - turnover * share)
    assert abs(residual) < 1e-15


@pytest.mark.parametrize(("turnover", "head_start"), [(1.0, 0.0), (0.5, 0.0), (2.0, 0.31)])
def test_invalid_share_without_steady_state_is_an_error(turnover: float, head_start: float) -> None:
    with pytest.raises(UsageError, match="no steady state") as caught:
        _solve.invalid_share(turnover=turnover, head_start=head_start)
    assert all(caught.value.parts().values())


def test_bisect_converges_to_last_bit() -> None:
    assert _solve.bisect(lambda x: 2 - x * x, 0.0, 2.0) == pytest.approx(math.sqrt(2), rel=1e-15)


def test_bisect_without_root_returns_nearer_end() -> None:
    assert _solve.bisect(lambda _: 1.0, 0.0, 2.0) == pytest.approx(2.0)
    assert _solve.bisect(lambda _: -1.0, 1.0, 2.0) == pytest.approx(1.0)
