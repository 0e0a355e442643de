"""Are runs in the order of the paper, with separate target spaces, counted and timed?"""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stored
from msgspec import structs

import uflip as api
from uflip.benchmark import Choices, TimeLeft, estimate, interference, make_plan
from uflip.benchmark.target_spaces import BLOCK
from uflip.data.device import DeviceInfo
from uflip.data.run import metadata_of
from uflip.device.catalogue import inspect_device
from uflip.device.handle import Device
from uflip.device.opener import open_device
from uflip.device.resolve import resolve
from uflip.errors import UsageError
from uflip.footprint import union, written_sequentially
from uflip.microbench import micro_benchmarks_for
from uflip.results import Results
from uflip.spec import Mix, Spec

MIB, GIB = 1 << 20, 1 << 30


def device(capacity: int = 64 * GIB, kind: str = "file", **changes: Any) -> DeviceInfo:
    return stored.device_info(kind, capacity_bytes=capacity, **changes)


@pytest.fixture(scope="module")
def plan() -> Any:
    return make_plan(device(), "standard", 1, Choices(repetitions=1))


def test_runs_with_sequential_writes_come_last(plan: Any) -> None:
    assert [run.pattern for run in plan.runs[:6]] == ["SR", "RR", "RW", "SR", "RW", "SR"]
    assert {run.micro_benchmark for run in plan.runs[:3]} == {"baseline"}
    assert {run.micro_benchmark for run in plan.runs[3:6]} == {"interference"}
    disturbing = [run.spec.writes_sequentially for run in plan.runs]
    assert disturbing == sorted(disturbing)
    first = plan.runs[disturbing.index(True)]
    assert (first.micro_benchmark, first.pattern) == ("baseline", "SW")


def test_runs_are_ordered_by_disturbance_then_paper_order() -> None:
    plan = make_plan(device(), "standard", 1, Choices(method="paper", repetitions=1))
    for disturbs in (False, True):
        runs = [run for run in plan.runs[6:] if run.spec.writes_sequentially is disturbs]
        names = [run.micro_benchmark for run in runs]
        groups = list(dict.fromkeys(names))
        assert names == sorted(names, key=groups.index)
        # Among disturbing runs, those that need an undisturbed half of the device come first.
        first = ["baseline", "mix"] if disturbs else []
        paper = [
            name for name in micro_benchmarks_for("sectors") if name not in (*first, "baseline")
        ]
        assert groups == [*first, *(name for name in paper if name in groups)]


def test_disturbing_runs_are_shuffled_between_repetitions() -> None:
    plan = make_plan(device(), "standard", 1, Choices(repetitions=2))
    confined = [is_confined(run.spec) for run in plan.runs]
    sequential = [run.spec.writes_sequentially for run in plan.runs]
    grades = [2 if last else int(part) for part, last in zip(confined, sequential, strict=True)]
    assert grades == sorted(grades)
    assert set(grades) == {0, 1, 2}
    for grade in (0, 1, 2):
        graded = [
            run
            for run, run_grade in zip(plan.runs[6:], grades[6:], strict=True)
            if run_grade == grade
        ]
        graded = [
            run
            for run in graded
            if not isinstance(run.spec, Mix) and run.micro_benchmark != "baseline"
        ]
        orders = [
            [(run.micro_benchmark, run.pattern, run.value) for run in graded if run.repetition == n]
            for n in (1, 2)
        ]
        assert sorted(orders[0]) == sorted(orders[1])
        assert (orders[0] == orders[1]) is (grade == 0)


@pytest.mark.parametrize("suite", ["uflip", "today"])
@pytest.mark.parametrize("scale", ["quick", "standard"])
def test_reads_precede_all_writes(scale: str, suite: str) -> None:
    plan = make_plan(device(), scale, 1, Choices(suite=suite))
    measured = [
        run
        for run in plan.runs
        if run.micro_benchmark not in ("baseline", "interference", "deallocate")
    ]
    writes = [run.spec.writes for run in measured]
    assert writes == sorted(writes)
    assert not all(writes)


def is_confined(spec: Any) -> bool:
    """Compare the span of each random write pattern with 64 GiB."""
    spans = [
        part.target_size for part in spec.parts if (part.mode, part.location) == ("write", "random")
    ]
    return any(span < 57 * GIB for span in spans)


