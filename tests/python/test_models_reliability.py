"""The number of read retries against scipy's binomial law and sums by hand."""

from functools import partial

import pytest
from scipy import stats

from uflip.models.reliability import mean_retries, uncorrectable, wear_law


@pytest.mark.parametrize("rber", [1e-5, 5e-4, 1.5e-3, 1e-2])
@pytest.mark.parametrize(("codeword", "correctable", "bits"), [(512, 12, 4252), (1024, 40, 8752)])
def test_page_failure_follows_binomial_law(
    rber: float, codeword: int, correctable: int, bits: int
) -> None:
    one = stats.binom.sf(correctable, bits, rber)
    ours = uncorrectable(rber, page_bytes=4096, codeword_bytes=codeword, correctable=correctable)
    assert ours == pytest.approx(1 - (1 - one) ** (4096 // codeword), rel=1e-6, abs=1e-9)


def test_page_failure_without_errors_and_with_many() -> None:
    failing = partial(uncorrectable, page_bytes=4096, codeword_bytes=512, correctable=12)
    assert failing(0.0) == 0
    assert failing(0.3) == pytest.approx(1)


def test_retries_stop_when_correctable_or_exhausted() -> None:
    # Above one in a thousand it fails for certain: of 8e-3 three reads do, of 1e-2 a fourth.
    failing = lambda rate: float(rate > 1e-3)  # noqa: E731
    assert mean_retries(8e-3, max_retries=9, gain=0.5, failing=failing) == 3
    assert mean_retries(1e-2, max_retries=9, gain=0.5, failing=failing) == 4
    assert mean_retries(1e-2, max_retries=2, gain=0.5, failing=failing) == 2
    assert mean_retries(1e-4, max_retries=9, gain=0.5, failing=failing) == 0


def test_rber_follows_power_law_of_wear() -> None:
    rber = wear_law(1e-6, 1e-3, 0.5)
    assert rber(0) == 1e-6
    assert rber(1) == pytest.approx(1e-3)
    assert rber(4) == pytest.approx(1e-6 + 2 * (1e-3 - 1e-6))
