"""Combined statistics of an experiment's repetitions, and the agreement of whole benchmarks."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import uflip
from scipy import stats

from uflip.analysis import analyse
from uflip.device.opener import open_device
from uflip.methodology import Choices, make_plan
from uflip.methodology.rounds import CONFIDENCE, repetitions_for
from uflip.methodology.target_spaces import draw_target
from uflip.proof import families
from uflip.results import Results, summary
from uflip.results.agreement import (
    AGREEMENT,
    CLAIM,
    claim_half_width,
    combined_mean,
    disagreement,
    peers_among,
)
from uflip.results.autocorrelation import averaged_half_width
from uflip.results.convergence import run_convergence
from uflip.results.repetition_statistics import repetition_certainty
from uflip.spec import baseline, mix

CAPACITY = 1 << 32


def repetitions(means: list[float], half_width: float = 1.0) -> list[dict[str, Any]]:
    return [{"mean_ns": x, "half_width_ns": half_width, "converged": True} for x in means]


def test_the_interval_of_repetitions_that_scatter_is_students() -> None:
    means = [103.0, 99.0, 101.0, 98.5]
    found = combined_mean(repetitions(means))
    low, _ = stats.t.interval(0.95, 3, loc=np.mean(means), scale=stats.sem(means))
    assert found["mean_ns"] == pytest.approx(np.mean(means))
    assert found["half_width_ns"] == pytest.approx(np.mean(means) - low, rel=2e-3)


def test_a_claim_rests_on_a_wider_interval_than_is_shown() -> None:
    """Of many without peers by all that neighbours may have in common, a little over Student's."""
    steps = np.tile([1.0, 2.0, -2.0, -1.0], 10)
    margin = averaged_half_width((100 + steps).tolist(), CLAIM)
    assert 1 < margin / (stats.t.ppf(0.99, 39) * stats.sem(100 + steps)) < 1.2
    for scale, converged in ((4.9 / margin, True), (5.1 / margin, False)):
        means = [float(mean) for mean in 100 + steps * scale]
        found = combined_mean(repetitions(means))
        assert found["half_width_ns"] < 4.9
        assert found["converged"] is converged
        assert claim_half_width(means, 4.0, 5.0) == pytest.approx(margin * scale, rel=2e-3)


def test_rounds_are_laid_out_for_the_confidence_of_a_claim() -> None:
    assert CONFIDENCE == CLAIM


def test_three_that_agree_by_chance_are_seldom_believed() -> None:
    """Levels that scatter by 8 %: one claim in 100, by Student's of 95 % one in 20."""
    random = np.random.default_rng(3)
    every = [random.normal(100, 8, 3).tolist() for _ in range(2000)]
    narrow = sum(combined_mean(repetitions(means))["half_width_ns"] <= 5 for means in every)
    believed = sum(combined_mean(repetitions(means))["converged"] for means in every)
    assert narrow >= stats.binom.ppf(0.001, 2000, 0.05)
    assert believed <= stats.binom.ppf(0.999, 2000, 0.012)


def test_repetitions_that_agree_by_chance_are_no_better_than_their_runs() -> None:
    found = combined_mean(repetitions([100.0, 100.0, 100.0], half_width=4.5))
    assert found["half_width_ns"] == pytest.approx(4.5 / np.sqrt(3), abs=1e-3)


@pytest.mark.parametrize(
    ("means", "half_width", "converged"),
    [
        ([100.0, 101.0, 102.0], 2.0, True),
        ([100.0, 105.0, 95.0], 2.0, False),
        ([100.0, 101.0, 102.0], 20.0, False),
        ([100.0], 4.0, True),
    ],
)
def test_an_experiment_has_converged_if_its_repetitions_agree(
    means: list[float], half_width: float, converged: bool
) -> None:
    assert combined_mean(repetitions(means, half_width))["converged"] is converged


@pytest.mark.parametrize(
    ("startups", "surely"), [((0, 0, 0), True), ((40, 60, 50), True), ((0, 400, 0), False)]
)
def test_a_start_up_that_only_some_repetitions_have_is_asked_about(
    startups: tuple[int, ...], surely: bool
) -> None:
    every = [
        run | {"startup_ios": ios}
        for run, ios in zip(repetitions([100.0, 100.1, 99.9]), startups, strict=True)
    ]
    found = repetition_certainty(every, None)
    assert found["converged"]
    assert found["surely"] is surely


def test_one_repetition_that_has_not_converged_is_enough() -> None:
    every = repetitions([100.0, 101.0, 102.0])
    every[1]["converged"] = False
    assert combined_mean(every)["converged"] is False
    every[1] |= {"converged": None, "half_width_ns": None}
    assert combined_mean(every) == {"mean_ns": 101.0, "half_width_ns": None, "converged": None}
    assert combined_mean(
        [{"mean_ns": None, "half_width_ns": None, "converged": None}]
    ) == dict.fromkeys(("mean_ns", "half_width_ns", "converged"))