def test_runs_are_numbered_in_order(plan: Any) -> None:
    assert [int(run.id[:4]) for run in plan.runs] == list(range(1, len(plan.runs) + 1))
    assert plan.runs[0].id == "0001-baseline-SR-io_size-32768"


def test_without_state_space_is_reused_with_warning() -> None:
    plan = make_plan(device(GIB), "standard", 1, Choices(state="as-is"))
    assert (plan.state, plan.resets) == (None, 0)
    (warning,) = [w for w in plan.warnings if w["code"] == "sequential_targets_reused"]
    each = [written_sequentially(run.spec).in_blocks(BLOCK).size for run in plan.runs]
    assert warning["numbers"]["wanted_bytes"] == sum(each)
    assert warning["numbers"]["capacity_bytes"] == GIB
    assert warning["numbers"]["rounds"] >= sum(each) // GIB - 1
    assert set(warning) == {"code", "message", "numbers", "advice"}


def test_space_of_earlier_plan_is_not_written_again() -> None:
    plan = make_plan(device(), "quick", 1, Choices(used_bytes=5 * GIB))
    written = union(written_sequentially(run.spec) for run in plan.runs)
    assert written.begins[0] == 5 * GIB


def test_repetitions_differ_only_in_seed_and_target() -> None:
    plan = make_plan(device(2000 * GIB), "standard", 1)
    assert plan.repetitions == 3
    first = {run.id[5:]: run for run in plan.runs if run.repetition == 1}
    assert len(plan.runs) == 3 * len(first) - 2 * 3, "the pause is measured once"
    for run in plan.runs:
        if run.repetition > 1:
            name = run.id[5:].removesuffix(f"-r{run.repetition}")
            assert run.spec.seed != first[name].spec.seed
            assert spaceless(run.spec) == spaceless(first[name].spec)


def spaceless(spec: Any) -> Any:
    """A specification without its places and its seed."""
    if isinstance(spec, Mix):
        parts = (structs.replace(part, target_offset=None) for part in spec.parts)
        return spec.but(seed=None, **dict(zip(("first", "second"), parts, strict=True)))
    return spec.but(seed=None, target_offset=None)


@pytest.mark.parametrize("capacity", [64 * GIB, GIB, 64 * MIB, 65 * MIB + 512, 5 * MIB])
@pytest.mark.parametrize("scale", ["quick", "standard"])
def test_every_run_stays_on_device(capacity: int, scale: str) -> None:
    plan = make_plan(device(capacity), scale, 1)
    assert plan.runs
    for run in plan.runs:
        resolve(run.spec, plan.device)
        if isinstance(run.spec, Mix):
            first, second = sorted((part.begin, part.target_size) for part in run.spec.parts)
            assert sum(first) <= second[0]


def test_file_of_64_mib_suffices_for_quick() -> None:
    plan = make_plan(device(64 * MIB), "quick", 1)
    assert {run.micro_benchmark for run in plan.runs} == {
        run.micro_benchmark for run in make_plan(device(), "quick", 1).runs
    }
    assert len(plan.skipped) == 4


def test_plan_depends_only_on_device_scale_and_seed() -> None:
    assert make_plan(device(), "quick", 5) == make_plan(device(), "quick", 5)
    one, other = make_plan(device(), "quick", 5), make_plan(device(), "quick", 6)
    assert [run.id for run in one.runs] == [run.id for run in other.runs]
    assert all(a.spec.seed != b.spec.seed for a, b in zip(one.runs, other.runs, strict=True))


def test_run_keeps_seed_when_others_are_omitted() -> None:
    whole = {run.id[5:]: run.spec.seed for run in make_plan(device(), "quick", 5).runs}
    part = make_plan(device(), "quick", 5, Choices(only=("pause", "order")))
    assert {run.micro_benchmark for run in part.runs} == {"interference", "order", "pause"}
    for run in part.runs:
        assert run.spec.seed == whole[run.id[5:]]


