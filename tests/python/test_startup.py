"""Does every run pass the start-up that a baseline shows, or report that it does not?"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import uflip
from hypothesis import given, settings
from hypothesis import strategies as st
from stored import pattern_phases

from uflip.benchmark import Choices, make_plan
from uflip.benchmark.run_lengths import STARTUP_MARGIN, adapt_spec, next_length
from uflip.device.catalogue import inspect_device
from uflip.device.handle import Device
from uflip.device.opener import open_device
from uflip.flash_waits import Writes, is_buffered, writes_of
from uflip.footprint import written_sequentially
from uflip.microbench.experiment import PlannedRun
from uflip.results import Results
from uflip.results.startup_check import (
    StartupInput,
    check_runs,
    finds_other_map,
    has_free_space,
    inside_startup,
    map_waits_of,
    mark_among,
    mark_of,
)
from uflip.results.summary_document import experiments_of, summary
from uflip.spec import Pattern, baseline, basic, mix, parallel, read_spec
from uflip.startup import MAX_ROWS, Startup, idle_share, in_rows, never_ends, startup_of

KIB = 1 << 10
MIB = 1 << 20


@pytest.fixture(scope="module")
def null_device() -> Device:
    return open_device("null", size=64 * MIB)


def written(device: Device, spec: Pattern, rows: int) -> tuple[int, int]:
    """Return I/Os and bytes that `rows` rows write, counted in the engine's trace."""
    trace = device.run(spec.but(io_count=rows))
    sizes, modes = np.asarray(trace.column("io_size_bytes")), np.asarray(trace.column("mode"))
    ours = (modes == 1) & (np.asarray(trace.column("component")) == component_that_counts(spec))
    return int(ours.sum()), int(sizes[ours].sum())


def component_that_counts(spec: Pattern) -> int:
    """The component that `io_count` counts: each has to pass the start-up by itself."""
    return len(spec.parts) - 1


@settings(max_examples=40, deadline=None)
@given(
    ios=st.integers(1, 300),
    size=st.sampled_from([512, 4 * KIB, 32 * KIB, 256 * KIB]),
    kind=st.sampled_from(["RW", "SW", "SR/RW", "SW/RW"]),
    several=st.integers(1, 9),
)
def test_startup_ends_with_the_row_that_writes_its_last_byte(
    null_device: Device, ios: int, size: int, kind: str, several: int
) -> None:
    """Against the I/Os of the engine: that row has written as much, the one before it has not."""
    if "/" in kind:
        first, second = (baseline(label, io_size=size) for label in kind.split("/"))
        spec = mix(first, second, several)
    else:
        spec = baseline(kind, io_size=size, parallel_degree=several)
    rows = in_rows(spec, Startup(reads=0, writes=ios, io_size=32 * KIB))
    totals = written(null_device, spec, rows)
    assert totals[0] >= ios
    assert totals[1] >= ios * 32 * KIB
    if rows > 1:
        fewer = written(null_device, spec, rows - 1)
        assert fewer[0] < ios or fewer[1] < ios * 32 * KIB


def test_reads_need_no_written_bytes() -> None:
    startup = Startup(reads=3, writes=100, io_size=32 * KIB)
    assert in_rows(baseline("SR", io_size=512), startup) == 3
    assert in_rows(parallel(), startup) == 0


def test_startup_is_the_largest_observed() -> None:
    phases = {
        "patterns": {"SR": pattern_phases(2), "RW": pattern_phases(40)},
        "again": {"RW": pattern_phases(60), "SR": pattern_phases(1)},
    }
    assert startup_of(phases, 4096) == Startup(2, 60, 4096, {"SR": 1.0, "RW": 1.0})
    endless = {"patterns": {"SW": pattern_phases(0, 777, "start_up_not_over")}, "again": {}}
    assert startup_of(endless, 4096) == Startup(0, 777, 4096, {"SW": 1.0}), (
        "the whole run, which is a lower bound"
    )


@pytest.mark.parametrize(
    ("count", "ignored", "is_found", "share"),
    [
        (256, 0, False, 1.0), (1100, 544, False, None), (1000, 500, False, 44 / 500),
        (1000, 520, False, None), (1000, 0, True, 544 / 1000), (1088, 0, True, None),
    ],
)  # fmt: skip
def test_share_inside_startup_is_reported(
    count: int, ignored: int, is_found: bool, share: float | None
) -> None:
    spec = baseline("RW", io_size=4096, io_count=count, io_ignore=ignored)
    inside = inside_startup(StartupInput("a", spec, is_found), Startup(0, 68, 32768))
    assert (None if inside is None else inside.share) == (
        None if share is None else pytest.approx(share)
    )


