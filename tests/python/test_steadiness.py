"""Are random writes called steady only if they are? Rounds by hand, and of a device."""

import json

import numpy as np
import pytest

import uflip
from uflip.data.summary import RoundSummary
from uflip.device.counter_samples import counter_samples
from uflip.results.steady_state import ROUNDS, rounds_of, steadiness
from uflip.spec import baseline

GIB, SECOND = 1 << 30, 10**9


def made(
    rates: list[float], amplification: float | None = 2.0, p99: int = 10**6
) -> list[RoundSummary]:
    """Rounds of 100 MB each, with 25,000 I/Os of 4 kB, at such rates."""
    ended = np.cumsum([25_000 / rate * SECOND for rate in rates])
    return [
        {
            "written_bytes": (number + 1) * 100_000_000,
            "ended_ns": int(end),
            "ios_per_s": rate,
            "p99_ns": p99,
            "write_amplification": amplification,
        }
        for number, (rate, end) in enumerate(zip(rates, ended, strict=True))
    ]


def verdict(*repetitions: list[RoundSummary], needed: int = GIB) -> tuple[bool, list[str]]:
    found = steadiness(repetitions, needed)
    assert found is not None
    return found["steady"], found["reasons"]


def test_what_is_flat_is_steady_once_enough_was_written() -> None:
    flat = made([1000.0] * ROUNDS)
    assert verdict(flat, flat) == (True, [])
    # 2 GB were written.
    assert verdict(flat, needed=3 * GIB) == (False, ["too_little_written"])


def test_a_plateau_in_the_first_half_does_not_count() -> None:
    rates = [100_000.0] * 5 + [1000.0] * (ROUNDS - 5)
    found = steadiness([made(rates)], GIB)
    assert found is not None
    assert found["steady"]
    assert found["ios_per_s"] == pytest.approx(1000)
    # The first five rounds take 0.25 s each, and the minute after them ends in the third of 25 s.
    ios = 5 * 25_000 + (60 - 1.25) * 1000
    assert found["first_minute_ios_per_s"] == pytest.approx(ios / 60, rel=0.001)


def test_a_cliff_within_the_last_half_is_seen() -> None:
    late = [1000.0] * 14 + [500.0] * (ROUNDS - 14)
    assert verdict(made(late)) == (False, ["rate_changes"])


@pytest.mark.parametrize(("fall", "steady"), [(0.03, True), (0.08, False)])
def test_a_slow_fall_is_seen_beyond_chance(fall: float, steady: bool) -> None:
    """SNIA's rule, five rounds within 20 % and a slope of 10 %, would call both steady."""
    random = np.random.default_rng(1)
    half = ROUNDS // 2
    slope = np.concatenate([np.ones(half), 1 - fall * np.linspace(0, 1, half)])
    rates = 1000 * slope * random.normal(1, 0.005, ROUNDS)
    assert verdict(made([*map(float, rates)]))[0] is steady


def test_scatter_without_a_trend_is_no_change() -> None:
    random = np.random.default_rng(2)
    falsely = sum(
        not verdict(made([*map(float, random.normal(1000, 20, ROUNDS))]))[0] for _ in range(200)
    )
    assert falsely <= 6


def test_amplification_and_tail_must_be_flat_too() -> None:
    rising = made([1000.0] * ROUNDS)
    for number, each in enumerate(rising):
        each["write_amplification"] = 2 + 0.05 * number
    assert verdict(rising) == (False, ["write_amplification_changes"])
    for number, each in enumerate(rising):
        each["write_amplification"], each["p99_ns"] = None, 10**6 * (1 + number)
    assert verdict(rising) == (False, ["p99_changes"])


def test_all_repetitions_must_agree() -> None:
    """The first was in the cache all the time, as on sim:enterprise-nvme once."""
    quick, slow = made([96_525.0] * ROUNDS), made([3_820.0] * ROUNDS)
    assert verdict(quick, slow, slow) == (False, ["repetitions_differ"])


def test_what_a_verdict_takes_is_estimated_from_the_last_half() -> None:
    rates = [4000.0] * 10 + [1000.0] * 10
    found = steadiness([made(rates)], 4_000_000_000)
    assert found is not None
    assert found["needed_bytes"] == 4_000_000_000
    # 2 GB took 10 × 6.25 s and 10 × 25 s; the other 2 GB take 20 × 25 s.
    assert found["needed_ns"] == pytest.approx((62.5 + 250 + 500) * SECOND, rel=0.001)


def test_rounds_are_those_of_the_trace() -> None:
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
    for number, found in enumerate(rounds):
        own = slice(number * each, (number + 1) * each)
        assert found["written_bytes"] == (number + 1) * each * 4096
        assert found["ended_ns"] == ends[own][-1]
        assert found["p99_ns"] == sorted(times[own])[round(0.99 * each) - 1]
        before = ends[number * each - 1] if number else 0
        assert found["ios_per_s"] == pytest.approx(each / (ends[own][-1] - before) * 1e9)
    # What all rounds programmed is what the device counted.
    programmed = json.loads(trace.counters_json() or "")["pages_programmed"]
    amplifications = [found["write_amplification"] or 0 for found in rounds]
    assert sum(amplifications) / ROUNDS == pytest.approx(programmed / 4000)