@pytest.mark.parametrize(
    ("changes", "scale", "pause_ns"),
    [
        ({}, "standard", 1_000_000_000),
        ({}, "quick", 100_000_000),
        ({"kind": "null"}, "quick", 0),
        ({"kind": "null"}, "standard", 0),
    ],
)
def test_pause_depends_on_device_and_scale(changes: Any, scale: str, pause_ns: int) -> None:
    assert make_plan(device(**changes), scale, 1).pause_ns == pause_ns
    assert make_plan(device(**changes), scale, 1, Choices(pause_ns=7)).pause_ns == 7


def test_runs_stay_within_target_size() -> None:
    plan = make_plan(device(GIB), "quick", 1, Choices(target_size=64 * MIB))
    assert plan.target_size == 64 * MIB
    for run in plan.runs:
        for part in run.spec.parts:
            assert part.end <= 64 * MIB


@pytest.mark.parametrize("target_size", [0, 1000, 2 * GIB])
def test_invalid_target_size_is_an_error(target_size: int) -> None:
    with pytest.raises(UsageError, match="no target of this size"):
        make_plan(device(GIB), "quick", 1, Choices(target_size=target_size))


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        ({"scale": "fast"}, "--scale"),
        ({"only": ("mixx",)}, "--only"),
        ({"io_size": 0}, "--io-size"),
        ({"io_size": 1000}, "--io-size"),
        ({"io_size": 128 * GIB}, "--io-size"),
        ({"repetitions": 0}, "--repetitions"),
        ({"state": "randon"}, "--state"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any], where: str) -> None:
    arguments = dict(arguments)
    scale = arguments.pop("scale", "quick")
    with pytest.raises(UsageError) as caught:
        make_plan(device(), scale, 1, Choices(**arguments))
    assert caught.value.where == where
    assert caught.value.allowed


# Estimate


def test_estimate_counts_what_specifications_resolve_to(plan: Any) -> None:
    estimated = estimate(plan)
    totals = [resolve(run.spec, plan.device).totals for run in plan.runs]
    assert estimated.runs == len(plan.runs)
    # Baselines of writes are made again, longer, where a buffer answers them.
    longest = {run.id: plan.longer_baseline(run) for run in plan.runs}
    longer = {
        name: resolve(spec, plan.device).totals
        for name, spec in longest.items()
        if spec is not None
    }
    assert len(longer) == 2
    assert estimated.ios == sum(total.total_ios for total in [*totals, *longer.values()])
    assert estimated.bytes_read == sum(total.bytes_read for total in totals)
    resets = plan.resets * plan.state.bytes_written
    # Disturbing runs are followed by four times their writes, at most the device, in 128 KiB units.
    over = [
        min(4 * longer.get(run.id, total).bytes_written, 64 * GIB) // (128 << 10) * (128 << 10)
        for run, total in zip(plan.runs, totals, strict=True)
        if run.spec.writes_sequentially or is_confined(run.spec)
    ]
    written = sum(total.bytes_written for total in [*totals, *longer.values()])
    assert len(over) > 100
    assert estimated.bytes_written == written + resets + sum(over)
    pauses = sum(total.pause_ns + plan.pause_ns for total in totals)
    assert estimated.time_ns > pauses
    assert "a read takes" in estimated.assumptions


def test_pauses_are_free_in_virtual_time(plan: Any) -> None:
    simulated = replace(plan, device=device(kind="sim"), state=None)
    assert estimate(simulated).time_ns < 60e9
    assert estimate(plan).time_ns > 10 * estimate(simulated).time_ns


def test_pause_before_batches_is_counted_once(tmp_path: Path) -> None:
    """Five seconds before the first of the three, nothing between them."""
    api.run("sim:demo?blocks_per_die=64", tmp_path / "out", scale="quick", only=["baseline"])
    spent = [
        metadata_of(run.path, run.trace().metadata_json).pause_ns
        for run in Results.load(tmp_path / "out").runs
        if run.micro_benchmark == "interference"
    ]
    assert spent == [interference.REST_NS, 0, 0]
    plan = make_plan(device(GIB), "quick", 1)
    paused = estimate(replace(plan, pause_ns=10 * 10**9)).each
    longer = [
        after.time_ns - before.time_ns
        for before, after in zip(estimate(plan).each, paused, strict=True)
    ]
    batches = [at for at, run in enumerate(plan.runs) if run.micro_benchmark == "interference"]
    assert [longer[at] for at in batches] == [10 * 10**9 - interference.REST_NS, 0, 0]
    others = {longer[at] for at in range(len(longer)) if at not in batches}
    assert others == {10 * 10**9 - plan.pause_ns}


