"""Combined statistics of an experiment's repetitions, and the agreement of whole benchmarks."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import uflip
from scipy import stats

import generated_series as families
from uflip.analysis import analyse
from uflip.benchmark import Choices, make_plan
from uflip.benchmark.rounds import CONFIDENCE, repetitions_for
from uflip.benchmark.target_spaces import draw_target
from uflip.device.opener import open_device
from uflip.results import Results, summary
from uflip.results.statistics import AGREEMENT, combined_mean, disagreement, run_convergence
from uflip.results.statistics.experiment import (
    CLAIM_CONFIDENCE,
    claim_half_width,
    peers_among,
    repetition_certainty,
)
from uflip.results.statistics.scatter import averaged_half_width
from uflip.spec import baseline, mix

CAPACITY = 1 << 32


def repetitions(means: list[float], half_width: float = 1.0) -> list[dict[str, Any]]:
    return [{"mean_ns": x, "half_width_ns": half_width, "converged": True} for x in means]


def test_scattered_repetitions_use_students_interval() -> None:
    means = [103.0, 99.0, 101.0, 98.5]
    combined = combined_mean(repetitions(means))
    low, _ = stats.t.interval(0.95, 3, loc=np.mean(means), scale=stats.sem(means))
    assert combined["mean_ns"] == pytest.approx(np.mean(means))
    assert combined["half_width_ns"] == pytest.approx(np.mean(means) - low, rel=2e-3)


def test_claim_uses_a_wider_interval_than_shown() -> None:
    """Many repetitions without peers: correlation of neighbours gives a little over Student's."""
    steps = np.tile([1.0, 2.0, -2.0, -1.0], 10)
    margin = averaged_half_width((100 + steps).tolist(), CLAIM_CONFIDENCE)
    assert 1 < margin / (stats.t.ppf(0.99, 39) * stats.sem(100 + steps)) < 1.2
    for scale, converged in ((4.9 / margin, True), (5.1 / margin, False)):
        means = [float(mean) for mean in 100 + steps * scale]
        combined = combined_mean(repetitions(means))
        assert combined["half_width_ns"] < 4.9
        assert combined["converged"] is converged
        assert claim_half_width(means, 4.0, 5.0) == pytest.approx(margin * scale, rel=2e-3)


def test_rounds_use_the_confidence_of_a_claim() -> None:
    assert CONFIDENCE == CLAIM_CONFIDENCE


def test_chance_agreement_of_three_seldom_converges() -> None:
    """Levels scatter by 8 %: one false claim in 100, where Student's 95 % gives one in 20."""
    random = np.random.default_rng(3)
    every = [random.normal(100, 8, 3).tolist() for _ in range(2000)]
    narrow = sum(combined_mean(repetitions(means))["half_width_ns"] <= 5 for means in every)
    believed = sum(combined_mean(repetitions(means))["converged"] for means in every)
    assert narrow >= stats.binom.ppf(0.001, 2000, 0.05)
    assert believed <= stats.binom.ppf(0.999, 2000, 0.012)


def test_interval_is_at_least_that_of_the_runs() -> None:
    combined = combined_mean(repetitions([100.0, 100.0, 100.0], half_width=4.5))
    assert combined["half_width_ns"] == pytest.approx(4.5 / np.sqrt(3), abs=1e-3)


@pytest.mark.parametrize(
    ("means", "half_width", "converged"),
    [
        ([100.0, 101.0, 102.0], 2.0, True),
        ([100.0, 105.0, 95.0], 2.0, False),
        ([100.0, 101.0, 102.0], 20.0, False),
        ([100.0], 4.0, True),
    ],
)
def test_experiment_converges_if_repetitions_agree(
    means: list[float], half_width: float, converged: bool
) -> None:
    assert combined_mean(repetitions(means, half_width))["converged"] is converged


@pytest.mark.parametrize(
    ("startups", "certain"), [((0, 0, 0), True), ((40, 60, 50), True), ((0, 400, 0), False)]
)
def test_startup_of_some_repetitions_is_uncertain(startups: tuple[int, ...], certain: bool) -> None:
    every = [
        run | {"startup_ios": ios}
        for run, ios in zip(repetitions([100.0, 100.1, 99.9]), startups, strict=True)
    ]
    certainty = repetition_certainty(every, None)
    assert certainty["converged"]
    assert certainty["certainly_converged"] is certain


def test_one_unconverged_repetition_prevents_convergence() -> None:
    every = repetitions([100.0, 101.0, 102.0])
    every[1]["converged"] = False
    assert combined_mean(every)["converged"] is False
    every[1] |= {"converged": None, "half_width_ns": None}
    assert combined_mean(every) == {"mean_ns": 101.0, "half_width_ns": None, "converged": None}
    assert combined_mean(
        [{"mean_ns": None, "half_width_ns": None, "converged": None}]
    ) == dict.fromkeys(("mean_ns", "half_width_ns", "converged"))