@pytest.mark.parametrize(
    ("benchmark", "value", "label", "sizes", "expected"),
    [
        # 1 GiB: the spare space of most drives, 6.9 %, is 70.5 MiB.
        ("order", 2, "SW", (70, 70), True), ("order", 2, "SW", (71, 70), False),
        ("order", 2, "SW", (1, 71), False), ("locality", 4096, "RW", (1, 1), False),
        ("locality", 4096, "SR", (1, 1), False), ("cache_cliff", 4096, "SW", (1, 1), False),
        ("deallocate", 0, "RW", (1, 1), False), ("deallocate", 50, "RW", (582, 1), True),
        ("deallocate", 50, "RW", (583, 1), False),
    ],
)  # fmt: skip
def test_free_space_remains_until_spare_is_written(
    benchmark: str, value: int, label: str, sizes: tuple[int, int], expected: bool
) -> None:
    """`sizes` are what the run and the sequential baseline write [MiB]."""
    run, other = (
        baseline(kind, io_size=32 * KIB, io_count=32 * size)
        for kind, size in zip((label, "SW"), sizes, strict=True)
    )
    assert has_free_space(benchmark, value, run, [other], 1 << 30) is expected


@pytest.mark.parametrize(
    ("target", "written", "sequential", "expected"),
    [(8, 70, 1, True), (8, 71, 1, False), (8, 70, 71, True), (70, 1, 1, True), (71, 1, 1, False)],
)
def test_writes_to_small_target_leave_free_space_whatever_the_baseline(
    target: int, written: int, sequential: int, expected: bool
) -> None:
    """All sizes in MiB."""
    run = baseline("RW", io_size=32 * KIB, io_count=32 * written, target_size=target << 20)
    other = baseline("SW", io_size=32 * KIB, io_count=32 * sequential)
    assert has_free_space("locality", target << 20, run, [other], 1 << 30) is expected


@pytest.mark.parametrize(
    ("incr", "written", "expected"), [(1, 8, False), (1, 16, True), (0, 8, True), (0, 71, False)]
)
def test_sequential_writes_that_wrap_around_are_in_place(
    incr: int, written: int, expected: bool
) -> None:
    """The target has 8 MiB, the baseline wrote 71 MiB; all sizes in MiB."""
    sizes = {"io_size": 32 * KIB, "io_count": 32 * written, "target_size": 8 << 20}
    run = basic("write", "ordered", incr=incr, **sizes)
    other = baseline("SW", io_size=32 * KIB, io_count=32 * 71)
    assert has_free_space("order", incr, run, [other], 1 << 30) is expected


def test_open_loop_leaves_idle_time_between_arrivals() -> None:
    """One of 100 arrivals 5 ms apart is a write: 500 ms, less 99 reads of 0.2 ms and a write."""
    startup = Startup(0, 96, 32 * KIB, {"RR": 200_000.0, "RW": 1_400_000.0})
    write, read = (baseline(label, io_size=32 * KIB) for label in ("RW", "RR"))
    spec = mix(
        write, read, first_percent=1, time="poisson", interval=5_000_000, queue_depth=64,
        io_count=400,
    )  # fmt: skip
    assert idle_share(spec, startup) == pytest.approx((500 - 19.8 - 1.4) / 1.4)
    assert never_ends(spec, startup)


def name(run: PlannedRun) -> str:
    return run.id.split("-", 1)[1]


@pytest.mark.parametrize("startup", [0, 1, 40, 100, 5000])
def test_quick_runs_skip_startup_and_keep_length(startup: int) -> None:
    plan = make_plan(inspect_device("sim:demo"), "quick", 1)
    phases = {"patterns": {"RW": pattern_phases(startup)}, "again": {}, "period_ios": 1}
    without = make_plan(inspect_device("sim:demo"), "quick", 1, Choices(method="paper"))
    # The order of runs is another.
    lengths = {name(run): run.spec.io_count - run.spec.io_ignore for run in without.runs}
    compared = 0
    for run in plan.runs:
        if run.micro_benchmark in ("baseline", "interference"):
            continue
        spec = adapt_spec(run, phases, 32 * KIB)
        assert spec.io_count - spec.io_ignore == lengths[name(run)], run.id
        assert spec.io_count <= run.spec.io_count
        bound = in_rows(run.spec, Startup(0, int(np.ceil(STARTUP_MARGIN * startup)), 32 * KIB))
        if spec.io_ignore < bound:
            assert startup == 5000, "beyond what there is room for"
        compared += bound > 0
    assert compared > 50 or startup == 0


