"""Do the micro-benchmarks cover Table 1, and fit every device?"""

from typing import Any

import msgspec
import pytest
import stored

from uflip.benchmark_options import SCALES, SUITES
from uflip.data.device import DeviceInfo, Geometry
from uflip.data.document import plain
from uflip.data.manifest import entry_of
from uflip.data.spec import table_of
from uflip.device.resolve import resolve
from uflip.errors import UsageError
from uflip.microbench import (
    MICRO_BENCHMARKS,
    alignment,
    check_names,
    micro_benchmarks_for,
    mix,
    partitioning,
    varied_micro_benchmarks,
)
from uflip.microbench.experiment import Context, Experiment, run_seed
from uflip.microbench.micro_benchmark import Addresses
from uflip.microbench.open_channel.jobs import SCALES as JOB_SCALES
from uflip.microbench.open_channel.jobs import JobScope
from uflip.report import figures
from uflip.spec import BASELINES

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


def device(capacity: int, sector: int = 512) -> DeviceInfo:
    return stored.device_info("null", capacity_bytes=capacity, sector_bytes=sector)


def lay_out(name: str, scale: str = "standard", **changes: Any) -> list[Experiment]:
    settings = {"info": device(64 * GIB), "seed": 1} | changes
    return MICRO_BENCHMARKS[name].experiments(Context(scale=scale, **settings))


def values(name: str, pattern: str, scale: str = "standard") -> list[int]:
    experiments = [e for e in lay_out(name, scale) if e.pattern == pattern]
    assert len(experiments) == 1
    assert not experiments[0].skipped
    return [run.value for run in experiments[0].runs]


def powers(first: int, last: int, factor: int = 1) -> list[int]:
    return [2**k * factor for k in range(first, last + 1)]


# Table 1, and §5.1


def test_nine_paper_micro_benchmarks_follow_baselines_in_paper_order() -> None:
    paper = [
        "baseline", "granularity", "alignment", "locality", "partitioning", "order",
        "parallelism", "mix", "pause", "bursts",
    ]  # fmt: skip
    assert [name for name in micro_benchmarks_for("sectors") if name in paper] == paper
    assert [*varied_micro_benchmarks()] == [
        name for name in micro_benchmarks_for("sectors") if name != "baseline"
    ]


@pytest.mark.parametrize("name", micro_benchmarks_for("sectors"))
def test_micro_benchmark_defines_report_texts(name: str) -> None:
    one = MICRO_BENCHMARKS[name]
    assert one.name == name
    assert one.figure in figures.MICRO_BENCHMARKS
    assert name not in varied_micro_benchmarks() or (
        one.question.endswith("?") and one.how_to_read.endswith(".")
    )


@pytest.mark.parametrize(
    ("name", "parameter", "patterns"),
    [
        ("baseline", "io_size", ["SR", "RR", "SW", "RW"]),
        ("granularity", "io_size", ["SR", "RR", "SW", "RW"]),
        ("alignment", "io_shift", ["SR", "RR", "SW", "RW"]),
        ("locality", "target_size", ["SR", "RR", "SW", "RW"]),
        ("partitioning", "partitions", ["SR", "SW"]),
        ("order", "incr", ["SR", "SW"]),
        ("parallelism", "parallel_degree", ["SR", "RR", "SW", "RW"]),
        ("mix", "ratio", ["SR/RR", "SR/SW", "SR/RW", "RR/SW", "RR/RW", "SW/RW"]),
        ("pause", "pause", ["SR", "RR", "SW", "RW"]),
        ("bursts", "burst", ["SR", "RR", "SW", "RW"]),
    ],
)
def test_micro_benchmark_varies_one_parameter(
    name: str, parameter: str, patterns: list[str]
) -> None:
    experiments = lay_out(name)
    assert [experiment.pattern for experiment in experiments] == patterns
    assert {experiment.parameter for experiment in experiments} == {parameter}