def test_wide_run_is_compensated_by_other_repetitions() -> None:
    wide = [each | {"converged": False, "reasons": ["interval_too_wide"]}
            for each in repetitions([100.0, 100.5, 99.5], half_width=7.0)]  # fmt: skip
    combined = combined_mean(wide)
    assert combined["half_width_ns"] == pytest.approx(7 / np.sqrt(3), abs=1e-3)
    assert combined["converged"] is True
    assert combined_mean(wide[:1])["converged"] is False, "one run has no others to average with"
    doubted = [each | {"reasons": ["drift", "interval_too_wide"]} for each in wide]
    assert combined_mean(doubted)["converged"] is False


def reads_of_one_address(means: list[float]) -> list[dict[str, Any]]:
    """Return repetitions that read one address each: a run does not represent the others."""
    unconverged = {"half_width_ns": None, "converged": False, "reasons": ["few_places"]}
    return [unconverged | {"mean_ns": x, "opening_ns": 0.0} for x in means]


# Times of reads of 35 addresses, one each, of a device with pages on several dies [µs].
READ_TIMES_US = [213.0] * 13 + [216.0] * 3 + [263.0] * 10 + [277.0] * 3 + [289.0] * 3 + [339.0] * 3


def test_single_address_reads_need_eight_repetitions() -> None:
    single = combined_mean(reads_of_one_address([213.0]), 1500)
    assert (single["half_width_ns"], single["converged"]) == (None, False)
    like = [[213.0, 213.0, 216.0]] * 9
    peers = peers_among([repetitions(means) for means in like], 1500)
    three = combined_mean(reads_of_one_address([213.0, 213.0, 216.0]), 1500, peers)
    by_scatter = stats.t.ppf(0.975, 2) * stats.sem([213.0, 213.0, 216.0])
    assert three["half_width_ns"] == pytest.approx(by_scatter, rel=2e-3)
    assert three["converged"] is False
    assert (
        repetitions_for(repetition_certainty(reads_of_one_address([213.0, 213.0, 213.0]), 1500), 3)
        == 8
    )
    assert (
        repetitions_for(repetition_certainty(reads_of_one_address([213.0, 213.0, 216.0]), 1500), 3)
        == 8
    )
    assert (
        combined_mean(reads_of_one_address([213.0, 213.0, 216.0, 214.0] * 2), 1500)["converged"]
        is True
    )
    assert peers_among([reads_of_one_address(means) for means in like], 1500) is None


def test_claims_of_single_address_reads_are_seldom_false() -> None:
    """Rounds as in a benchmark: one in ten triples that agree is of a single die."""
    random, claims, false = np.random.default_rng(2), 0, 0
    for _ in range(200):
        every, made = random.choice(READ_TIMES_US, 48).tolist(), 3
        while (
            more := repetitions_for(
                repetition_certainty(reads_of_one_address(every[:made]), 1500), made
            )
            or 0
        ) > made:
            made = min(more, 2 * made)
        combined = combined_mean(reads_of_one_address(every[:made]), 1500)
        claims += combined["converged"]
        false += combined["converged"] and abs(combined["mean_ns"] - np.mean(READ_TIMES_US)) > 30
    assert claims > 100
    assert false <= 0.02 * claims


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (baseline("SR").but(location="ordered", incr=0), True),
        (baseline("RR").but(target_size=8 * 32768), True),
        (baseline("RR").but(target_size=16 * 32768), False),
        (baseline("RW").but(target_size=32768), False),
        (baseline("SR"), False),
    ],
)
def test_run_of_few_addresses_has_a_reason(pattern: Any, expected: bool) -> None:
    """A write goes to other pages each time; a read does not."""
    trace = open_device("sim:demo").run(pattern.but(io_count=256))
    convergence = run_convergence(trace)
    assert ("few_places" in convergence["reasons"]) is expected
    assert (convergence["half_width_ns"] is None) is expected


@pytest.mark.parametrize(
    ("ignored", "converged"), [(0, False), (64, False), (128, True), (256, True)]
)
def test_interval_covers_the_measured_ios_only(ignored: int, *, converged: bool) -> None:
    """Writes of an idle device are cheap at first; the truth is a long run's second half."""
    spec = baseline("RW").but(io_count=1024, io_ignore=ignored)
    trace = open_device("sim:mtron").run(spec)
    longer = open_device("sim:mtron").run(spec.but(io_count=20_000))
    truth = np.asarray(longer.column("response_time_ns"))[10_000:].mean()
    mean = np.asarray(trace.column("response_time_ns"))[ignored:].mean()
    convergence = run_convergence(trace)
    assert abs(mean - truth) <= convergence["half_width_ns"]
    assert convergence["converged"] is converged
    assert ("startup_in_mean" in convergence["reasons"]) is not converged


