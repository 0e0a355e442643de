"""Does the command line run a benchmark from beginning to end, and report every mistake clearly?"""

import json
import os
import pty
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import warm
from command_line import PACKAGE_ROOT, start, tree, uflip, unchanged
from warm import BENCHMARKS

import uflip as package
from uflip.benchmark import (
    Choices,
    PlanGrew,
    RunFinished,
    RunProgress,
    RunStarted,
    estimate,
    make_plan,
)
from uflip.cli.benchmark_progress import PlanProgress
from uflip.cli.main import VERBS
from uflip.cli.progress import IoRate
from uflip.device.catalogue import inspect_device, known_devices
from uflip.errors import EXIT_CODES, UsageError
from uflip.microbench import micro_benchmarks_for
from uflip.results import Results

MIB = 1 << 20
SMALL_SIM = "sim:demo?blocks_per_die=64"  # some 100 MiB: ready at once


@pytest.fixture
def scratch(make_file: Callable[..., Path]) -> Path:
    return make_file(64 * MIB)


# Complete benchmarks


def test_benchmark_of_a_simulated_device(workdir: Path) -> None:
    outcome = uflip("run", SMALL_SIM, "--out", "results/demo", "--scale", "quick")
    assert outcome.code == 0, outcome.err
    results = Results.load(workdir / "results" / "demo")
    assert results.status == "complete"
    assert results.missing == []
    assert {run.micro_benchmark for run in results.runs} == {
        "baseline", "interference", "granularity", "alignment", "locality", "partitioning", "order",
        "parallelism", "mix", "pause", "bursts",
    }  # fmt: skip
    assert results.manifest.device.url == SMALL_SIM
    assert results.manifest.harness["null_ns_per_io"] > 0
    assert "uflip report results/demo" in outcome.out
    assert "to read" in outcome.err


def test_benchmark_of_a_file(scratch: Path) -> None:
    arguments = ("--scale", "quick", "--only", "order,alignment", "--pause", "1ms")
    outcome = uflip("run", "file:scratch.bin", "--out", "disk", *arguments)
    assert outcome.code == 0, outcome.err
    results = Results.load(scratch.parent / "disk")
    assert {run.micro_benchmark for run in results.runs} == {"order", "alignment"}
    assert results.manifest.pause_ns == 1_000_000
    assert scratch.stat().st_size == 64 * MIB


def test_same_seed_gives_the_same_runs(workdir: Path) -> None:
    for out in ("one", "two"):
        outcome = uflip("run", SMALL_SIM, "--only", "baseline", "--scale", "quick", "--out", out)
        assert outcome.code == 0
    one, two = (Results.load(workdir / out) for out in ("one", "two"))
    for a, b in zip(one.runs, two.runs, strict=True):
        assert (a.response_time_ns() == b.response_time_ns()).all()


def test_default_result_folder_is_named_after_device_and_time(workdir: Path) -> None:
    assert uflip("run", "null", "--only", "order", "--scale", "quick").code == 0
    (folder,) = (workdir / "results").iterdir()
    assert folder.name.startswith("null-2")


def test_json_prints_only_the_summary(workdir: Path) -> None:
    outcome = uflip("run", "null", "--only", "baseline", "--scale", "quick", "--out", "n", "--json")
    document = json.loads(outcome.out)
    assert outcome.err == ""
    assert document["results"] == "n"
    assert document["status"] == "complete"
    assert set(document["baselines_ms"]) == {"SR", "RR", "SW", "RW"}


# Bad input


