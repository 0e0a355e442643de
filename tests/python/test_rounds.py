"""Rounds of repetitions: for which experiments, how many, how long, without disturbing others."""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import stored
from command_line import uflip
from scipy import stats
from test_space_allocation import MIDDLE, device, first_violation

from repeated_runs import CASES, PEER_EXPERIMENTS, measure_repeated
from uflip.benchmark import (
    Calibration,
    Choices,
    History,
    Plan,
    PlanGrew,
    RunEvent,
    estimate,
    make_plan,
)
from uflip.benchmark.execute import execute
from uflip.benchmark.plan import MAX_REPETITIONS, STAGES, ends_of_stages
from uflip.benchmark.rounds import (
    MIN_WRITERS_PER_PASS,
    needed_repetitions,
    next_round,
    repetitions_for,
)
from uflip.benchmark.run_lengths import REPETITION_BUDGET, at_shortest_length
from uflip.data.manifest import DeviceState
from uflip.data.summary import Certainty
from uflip.device.opener import open_device
from uflip.device.resolve import resolve
from uflip.errors import InterruptedRun
from uflip.microbench import BASELINE
from uflip.microbench.experiment import PlannedRun
from uflip.results import Results, summary
from uflip.results.statistics.experiment import plan_certainty
from uflip.spec import Spec


class SimulatedRuns:
    """Runs of the shortest length; `scatter` gives the spread of their means by pattern."""

    def __init__(self, plan: Plan, scatter: Mapping[str, float]) -> None:
        self.info, self.scatter = plan.device, scatter
        self.runs = {run.id: run for run in plan.runs}

    def experiment_statistics(
        self, experiments: Sequence[tuple[str, Sequence[str]]], slowest_ns: float | None
    ) -> Sequence[Certainty]:
        every = [[self._statistics(run_id) for run_id in run_ids] for _, run_ids in experiments]
        return plan_certainty([sort for sort, _ in experiments], every, slowest_ns)

    def _statistics(self, run_id: str) -> Any:
        # The scatter does not depend on the position of a run in the plan.
        name = run_id.split("-", 1)[1] + "0"
        seed = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big")
        level = self.scatter.get(self.runs[run_id].pattern, 0.0)
        mean = 1e6 * max(1 + level * np.random.default_rng(seed).standard_normal(), 0.1)
        about = {"half_width_ns": 1e3, "opening_ns": 0.0, "slow_episodes": 50}
        return {"mean_ns": mean, "converged": True, "reasons": []} | about

    def ios_of(self, run_id: str) -> int:
        spec = at_shortest_length(self.runs[run_id].spec)
        return int(resolve(spec, self.info).totals.total_ios)


def repetition_spec(run: PlannedRun) -> Spec:
    """Another repetition where no start-up is known."""
    return run.spec.but(stop=None, io_count=run.spec.stop.min_ios, io_ignore=0)


def all_rounds(plan: Plan, scatter: Mapping[str, float]) -> tuple[Plan, SimulatedRuns, int]:
    """Make all rounds, stage by stage; they are counted."""
    rounds = 0
    for stage in STAGES:
        for _ in range(10):
            made = SimulatedRuns(plan, scatter)
            finished = ends_of_stages(plan.runs, plan.target_size)[stage]
            grown = next_round(plan, finished, made, repetition_spec)
            if grown is None:
                break
            rounds += 1
            remaining = len(plan.runs) - finished
            assert grown.runs[:finished] == plan.runs[:finished]
            assert grown.runs[len(grown.runs) - remaining :] == plan.runs[finished:]
            plan = grown
        else:
            raise AssertionError("rounds do not end")
    return plan, made, rounds


def planned(*only: str, capacity: int = MIDDLE) -> Plan:
    return make_plan(device(capacity), "standard", 1, Choices(only=only, pause_ns=0))


@pytest.mark.parametrize("made", [3, 8, 12, 30])
@pytest.mark.parametrize("excess", [1.05, 1.4, 2.0, 3.0])
def test_needed_repetitions_are_close_to_student(made: int, excess: float) -> None:
    """The half width of n means that scatter as before, by scipy."""
    needed = needed_repetitions(made, excess)
    scatter = excess / stats.t.ppf(0.99, made - 1) * np.sqrt(made)
    widths = [stats.t.ppf(0.99, n - 1) * scatter / np.sqrt(n) for n in range(2, 1000)]
    fewest = 2 + int(np.argmax(np.array(widths) <= 1))
    if needed is None:
        assert fewest > 0.9 * MAX_REPETITIONS
    else:
        assert fewest <= needed <= max(8, 1.1 * fewest + 2, np.ceil(1.5 * made))


