"""Does a killed benchmark resume without a difference, and only where it may?"""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stored
from command_line import start, uflip, unchanged
from warm import BENCHMARKS, program

from uflip.benchmark import Choices, Plan, make_plan
from uflip.benchmark.session import remaining_plan
from uflip.benchmark.target_spaces import BLOCK
from uflip.data.spec import Spec, typed_spec
from uflip.footprint import (
    NO_EXTENTS,
    Extents,
    all_but_written_sequentially,
    union,
    written_sequentially,
)
from uflip.results import Results, result_dir
from uflip.results.columns import as_array
from uflip.safe_files import temporary_name

MIB, GIB = 1 << 20, 1 << 30
SMALL_SIM = "sim:demo?blocks_per_die=64&random_overwrites=3"


@pytest.fixture
def scratch(make_file: Callable[..., Path]) -> Path:
    return make_file(64 * MIB)


def start_and_kill(out: Path, finished: int, *arguments: object) -> subprocess.Popen[str]:
    """Start a benchmark and kill it when `finished` runs are stored."""
    process = start("run", *arguments, "--out", out, "--quiet", program=program(*BENCHMARKS))
    wait_for(lambda: len(list((out / "runs").glob("0*.parquet"))) >= finished)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    assert process.returncode == -signal.SIGKILL
    return process


def wait_for(condition: Callable[[], bool], timeout_s: float = 60) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


# A simulated device


@pytest.mark.parametrize(
    ("finished", "state"), [(2, ()), (40, ("--state", "sequential")), (90, ("--state", "as-is"))]
)
def test_simulated_device_resumes_identically(
    workdir: Path, finished: int, state: tuple[str, ...]
) -> None:
    arguments = (SMALL_SIM, "--scale", "quick", *state)
    assert uflip("run", *arguments, "--out", "whole", "--quiet").code == 0
    start_and_kill(workdir / "cut", finished, *arguments)
    before = Results.load("cut")
    assert finished <= len(before.runs) < len(before.manifest.plan)
    outcome = uflip("run", "--resume", "cut", "--quiet")
    assert outcome.code == 0, outcome.err
    whole, cut = Results.load("whole"), Results.load("cut")
    assert (cut.status, cut.missing) == ("complete", [])
    assert len(cut.manifest.resumed_utc) == 1
    assert cut.manifest.plan == whole.manifest.plan
    assert cut.manifest.warnings == whole.manifest.warnings
    for one, other in zip(whole.runs, cut.runs, strict=True):
        for column in ("submit_ns", "response_time_ns"):
            times = [as_array(run.trace(), column) for run in (one, other)]
            assert np.array_equal(*times), one.id
        assert one.meta.counters == other.meta.counters
        assert one.meta.state_id == other.meta.state_id


# A real device


def test_file_resumes_with_next_run_in_fresh_space(make_file: Callable[..., Path]) -> None:
    scratch = make_file(256 * MIB)  # without a reset
    out = scratch.parent / "out"
    arguments = ("file:scratch.bin", "--scale", "quick", "--only", "granularity", "--pause", "1ms")
    start_and_kill(out, 13, *arguments)
    record = json.loads((scratch.parent / "results/states/file-scratch.bin.json").read_text())
    assert record["state_id"] is not None
    planned = json.loads((out / "manifest.json").read_text())["plan"]
    mtimes = {run.id: run.path.stat().st_mtime_ns for run in Results.load(out).runs}
    outcome = uflip("run", "--resume", out)
    assert outcome.code == 0, outcome.err
    assert "state over" not in outcome.err, "the state is not enforced again"
    results = Results.load(out)
    assert (results.status, results.missing) == ("complete", [])
    for run in results.runs:
        assert mtimes.get(run.id, run.path.stat().st_mtime_ns) == run.path.stat().st_mtime_ns
    # Possibly written extents: those of the old plan up to the kill, and of the new one.
    cut = next(number for number, run in enumerate(planned) if run["id"] not in mtimes)
    extents = [written_sequentially(typed_spec(run["spec"])) for run in planned[: cut + 1]]
    extents += [written_sequentially(run.spec) for run in results.manifest.plan[cut:]]
    assert not any(run.reset_before for run in results.manifest.plan)
    for number, extent in enumerate(extents):
        assert not any(extent.overlaps(other) for other in extents[number + 1 :])