BAD_RUNS: list[tuple[list[str], str, list[str]]] = [
    (
        ["nope"],
        "usage",
        ["Unknown device", "sim:NAME, file:PATH, /dev/NAME, nvme:/dev/NAME, nbd:unix:PATH, null"],
    ),
    (["rack3@file:x"], "usage", ["Unknown device", "the machine rack3", "--scheduler"]),
    (["sim:nope"], "usage", ["Unknown profile", "demo"]),
    (["sim:demo?nope=1"], "usage", ["Unknown key of a profile", "channels"]),
    (["null", "--only", "nope"], "usage", ["Unknown micro-benchmark", "granularity, alignment"]),
    (["null", "--scale", "nope"], "usage", ["Unknown scale", "quick, standard"]),
    (["null", "--data", "nope"], "usage", ["Unknown data", "random, zeros"]),
    (["null", "--seed", "-1"], "usage", ["--seed", "0 to"]),
    (["null", "--pause", "5"], "usage", ["needs its unit", "--pause"]),
    (["null", "--io-size", "-4k"], "usage", ["cannot be negative", "--io-size"]),
    (["null", "--io-size", "0"], "usage", ["--io-size", "multiples of 512"]),
    (["null", "--io-size", "1000"], "usage", ["--io-size", "multiples of 512"]),
    (["null", "--io-size", "1t"], "usage", ["--io-size", "64 GiB"]),
    (["null", "--nope"], "usage", ["--nope", "uflip run --help"]),
    ([], "usage", ["DEVICE", "uflip run --help"]),
    (["file:new.bin"], "device", ["does not exist", "--size"]),
    (["file:."], "device", ["not a regular file", "directory"]),
    (["file:no/new.bin", "--size", "1MiB"], "device", ["folder", "no"]),
    (["file:new.bin", "--size", "0"], "usage", ["--size", "multiples of 512"]),
    (["file:new.bin", "--size", "-1g"], "usage", ["cannot be negative"]),
    (["file:new.bin", "--size", "1000"], "usage", ["--size", "multiples of 512"]),
    (["file:new.bin", "--size", "16k"], "usage", ["--io-size", "16 KiB"]),
    (["file:new.bin", "--size", "1MiB", "--data", "x"], "usage", ["Unknown data"]),
    (["file:new.bin", "--size", "1MiB", "--destroy", "x"], "usage", ["a file by its own name"]),
    (["sim:demo", "--size", "1MiB"], "usage", ["--size applies only to files"]),
    (["sim:demo", "--buffered"], "usage", ["--buffered applies only to files", "page cache"]),
    (["sim:demo", "--io-timeout", "5s"], "usage", ["--io-timeout applies only to", "nbd:ADDRESS"]),
    (
        ["null", "--io-timeout", "0s"],
        "usage",
        ["--io-timeout applies only to files, block devices"],
    ),
    (["sim:demo", "--record", "mine.json"], "usage", ["--record applies only", "sim:demo"]),
    (["null", "--buffered"], "usage", ["--buffered applies only to files", "file:PATH, /dev/NAME"]),
    (["file:/dev/null"], "refused", ["under /dev"]),
    (["file:/dev/nope", "--size", "1MiB"], "refused", ["under /dev"]),
    (["/dev/nope"], "device", ["/dev/nope", "uflip devices"]),
    (["/dev/null"], "device", ["not a block device"]),
]


@pytest.mark.parametrize(("arguments", "kind", "texts"), BAD_RUNS, ids=str)
def test_invalid_run_has_its_exit_code_and_changes_no_file(
    workdir: Path, arguments: list[str], kind: str, texts: list[str]
) -> None:
    with unchanged(workdir):
        outcome = uflip("run", *arguments, "--out", "out")
    assert outcome.code == EXIT_CODES[kind][0], outcome.err
    assert outcome.out == ""
    assert outcome.err.startswith("error: ")
    for text in texts:
        assert text in outcome.err


@pytest.mark.parametrize(("arguments", "kind", "texts"), BAD_RUNS, ids=str)
def test_invalid_run_prints_a_json_error(
    workdir: Path, arguments: list[str], kind: str, texts: list[str]
) -> None:
    with unchanged(workdir):
        outcome = uflip("run", *arguments, "--out", "out", "--json")
    error = json.loads(outcome.out)["error"]
    assert outcome.code == error["exit_code"] == EXIT_CODES[kind][0]
    assert error["kind"] == kind
    for text in texts:
        assert any(text in part for part in error.values() if isinstance(part, str))