# The whole


def runs_by_name(out: Path) -> dict[str, Any]:
    return {run.id.split("-", 1)[1]: run for run in Results.load(out).runs}


def test_short_runs_agree_with_long_runs(tmp_path: Path) -> None:
    """256 writes of 4 KiB are within the 2 MiB that sim:demo has in hand: 20 % too quick."""
    only = ("--scale", "quick", "--only", "baseline,granularity", "--quiet")
    warnings = {}
    for method in ("paper", "startup"):
        out = tmp_path / method
        assert uflip("run", "sim:demo", *only, "--method", method, "--out", out).code == 0
        warnings[method] = {each["code"]: each for each in Results.load(out).warnings}
    name = "granularity-RW-io_size-4096"
    assert "inside_startup" not in warnings["startup"]
    warning = warnings["paper"]["inside_startup"]
    assert any(run.endswith(name) for run in warning["numbers"]["runs"])
    assert set(warning) == {"code", "message", "numbers", "advice"}
    long = open_device("sim:demo").run(baseline("RW", io_size=4096, io_count=12_000))
    truth = np.asarray(long.column("response_time_ns"))[2000:].mean()
    means = {}
    for method in ("paper", "startup"):
        trace = runs_by_name(tmp_path / method)[name].trace()
        measured = np.asarray(trace.column("ignored")) == 0
        means[method] = float(np.asarray(trace.column("response_time_ns"))[measured].mean()) / truth
    assert abs(means["startup"] - 1) < abs(means["paper"] - 1)
    spec = read_spec(runs_by_name(tmp_path / "startup")[name].trace().spec_json)
    assert spec.io_ignore * 4096 > MIB


def test_pause_is_found_without_baselines(tmp_path: Path) -> None:
    """Without it, parallel reads of the Mtron waited for earlier writes: 0.76 ms, not 0.34 ms."""
    url, out = "sim:mtron?blocks_per_die=512", tmp_path / "out"
    outcome = uflip(
        "run", url, "--scale", "quick", "--only", "parallelism", "--quiet", "--out", out
    )
    assert outcome.code == 0, outcome.err
    results = Results.load(out)
    interference = results.manifest.interference
    assert interference["over"]
    assert interference["reads_affected"] > 1000
    runs = runs_by_name(out)
    later = [run.meta.pause_ns for run in results.runs if run.micro_benchmark == "parallelism"]
    assert set(later) == {interference["pause_ns"]}
    reads = np.asarray(runs["parallelism-SR-parallel_degree-1"].trace().column("response_time_ns"))
    calm = np.asarray(runs["interference-SR-batch-1"].trace().column("response_time_ns"))
    assert reads.mean() == pytest.approx(calm.mean(), rel=0.01)
    assert set(results.manifest.phases["patterns"]) == {"SR", "RW"}, "by the batches"


# Measured

# Small ones, which are soon in their state.
TLC = "sim:tlc-nvme?channels=2&dies_per_channel=2"
MTRON = "sim:mtron?blocks_per_die=512"


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Results]:
    """Make a benchmark in the quick scale, once for all tests of it."""
    made: dict[tuple[str, ...], Results] = {}

    def make(device: str, *only: str) -> Results:
        key = (device, *only)
        if key not in made:
            out = tmp_path_factory.mktemp("quick") / "out"
            names = ("--only", ",".join(only)) if only else ()
            outcome = uflip("run", device, "--scale", "quick", *names, "--quiet", "--out", out)
            assert outcome.code == 0, outcome.err
            made[key] = Results.load(out)
        return made[key]

    return make


def rows(results: Results) -> dict[str, Any]:
    return {
        f"{name} {row['pattern']} {row['value']}": row
        for name, row in experiments_of(summary(results))
    }