def test_changed_file_is_refused(scratch: Path) -> None:
    out = scratch.parent / "out"
    start_and_kill(
        out, 1, "file:scratch.bin", "--scale", "quick", "--only", "baseline", "--pause", "1ms"
    )
    # It keeps its number, which the other one could get otherwise.
    scratch.rename(scratch.parent / "kept.bin")
    scratch.write_bytes(bytes(64 * MIB))
    with unchanged(out):
        outcome = uflip("run", "--resume", out)
    assert outcome.code == 4
    assert "not the device that was measured" in outcome.err


# Refusals


def test_complete_folder_cannot_be_resumed(workdir: Path) -> None:
    arguments = (SMALL_SIM, "--only", "order", "--scale", "quick", "--out", "out", "--quiet")
    assert uflip("run", *arguments).code == 0
    with unchanged(workdir):
        outcome = uflip("run", "--resume", "out")
    assert (outcome.code, "These results are complete" in outcome.err) == (5, True)


def test_foreign_folder_cannot_be_resumed(workdir: Path) -> None:
    (workdir / "photos").mkdir()
    (workdir / "photos" / "manifest.json").write_text('{"format": "photos"}')
    for folder in ("photos", "nothing"):
        with unchanged(workdir):
            outcome = uflip("run", "--resume", folder)
        assert outcome.code == 5, outcome.err


def test_locked_folder_cannot_be_resumed(workdir: Path) -> None:
    start_and_kill(workdir / "out", 2, SMALL_SIM, "--scale", "quick")
    held = result_dir.acquire_lock(workdir / "out")
    with unchanged(workdir):
        outcome = uflip("run", "--resume", "out")
    assert (outcome.code, "Another process is using" in outcome.err) == (5, True)
    result_dir.release_lock(held)
    assert uflip("run", "--resume", "out", "--quiet").code == 0


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        (("--seed", "3"), "--seed"),
        (("--out", "x"), "--out"),
        (("--state", "random"), "--state"),
        (("sim:demo",), "DEVICE"),
    ],
)
def test_options_cannot_change_on_resume(
    workdir: Path, arguments: tuple[str, ...], where: str
) -> None:
    start_and_kill(workdir / "out", 1, SMALL_SIM, "--scale", "quick")
    # Half a run, as a kill may leave it.
    last = Results.load("out").manifest.plan[-1].id
    (workdir / "out" / "runs" / f".{last}.parquet.tmp").write_bytes(b"half")
    with unchanged(workdir):
        outcome = uflip("run", "--resume", "out", *arguments)
    assert (outcome.code, where in outcome.err) == (2, True), outcome.err


def test_resume_removes_only_temporary_files(workdir: Path) -> None:
    start_and_kill(workdir / "out", 3, SMALL_SIM, "--scale", "quick")
    first = Results.load("out").manifest.plan[0].id
    (workdir / "out" / "summaries").mkdir(exist_ok=True)
    (workdir / "out" / "inside").mkdir(exist_ok=True)
    names = [
        f"runs/.{first}.parquet.tmp", f"inside/.{first}.parquet.tmp",
        f"summaries/.{first}.json.tmp", f"summaries/.{first}.pyramid.npy.tmp",
        "summaries/.experiments.json.tmp",
    ]  # fmt: skip
    others = ["summaries/.notes.tmp", "runs/.mine.parquet.tmp"]
    for name in (*names, *others):
        (workdir / "out" / name).write_bytes(b"half")
    assert uflip("run", "--resume", "out", "-q").code == 0
    remaining = {str(path.relative_to(workdir / "out")) for path in (workdir / "out").glob("*/.*")}
    assert remaining == {*others}


def test_benchmark_stopped_by_time_limit_resumes(workdir: Path) -> None:
    del workdir
    arguments = ("null", "--scale", "quick", "--only", "order", "--pause", "40ms")
    stopped = uflip("run", *arguments, "--max-time", "100ms", "--out", "out", "--json")
    document = json.loads(stopped.out)
    # All runs fit by the estimate, but not by the clock.
    assert document["status"] in ("interrupted", "complete")
    if document["status"] == "interrupted":
        assert "out_of_time" in {warning["code"] for warning in document["warnings"]}
        document = json.loads(uflip("run", "--resume", "out", "--json").out)
    assert document["status"] == "complete"
    assert "out_of_time" not in {warning["code"] for warning in document["warnings"]}


# The rest of a plan