@pytest.mark.parametrize("verb", [("run", "--out", "out"), ("prepare",)])
def test_foreign_file_is_refused_before_its_size_is_checked(
    workdir: Path, verb: tuple[str, ...]
) -> None:
    (workdir / "notes.txt").write_bytes(b"mine" * 300)
    with unchanged(workdir):
        outcome = uflip(*verb, "file:notes.txt")
    assert outcome.code == EXIT_CODES["refused"][0]
    assert "was not made by uflip" in outcome.err
    assert "--destroy notes.txt" in outcome.err


def test_read_only_file_is_not_changed(scratch: Path) -> None:
    scratch.chmod(0o444)
    with unchanged(scratch.parent):
        outcome = uflip("run", "file:scratch.bin", "--out", "out")
    assert outcome.code == EXIT_CODES["device"][0]
    assert "read-only" in outcome.err


def test_block_device_needs_its_exact_token(workdir: Path, loop_device: str) -> None:
    token = next(device["token"] for device in known_devices() if device["url"] == loop_device)
    for extra in ([], ["--destroy", "MODEL:SERIAL:1"]):
        with unchanged(workdir):
            outcome = uflip("run", loop_device, "--out", "out", *extra)
        assert outcome.code == EXIT_CODES["refused"][0]
        assert token in outcome.err


@pytest.mark.parametrize("kind", ["folder", "file", "link"])
def test_results_are_never_overwritten(workdir: Path, kind: str) -> None:
    out = workdir / "out"
    if kind == "folder":
        out.mkdir()
    elif kind == "file":
        out.write_text("precious")
    else:
        out.symlink_to(workdir / "nowhere")
    with unchanged(workdir):
        outcome = uflip("run", "file:new.bin", "--size", "64MiB", "--out", "out")
    assert outcome.code == EXIT_CODES["results"][0]
    assert "--out" in outcome.err


def test_result_folder_inside_a_file_is_refused(workdir: Path) -> None:
    (workdir / "file").write_text("")
    with unchanged(workdir):
        outcome = uflip("run", "file:new.bin", "--size", "64MiB", "--out", "file/out")
    assert outcome.code == EXIT_CODES["results"][0]
    assert "not a folder" in outcome.err


# Failures during a benchmark


def start_warm(*arguments: object) -> subprocess.Popen[str]:
    """Start a command as a process of its own, with preloaded modules."""
    return start(*arguments, program=warm.program(*BENCHMARKS))


