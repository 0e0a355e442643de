"""Does a plan for a large drive fit into its time, and does it name what was given up?

The expected values are arithmetic with the rates of Haas et al. (PVLDB 2025): 1,389 MiB/s for the
sequential pass of a state, 279 MiB/s for everything else.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import uflip

import uflip as package
from uflip.benchmark import BenchmarkRequest, Plan, estimate

MIB, GIB, HOUR, MINUTE = 1 << 20, 1 << 30, 3_600_000_000_000, 60_000_000_000
TERABYTE = 10**12
IQ_LONG = (
    "skew", "hot_zone", "read_only", "fill_level", "zone_size", "open_zones", "content",
    "initial_state",
)  # fmt: skip


@pytest.fixture
def drive(tmp_path: Path) -> Any:
    """Return requests for a file that is never created."""

    def request(size: int = TERABYTE, **options: Any) -> BenchmarkRequest:
        return BenchmarkRequest(device=f"file:{tmp_path}/drive.bin", size=size, **options)

    return request


def planned(request: BenchmarkRequest) -> tuple[Plan, int]:
    """Return a plan, and its time with the state [ns]."""
    info = request.inspect()
    plan = request.plan(info)
    return plan, request.preparation_ns(info, plan) + estimate(plan).time_ns


def state_s(size: int) -> float:
    """Return the time of one sequential pass, and of three times as much at random [s]."""
    return size / (1389 * MIB) + 3 * size / (279 * MIB)


def codes(plan: Plan) -> set[str]:
    return {warning["code"] for warning in plan.warnings}


@pytest.mark.parametrize("size", [TERABYTE, 4 * TERABYTE])
def test_state_of_a_drive_is_four_drive_writes_at_the_rate_of_the_slowest_one(
    drive: Any, size: int
) -> None:
    request = drive(size, only=("baseline",))
    info = request.inspect()
    plan = request.plan(info)
    assert plan.state is not None
    assert plan.state.bytes_written == pytest.approx(4 * size, rel=1e-6)
    assert request.preparation_ns(info, plan) / 1e9 == pytest.approx(state_s(size), rel=0.01)


def test_standard_plan_of_the_nine_takes_a_terabyte_less_than_eight_hours_and_six_writes(
    drive: Any,
) -> None:
    request = drive()
    plan, time_ns = planned(request)
    assert plan.state is not None
    assert plan.target_size == TERABYTE
    assert not codes(plan)
    assert time_ns < 8 * HOUR
    assert estimate(plan).bytes_written + plan.state.bytes_written < 6 * TERABYTE


@pytest.mark.parametrize("size", [TERABYTE, 4 * TERABYTE])
def test_standard_plan_of_iq_writes_each_value_once(drive: Any, size: int) -> None:
    """A drive write a value, a quarter where no data moves, and a pass before each content.

    The offered load has at most 2^21 I/Os a run: nothing in comparison.
    """
    plan, time_ns = planned(drive(size, suite="iq", only=IQ_LONG))
    assert plan.state is not None
    at_random = 5.25 + 5 + 6 + 5 + 6 * 0.25 + 2 + 2 + 0.25
    in_sequence = 5 + 5 + 6 + 1
    written = estimate(plan).bytes_written + plan.state.bytes_written
    assert written / size == pytest.approx(4 + at_random + in_sequence, rel=0.02)
    expected_s = state_s(size) + size / MIB * (at_random / 279 + in_sequence / 1389)
    assert time_ns / 1e9 == pytest.approx(expected_s, rel=0.03)


@pytest.mark.parametrize(("size", "of_nine"), [(TERABYTE, ""), (4 * TERABYTE, "8 h 00 min")])
def test_plan_names_what_takes_more_than_eight_hours_or_six_drive_writes(
    tmp_path: Path, size: int, of_nine: str
) -> None:
    device = (f"file:{tmp_path}/drive.bin", "--size", f"{size}", "--suites", "--scale", "standard")
    outcome = uflip("plan", *device, "--json")
    assert outcome.code == 0, outcome.err
    costs = {cost["suite"]: cost for cost in json.loads(outcome.out)["suites"]}
    for suite, cost in costs.items():
        limits = [
            limit
            for limit, is_exceeded in (
                ("8 h 00 min", cost["time_ns"] > 8 * HOUR),
                ("6 drive writes", cost["drive_writes"] > 6),
            )
            if is_exceeded
        ]
        if cost["runs"]:
            named = cost["excess"].partition(", in drive writes")[0]
            assert named == (f"more than {' and '.join(limits)}" if limits else ""), suite
        else:
            assert (suite, cost["bytes_written"], cost["time_ns"]) == ("streams", 0, 0)
            assert "one write stream" in cost["excess"]
    assert bool(costs["uflip"]["excess"]) == bool(of_nine)
    assert of_nine in costs["uflip"]["excess"]
    for words in ("the state 4 (", "skew 5.", "content 7.5 (", "6 runs until steady state"):
        assert words in costs["iq"]["excess"]
    assert "deallocate 4 (" in costs["today"]["excess"]
    assert "the state is enforced again" in costs["today"]["excess"]


@pytest.mark.parametrize("size", [TERABYTE, 4 * TERABYTE])
def test_quick_plan_uses_the_largest_part_that_takes_ten_minutes(drive: Any, size: int) -> None:
    plan, time_ns = planned(drive(size, scale="quick"))
    runs_s = time_ns / 1e9 - state_s(plan.target_size)
    assert runs_s > 0
    assert time_ns <= 10 * MINUTE < (state_s(2 * plan.target_size) + runs_s) * 1e9
    assert plan.target_size.bit_count() == 1
    (warning,) = plan.warnings
    assert warning["code"] == "part_of_device"
    assert warning["numbers"]["target_bytes"] == plan.target_size
    assert warning["numbers"]["capacity_bytes"] == size
    assert "not measured" in warning["message"]


def test_quick_plan_of_a_small_or_simulated_device_is_whole(drive: Any) -> None:
    small = drive(4 * GIB, scale="quick")
    plan, _ = planned(small)
    assert (plan.target_size, codes(plan)) == (4 * GIB, set())
    simulated = package.plan("sim:tlc-nvme", scale="quick", only="baseline")
    assert simulated.target_size == simulated.device.capacity_bytes
    assert "part_of_device" not in codes(simulated)


@pytest.mark.parametrize(
    ("suite", "scale", "budget_ns"),
    [
        ("uflip", "standard", 2 * HOUR),
        ("today", "quick", 3 * MINUTE),
        ("iq", "standard", 8 * HOUR),
        ("iq", "standard", 2 * MINUTE),
    ],
)
def test_budget_is_never_exceeded_and_everything_given_up_is_named(
    drive: Any, suite: str, scale: str, budget_ns: int
) -> None:
    whole, whole_ns = planned(drive(suite=suite, scale=scale, target_size=TERABYTE))
    assert whole_ns > budget_ns
    settings = {} if scale == "standard" else {"scale": scale}
    plan, time_ns = planned(drive(suite=suite, budget_ns=budget_ns, **settings))
    assert time_ns <= budget_ns
    given_up = {
        "part_of_device": plan.target_size < TERABYTE,
        "fewer_repetitions": plan.repetitions < whole.repetitions,
        "reduced_scale": plan.scale != whole.scale,
        "runs_left_out": any("at most" in skip.reason for skip in plan.skipped),
    }
    assert codes(plan) == {code for code, is_given_up in given_up.items() if is_given_up}
    assert any(given_up.values())
    assert all(warning["numbers"]["budget_ns"] == budget_ns for warning in plan.warnings)


def test_settings_of_the_user_are_not_given_up(drive: Any) -> None:
    request = drive(
        budget_ns=90 * MINUTE, target_size=128 * GIB, repetitions=2, scale="standard", only=("mix",)
    )
    plan, time_ns = planned(request)
    assert (plan.target_size, plan.repetitions, plan.scale) == (128 * GIB, 2, "standard")
    assert time_ns <= 90 * MINUTE
    assert codes(plan) <= {"runs_left_out"}


def test_budget_that_suffices_changes_nothing(drive: Any) -> None:
    with_budget, _ = planned(drive(16 * GIB, scale="quick", budget_ns=HOUR))
    without, _ = planned(drive(16 * GIB, scale="quick"))
    assert with_budget.runs == without.runs
    assert not with_budget.warnings


def test_budget_that_is_too_short_for_any_run_is_an_error(tmp_path: Path) -> None:
    outcome = uflip("run", f"file:{tmp_path}/drive.bin", "--size", "1GiB", "--budget", "1ms")
    assert outcome.code == 2, outcome.err
    assert "--budget" in outcome.err
    assert not (tmp_path / "drive.bin").exists()


def test_plan_shows_the_cost_of_every_suite_and_what_a_part_leaves_open(tmp_path: Path) -> None:
    device = (f"file:{tmp_path}/drive.bin", "--size", "1TB", "--suites", "--scale", "quick")
    outcome = uflip("plan", *device)
    assert outcome.code == 0, outcome.err
    rows = [line.split()[:2] for line in outcome.out.splitlines()]
    assert rows[1:4] == [["uflip", "quick"], ["today", "quick"], ["iq", "quick"]]
    assert "uflip quick: The plan uses the first" in outcome.out
    document = json.loads(uflip("plan", *device, "--json").out)
    for suite in document["suites"]:
        assert suite["time_ns"] <= 10 * MINUTE
        assert suite["drive_writes"] == pytest.approx(suite["bytes_written"] / (1 << 40))