@pytest.mark.parametrize(
    ("slowest", "converged"), [(None, False), (400.0, False), (501.0, True), (9000.0, True)]
)
def test_tolerance_includes_a_share_of_the_slowest_baseline(
    slowest: float | None, converged: bool
) -> None:
    """The half width is 10 of 100; it is within the tolerance if the slowest takes 500 or more."""
    assert combined_mean(repetitions([100.0], half_width=10.0), slowest)["converged"] is converged


FAMILIES = {
    "scatter": families.flat(1.0),
    "two levels": families.two_levels(0.3, 30),
    "bursts": families.bursty(20, 4),
    "AR(1)": families.autoregressive(0.9, 0.3),
    "mtron": families.mtron,
}


def test_claims_of_three_runs_are_seldom_false() -> None:
    """Series of known mean: at most 2 of 100 claims deviate by more than allowed."""
    claims = false = covered = 0
    for number, family in enumerate(FAMILIES.values()):
        for trial in range(32):
            series = [family(np.random.default_rng([number, trial, run]), 3000) for run in range(3)]
            runs, truth = [analyse(one.times) for one in series], series[0].mean
            combined = combined_mean(
                [{name: getattr(run, name) for name in
                  ("mean_ns", "half_width_ns", "converged", "reasons")} for run in runs],
                2.5 * truth,
            )  # fmt: skip
            if not combined["converged"]:
                continue
            claims += 1
            off = abs(combined["mean_ns"] - truth)
            covered += off <= combined["half_width_ns"]
            false += off > AGREEMENT * truth
    assert claims > 30
    assert false <= stats.binom.ppf(0.999, claims, 0.02)
    assert covered >= stats.binom.ppf(0.001, claims, 0.95)


def test_interval_over_repetitions_has_its_coverage() -> None:
    """The means scatter by more than the runs' intervals: 95 of 100 cover the truth."""
    random, covered = np.random.default_rng(11), 0
    for _ in range(1000):
        combined = combined_mean(repetitions(list(random.normal(100, 4, 3))))
        covered += abs(combined["mean_ns"] - 100) <= combined["half_width_ns"]
    assert stats.binom.ppf(0.001, 1000, 0.95) <= covered <= stats.binom.ppf(0.999, 1000, 0.95)


# Target offsets


@pytest.mark.parametrize("seed", [1, 2, 77])
def test_repetitions_use_different_target_offsets(seed: int) -> None:
    plan = make_plan(open_device("sim:demo").info, "standard", seed, Choices())
    offsets: dict[tuple[Any, ...], set[Any]] = {}
    for run in plan.runs:
        if run.spec.writes_sequentially or run.micro_benchmark == "interference":
            continue
        spec = run.spec
        for part in spec.parts:
            begin = part.begin
            assert 0 <= begin <= begin + part.target_size <= CAPACITY
            key = (run.micro_benchmark, run.pattern, run.value, part.location, part.mode)
            offsets.setdefault(key, set()).add(begin)
    assert len(offsets["locality", "RR", 32768, "random", "read"]) == 3
    assert len(offsets["mix", "SR/RW", 1, "sequential", "read"]) == 3
    assert offsets["granularity", "RR", 512, "random", "read"] == {0}, "no other offset is possible"


def test_drawn_targets_of_a_mix_do_not_overlap() -> None:
    half = CAPACITY // 2
    part = baseline("RR", io_size=4096, target_size=1 << 28)
    spec = mix(part.but(target_offset=0), part.but(target_offset=half), 1)
    for seed in range(200):
        moved = draw_target(spec, CAPACITY, seed)
        first, second = moved.parts
        assert first.begin + (1 << 28) <= half
        assert half <= second.begin <= CAPACITY - (1 << 28)


# Whole benchmarks


def test_converged_experiments_agree_across_seeds(tmp_path: Path) -> None:
    """A small part of `tools/seeds_agree.py`, which makes whole benchmarks."""
    by_seed: list[dict[Any, Any]] = []
    for seed in (1, 2, 3):
        out = tmp_path / str(seed)
        chosen = ("--scale", "quick", "--method", "auto", "--repetitions", "3")
        only = ("--only", "granularity,alignment,bursts")
        outcome = uflip("run", "sim:demo", *chosen, *only, "--seed", seed, "--out", out, "--quiet")
        assert outcome.code == 0, outcome.err
        document = summary(Results.load(out))
        by_seed.append(
            {
                (name, run["pattern"], run["value"]): run["together"]
                for name, runs in document["micro_benchmarks"].items()
                for run in runs
            }
        )
    converged = [
        name for name in by_seed[0] if all(result[name]["converged"] for result in by_seed)
    ]
    assert len(converged) > 10, "too few experiments are compared"
    means = [[result[name]["mean_ns"] for result in by_seed] for name in converged]
    agree = [max(each) / min(each) - 1 <= AGREEMENT for each in means]
    assert all(agree), [name for name, does in zip(converged, agree, strict=True) if not does]
    assert max(disagreement(each) or 0 for each in means) > 0