@pytest.mark.parametrize("pattern", BASELINES)
def test_ranges_match_table_1(pattern: str) -> None:
    sequential = pattern in ("SR", "SW")
    granularity = values("granularity", pattern)
    assert set(powers(0, 9, 512)) <= set(granularity)
    assert len(set(granularity) - set(powers(0, 9, 512))) >= 3, "plus some non-powers of 2"
    assert values("alignment", pattern) == [0, *powers(0, 6, 512)]
    assert values("locality", pattern) == powers(0, 8 if sequential else 16, 32 * KIB)
    assert values("parallelism", pattern) == powers(0, 4)
    assert values("pause", pattern) == powers(0, 8, 100_000)
    assert values("bursts", pattern) == powers(0, 6, 10)
    if sequential:
        assert values("partitioning", pattern) == powers(0, 8)
        assert values("order", pattern) == [-1, 0, *powers(0, 8)]


def test_mix_range_matches_table_1() -> None:
    for pair in mix.PAIRS:
        assert values("mix", pair) == powers(0, 6)


@pytest.mark.parametrize("name", varied_micro_benchmarks())
def test_standard_run_counts_match_paper(name: str) -> None:
    for experiment in lay_out(name):
        # In a mix the counts are those of the rarer, second pattern.
        rarer = experiment.pattern.split("/")[-1]
        expected = (5120, 128) if rarer == "RW" else (1024, 0)
        for run in experiment.runs:
            counts = (run.spec.io_count, run.spec.io_ignore)
            if name == "bursts" and run.value == 640 and rarer != "RW":
                expected = (1280, 0)  # two whole bursts
            assert counts == expected


def test_baseline_runs_are_long() -> None:
    for experiment in lay_out("baseline"):
        (run,) = experiment.runs
        assert run.value == 32 * KIB
        assert run.spec.io_count == 10_240


# The reference patterns


@pytest.mark.parametrize("name", varied_micro_benchmarks())
@pytest.mark.parametrize("scale", SCALES)
def test_runs_of_experiment_differ_only_in_parameter(name: str, scale: str) -> None:
    free = {
        # Targets grow if each I/O needs its own extent; counts shrink in quick.
        "granularity": {"target_size"},
        "order": {"target_size"},
        "parallelism": {"target_size"},
        "mix": {"first", "second"},
        "bursts": {"io_count", "target_size", "io_ignore"},
        "pause": {"io_count", "target_size", "io_ignore"} if scale == "quick" else set(),
    }.get(name, set())
    free |= {"io_count", "io_ignore"} if (name, scale) == ("mix", "quick") else set()
    for experiment in lay_out(name, scale):
        same = [
            {
                key: value
                for key, value in table_of(run.spec).items()
                if key not in {experiment.parameter, "seed"} | free
            }
            for run in experiment.runs
        ]
        assert all(spec == same[0] for spec in same)
        for run in experiment.runs:
            assert getattr(run.spec, experiment.parameter) == run.value


@pytest.mark.parametrize("name", micro_benchmarks_for("sectors"))
@pytest.mark.parametrize("scale", SCALES)
def test_pattern_matches_its_label(name: str, scale: str) -> None:
    for experiment in lay_out(name, scale):
        labels = experiment.pattern.split("/")
        for run in experiment.runs:
            for label, part in zip(labels, run.spec.parts, strict=True):
                mode, location = BASELINES[label]
                assert part.mode == mode
                changed = {"order": "ordered", "partitioning": "partitioned"}
                assert part.location == changed.get(name, location)


def test_random_patterns_span_device_and_sequential_their_length() -> None:
    for experiment in lay_out("granularity"):
        for run in experiment.runs:
            random = experiment.pattern in ("RR", "RW")
            whole = 64 * GIB // run.value * run.value
            assert run.spec.target_size == (whole if random else 1024 * run.value)


