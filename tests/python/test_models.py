"""Small models: channel rates, read retries and numerical tools, against sums by hand and SciPy."""

import math
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from uflip.errors import UsageError
from uflip.models import _solve, channel
from uflip.models.reliability import mean_retries, uncorrectable, wear_law

SLC = {"interface_bytes_per_s": 166e6, "page_bytes": 4320}
READ_NS, PROGRAM_NS = 25_000, 200_000


def schedule_rate(*, dies: int, cell_ns: float, read: bool, pages: int = 4000) -> float:
    """Serve pages one by one, die after die, each bus transfer after the one before [bytes/s]."""
    transfer_ns = SLC["page_bytes"] / SLC["interface_bytes_per_s"] * 1e9
    bus_ns = 0.0
    die_ns = [0.0] * dies
    for page in range(pages):
        die = page % dies
        if read:  # cells first, then the transfer; the die's register is busy until it is out
            bus_ns = max(bus_ns, die_ns[die] + cell_ns) + transfer_ns
            die_ns[die] = bus_ns
        else:  # transfer first, then the cells
            bus_ns = max(bus_ns, die_ns[die]) + transfer_ns
            die_ns[die] = bus_ns + cell_ns
    return pages * SLC["page_bytes"] / max(bus_ns, *die_ns) * 1e9


@pytest.mark.parametrize("dies", [1, 2, 3, 8, 9, 12])
@pytest.mark.parametrize(("cell_ns", "read"), [(READ_NS, True), (PROGRAM_NS, False)])
def test_pipelined_rate_matches_schedule(dies: int, cell_ns: float, read: bool) -> None:
    bound = channel.pipelined_channel_rate(**SLC, cell_ns=cell_ns, dies=dies)
    assert schedule_rate(dies=dies, cell_ns=cell_ns, read=read) == pytest.approx(bound, rel=3e-3)


def test_rates_match_hand_computed_ofc_values() -> None:
    # 4320 B at 166 MB/s take 26.024 us on the bus.
    read = 4320 / (26.0241e-6 + 25e-6)
    write = 4320 / (26.0241e-6 + 200e-6)
    assert channel.channel_rate(**SLC, cell_ns=READ_NS) == pytest.approx(read, rel=1e-5)
    assert channel.channel_rate(**SLC, cell_ns=PROGRAM_NS) == pytest.approx(write, rel=1e-5)


def test_rate_at_zero_cell_time_and_many_dies() -> None:
    assert channel.channel_rate(**SLC, cell_ns=0) == pytest.approx(166e6)
    one = channel.channel_rate(**SLC, cell_ns=PROGRAM_NS)
    assert channel.pipelined_channel_rate(**SLC, cell_ns=PROGRAM_NS, dies=1) == one
    many = channel.pipelined_channel_rate(**SLC, cell_ns=PROGRAM_NS, dies=1000)
    assert many == pytest.approx(166e6)


@pytest.mark.parametrize("cell_ns", [0, READ_NS, PROGRAM_NS, 1_300_000])
def test_dies_to_fill_is_minimal_at_bus_rate(cell_ns: float) -> None:
    dies = channel.dies_to_fill(**SLC, cell_ns=cell_ns)
    full = channel.pipelined_channel_rate(**SLC, cell_ns=cell_ns, dies=dies)
    assert full == pytest.approx(166e6)
    if dies > 1:
        fewer = channel.pipelined_channel_rate(**SLC, cell_ns=cell_ns, dies=dies - 1)
        assert fewer < 166e6


def test_internal_buses_limit_only_ofc_reads() -> None:
    for cell_ns, expected in ((READ_NS, 200e6), (PROGRAM_NS, 4 * 2 * 19.1130e6)):
        one = channel.pipelined_channel_rate(**SLC, cell_ns=cell_ns, dies=2)
        rate = channel.device_rate(
            channel_bytes_per_s=one, channels=4, bus_bytes_per_s=100e6, buses=2
        )
        assert rate == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    "wrong",
    [
        {"page_bytes": 0},
        {"interface_bytes_per_s": -1.0},
        {"interface_bytes_per_s": float("inf")},
        {"cell_ns": float("nan")},
        {"cell_ns": -1},
        {"dies": 0},
        {"dies": 1.5},
    ],
)
def test_values_out_of_range_are_usage_errors(wrong: dict[str, Any]) -> None:
    good: dict[str, Any] = {**SLC, "cell_ns": READ_NS, "dies": 2}
    with pytest.raises(UsageError) as caught:
        channel.pipelined_channel_rate(**(good | wrong))
    assert all(caught.value.parts().values())
    assert caught.value.where == next(iter(wrong))


# The number of read retries against scipy's binomial law and sums by hand.


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


# The numerical tools of the models against SciPy.


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