def limit_files(size: int) -> Any:
    """Make every write beyond a file size fail, as a full disk does."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_failing_device_keeps_the_finished_runs(scratch: Path) -> None:
    process = start(
        "run", "file:scratch.bin", "--only", "baseline", "--scale", "quick", "--out", "out",
        "--state", "as-is", preexec_fn=limit_files(16 * MIB),
    )  # fmt: skip
    out, err = process.communicate(timeout=120)
    assert process.returncode == EXIT_CODES["device"][0]
    assert "A write of 32 KiB" in err
    assert "the 2 finished runs are kept, see `uflip show out`" in err
    results = Results.load(scratch.parent / "out")
    assert results.status == "failed"
    assert [run.pattern for run in results.runs] == ["SR", "RR"]
    assert uflip("show", "out").code == 0
    assert out == ""


def test_full_disk_leaves_no_partial_run(workdir: Path) -> None:
    process = start(
        "run", SMALL_SIM, "--only", "baseline", "--out", "out", preexec_fn=limit_files(14_000)
    )
    _, err = process.communicate(timeout=120)
    assert process.returncode == EXIT_CODES["results"][0], err
    assert "no run was finished" in err
    results = Results.load(workdir / "out")
    assert results.runs == []
    assert [name for name in tree(workdir / "out") if "runs/" in name] == []


def test_ctrl_c_keeps_the_finished_runs(workdir: Path) -> None:
    process = start_warm("run", "null", "--only", "pause", "--out", "out", "--pause", "10ms")
    runs = workdir / "out" / "runs"
    wait_for(lambda: len(list(runs.glob("*.parquet"))) >= 2)
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    _, err = process.communicate(timeout=30)
    assert time.monotonic() - began < 10
    assert process.returncode == 130
    assert "Interrupted after" in err
    assert "uflip show out" in err
    assert "Traceback" not in err
    results = Results.load(workdir / "out")
    assert results.status == "interrupted"
    assert len(results.runs) >= 2
    assert len(results.runs) + len(results.missing) == len(results.manifest.plan)
    assert {path.suffix for path in runs.iterdir()} == {".parquet"}, "no half-written run"
    shown = uflip("show", "out")
    assert shown.code == 0
    assert f"{len(results.runs)} of 108 runs" in shown.out


def test_ctrl_c_before_the_first_run_is_reported(workdir: Path) -> None:
    process = start_warm("run", "null", "--only", "pause", "--out", "out", "--pause", "30s")
    wait_for((workdir / "out" / "manifest.json").exists)
    # The long pause before the first run begins a moment after the folder is created.
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "no run was finished" in err


@pytest.mark.parametrize("verb", [["run"], ["prepare"], ["pattern", "--pattern", "SR"]], ids=str)
def test_ctrl_c_removes_the_file_being_created(workdir: Path, verb: list[str]) -> None:
    """The file is so large that its creation is interrupted in any case."""
    path = workdir / "large.bin"
    process = start_warm(*verb, f"file:{path}", "--size", "8GiB")
    wait_for(lambda: path.exists() and path.stat().st_size > 4 * MIB)
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    _, err = process.communicate(timeout=30)
    if "O_DIRECT" in err:
        pytest.skip("no direct I/O in the folder for temporary files")
    assert time.monotonic() - began < 5
    assert process.returncode == 130, err
    assert "creating file:" in err
    assert re.search(r"Interrupted after \d+ of 8192 MiB of the file were written", err)
    assert "the file was removed" in err
    assert list(workdir.iterdir()) == [], "the file is removed"


def test_ctrl_c_restores_the_length_of_a_growing_file(scratch: Path) -> None:
    before = scratch.read_bytes()
    process = start_warm("run", "file:scratch.bin", "--size", "8GiB", "--out", "out")
    wait_for(lambda: scratch.stat().st_size > len(before) + 4 * MIB)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "enlarging file:scratch.bin" in err
    assert "as long as it was before" in err
    assert scratch.read_bytes() == before
    assert [path.name for path in scratch.parent.iterdir()] == ["scratch.bin"]


def test_killed_file_creation_is_completed_by_the_same_command(workdir: Path) -> None:
    path = workdir / "file.bin"
    arguments = ("pattern", "file:file.bin", "--size", "600MiB", "--pattern", "SR", "--json")
    process = start_warm(*arguments)
    wait_for(lambda: path.exists() and path.stat().st_size > 4 * MIB)
    process.kill()
    _, err = process.communicate(timeout=30)
    if "O_DIRECT" in err:
        pytest.skip("no direct I/O in the folder for temporary files")
    assert path.stat().st_size < 600 * MIB
    if "user.uflip" not in os.listxattr(path):
        pytest.skip("no extended attributes in the folder for temporary files")
    assert uflip(*arguments).code == 0
    assert path.stat().st_size == 600 * MIB <= path.stat().st_blocks * 512


def test_killed_benchmark_keeps_the_finished_runs(workdir: Path) -> None:
    process = start_warm("run", "null", "--only", "pause", "--out", "out", "--pause", "10ms")
    wait_for(lambda: len(list((workdir / "out" / "runs").glob("*.parquet"))) >= 2)
    process.kill()
    process.communicate()
    results = Results.load(workdir / "out")
    assert len(results.runs) >= 2
    assert uflip("show", "out").code == 0


def wait_for(condition: Any, timeout_s: float = 30.0) -> None:
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, "the condition did not hold in time"
        time.sleep(0.02)


# Terminals and pipes


@pytest.mark.parametrize("with_rich", [True, False])
def test_progress_is_drawn_on_a_terminal_only(workdir: Path, with_rich: bool) -> None:
    if with_rich:
        pytest.importorskip("rich")
    ours, theirs = pty.openpty()
    without_rich = "" if with_rich else "sys.modules['rich'] = None; "
    program = f"import sys; {without_rich}from uflip.cli.main import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", program, "run", "null", "--only", "order", "--scale", "quick",
         "--pause", "150ms", "--out", "out"],
        stdout=subprocess.PIPE, stderr=theirs,
        env=os.environ | {"PYTHONPATH": str(PACKAGE_ROOT), "TERM": "xterm", "COLUMNS": "120"},
    )  # fmt: skip
    os.close(theirs)
    drawn = b""
    try:
        while chunk := os.read(ours, 65536):
            drawn += chunk
    except OSError:  # the other end is closed
        pass
    finally:
        os.close(ours)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0, drawn
    text = drawn.decode()
    assert "left" in text
    assert "order SW incr 256" in text
    assert "/10" in text
    assert b"left" not in out


def test_progress_shows_run_share_response_time_and_time_left() -> None:
    plan = make_plan(inspect_device("null"), "quick", 1, Choices(only=("granularity",)))
    drawn: list[tuple[float, str]] = []

    class Sink:
        def draw(self, done: float, text: str) -> None:
            drawn.append((done, text))

        def expect(self, total: int) -> None:
            totals.append(total)

    totals: list[int] = []
    show = PlanProgress(plan, estimate(plan), Sink())
    show(RunStarted(0, plan.runs[0]))
    show(RunProgress(0, plan.runs[0], 64, 256, 1_234_000))
    show(RunFinished(0, plan.runs[0], 10**9))
    assert [done for done, _ in drawn] == [0, 0.25, 1]
    assert drawn[1][1].endswith("left  granularity SR io_size 512 B  25%  1.23 ms")
    show(RunProgress(0, plan.runs[0], 192, 256, 1_234_000))
    assert re.search(r"  75%  [\d,]+ IOPS  1.23 ms$", drawn.pop()[1])
    # One run took a second instead of microseconds: so will the others of its pattern.
    assert "s left" in drawn[2][1]
    assert "ms left" not in drawn[2][1]
    show(PlanGrew(replace(plan, runs=plan.runs * 2)))
    assert totals == [2 * len(plan.runs)]
    show(RunStarted(len(plan.runs), plan.runs[0]))
    assert drawn[3][0] == len(plan.runs)


def test_io_rate_covers_the_last_seconds() -> None:
    now = [0.0]
    rate = IoRate(simulated=False, clock_s=lambda: now[0])
    assert rate.text(0) == ""
    for tenth in range(1, 101):  # 100 I/Os a second, and then 1,000
        now[0] = tenth / 10
        text = rate.text(10 * tenth if tenth <= 50 else 500 + 100 * (tenth - 50))
        if tenth == 50:
            assert text == "100 IOPS  "
    assert text == "1,000 IOPS  "
    rate.begin()
    assert rate.text(0) == ""


def test_progress_without_a_terminal_is_a_line_per_interval(
    workdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def progress_of(name: str, every: str, *options: str) -> str:
        monkeypatch.setenv("UFLIP_PROGRESS", every)
        arguments = (SMALL_SIM, "--scale", "quick", "--only", "order", "--out", name)
        process = start_warm("run", *arguments, *options)
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        return err

    progress_lines = progress_of("a", "0.000001")
    lines = re.findall(r"^\[(\d+)/(\d+)\]  (.*)$", progress_lines, re.M)
    assert len(lines) > 10
    assert all(" left  " in text for *_, text in lines)
    assert "\r" not in progress_lines
    assert " left  " not in progress_of("b", "0")
    assert progress_of("c", "0.000001", "--quiet") == ""
    monkeypatch.setenv("UFLIP_PROGRESS", "often")
    outcome = uflip("run", SMALL_SIM, "--scale", "quick", "--only", "order", "--out", "e")
    assert (outcome.code, "UFLIP_PROGRESS" in outcome.err) == (2, True)
    assert not (workdir / "e").exists()
    outcome = uflip("run", f"file:{workdir / 'new.bin'}", "--size", "4MiB", "--out", "e")
    assert (outcome.code, "UFLIP_PROGRESS" in outcome.err) == (2, True)
    assert not (workdir / "new.bin").exists()
    new = ("pattern", f"file:{workdir / 'new.bin'}", "--size", "4MiB", "--pattern", "RW")
    outcome = uflip(*new)
    assert (outcome.code, "UFLIP_PROGRESS" in outcome.err) == (2, True)
    assert not (workdir / "new.bin").exists()
    # Commands without progress do not read the variable.
    for arguments in (("--help",), ("run", "--help"), ("devices",), (*new, "-q")):
        assert uflip(*arguments).code == 0, arguments


def test_closed_pipe_is_not_an_error(workdir: Path) -> None:
    process = start("plan", "null", "--runs")
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (0, "")


def test_unexpected_exception_has_its_own_exit_code(
    workdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("uflip.cli.devices.known_devices", broken)
    outcome = uflip("devices")
    assert outcome.code == EXIT_CODES["internal"][0]
    assert "ZeroDivisionError: oops" in outcome.err
    assert "report" in outcome.err


# The other verbs


def test_help_shows_verbs_examples_and_exit_codes() -> None:
    outcome = uflip("--help")
    assert outcome.code == 0
    for verb in VERBS:
        assert f"  {verb} " in outcome.out
    for code, meaning in EXIT_CODES.values():
        assert f"{code:>3}  {meaning}" in outcome.out
    assert uflip().out == outcome.out
    assert uflip("--version").out.startswith("uflip ")


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(verb: str) -> None:
    outcome = uflip(verb, "--help")
    assert outcome.code == 0
    assert f"Usage: uflip {verb}" in outcome.out


def test_unknown_verb_lists_the_verbs() -> None:
    outcome = uflip("rum")
    assert outcome.code == EXIT_CODES["usage"][0]
    assert "run, plan, pattern, replay, oc, prepare" in outcome.err
    assert "did you mean run?" in outcome.err


def test_only_the_used_verb_is_imported() -> None:
    program = (
        "import sys\n"
        "from uflip.cli.main import main\n"
        "try: main(['devices'])\n"
        "except SystemExit: pass\n"
        "heavy = {'matplotlib', 'rich', 'pyarrow', 'pandas', 'numpy', 'uflip.cli.show'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    process = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": str(PACKAGE_ROOT)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert process.stdout.splitlines()[-1] == "[]"


def test_plan_lists_runs_without_touching_the_device(workdir: Path) -> None:
    with unchanged(workdir):
        outcome = uflip("plan", "file:new.bin", "--size", "1GiB", "--scale", "quick")
    assert outcome.code == 0
    rows = [line.split() for line in outcome.out.splitlines()]
    total = next(row for row in rows if row[:1] == ["total"])
    assert int(total[1]) > 100
    assert "skipped: locality" in outcome.out
    assert "before the first run: random state over 1 GiB" in outcome.out


def test_plan_names_the_first_of_many_skipped_runs() -> None:
    words = ("plan", "sim:demo?blocks_per_die=64", "--scale", "quick", "--max-time", "1s")
    reasons = [skip["reason"] for skip in json.loads(uflip(*words, "--json").out)["skipped"]]
    late = sum("at most" in reason for reason in reasons)
    (line,) = [line for line in uflip(*words).out.splitlines() if line.endswith("1 s at most")]
    assert line.startswith(f"skipped: {late} runs: ")
    assert "(--runs and --json list all)" in line
    assert line.count(", ") == 5
    listed = uflip(*words, "--runs").out.splitlines()
    (every,) = [line for line in listed if line.endswith("1 s at most")]
    assert every.count(", ") == late - 1


def test_json_plan_matches_the_runs(workdir: Path) -> None:
    arguments = ("null", "--scale", "quick", "--only", "order", "--seed", "3")
    plan = json.loads(uflip("plan", *arguments, "--json").out)
    assert uflip("run", *arguments, "--out", "out").code == 0
    manifest = json.loads((workdir / "out" / "manifest.json").read_text())
    assert manifest["plan"] == plan["runs"]
    assert plan["estimate"]["runs"] == len(plan["runs"])
    assert uflip("plan", *arguments, "--runs").out.count("order") == len(plan["runs"]) + 1


def test_plan_refuses_what_run_refuses(workdir: Path) -> None:
    for arguments, kind, _ in BAD_RUNS:
        if arguments and not {"--data", "--destroy"} & set(arguments):
            with unchanged(workdir):
                assert uflip("plan", *arguments).code == EXIT_CODES[kind][0], arguments


@pytest.mark.parametrize(
    ("option", "ours"), [("--rw=randwrite", "--pattern"), ("--bs=4k", "--io-size")]
)
def test_options_of_fio_are_translated(option: str, ours: str) -> None:
    outcome = uflip("pattern", "sim:demo", option)
    assert outcome.code == 2
    assert f"do       use {ours}" in outcome.err
    assert "Did you mean" not in outcome.err


def test_missing_results_suggest_those_that_exist(workdir: Path) -> None:
    for name in ("demo", "disk"):
        (workdir / "results" / name).mkdir(parents=True)
        (workdir / "results" / name / "manifest.json").write_text("{}")
    for wrong, near in (
        ("results", "results/demo or results/disk"),
        ("resluts/demo", "results/demo"),
        (str(workdir / "results/dmo"), str(workdir / "results/demo")),
    ):
        assert f"did you mean {near}?" in uflip("show", wrong).err
    assert "passed to `uflip run --out`" in uflip("show", "nothing/alike").err


def test_profile_keys_are_suggested() -> None:
    outcome = uflip("info", "sim:demo?spare=0.3")
    assert "did you mean spare_factor or spare_bytes?" in outcome.err


def test_devices_lists_known_devices() -> None:
    listed = uflip("devices")
    assert listed.code == 0
    assert "sim:demo" in listed.out
    devices = json.loads(uflip("devices", "--json").out)
    assert {"sim:demo", "null"} <= {device["url"] for device in devices}


def test_info_describes_a_device(workdir: Path) -> None:
    with unchanged(workdir):
        info = json.loads(uflip("info", "file:new.bin", "--size", "64MiB", "--json").out)
    assert info["capacity_bytes"] == 64 * MIB
    assert info["wear"]["unknown"] or info["wear"]["percentage_used"] is not None
    assert "\nwear " in uflip("info", "file:new.bin", "--size", "64MiB").out
    assert info["micro_benchmarks"] == [*micro_benchmarks_for("sectors")]
    outcome = uflip("info", "sim:dfc")
    assert "oc0, oc1, oc2, oc3" in outcome.out
    outcome = uflip("info", SMALL_SIM)
    assert outcome.code == 0
    assert "page_bytes" in outcome.out
    assert uflip("info", "file:new.bin").code == EXIT_CODES["device"][0]


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        (("--suite", "zones"), "another device"),
        (("--max-time", "1us", "--state", "as-is"), "raise --budget, --max-time"),
    ],
)
def test_advice_matches_why_the_plan_is_empty(
    workdir: Path, options: tuple[str, ...], advice: str
) -> None:
    outcome = uflip("run", "sim:demo", "--out", "r", *options)
    assert (outcome.code, advice in outcome.err, Path("r").exists()) == (2, True, False), (
        outcome.err
    )
    assert ("--max-time" in outcome.err) == ("--max-time" in options)
    with pytest.raises(UsageError) as raised:
        package.run("sim:demo", "r", only=[])
    assert raised.value.got == "no run"
    assert "--max-time" not in str(raised.value)