def test_cached_runs_are_marked_and_not_converged(
    quick: Callable[..., Results],
) -> None:
    """12 MiB of writes at 3 GB/s into 32 MiB of cache; the flash takes 40 times as long."""
    results = quick(TLC, "granularity")
    (warning,) = (one for one in results.warnings if one["code"] == "never_left_write_cache")
    experiments = rows(results)
    writes = [row for row in experiments.values() if row["pattern"] in ("SW", "RW")]
    marked = [row for row in writes if mark_of(row) == "never_left_write_cache"]
    assert len(marked) == warning["numbers"]["runs_examined"] - 2, "of 256 KiB 96 MiB are written"
    assert warning["message"].startswith(f"{len(marked)} of {len(writes)} write runs never left")
    for row in marked:
        assert row["together"]["converged"] is False
        assert [each["converged"] for each in row["repetitions"]] == [False]
    assert not [row for row in experiments.values() if row["pattern"] == "SR" and mark_of(row)]


@pytest.mark.parametrize(
    ("means_ns", "marked", "expected"),
    [
        ((100, 100, 100), 0, None),
        ((100, 100, 100), 3, "inside_startup"),
        ((60, 100, 100), 1, "inside_startup"),
        ((94, 100, 100), 1, "inside_startup"),
        ((96, 100, 100), 1, None),
        ((106, 100, 100), 1, "inside_startup"),
        ((100, 100, 100), 2, "inside_startup"),
        ((100, 100), 1, None),
        ((50, 100), 1, "inside_startup"),
        ((None, 100, 100), 1, None),
        ((None, None, 100), 2, "inside_startup"),
        ((), 0, None),
    ],
)
def test_partly_marked_experiment_is_marked_by_majority_or_mean(
    means_ns: tuple[float | None, ...], marked: int, expected: str | None
) -> None:
    """The first `marked` of the repetitions are inside the start-up."""
    repetitions: list[Any] = [
        {"mean_ns": mean, "reasons": ["inside_startup"] if number < marked else None}
        for number, mean in enumerate(means_ns)
    ]
    assert mark_among(repetitions) == expected


def test_most_certain_mark_of_repetitions_is_shown() -> None:
    repetitions: list[Any] = [
        {"mean_ns": 50.0, "reasons": ["inside_startup"]},
        {"mean_ns": 50.0, "reasons": ["interval_too_wide", "never_left_write_cache"]},
        {"mean_ns": 100.0, "reasons": ["interval_too_wide"]},
    ]
    assert mark_among(repetitions) == "never_left_write_cache"


def test_mix_with_quick_writes_is_right_or_marked(
    quick: Callable[..., Results],
) -> None:
    """sim:mtron with eight reads to a write: a write takes 6.3 ms in the long run, not 0.4."""
    results = quick(MTRON, "baseline", "mix")
    device = open_device(MTRON)
    half = device.info.capacity_bytes // 2
    long = device.run(
        mix(
            baseline("RR", target_size=half),
            baseline("RW", target_offset=half, target_size=half),
            8,
            io_count=3000,
            io_ignore=1000,
        )
    )
    measured = np.asarray(long.column("ignored")) == 0
    truth = float(np.asarray(long.column("response_time_ns"))[measured].mean())
    row = rows(results)["mix RR/RW 8"]
    assert row["statistics"]["mean_ns"] == pytest.approx(truth, rel=0.15)
    # A run as long as a start-up converted by bytes alone, with a margin of a quarter.
    (run,) = (run for run in results.runs if run.id.endswith("mix-RR+RW-ratio-8"))
    writes = np.flatnonzero(np.asarray(run.trace().column("mode")) == 1)
    short = device_after_a_pause(MTRON).run(run.spec.but(io_count=165, io_ignore=135))
    assert len(writes) > 165
    phases = results.manifest.phases
    plan = results.manifest.plan
    runs = [examined(entry, each.trace()) for entry, each in pairs(results)]
    before = check_runs(runs, phases, plan, device.info.capacity_bytes)
    assert run.id not in [inside.run_id for inside in before.inside]
    instead = [each for each in runs if each.run_id != run.id]
    instead.append(examined(results.manifest.entry(run.id), short))
    after = check_runs(instead, phases, plan, device.info.capacity_bytes)
    assert run.id in [inside.run_id for inside in after.inside]