def test_shifted_sequential_pattern_does_not_wrap() -> None:
    for experiment in lay_out("alignment"):
        for run in experiment.runs:
            usable = run.spec.target_size - run.spec.io_shift
            if experiment.pattern in ("SR", "SW"):
                assert usable // run.spec.io_size >= run.spec.io_count


def test_partitions_are_whole_ios_of_constant_target() -> None:
    for capacity in (64 * GIB, GIB, 64 * MIB, 63 * MIB):
        context = Context(device(capacity), "standard", 1)
        target = partitioning.target_size(context)
        assert target <= min(capacity // 2, GIB)
        for experiment in partitioning.MICRO_BENCHMARK.experiments(context):
            for run in experiment.runs:
                assert run.spec.target_size == target
                assert target % (run.value * 32 * KIB) == 0


def test_ordered_target_holds_every_address() -> None:
    for experiment in lay_out("order"):
        for run in experiment.runs:
            assert run.spec.target_size == max(abs(run.value), 1) * 1024 * 32 * KIB


@pytest.mark.parametrize(
    ("capacity", "budgets"),
    [(GIB, False), (4 * GIB, False), (GIB + 32 * KIB, False), (64 * GIB, True)],
)
def test_wrapping_increment_visits_each_slot_once(capacity: int, budgets: bool) -> None:
    """Offsets follow the formula of Table 1, Incr × i × IOSize, modulo the target."""
    came_round = 0
    for experiment in lay_out("order", info=device(capacity), budgets=budgets):
        for run in experiment.runs:
            target, count = run.spec.target_size, run.spec.io_count
            assert target <= min(capacity, 8 * GIB)
            if run.value == 0:
                continue
            slots = target // (32 * KIB)
            visited = {run.value * i % slots for i in range(min(count, slots))}
            assert len(visited) == min(count, slots), run.id
            came_round += run.value * count > slots
    assert came_round


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("capacity", [64 * GIB, GIB, 64 * MIB + 32 * KIB])
def test_mix_patterns_use_disjoint_halves(scale: str, capacity: int) -> None:
    for experiment in lay_out("mix", scale, info=device(capacity)):
        for run in experiment.runs:
            first, second = run.spec.first, run.spec.second
            assert first.end <= second.begin
            assert second.end <= capacity


# The quick scale


def test_quick_ranges_keep_both_ends() -> None:
    for name in varied_micro_benchmarks():
        for quick, standard in zip(lay_out(name, "quick"), lay_out(name), strict=True):
            thinned = [run.value for run in quick.runs]
            whole = [run.value for run in standard.runs]
            assert 3 <= len(thinned) <= 5
            assert set(thinned) <= set(whole)
            assert {min(whole), max(whole)} <= set(thinned)


def test_quick_runs_are_short_and_keep_enough_ios() -> None:
    for name in varied_micro_benchmarks():
        for experiment in lay_out(name, "quick"):
            for run in experiment.runs:
                totals = resolve(run.spec, device(64 * GIB)).totals
                assert totals.pause_ns <= 3_000_000_000, run.id
                assert totals.total_ios <= 3000, run.id
                assert run.spec.io_count - run.spec.io_ignore >= 30, run.id


def test_bursts_have_at_least_two_groups() -> None:
    for scale in SCALES:
        for experiment in lay_out("bursts", scale):
            for run in experiment.runs:
                assert run.spec.io_count >= 2 * run.value


# Every device


@pytest.mark.parametrize("name", micro_benchmarks_for("sectors"))
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(
    ("capacity", "sector"),
    [
        (2000 * GIB, 4096),
        (32 * GIB, 512),
        (GIB, 512),
        (GIB + 13 * 512, 512),
        (64 * MIB, 4096),
        (5 * MIB, 512),
        (32 * KIB, 512),
    ],
)
def test_run_fits_device_or_is_skipped_with_reason(
    name: str, scale: str, capacity: int, sector: int
) -> None:
    info = device(capacity, sector)
    on_device = lay_out(name, scale, info=info)
    on_large_device = lay_out(name, scale)
    for experiment, full in zip(on_device, on_large_device, strict=True):
        for run in experiment.runs:
            resolve(run.spec, info)
        made = [run.value for run in experiment.runs]
        skipped = [skip.value for skip in experiment.skipped]
        assert sorted(made + skipped) == sorted(run.value for run in full.runs)
        assert all(skip.reason for skip in experiment.skipped)


def test_values_finer_than_4kn_sector_are_skipped() -> None:
    for name, skipped in (
        ("granularity", {512, 1024, 1536, 2048, 6144}),
        ("alignment", {512, 1024, 2048}),
    ):
        for experiment in lay_out(name, info=device(64 * GIB, 4096)):
            assert {skip.value for skip in experiment.skipped} == skipped
            for skip in experiment.skipped:
                assert "not a multiple of the sector of 4 KiB" in skip.reason


def test_target_larger_than_device_is_skipped_with_size() -> None:
    (experiment,) = [e for e in lay_out("locality", info=device(GIB)) if e.pattern == "RW"]
    (skip,) = experiment.skipped
    assert skip.value == 2 * GIB
    assert skip.reason == "the target of 2 GiB is larger than the 1 GiB that are measured"


def test_baseline_io_size_scales_relative_values() -> None:
    assert alignment.standard(8192) == (0, 512, 1024, 2048, 4096, 8192)
    assert alignment.quick(8192) == (0, 512, 4096, 8192)
    for experiment in lay_out("locality", io_size=8192):
        assert experiment.runs[0].value == 8192


# Names and seeds


def test_run_ids_are_unique_file_names() -> None:
    names = [
        run.id for name in micro_benchmarks_for("sectors") for e in lay_out(name) for run in e.runs
    ]
    assert len(set(names)) == len(names)
    assert not any("/" in name or " " in name for name in names)
    run = lay_out("granularity")[3].runs[0]
    assert run.id == "granularity-RW-io_size-512"
    assert plain(entry_of(run)) == msgspec.to_builtins(run)


def test_run_seeds_are_unique_and_fit_json() -> None:
    seeds = [
        run.spec.seed
        for name in micro_benchmarks_for("sectors")
        for e in lay_out(name)
        for run in e.runs
    ]
    assert len(set(seeds)) == len(seeds)
    assert max(seeds) < 2**53
    assert run_seed(1, "mix", "SR/RW", 4) == run_seed(1, "mix", "SR/RW", 4)
    assert run_seed(1, "mix", "SR/RW", 4) != run_seed(2, "mix", "SR/RW", 4)


def test_unknown_micro_benchmark_lists_known_ones() -> None:
    with pytest.raises(UsageError) as caught:
        check_names(["granularty"], "sectors")
    assert caught.value.allowed == ", ".join(micro_benchmarks_for("sectors"))
    assert "granularity" in caught.value.action


@pytest.mark.parametrize(("name", "device"), [("oc0", "sectors"), ("mix", "physical")])
def test_micro_benchmark_of_other_device_kind_is_refused(name: str, device: Addresses) -> None:
    with pytest.raises(UsageError, match="needs another kind of device") as caught:
        check_names([name], device)
    assert caught.value.allowed == ", ".join(micro_benchmarks_for(device))


def test_device_kinds_partition_micro_benchmarks() -> None:
    suites = [micro_benchmarks_for("sectors", suite) for suite in SUITES]
    every = {name: one for each in suites for name, one in each.items()} | micro_benchmarks_for(
        "physical"
    )
    assert every == MICRO_BENCHMARKS
    scope = JobScope(Geometry(2, 2, 1, 8, 4, 1, 4096, 1), JOB_SCALES["quick"], (0, 0, 7))
    for name, one in micro_benchmarks_for("physical").items():
        assert {job.micro_benchmark for job in one.jobs(scope)} == {name}
        assert one.question