def test_a_run_that_is_only_wide_is_made_up_for_by_others() -> None:
    wide = [each | {"converged": False, "reasons": ["interval_too_wide"]}
            for each in repetitions([100.0, 100.5, 99.5], half_width=7.0)]  # fmt: skip
    found = combined_mean(wide)
    assert found["half_width_ns"] == pytest.approx(7 / np.sqrt(3), abs=1e-3)
    assert found["converged"] is True
    assert combined_mean(wide[:1])["converged"] is False, "one is as wide as it is"
    doubted = [each | {"reasons": ["drift", "interval_too_wide"]} for each in wide]
    assert combined_mean(doubted)["converged"] is False


def of_one_place(means: list[float]) -> list[dict[str, Any]]:
    """Reads of one place each: what a run knows of itself says nothing of others."""
    nothing = {"half_width_ns": None, "converged": False, "reasons": ["few_places"]}
    return [nothing | {"mean_ns": x, "opening_ns": 0.0} for x in means]


# What reads of one place took of a device with pages on several dies [µs], of 35 places.
PLACES = [213.0] * 13 + [216.0] * 3 + [263.0] * 10 + [277.0] * 3 + [289.0] * 3 + [339.0] * 3


def test_reads_of_one_place_are_known_from_eight_on_by_their_scatter() -> None:
    said = combined_mean(of_one_place([213.0]), 1500)
    assert (said["half_width_ns"], said["converged"]) == (None, False)
    like = [[213.0, 213.0, 216.0]] * 9
    peers = peers_among([repetitions(means) for means in like], 1500)
    three = combined_mean(of_one_place([213.0, 213.0, 216.0]), 1500, peers)
    by_scatter = stats.t.ppf(0.975, 2) * stats.sem([213.0, 213.0, 216.0])
    assert three["half_width_ns"] == pytest.approx(by_scatter, rel=2e-3)
    assert three["converged"] is False
    assert repetitions_for(repetition_certainty(of_one_place([213.0, 213.0, 213.0]), 1500), 3) == 8
    assert repetitions_for(repetition_certainty(of_one_place([213.0, 213.0, 216.0]), 1500), 3) == 8
    assert combined_mean(of_one_place([213.0, 213.0, 216.0, 214.0] * 2), 1500)["converged"] is True
    assert peers_among([of_one_place(means) for means in like], 1500) is None


def test_what_is_claimed_of_one_place_each_is_seldom_false() -> None:
    """Rounds as a benchmark makes them: of three that agree one in ten are all of one die."""
    random, claims, false = np.random.default_rng(2), 0, 0
    for _ in range(200):
        every, made = random.choice(PLACES, 48).tolist(), 3
        while (
            more := repetitions_for(repetition_certainty(of_one_place(every[:made]), 1500), made)
            or 0
        ) > made:
            made = min(more, 2 * made)
        said = combined_mean(of_one_place(every[:made]), 1500)
        claims += said["converged"]
        false += said["converged"] and abs(said["mean_ns"] - np.mean(PLACES)) > 30
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
def test_a_run_says_that_it_read_few_places(pattern: Any, expected: bool) -> None:
    """A write goes to other pages each time; a read does not."""
    trace = open_device("sim:demo").run(pattern.but(io_count=256))
    found = run_convergence(trace)
    assert ("few_places" in found["reasons"]) is expected
    assert (found["half_width_ns"] is None) is expected


@pytest.mark.parametrize(
    ("ignored", "converged"), [(0, False), (64, False), (128, True), (256, True)]
)
def test_an_interval_is_that_of_what_was_measured(ignored: int, *, converged: bool) -> None:
    """Writes of a rested device are cheap at first; the truth is a long run's second half."""
    spec = baseline("RW").but(io_count=1024, io_ignore=ignored)
    trace = open_device("sim:mtron").run(spec)
    longer = open_device("sim:mtron").run(spec.but(io_count=20_000))
    truth = np.asarray(longer.column("response_time_ns"))[10_000:].mean()
    mean = np.asarray(trace.column("response_time_ns"))[ignored:].mean()
    found = run_convergence(trace)
    assert abs(mean - truth) <= found["half_width_ns"]
    assert found["converged"] is converged
    assert ("startup_in_mean" in found["reasons"]) is not converged