def device_after_a_pause(url: str) -> Device:
    device = open_device(url)
    device.idle(5_000_000_000)
    return device


def pairs(results: Results) -> list[tuple[Any, Any]]:
    return [(results.manifest.entry(run.id), run) for run in results.runs]


def examined(entry: Any, trace: Any) -> StartupInput:
    spec = read_spec(trace.spec_json)
    label = entry.pattern if entry.micro_benchmark == "baseline" else None
    times = np.asarray(trace.column("response_time_ns"))
    name, writes = entry.micro_benchmark, writes_of(trace, spec)
    return StartupInput(entry.id, spec, trace.ended_json is not None, label, name, writes, times)


def test_write_delayed_by_full_cache_waits_for_flash() -> None:
    """32 MiB of cache absorb 1,024 writes of 32 KiB, and as many as are flushed meanwhile."""
    device = device_after_a_pause(TLC)
    spec = baseline("RW", io_size=32 * KIB, io_count=3000, target_size=1 << 30)
    (writes,) = writes_of(device.run(spec), spec)
    assert 32 * MIB <= writes.bytes_before_wait <= 64 * MIB
    assert writes.buffered
    assert not writes.never_waited
    spec = spec.but(io_count=500)
    (writes,) = writes_of(device_after_a_pause(TLC).run(spec), spec)
    assert writes.never_waited
    assert writes.bytes_before_wait is None


def test_response_times_reveal_cached_writes_without_causes() -> None:
    """A real device: a read takes 150 µs; writes take 20 µs, and 400 µs where they wait."""
    quick = np.full(1000, 20_000) + np.arange(1000) % 7 * 500
    slow = np.where(np.arange(1000) % 5 == 0, 400_000, quick)
    for times, never in ((quick, True), (slow, False)):
        writes = writes_of_times(times)
        assert writes.waited is None
        assert writes.never_waited is never
        assert is_buffered(writes, read_ns=150_000.0)
        assert not is_buffered(writes, read_ns=25_000.0)


def writes_of_times(times: np.ndarray) -> Writes:
    class Log:
        causes: tuple[str, ...] = ()

        def column(self, name: str) -> np.ndarray:
            return times if name == "response_time_ns" else np.zeros(len(times), dtype=np.uint8)

    (writes,) = writes_of(Log(), baseline("RW", io_size=32 * KIB))
    return writes


@pytest.mark.parametrize(
    ("reads", "rows"), [(0, 119), (4, 143), (8, 179), (20, None), (64, 119)]
)  # fmt: skip
def test_idle_time_prolongs_startup(reads: int, rows: int | None) -> None:
    """119 / (1 - i / m), with m = 9 ms for a write in the long run and reads of 0.375 ms."""
    startup = Startup(0, 119, 32 * KIB, {"RR": 375_000.0, "RW": 9_000_000.0})
    read, spec = (baseline(label, io_size=32 * KIB) for label in ("RR", "RW"))
    if reads:
        spec = mix(read, spec, reads)
    assert in_rows(spec, startup) == (MAX_ROWS if rows is None else rows)
    assert never_ends(spec, startup) is (reads == 64)


def test_scan_of_addresses_just_read_is_marked() -> None:
    """The map entries of 1,024 reads fit into memory, where the first scan leaves them."""
    device = device_after_a_pause("sim:dftl?blocks_per_die=301&mapping_cache_bytes=300000")
    spec = baseline(
        "SR", io_size=32 * KIB, io_count=1024, io_ignore=0, target_size=32 * MIB, target_offset=0
    )
    means, runs = [], []
    for _ in range(2):
        trace = device.run(spec)
        means.append(np.mean(trace.column("response_time_ns")))
        waits = map_waits_of(trace)
        runs.append(StartupInput("run", spec, has_stop_rule=False, map_waits=waits))
    first, again = runs
    assert means[1] < means[0] / 2
    capacity = device.info.capacity_bytes
    assert finds_other_map(again, 0.0, capacity, first) is not None
    assert finds_other_map(first, 0.0, capacity, first) is None


