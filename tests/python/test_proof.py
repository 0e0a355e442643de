"""The method on generated series with known truth: a part of `benches/method_proof.py`.

The whole is `python benches/method_proof.py`, and its tables are in docs/reference/method-proof.md.
"""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import special, stats

import generated_series as make
from repeated_runs import CASES as REPEATED
from repeated_runs import (
    FIRST,
    MANY_REPETITIONS,
    MIXED,
    ODD_FAMILIES,
    PEER_EXPERIMENTS,
    interval_of_share,
    measure_odd,
    measure_repeated,
)
from stop_rules import (
    DETECTION,
    ECONOMY_CASES,
    LENGTH,
    MEMORY,
    MOVING,
    UNDETECTABLE,
    TrialCase,
    detect,
    economy,
    measure,
)
from uflip.analysis import analyse

REPEATS = 30
ROOT = Path(__file__).resolve().parents[2]
PROGRAM = str(ROOT / "benches/method_proof.py")
PAGE = ROOT / "docs/reference/method-proof.md"
TABLES = {
    "detection": {case.name for case in DETECTION},
    "lengths": {case.name for case in LENGTH},
    "memory --repeats 200": {case.name for case in MEMORY},
    "moving --repeats 50": {name for name, _ in MOVING},
    "unseen": {case.name for case in UNDETECTABLE},
    "economy": {name for name, *_ in ECONOMY_CASES},
    "repetitions --repeats 1000": {case.name for case in REPEATED} | {MIXED},
    "odd --repeats 2000": {f"{few}, among {others}" for few, others in ODD_FAMILIES},
    "alone --repeats 400": {case.name for case in REPEATED if case.hides},
    "ten --repeats 400": {case.name for case in REPEATED if case.hides},
}


def named(*names: str) -> list[TrialCase]:
    cases = {case.name: case for case in LENGTH}
    return [cases[name] for name in names]


def lowest(share: float, repeats: int = REPEATS) -> float:
    """Return the bound that a method with this success rate misses once in a thousand times."""
    return float(stats.binom.ppf(0.001, repeats, share)) / repeats


@pytest.mark.parametrize("case", DETECTION, ids=lambda case: case.name)
def test_startup_and_period_are_found_or_abstained(case: TrialCase) -> None:
    row = detect(case, REPEATS)
    assert row.claimed_wrongly <= 1 - lowest(0.98)
    if row.startup_found is not None:
        assert row.startup_found >= lowest(0.95)
    if row.period is not None:
        assert row.period >= lowest(0.95)


QUICK = named(
    "flat, scatter 30 %",
    "two levels at random, 30 %",
    "mtron: 125, then period 3",
    "kdti: period 128",
    "period 512, 3 levels",
    "fast: 8,192, then period 64",
    "500, then two levels",
    "slope of 1,000",
    "AR(1), 0.9",
)


@pytest.mark.parametrize("case", QUICK, ids=lambda case: case.name)
def test_intervals_cover_true_mean_at_stop(case: TrialCase) -> None:
    (row,) = measure(case, REPEATS, ("uflip",))
    assert row.stopped >= lowest(0.99)
    assert row.covered is not None
    assert row.covered >= lowest(0.93)
    assert row.half_width is not None
    assert row.half_width <= 0.051


def test_exponential_approach_is_covered_or_abstained() -> None:
    (row,) = measure(*named("exponential approach"), 2 * REPEATS, ("uflip",))
    assert row.stopped >= lowest(0.9, 2 * REPEATS)
    assert row.covered is not None
    assert row.covered >= lowest(0.93, int(2 * REPEATS * row.stopped))


@pytest.mark.parametrize("change", [0.08, 0.1, 0.12, 0.15])
def test_slow_drift_is_no_startup(change: float) -> None:
    """For steps as small as these the start-up is found: a step is not a drift."""
    random = np.random.default_rng(6)
    drifting = [analyse(make.drifting(change)(random, 8192).times) for _ in range(30)]
    assert sum(each.startup_ios > 0 for each in drifting) <= 2
    step = make.after_startup(2048, make.flat(0.1), cheap=1e5 * (1 - change))
    startups = [analyse(step(random, 8192).times).startup_ios for _ in range(30)]
    assert sum(abs(ios - 2048) < 200 for ios in startups) >= 28


@pytest.mark.parametrize(
    ("family", "phases"),
    [
        (make.drifting(0.05), {"drifting"}),
        (make.drifting(0.1), {"drifting"}),
        (make.widening(0.05, 1.2), {"flat", "oscillating"}),
        (make.shifted(1.5), {"never-steady"}),
        (make.shifted(3.0), {"never-steady"}),
        (make.wave(0.4, 3), {"never-steady"}),
        (make.flat(0.3), {"flat"}),
    ],
)
@pytest.mark.parametrize("ios", [20_480, 40_960])
def test_moving_level_has_no_period(family: make.Family, phases: set[str], ios: int) -> None:
    """A faulty rule gives drifts by 5 and 10 % a period, and calls shifts flat."""
    analyses = [analyse(family(np.random.default_rng(seed), ios).times) for seed in range(12)]
    assert sum(each.period_ios > 1 for each in analyses) <= 1
    assert sum(each.phase in phases for each in analyses) >= 11
    assert not [each for each in analyses if each.phase == "flat" and each.change_points]
    assert not [
        each for each in analyses if each.phase == "never-steady" and not each.change_points
    ]