def test_converged_experiments_are_not_repeated() -> None:
    plan = planned("granularity", "order")
    assert all_rounds(plan, {})[0] == plan


def test_only_uncertain_experiments_are_repeated_within_budget() -> None:
    plan = planned("granularity", "pause", "mix")
    grown, made, rounds = all_rounds(plan, {"RW": 0.08, "RR/RW": 0.02})
    repeats = Counter(run.pattern for run in grown.runs if run.repetition > plan.repetitions)
    assert 1 <= rounds <= 6
    assert "RR" not in repeats, "what reads is known, and sets nothing apart"
    assert repeats["SR/RW"] <= repeats["RR/RW"], "it is known, and sets others apart at most"
    assert repeats["RW"] > 100
    ios = {run.id: made.ios_of(run.id) for run in grown.runs if run.micro_benchmark != BASELINE}
    first = sum(ios[run.id] for run in plan.runs if run.id in ios)
    assert sum(ios.values()) <= REPETITION_BUDGET * first
    groups: dict[tuple[Any, ...], list[str]] = {}
    for run in grown.runs:
        if run.pattern == "RW" and run.id in ios:
            groups.setdefault((run.micro_benchmark, run.value), []).append(run.id)
    every = made.experiment_statistics([("RW", ids) for ids in groups.values()], None)
    converged = [certainty["converged"] for certainty in every]
    assert np.mean(converged) > 0.9
    assert max(map(len, groups.values())) <= MAX_REPETITIONS


@pytest.mark.parametrize("scatter", [{"RR/RW": 0.04}, {"RW": 0.08, "RR/RW": 0.02}])
def test_repetitions_of_rounds_are_spread_out(scatter: Mapping[str, float]) -> None:
    """Between two repetitions of a writing experiment other experiments write."""
    plan = planned("granularity", "pause", "mix")
    grown, _, _ = all_rounds(plan, scatter)
    new = [run for run in grown.runs if run.repetition > plan.repetitions and run.spec.writes]
    assert len(new) >= 40
    positions: dict[tuple[Any, ...], list[int]] = {}
    for position, run in enumerate(new):
        positions.setdefault((run.micro_benchmark, run.pattern, run.value), []).append(position)
    gaps = [gap for each in positions.values() for gap in np.diff(each)]
    # Each round has its own order: the last of one may come early in the next.
    assert np.mean(gaps) >= MIN_WRITERS_PER_PASS
    assert np.mean(np.array(gaps) < MIN_WRITERS_PER_PASS / 2) < 0.25


def test_rounds_use_untouched_space() -> None:
    """A list of all blocks that all runs hit, as for plans."""
    plan = planned("granularity", "mix")
    scatter = {"SW": 0.06, "RR/RW": 0.03, "SR/SW": 0.03}
    grown, _, rounds = all_rounds(plan, scatter)
    more = [run for run in grown.runs if run.repetition > plan.repetitions]
    assert rounds >= 2
    assert {"SW", "RR/RW"} <= {run.pattern for run in more}
    # Including resets and writes between runs it stays within the estimate of the plan.
    made = tuple(replace(run, spec=at_shortest_length(run.spec)) for run in grown.runs)
    assert estimate(replace(grown, runs=made)).bytes_written <= estimate(plan).bytes_written
    assert len({run.id for run in grown.runs}) == len(grown.runs)
    assert len({run.spec.seed for run in more}) == len(more), "no two are the same"
    large = {run.id for run in grown.runs if run.pattern not in ("SW", "SR") and run.value > 2}
    small = tuple(run for run in grown.runs if run.id not in large or run.reset_before)
    assert first_violation(replace(plan, runs=small)) is None
    without_state, _, _ = all_rounds(replace(plan, state=None), scatter)
    assert not any(run.spec.writes_sequentially for run in set_of_new(without_state, plan))