@pytest.mark.parametrize(
    ("slowest", "converged"), [(None, False), (400.0, False), (501.0, True), (9000.0, True)]
)
def test_what_is_small_beside_the_slowest_baseline_is_known(
    slowest: float | None, converged: bool
) -> None:
    """Half the width is 10 of 100; a fiftieth of the slowest allows for it."""
    assert combined_mean(repetitions([100.0], half_width=10.0), slowest)["converged"] is converged


FAMILIES = {
    "scatter": families.flat(1.0),
    "two levels": families.two_levels(0.3, 30),
    "bursts": families.bursty(20, 4),
    "AR(1)": families.autoregressive(0.9, 0.3),
    "mtron": families.mtron,
}


def test_what_is_claimed_of_three_runs_is_seldom_false() -> None:
    """Series whose mean is known: claims that are further off than allowed, at most 2 of 100."""
    claims = false = held = 0
    for number, family in enumerate(FAMILIES.values()):
        for trial in range(32):
            made = [family(np.random.default_rng([number, trial, run]), 3000) for run in range(3)]
            runs, truth = [analyse(one.times) for one in made], made[0].mean
            said = combined_mean(
                [{name: getattr(run, name) for name in
                  ("mean_ns", "half_width_ns", "converged", "reasons")} for run in runs],
                2.5 * truth,
            )  # fmt: skip
            if not said["converged"]:
                continue
            claims += 1
            off = abs(said["mean_ns"] - truth)
            held += off <= said["half_width_ns"]
            false += off > AGREEMENT * truth
    assert claims > 30
    assert false <= stats.binom.ppf(0.999, claims, 0.02)
    assert held >= stats.binom.ppf(0.001, claims, 0.95)


def test_the_interval_over_repetitions_holds_the_mean_as_often_as_it_says() -> None:
    """The device changes between runs by more than they know: 95 of 100, were they normal."""
    random, held = np.random.default_rng(11), 0
    for _ in range(1000):
        found = combined_mean(repetitions(list(random.normal(100, 4, 3))))
        held += abs(found["mean_ns"] - 100) <= found["half_width_ns"]
    assert stats.binom.ppf(0.001, 1000, 0.95) <= held <= stats.binom.ppf(0.999, 1000, 0.95)


# Places


@pytest.mark.parametrize("seed", [1, 2, 77])
def test_repetitions_are_made_at_other_places(seed: int) -> None:
    plan = make_plan(open_device("sim:demo").info, "standard", seed, Choices())
    places: dict[tuple[Any, ...], set[Any]] = {}
    for run in plan.runs:
        if run.spec.writes_sequentially or run.micro_benchmark == "interference":
            continue
        spec = run.spec
        for part in spec.parts:
            begin = part.begin
            assert 0 <= begin <= begin + part.target_size <= CAPACITY
            key = (run.micro_benchmark, run.pattern, run.value, part.location, part.mode)
            places.setdefault(key, set()).add(begin)
    assert len(places["locality", "RR", 32768, "random", "read"]) == 3
    assert len(places["mix", "SR/RW", 1, "sequential", "read"]) == 3
    assert places["granularity", "RR", 512, "random", "read"] == {0}, "there is no other place"


def test_halves_of_a_mix_stay_apart() -> None:
    half = CAPACITY // 2
    part = baseline("RR", io_size=4096, target_size=1 << 28)
    spec = mix(part.but(target_offset=0), part.but(target_offset=half), 1)
    for seed in range(200):
        moved = draw_target(spec, CAPACITY, seed)
        first, second = moved.parts
        assert first.begin + (1 << 28) <= half
        assert half <= second.begin <= CAPACITY - (1 << 28)


# The whole


def test_what_has_converged_agrees_whatever_the_seed(tmp_path: Path) -> None:
    """A small part of `tools/seeds_agree.py`, which makes whole benchmarks."""
    every: list[dict[Any, Any]] = []
    for seed in (1, 2, 3):
        out = tmp_path / str(seed)
        chosen = ("--scale", "quick", "--method", "auto", "--repetitions", "3")
        only = ("--only", "granularity,alignment,bursts")
        done = uflip("run", "sim:demo", *chosen, *only, "--seed", seed, "--out", out, "--quiet")
        assert done.code == 0, done.err
        document = summary(Results.load(out))
        every.append(
            {
                (name, run["pattern"], run["value"]): run["together"]
                for name, runs in document["micro_benchmarks"].items()
                for run in runs
            }
        )
    known = [name for name in every[0] if all(one[name]["converged"] for one in every)]
    assert len(known) > 10, "or nothing is compared"
    means = [[one[name]["mean_ns"] for one in every] for name in known]
    agree = [max(each) / min(each) - 1 <= AGREEMENT for each in means]
    assert all(agree), [name for name, does in zip(known, agree, strict=True) if not does]
    assert max(disagreement(each) or 0 for each in means) > 0