@cache
def blocks_of(spec: Spec) -> tuple[Extents, Extents]:
    """Return the extents written sequentially, and those touched by other runs."""
    return (
        written_sequentially(spec).in_blocks(BLOCK),
        all_but_written_sequentially(spec).in_blocks(BLOCK),
    )


def quick_plan(capacity: int = 4 * GIB, **changes: Any) -> Plan:
    info = stored.device_info(capacity_bytes=capacity)
    return make_plan(info, "quick", 1, Choices(**changes))


@pytest.mark.parametrize("capacity", [64 * MIB, GIB, 64 * GIB])
def test_resumed_plan_never_reuses_written_space(capacity: int) -> None:
    plan = quick_plan(capacity)
    for cut in range(len(plan.runs)):
        done = {run.id for run in plan.runs[:cut]}
        resumed = remaining_plan(plan, done, just_reset=False)
        assert [run.id for run in resumed.runs] == [run.id for run in plan.runs]
        # The interrupted run wrote to its old target; the remaining runs follow.
        written = [*plan.runs[: cut + 1], *resumed.runs[cut:]]
        used = NO_EXTENTS
        for number, run in enumerate(written):
            if run.reset_before:
                used = NO_EXTENTS
            sequential, others = blocks_of(run.spec)
            assert not sequential.overlaps(used), (cut, number)
            assert not others.overlaps(used), (cut, number)
            assert written_sequentially(run.spec).end <= plan.target_size
            used = union([used, sequential])


def test_completed_reset_is_not_repeated() -> None:
    plan = quick_plan(64 * GIB)
    assert plan.resets == 0, "there is room for one place more"
    first = next(number for number, run in enumerate(plan.runs) if run.spec.writes_sequentially)
    marked = replace(plan.runs[first], reset_before=True)
    plan = replace(plan, runs=(*plan.runs[:first], marked, *plan.runs[first + 1 :]))
    done = {run.id for run in plan.runs[:first]}
    assert remaining_plan(plan, done, just_reset=False).runs[first].reset_before
    resumed = remaining_plan(plan, done, just_reset=True).runs[first]
    assert not resumed.reset_before
    assert resumed.spec != plan.runs[first].spec, "it may have begun to write"


def test_finished_plan_is_unchanged() -> None:
    plan = quick_plan(only=("order",))
    assert remaining_plan(plan, {run.id for run in plan.runs}, just_reset=False) == plan
    reading = replace(plan, runs=tuple(run for run in plan.runs if run.pattern == "SR"))
    assert remaining_plan(reading, set(), just_reset=False) == reading


# A full disk, and a power cut


@pytest.fixture
def small_disk(workdir: Path) -> Iterator[Path]:
    """Mount a small file system, for the results only."""
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None:
        pytest.skip("a file system of its own needs root and mkfs.ext4")
    image, folder = workdir / "disk.img", workdir / "disk"
    image.write_bytes(bytes(4 * MIB))
    folder.mkdir()
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True)
    mount = ["mount", "-o", "loop", image, folder]
    mounted = subprocess.run(mount, check=False, capture_output=True)
    if mounted.returncode:
        pytest.skip(f"no loop device here: {mounted.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def fill(folder: Path, but_bytes: int) -> Path:
    """Fill a file system but for so much."""
    space = os.statvfs(folder)
    ballast = folder / "ballast"
    ballast.write_bytes(bytes(space.f_bavail * space.f_frsize - but_bytes))
    return ballast


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("t.parquet", ("pattern", SMALL_SIM, "--pattern", "RW", "--io-count", "50k", "--trace")),
        ("t.csv", ("pattern", SMALL_SIM, "--pattern", "RW", "--io-count", "50k", "--trace")),
        ("d.snapshot", ("prepare", SMALL_SIM, "--save")),
    ],
)
def test_full_disk_is_an_output_error(
    small_disk: Path, name: str, command: tuple[str, ...]
) -> None:
    ballast = fill(small_disk, but_bytes=8 << 10)
    failed = uflip(*command, small_disk / name, "-q")
    assert failed.code == 5, failed.err
    assert "No space left on device" in failed.err
    (where,) = re.findall("^ +where +(.*)$", failed.err, re.M)
    assert where == f"{command[-1]} {small_disk / name}", "the requested path"
    assert [*small_disk.glob("[!l]*")] == [ballast]