def set_of_new(grown: Plan, plan: Plan) -> list[Any]:
    planned_ids = {run.id for run in plan.runs}
    return [run for run in grown.runs if run.id not in planned_ids]


CHOSEN = ("--scale", "quick", "--method", "auto", "--repetitions", "3", "--only", "pause")


def test_interrupted_round_resumes_to_same_result(tmp_path: Path) -> None:
    uninterrupted, interrupted = tmp_path / "at once", tmp_path / "later"
    outcome = uflip("run", "sim:demo", *CHOSEN, "--out", uninterrupted, "--quiet")
    assert outcome.code == 0, outcome.err
    whole = summary(Results.load(uninterrupted))
    made = [len(run["repetitions"]) for run in whole["micro_benchmarks"]["pause"]]
    assert min(made) == 3 < max(made)
    interrupt_in_round(interrupted)
    partial = Results.load(interrupted)
    assert partial.missing
    assert partial.status == "interrupted"
    outcome = uflip("run", "--resume", interrupted, "--quiet")
    assert outcome.code == 0, outcome.err
    resumed = summary(Results.load(interrupted))
    assert resumed["micro_benchmarks"] == whole["micro_benchmarks"]
    assert resumed["status"] == "complete"
    assert not resumed["missing"]
    assert uflip("verify", interrupted).code == 0


def interrupt_in_round(folder: Path) -> None:
    """Make the same benchmark, and interrupt it after some runs of its first round."""
    with open_device("sim:demo") as opened:
        choices = Choices(only=("pause",), method="auto", repetitions=3)
        plan = make_plan(opened.info, "quick", 1, choices)
        assert plan.state is not None
        opened.enforce(plan.state.request)
        begun = DeviceState("random", None, "enforced", plan.state.request)
        writer = stored.writer(
            folder,
            plan.runs,
            opened,
            pause_ns=plan.pause_ns,
            target_size_bytes=plan.target_size,
            repetitions=plan.repetitions,
            method=plan.method,
            state=begun,
        )
        grown: list[Plan] = []

        def stop(event: RunEvent) -> None:
            if isinstance(event, PlanGrew):
                grown.append(event.plan)
            elif grown and event.run.repetition > plan.repetitions + 1:
                raise KeyboardInterrupt

        with pytest.raises(InterruptedRun, match="runs"):
            execute(
                plan,
                opened,
                writer,
                stop,
                history=History(None),
                calibration=Calibration(plan, writer),
            )


@pytest.mark.parametrize("case", [0, 2, 7])
def test_intervals_of_rounds_cover_true_mean(case: int) -> None:
    """A share of what `benches/method_proof.py --only repetitions` tries, also of two states."""
    row = measure_repeated(CASES[case], PEER_EXPERIMENTS)
    certain = round(row.converged * PEER_EXPERIMENTS)
    assert certain > PEER_EXPERIMENTS // 3
    assert row.covered is not None
    assert row.covered * certain >= stats.binom.ppf(0.001, certain, 0.93)
    assert row.false * PEER_EXPERIMENTS <= stats.binom.ppf(0.999, PEER_EXPERIMENTS, 0.02)


@pytest.mark.parametrize(
    ("expected", "supported", "widened", "made", "needed"),
    [
        (2.0, 3.0, 1.0, 3, 12),  # narrow, and too few to be believed
        (2.0, 3.0, 1.0, 12, 18),  # something else speaks against it
        (7.5, 3.0, 1.0, 12, 26),  # 12 · 1.5² · (2.50 / 2.72)², Student's of both, and a tenth more
        (7.5, 3.0, 2.0, 12, 52),  # neighbours may have much in common
        (7.5, 3.0, 9.0, 12, 100),  # which must not end the rounds
        (20.0, 3.0, 1.0, 12, None),  # by its scatter more than a hundred
    ],
)
def test_repetitions_for_quiet_and_outlying_experiments(
    expected: float, supported: float, widened: float, made: int, needed: int | None
) -> None:
    certainty = {
        "expected_ns": expected,
        "supported_ns": supported,
        "allowed_ns": 5.0,
        "degrees": 60.0,
        "widened": widened,
        "fewest": 12,
        "certainly_converged": False,
        "cannot_converge": False,
    }
    assert repetitions_for(cast(Certainty, certainty), made) == needed
