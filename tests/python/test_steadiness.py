"""Are random writes called steady only if they are? Rounds by hand, and of a device."""

import json

import numpy as np
import pytest

import uflip
from uflip.data.summary import RoundSummary
from uflip.device.handle import counter_samples
from uflip.results.steady_state import ROUNDS, rounds_of, steadiness
from uflip.spec import baseline

GIB, SECOND = 1 << 30, 10**9


def make_rounds(
    rates: list[float], amplification: float | None = 2.0, p99: int = 10**6
) -> list[RoundSummary]:
    """Rounds of 100 MB each, with 25,000 I/Os of 4 kB, at such rates."""
    ends = np.cumsum([25_000 / rate * SECOND for rate in rates])
    return [
        {
            "written_bytes": (number + 1) * 100_000_000,
            "ended_ns": int(end),
            "ios_per_s": rate,
            "p99_ns": p99,
            "write_amplification": amplification,
        }
        for number, (rate, end) in enumerate(zip(rates, ends, strict=True))
    ]


def verdict(*repetitions: list[RoundSummary], needed: int = GIB) -> tuple[bool, list[str]]:
    result = steadiness(repetitions, needed)
    assert result is not None
    return result["steady"], result["reasons"]


def test_flat_rates_are_steady_after_enough_writes() -> None:
    flat = make_rounds([1000.0] * ROUNDS)
    assert verdict(flat, flat) == (True, [])
    # 2 GB were written.
    assert verdict(flat, needed=3 * GIB) == (False, ["too_little_written"])


def test_plateau_in_first_half_is_ignored() -> None:
    rates = [100_000.0] * 5 + [1000.0] * (ROUNDS - 5)
    result = steadiness([make_rounds(rates)], GIB)
    assert result is not None
    assert result["steady"]
    assert result["ios_per_s"] == pytest.approx(1000)
    # The first five rounds take 0.25 s each, and the minute after them ends in the third of 25 s.
    ios = 5 * 25_000 + (60 - 1.25) * 1000
    assert result["first_minute_ios_per_s"] == pytest.approx(ios / 60, rel=0.001)


def test_cliff_in_last_half_is_found() -> None:
    late = [1000.0] * 14 + [500.0] * (ROUNDS - 14)
    assert verdict(make_rounds(late)) == (False, ["rate_changes"])


@pytest.mark.parametrize(("fall", "steady"), [(0.03, True), (0.08, False)])
def test_slow_fall_is_found_beyond_chance(fall: float, steady: bool) -> None:
    """SNIA's rule, five rounds within 20 % and a slope of 10 %, would call both steady."""
    random = np.random.default_rng(1)
    half = ROUNDS // 2
    slope = np.concatenate([np.ones(half), 1 - fall * np.linspace(0, 1, half)])
    rates = 1000 * slope * random.normal(1, 0.005, ROUNDS)
    assert verdict(make_rounds([*map(float, rates)]))[0] is steady


def test_scatter_without_trend_is_steady() -> None:
    random = np.random.default_rng(2)
    falsely = sum(
        not verdict(make_rounds([*map(float, random.normal(1000, 20, ROUNDS))]))[0]
        for _ in range(200)
    )
    assert falsely <= 6


def test_amplification_and_tail_must_be_flat() -> None:
    rising = make_rounds([1000.0] * ROUNDS)
    for number, each in enumerate(rising):
        each["write_amplification"] = 2 + 0.05 * number
    assert verdict(rising) == (False, ["write_amplification_changes"])
    for number, each in enumerate(rising):
        each["write_amplification"], each["p99_ns"] = None, 10**6 * (1 + number)
    assert verdict(rising) == (False, ["p99_changes"])


def test_all_repetitions_must_agree() -> None:
    """The first was in the cache all the time, as on sim:enterprise-nvme once."""
    quick, slow = make_rounds([96_525.0] * ROUNDS), make_rounds([3_820.0] * ROUNDS)
    assert verdict(quick, slow, slow) == (False, ["repetitions_differ"])


def test_needed_time_is_estimated_from_last_half() -> None:
    rates = [4000.0] * 10 + [1000.0] * 10
    result = steadiness([make_rounds(rates)], 4_000_000_000)
    assert result is not None
    assert result["needed_bytes"] == 4_000_000_000
    # 2 GB took 10 × 6.25 s and 10 × 25 s; the other 2 GB take 20 × 25 s.
    assert result["needed_ns"] == pytest.approx((62.5 + 250 + 500) * SECOND, rel=0.001)


def test_rounds_match_the_trace() -> None:
    with uflip.open_device("sim:demo?blocks_per_die=64", writable=True) as device:
        trace = device.run(baseline("RW", io_size=4096, io_count=4000), samples=True)
        page = device.info.page_bytes
    samples = counter_samples(trace)
    assert len(samples["written_bytes"]) <= 129
    rounds = rounds_of(trace, samples, page)
    assert len(rounds) == ROUNDS
    times = np.asarray(trace.column("response_time_ns"))
    ends = np.asarray(trace.column("submit_ns")) + times
    each = 4000 // ROUNDS
    for number, entry in enumerate(rounds):
        span = slice(number * each, (number + 1) * each)
        assert entry["written_bytes"] == (number + 1) * each * 4096
        assert entry["ended_ns"] == ends[span][-1]
        assert entry["p99_ns"] == sorted(times[span])[round(0.99 * each) - 1]
        before = ends[number * each - 1] if number else 0
        assert entry["ios_per_s"] == pytest.approx(each / (ends[span][-1] - before) * 1e9)
    # The rounds together programmed the pages that the device counted.
    programmed = json.loads(trace.counters_json() or "")["pages_programmed"]
    amplifications = [entry["write_amplification"] or 0 for entry in rounds]
    assert sum(amplifications) / ROUNDS == pytest.approx(programmed / 4000)