def test_reads_that_evict_changed_map_entries_are_marked() -> None:
    """Random writes leave changed entries in memory; reads evict all of them, and change none.

    A run of 100,000 reads is long enough for the others to decide its mean.
    """
    keys = "blocks_per_die=256&spare_factor=0.15&mapping_cache_bytes=100000"
    device = open_device(f"sim:dramless-nvme?{keys}", writable=True)
    capacity = device.info.capacity_bytes
    shape = {"io_size": 4 * KIB, "io_ignore": 0, "target_offset": 0, "target_size": capacity}
    device.run(baseline("RW", **shape, io_count=20_000))
    means, marks = [], []
    for seed, count in ((1, 500), (2, 100_000), (3, 500)):
        spec = baseline("RR", **shape, io_count=count, seed=seed)
        trace = device.run(spec)
        means.append(np.mean(trace.column("response_time_ns")))
        waits = map_waits_of(trace, json.loads(trace.counters_json())["mapping_pages_programmed"])
        run = StartupInput("run", spec, has_stop_rule=False, map_waits=waits)
        marks.append(finds_other_map(run, 0.0, capacity) is not None)
    assert means[0] > 2 * means[2]
    assert marks == [True, False, False]


# Extended baselines


def baseline_run(pattern: str, device: str, scale: str, **choices: Any) -> tuple[PlannedRun, Any]:
    plan = make_plan(inspect_device(device), scale, 1, Choices(only=("baseline",), **choices))
    (run,) = (run for run in plan.runs if run.id.endswith(f"baseline-{pattern}-io_size-32768"))
    return run, plan


@pytest.mark.parametrize(
    ("pattern", "device", "scale", "method"),
    [
        ("RR", "sim:tlc-nvme", "standard", None), ("RW", "sim:tlc-nvme", "quick", None),
        ("RW", "sim:tlc-nvme", "standard", "paper"), ("RW", "null", "standard", None),
        ("RW", "sim:demo", "standard", None),
    ],
)  # fmt: skip
def test_baseline_that_cannot_write_spare_space_keeps_length(
    pattern: str, device: str, scale: str, method: str | None
) -> None:
    run, plan = baseline_run(pattern, device, scale, method=method, repetitions=1)
    assert plan.longer_baseline(run) is None


def test_baseline_extends_beyond_spare_space_if_time_allows() -> None:
    """512 GB are sold of 512 GiB: 6.87 %. Of 32 GiB these are 2.2 GiB."""
    run, plan = baseline_run("RW", "sim:tlc-nvme", "standard", repetitions=1)
    longest = plan.longer_baseline(run)
    assert longest.io_count * 32 * KIB >= 0.0687 * plan.target_size
    assert longest.io_ignore == longest.io_count // 2
    fast = open_device("null", size=64 * MIB).run(baseline("RW", io_count=1000, io_size=4096))
    assert next_length(longest, fast).io_count == 8 * 1000
    slow = open_device("sim:samsung?blocks_per_die=256")
    made = slow.run(baseline("RW", io_count=4000, io_size=32 * KIB))
    assert next_length(longest, made) is None, "120 s are 6,900 of 17.3 ms"


def test_sequential_baselines_have_space_to_extend() -> None:
    _, plan = baseline_run("SW", "sim:tlc-nvme", "standard", repetitions=3)
    writing = [run for run in plan.runs if run.spec.writes_sequentially]
    begins = [run.spec.parts[0].begin for run in writing]
    sizes = [written_sequentially(plan.longer_baseline(run)).size for run in writing]
    assert len(writing) == 3
    for begin, size, following in zip(begins, sizes, [*begins[1:], plan.target_size], strict=True):
        assert begin + size <= following


def test_cached_drive_baseline_measures_long_run(tmp_path: Path) -> None:
    """In the first 40 MiB a write of 4 KiB takes 20 µs; what follows takes twenty times as long."""
    out = tmp_path / "out"
    only = ("--only", "baseline", "--scale", "standard", "--io-size", "4k", "--repetitions", "1")
    assert uflip("run", TLC, *only, "--quiet", "--out", out).code == 0
    experiments = rows(Results.load(out))
    device = device_after_a_pause(TLC)
    size = device.info.capacity_bytes
    long = device.run(baseline("RW", io_size=4096, io_count=200_000, target_size=size))
    truth = float(np.asarray(long.column("response_time_ns"))[100_000:].mean())
    row = experiments["baseline RW 4096"]
    assert row["io_count"] * 4096 >= 0.0687 * size
    assert row["statistics"]["mean_ns"] == pytest.approx(truth, rel=0.15)
    assert mark_of(row) is None