def test_quick_plan_on_file_takes_about_a_minute() -> None:
    estimated = estimate(make_plan(device(), "quick", 1))
    assert 30e9 < estimated.time_ns < 120e9


def test_remaining_time_follows_pace_of_each_pattern() -> None:
    plan = make_plan(device(GIB), "quick", 1, Choices(only=("granularity",)))
    estimated = estimate(plan)
    time_left = TimeLeft(plan, estimated)
    assert time_left.remaining_ns(0) == pytest.approx(estimated.time_ns)
    assert time_left.remaining_ns(len(plan.runs)) == 0
    for index, run in enumerate(plan.runs):
        if run.pattern == "SR":
            time_left.record_run(index, 2 * estimated.each[index].time_ns)
    first = next(index for index, run in enumerate(plan.runs) if run.pattern == "RR")
    unchanged = sum(run.time_ns for run in estimated.each[first:])
    assert time_left.remaining_ns(first) == pytest.approx(unchanged)
    # Half-way through a run half of it is left.
    each = estimated.each[first].time_ns
    assert time_left.remaining_ns(first, 0.5) == pytest.approx(unchanged - each / 2)
    # The elapsed time of the current run improves its estimate, and that of its pattern.
    remaining_ns = time_left.remaining_ns(first, 0.25, each)
    same = [i for i, run in enumerate(plan.runs) if run.pattern == "RR" and i > first]
    others = sum(estimated.each[i].time_ns for i in range(first + 1, len(plan.runs)))
    pause_ns = 0 if plan.device.simulated else plan.pause_ns
    pace = (4 * each + pause_ns) / each
    more = sum((pace - 1) * estimated.each[i].time_ns for i in same)
    assert remaining_ns == pytest.approx(3 * each + others + more)
    # A second run of a pattern goes at the pace of its first.
    time_left.record_run(first, 3 * each)
    remaining = [
        (3 if plan.runs[i].pattern == "RR" else 1) * estimated.each[i].time_ns
        for i in range(first + 1, len(plan.runs))
    ]
    assert time_left.remaining_ns(first + 1) == pytest.approx(sum(remaining))
    # A single run that took much longer than its peers predicts none of them.
    time_left.record_run(first + 1, 1000 * each)
    assert time_left.remaining_ns(first + 2) == pytest.approx(sum(remaining[1:]))


@pytest.mark.parametrize("suite", ["uflip", "today"])
def test_short_runs_use_disjoint_target_space(suite: str) -> None:
    """A second run at a place finds its part of the map cached; most of all at offset 0."""
    info = device()
    plan = make_plan(info, "quick", 1, Choices(suite=suite, repetitions=2))
    targets = sorted(
        (part.begin, part.end, run.id)
        for run in plan.runs
        if run.micro_benchmark not in ("baseline", "interference", "deallocate")
        and not run.spec.writes_sequentially
        for part in run.spec.parts
        if part.target_bytes <= info.capacity_bytes // 128  # larger ones meet whatever lies there
    )
    assert len(targets) >= 20
    for (_, end, before), (begin, _, run) in pairwise(targets):
        assert end <= begin, f"{before} and {run}"


def test_first_repetition_reads_do_not_find_map_cached() -> None:
    """Sequential reads behind a baseline at another place: as slow as those of a fresh device."""
    plan = make_plan(inspect_device("sim:dftl?blocks_per_die=301"), "quick", 1)
    same = [
        run.spec
        for run in plan.runs
        if (run.micro_benchmark, run.value) in (("baseline", 32 << 10), ("granularity", 32 << 10))
        and run.pattern == "SR"
    ]
    assert len(same) == 2
    used = open_device("sim:dftl?blocks_per_die=301")
    means = [mean_ns(used, spec.but(io_count=256)) for spec in same]
    fresh = mean_ns(open_device("sim:dftl?blocks_per_die=301"), same[1].but(io_count=256))
    assert means[1] == pytest.approx(fresh, rel=0.1)


def mean_ns(device: Device, spec: Spec) -> float:
    return float(np.asarray(device.run(spec).column("response_time_ns")).mean())