def test_chance_correlation_does_not_prevent_convergence() -> None:
    """Of 32 independent batches one series in twenty shows more correlation than 0.3."""
    random = np.random.default_rng(7)
    analyses = [analyse(make.flat(0.3)(random, 3000).times) for _ in range(200)]
    assert not [each for each in analyses if "batches_correlated" in each.reasons]


def test_long_memory_autocorrelation_matches_hosking() -> None:
    """Compare with gamma functions, over many series of mean one."""
    d, n = 0.3, 2048
    every = [make.long_memory(d)(np.random.default_rng(seed), n) for seed in range(400)]
    logs = np.log([each.times / each.mean for each in every]) + 0.3**2 / 2
    measured = [(logs[:, k:] * logs[:, : n - k]).mean() / (logs**2).mean() for k in (1, 10, 100)]
    ratio = special.gamma(1 - d) / special.gamma(d)
    expected = [ratio * special.poch(k + 1 - d, 2 * d - 1) for k in (1, 10, 100)]
    assert measured == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize("name", ["drift, 11 times", "bursts of 2,000 and 400"])
def test_series_without_mean_does_not_converge(name: str) -> None:
    (row,) = measure(*named(name), REPEATS, ("uflip",))
    assert row.stopped <= 0.05


def test_independence_rule_undercovers_correlated_series() -> None:
    (case,) = named("AR(1), 0.9")
    ours, textbook = measure(case, REPEATS, ("uflip", "independent I/Os"))
    assert ours.covered is not None
    assert textbook.covered is not None
    assert ours.covered > 0.8
    assert textbook.covered < 0.6


def test_periodic_series_need_at_most_half_more_ios() -> None:
    rows = economy(10)
    assert len(rows) == len(ECONOMY_CASES)
    # For ten series; the page has a hundred.
    assert max(row.ratio for row in rows) <= 1.65
    assert np.median([row.ratio for row in rows]) <= 1.5


@pytest.mark.parametrize("name", TABLES)
def test_proof_page_has_row_for_each_family(name: str) -> None:
    """Its numbers are of more series than a test can try; `tools/doc_tables.py` renews them."""
    mark = re.escape(f"<!-- python benches/method_proof.py --only {name} -->")
    match = re.search(rf"{mark}\n(.*?)\n<!-- end -->", PAGE.read_text(encoding="utf-8"), re.S)
    assert match is not None
    rows = [line.split("|") for line in match[1].splitlines() if line.startswith("|")]
    assert {row[1].strip() for row in rows[2:]} - {""} == TABLES[name]


def test_command_prints_row_for_each_family() -> None:
    command = (PROGRAM, "--only", "detection", "--repeats", "2", "--workers", "2")
    process = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=True)
    for case in DETECTION:
        assert f"| {case.name} |" in process.stdout


BATCHES = 10


def test_families_have_declared_startup_and_mean() -> None:
    random = np.random.default_rng(1)
    for cases in (DETECTION, LENGTH):
        for case in cases:
            if not case.converges or "drift" in case.name or "exponential" in case.name:
                continue
            series = case.family(random, max(case.ios, 20_000))
            first = 0 if series.startup is None else series.startup[1]
            running = series.times[first:]
            # The means of long batches hardly depend on each other, however the series does.
            batches = running[: len(running) // BATCHES * BATCHES].reshape(BATCHES, -1).mean(axis=1)
            error = batches.std(ddof=1) / np.sqrt(BATCHES)
            assert abs(running.mean() - series.mean) <= 4 * error + 1e-3 * series.mean, case.name
    assert make.mtron(random, 500).startup == (125, 127)


def test_share_interval_is_wilson_with_effective_plans() -> None:
    """Compare with scipy; if all experiments of a plan are alike, count plans."""
    happened = np.zeros(2000)
    happened[:37] = 1
    expected = stats.binomtest(37, 2000).proportion_ci(method="wilson")
    interval = interval_of_share(np.random.default_rng(1).permutation(happened).reshape(-1, 1))
    assert interval == pytest.approx((expected.low, expected.high), abs=2e-5)
    plans = np.repeat(np.arange(100)[:, None] < 5, PEER_EXPERIMENTS, axis=1).astype(float)
    plan_interval = stats.binomtest(5, 100).proportion_ci(method="wilson")
    assert interval_of_share(plans) == pytest.approx(
        (plan_interval.low, plan_interval.high), rel=0.02
    )
    assert interval_of_share(np.zeros((50, 1)))[1] == pytest.approx(0.0713, abs=1e-4)


@pytest.mark.parametrize(("few", "others"), ODD_FAMILIES)
def test_odd_experiments_are_rarely_claimed_falsely(few: str, others: str) -> None:
    """Two in a hundred."""
    row = measure_odd(few, others, 400)
    assert row.between[0] <= 0.02
    assert row.converged > 0.7


@pytest.mark.parametrize("name", ["levels ± 5 %", "levels ± 10 %, neighbours alike, 0.5"])
def test_alike_experiments_are_rarely_claimed_falsely(name: str) -> None:
    case = next(case for case in REPEATED if case.name == name)
    row = measure_repeated(case, 400, FIRST)
    assert row.between[0] <= 0.02
    assert row.converged > 0.85


@pytest.mark.parametrize("first", [FIRST, MANY_REPETITIONS])
def test_lone_correlated_experiment_is_rarely_claimed_falsely(first: int) -> None:
    """Student's interval makes seven false claims in a hundred."""
    case = next(case for case in REPEATED if case.name == "levels ± 10 %, neighbours alike, 0.5")
    row = measure_repeated(case, 400, first, 1)
    assert row.between[0] <= 0.02
    assert row.converged > 0.7