def test_full_disk_at_start_leaves_nothing_to_resume(
    small_disk: Path,
) -> None:
    ballast = fill(small_disk, but_bytes=0)
    process = start("run", SMALL_SIM, "--scale", "quick", "--out", small_disk / "r", "-q")
    err = process.communicate()[1]
    assert process.returncode == 5, err
    assert "No space left on device" in err
    assert str(small_disk / "r") in err
    assert "resume" not in err
    assert [*small_disk.glob("[!l]*")] == [ballast]


@pytest.mark.parametrize(
    ("device", "free_bytes"), [(SMALL_SIM, 300 << 10), ("file:scratch.bin", 90 << 10)]
)
def test_benchmark_resumes_after_full_disk(
    small_disk: Path, scratch: Path, device: str, free_bytes: int
) -> None:
    """There is room for the plan and some of its runs, but not for all."""
    out = small_disk / "out"
    record = ("--record", scratch.parent / "record.json") if device.startswith("file") else ()
    ballast = fill(small_disk, but_bytes=free_bytes)
    arguments = (device, "--scale", "quick", "--only", "granularity,order", "--pause", "1ms")
    failed = uflip("run", *arguments, *record, "--out", out)
    assert failed.code == 5, failed.err
    assert "No space left on device" in failed.err
    assert f"uflip run --resume {out}" in failed.err
    before = {run.id: run.path.read_bytes() for run in Results.load(out).runs}
    assert before, "some runs fit"
    assert len(before) < len(Results.load(out).manifest.plan)
    names = {path.suffix for path in (out / "runs").iterdir()}
    assert names == {".parquet"}, "nothing half written is left"
    # It is still full: it fails again, and loses nothing.
    assert uflip("run", "--resume", out, *record).code == 5
    assert {run.id: run.path.read_bytes() for run in Results.load(out).runs} == before
    ballast.unlink()
    outcome = uflip("run", "--resume", out, *record)
    assert outcome.code == 0, outcome.err
    assert "state over" not in outcome.err, "the state is not enforced again"
    results = Results.load(out)
    assert (results.status, results.missing) == ("complete", [])
    assert len(results.runs) > len(before)
    assert all(
        run.path.read_bytes() == before.get(run.id, run.path.read_bytes()) for run in results.runs
    )


def test_temporary_files_of_a_power_cut_are_replaced(scratch: Path) -> None:
    """Leave the rests of an interruption: temporary names of any length, and an unheld lock."""
    out = scratch.parent / "out"
    arguments = ("file:scratch.bin", "--scale", "quick", "--only", "granularity", "--pause", "1ms")
    start_and_kill(out, 5, *arguments)
    stored = Results.load(out)
    manifest = json.loads((out / "manifest.json").read_text())
    last, missing = stored.runs[-1], stored.missing
    half = last.path.read_bytes()[: last.path.stat().st_size // 2]
    for content, name in ((half, missing[0]), (b"", missing[1])):
        temporary_name(out / "runs" / f"{name}.parquet").write_bytes(content)
    temporary_name(out / "manifest.json").write_text('{"format": ')
    contents = {run.id: run.path.read_bytes() for run in stored.runs}
    outcome = uflip("run", "--resume", out)
    assert outcome.code == 0, outcome.err
    results = Results.load(out)
    assert (results.status, results.missing) == ("complete", [])
    assert [run.id for run in results.runs] == [run["id"] for run in manifest["plan"]]
    assert all(
        run.path.read_bytes() == contents.get(run.id, run.path.read_bytes()) for run in results.runs
    )
    assert {path.suffix for path in (out / "runs").iterdir()} == {".parquet"}


def test_truncated_run_is_measured_again(scratch: Path) -> None:
    """A file system that lost confirmed data costs the run; the truncated file is kept."""
    out = scratch.parent / "out"
    start_and_kill(
        out, 3, "file:scratch.bin", "--scale", "quick", "--only", "order", "--pause", "1ms"
    )
    before = Results.load(out)
    path, contents = before.runs[1].path, {run.id: run.path.read_bytes() for run in before.runs}
    truncated = path.read_bytes()[:-100]
    path.write_bytes(truncated)
    outcome = uflip("run", "--resume", out)
    assert outcome.code == 0, outcome.err
    after = Results.load(out)
    assert (after.status, after.missing) == ("complete", [])
    assert path.with_name(f"{path.name}.damaged-1").read_bytes() == truncated
    del contents[before.runs[1].id]
    assert {run.id: run.path.read_bytes() for run in after.runs if run.id in contents} == contents
