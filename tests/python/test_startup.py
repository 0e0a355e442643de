"""Does every run leave the start-up behind that a baseline shows, or say that it does not?"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import uflip
from hypothesis import given, settings
from hypothesis import strategies as st

from uflip.device.catalogue import inspect_device
from uflip.device.opened import Device
from uflip.device.opening import open_device
from uflip.experiment import PlannedRun
from uflip.methodology import Choices, make_plan
from uflip.methodology.phases import MARGIN, adapted
from uflip.results import Results
from uflip.results.left import Length, inside_startup
from uflip.spec import Pattern, baseline, mix, parallel, read_spec
from uflip.startup import Startup, in_rows, startup_of

KIB = 1 << 10
MIB = 1 << 20


@pytest.fixture(scope="module")
def nothing() -> Device:
    return open_device("null", size=64 * MIB)


def written(device: Device, spec: Pattern, rows: int) -> tuple[int, int]:
    """I/Os and bytes that so many rows write, counted in what the engine makes of them."""
    trace = device.run(spec.but(io_count=rows))
    sizes, modes = np.asarray(trace.column("io_size_bytes")), np.asarray(trace.column("mode"))
    return int((modes == 1).sum()), int(sizes[modes == 1].sum())


@settings(max_examples=40, deadline=None)
@given(
    ios=st.integers(1, 300),
    size=st.sampled_from([512, 4 * KIB, 32 * KIB, 256 * KIB]),
    kind=st.sampled_from(["RW", "SW", "SR/RW", "SW/RW"]),
    several=st.integers(1, 9),
)
def test_the_start_up_is_over_with_the_row_that_writes_its_last_byte(
    nothing: Device, ios: int, size: int, kind: str, several: int
) -> None:
    """Against the I/Os of the engine: that row has written as much, the one before it has not."""
    if "/" in kind:
        first, second = (baseline(label, io_size=size) for label in kind.split("/"))
        spec = mix(first, second, several)
    else:
        spec = baseline(kind, io_size=size, parallel_degree=several)
    rows = in_rows(spec, Startup(reads=0, writes=ios, io_size=32 * KIB))
    enough = written(nothing, spec, rows)
    assert enough[0] >= ios
    assert enough[1] >= ios * 32 * KIB
    if rows > 1:
        fewer = written(nothing, spec, rows - 1)
        assert fewer[0] < ios or fewer[1] < ios * 32 * KIB


def test_reads_use_up_no_room() -> None:
    known = Startup(reads=3, writes=100, io_size=32 * KIB)
    assert in_rows(baseline("SR", io_size=512), known) == 3
    assert in_rows(parallel(), known) == 0


def seen(startup: int, ios: int = 1024, *reasons: str) -> dict[str, Any]:
    return {"startup_ios": startup, "ios": ios, "reasons": list(reasons)}


def test_the_bound_is_the_largest_of_all_that_was_seen() -> None:
    phases = {"patterns": {"SR": seen(2), "RW": seen(40)}, "again": {"RW": seen(60), "SR": seen(1)}}
    assert startup_of(phases, 4096) == Startup(2, 60, 4096)
    endless = {"patterns": {"SW": seen(0, 777, "start_up_not_over")}}
    assert startup_of(endless, 4096) == Startup(0, 777, 4096), "all of it, and who knows what more"


@pytest.mark.parametrize(
    ("count", "ignored", "is_found", "share"),
    [
        (256, 0, False, 1.0), (1100, 544, False, None), (1000, 500, False, 44 / 500),
        (1000, 520, False, None), (1000, 0, True, 544 / 1000), (1088, 0, True, None),
    ],
)  # fmt: skip
def test_what_is_measured_of_a_start_up_is_said(
    count: int, ignored: int, is_found: bool, share: float | None
) -> None:
    spec = baseline("RW", io_size=4096, io_count=count, io_ignore=ignored)
    found = inside_startup(Length("a", spec, is_found), Startup(0, 68, 32768))
    assert (None if found is None else found.share) == (
        None if share is None else pytest.approx(share)
    )


def name(run: PlannedRun) -> str:
    return run.id.split("-", 1)[1]


@pytest.mark.parametrize("startup", [0, 1, 40, 100, 5000])
def test_quick_runs_leave_out_what_a_baseline_shows_and_keep_their_length(startup: int) -> None:
    plan = make_plan(inspect_device("sim:demo"), "quick", 1)
    phases = {"patterns": {"RW": seen(startup)}, "period_ios": 1}
    without = make_plan(inspect_device("sim:demo"), "quick", 1, Choices(method="paper"))
    # The order of runs is another.
    kept = {name(run): run.spec.io_count - run.spec.io_ignore for run in without.runs}
    compared = 0
    for run in plan.runs:
        if run.micro_benchmark in ("baseline", "interference"):
            continue
        spec = adapted(run, phases, 32 * KIB)
        assert spec.io_count - spec.io_ignore == kept[name(run)], run.id
        assert spec.io_count <= run.spec.io_count
        bound = in_rows(run.spec, Startup(0, int(np.ceil(MARGIN * startup)), 32 * KIB))
        if spec.io_ignore < bound:
            assert startup == 5000, "beyond what there is room for"
        compared += bound > 0
    assert compared > 50 or startup == 0


# The whole


def of_runs(out: Path) -> dict[str, Any]:
    return {run.id.split("-", 1)[1]: run for run in Results.load(out).runs}


def test_short_runs_of_small_writes_say_what_long_ones_say(tmp_path: Path) -> None:
    """256 writes of 4 KiB are within the 2 MiB that sim:demo has in hand: 20 % too quick."""
    only = ("--scale", "quick", "--only", "baseline,granularity", "--quiet")
    told = {}
    for method in ("paper", "startup"):
        out = tmp_path / method
        assert uflip("run", "sim:demo", *only, "--method", method, "--out", out).code == 0
        told[method] = {each["code"]: each for each in Results.load(out).warnings}
    name = "granularity-RW-io_size-4096"
    assert "inside_startup" not in told["startup"]
    warning = told["paper"]["inside_startup"]
    assert any(run.endswith(name) for run in warning["numbers"]["runs"])
    assert set(warning) == {"code", "message", "numbers", "advice"}
    long = open_device("sim:demo").run(baseline("RW", io_size=4096, io_count=12_000))
    truth = np.asarray(long.column("response_time_ns"))[2000:].mean()
    means = {}
    for method in ("paper", "startup"):
        trace = of_runs(tmp_path / method)[name].trace()
        kept = np.asarray(trace.column("ignored")) == 0
        means[method] = float(np.asarray(trace.column("response_time_ns"))[kept].mean()) / truth
    assert abs(means["startup"] - 1) < abs(means["paper"] - 1)
    spec = read_spec(of_runs(tmp_path / "startup")[name].trace().spec_json)
    assert spec.io_ignore * 4096 > MIB


def test_the_pause_is_found_without_the_baselines_too(tmp_path: Path) -> None:
    """Alone, parallel reads of the Mtron met what writes had left: 0.76 ms in place of 0.34."""
    url, out = "sim:mtron?blocks_per_die=512", tmp_path / "out"
    done = uflip("run", url, "--scale", "quick", "--only", "parallelism", "--quiet", "--out", out)
    assert done.code == 0, done.err
    kept = Results.load(out)
    found = kept.manifest.interference
    assert found["over"]
    assert found["reads_affected"] > 1000
    runs = of_runs(out)
    later = [run.meta.pause_ns for run in kept.runs if run.micro_benchmark == "parallelism"]
    assert set(later) == {found["pause_ns"]}
    reads = np.asarray(runs["parallelism-SR-parallel_degree-1"].trace().column("response_time_ns"))
    calm = np.asarray(runs["interference-SR-batch-1"].trace().column("response_time_ns"))
    assert reads.mean() == pytest.approx(calm.mean(), rel=0.01)
    assert set(kept.manifest.phases["patterns"]) == {"SR", "RW"}, "by the batches"
