"""Do several devices give the same results as each alone, and does a failure stop no other?"""

import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from command_line import start, uflip, unchanged

from uflip.benchmark import multi_device
from uflip.data import multi_device as document
from uflip.errors import DeviceError, ResultsError
from uflip.results import Results

SMALL, OTHER = "sim:demo?blocks_per_die=64", "sim:dftl?blocks_per_die=128"
FOLDERS = ("sim-demo-blocks-per-die-64", "sim-dftl-blocks-per-die-128")
QUICK = ("--scale", "quick", "--only", "order")
MIB = 1 << 20


def times(folder: Path) -> dict[str, list[int]]:
    return {run.id: run.response_time_ns().tolist() for run in Results.load(folder).runs}


def test_each_device_gets_the_same_results_as_alone(
    workdir: Path, make_file: Callable[..., Path]
) -> None:
    make_file(64 * MIB)
    outcome = uflip(
        "run", SMALL, OTHER, "file:scratch.bin", *QUICK, "--pause", "1ms", "--out", "all"
    )
    assert outcome.code == 0, outcome.err
    assert "uflip explore all" in outcome.out
    listing = document.read(workdir / "all")
    assert [entry.device for entry in listing.devices] == [SMALL, OTHER, "file:scratch.bin"]
    for url, entry in zip((SMALL, OTHER), listing.devices, strict=False):
        single = uflip("run", url, *QUICK, "--pause", "1ms", "--out", "alone")
        assert single.code == 0, single.err
        assert times(workdir / "all" / entry.folder) == times(workdir / "alone")
        shutil.rmtree(workdir / "alone")
    real = Results.load(workdir / "all" / "file-scratch.bin")
    assert (real.status, len(real.runs)) == ("complete", len(real.manifest.plan))


def test_processes_and_threads_give_same_results(workdir: Path) -> None:
    for out, arguments in (("threads", ()), ("processes", ("--workers", "2"))):
        outcome = uflip("run", SMALL, OTHER, *QUICK, "--out", out, "-q", *arguments)
        assert outcome.code == 0, outcome.err
    for name in FOLDERS:
        assert times(workdir / "threads" / name) == times(workdir / "processes" / name)


def test_failing_device_does_not_stop_others(
    workdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = multi_device.begin

    def fails(request: Any, out: Path, *args: Any, **options: Any) -> Path:
        if request.device == "null":
            raise DeviceError("It broke", where="null", action="buy another")
        if request.device == OTHER:
            raise ZeroDivisionError("a mistake of ours")
        return begin(request, out, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(multi_device, "begin", fails)
        outcome = uflip("run", "null", OTHER, SMALL, *QUICK, "--out", "out", "--json")
    assert outcome.code == DeviceError.exit_code
    summary = json.loads(outcome.out)
    assert [each["status"] for each in summary["devices"]] == ["failed", "failed", "complete"]
    assert summary["devices"][0]["error"]["what"] == "It broke"
    assert "ZeroDivisionError" in summary["devices"][1]["error"]["got"]
    assert summary["exit_code"] == DeviceError.exit_code
    complete = Path(summary["devices"][2]["results"])
    with unchanged(complete):
        resumed = uflip("run", "--resume", "out")
    assert resumed.code == 0, resumed.err
    assert [line.split()[1] for line in resumed.out.splitlines()[1:4]] == ["complete"] * 3
    assert Results.load(workdir / "out" / "null").status == "complete"


def test_failures_are_reported(workdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> Path:
        raise DeviceError("It broke", where="somewhere", action="buy another")

    monkeypatch.setattr(multi_device, "begin", fails)
    outcome = uflip("run", "null", SMALL, *QUICK, "--out", "out")
    assert outcome.code == DeviceError.exit_code
    assert outcome.err.count("It broke") == 2
    assert "uflip run --resume out" in outcome.out
    assert "uflip explore" not in outcome.out


# Before anything begins


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        ((SMALL, "file:thesis.txt"), 3, "thesis.txt"),
        ((SMALL, "sim:nope"), 2, "Unknown profile"),
        ((SMALL, "null", "--only", "nope"), 2, "Unknown micro-benchmark"),
        ((SMALL, SMALL), 2, "twice"),
        ((SMALL, "null", "--plan", "p.toml"), 2, "with several devices"),
        ((SMALL, "null", "--record", "r.json"), 2, "with several devices"),
        ((SMALL, "null", "--destroy", "thesis.txt"), 2, "No device matches this --destroy"),
        ((SMALL, "--destroy", "a", "--destroy", "b"), 2, "one --destroy"),
        ((SMALL, "null", "--resume", "out"), 2, "cannot be changed on --resume"),
    ],
    ids=str,
)
def test_invalid_arguments_are_refused_before_start(
    workdir: Path, arguments: tuple[str, ...], code: int, text: str
) -> None:
    (workdir / "thesis.txt").write_text("words " * 100_000)
    with unchanged(workdir):
        outcome = uflip("run", *arguments, "--out", "out")
    assert outcome.code == code, outcome.err
    assert text in outcome.err


def test_each_device_needs_its_own_destroy(workdir: Path, make_file: Callable[..., Path]) -> None:
    make_file(4 * MIB)
    files = [workdir / "one.bin", workdir / "two.bin"]
    for file in files:
        file.write_bytes(bytes(range(256)) * (4 * MIB // 256))
    arguments = ("file:one.bin", "file:two.bin", *QUICK, "--pause", "1ms", "--out", "out")
    with unchanged(workdir):
        refused = uflip("run", *arguments, "--destroy", "two.bin")
    assert refused.code == 3, refused.err
    assert "one.bin" in refused.err
    outcome = uflip("run", *arguments, "--destroy", "two.bin", "--destroy", "one.bin")
    assert outcome.code == 0, outcome.err


# Devices that run at the same time


@pytest.mark.parametrize("together", [False, True])
def test_real_devices_run_one_after_another(
    workdir: Path, monkeypatch: pytest.MonkeyPatch, together: bool
) -> None:
    """Files stand for drives; the test checks the order of runs, not their results."""
    running: set[str] = set()
    concurrent: dict[str, set[str]] = {}
    lock = threading.Lock()
    met = threading.Barrier(2)

    def watched(request: Any, out: Path, *_: Any, **__: Any) -> Path:
        with lock:
            running.add(request.device)
            for device in running:
                concurrent.setdefault(device, set()).update(running)
        if together or request.device.startswith("sim:"):
            met.wait(timeout=20)
        with lock:
            running.remove(request.device)
        return out

    monkeypatch.setattr(multi_device, "begin", watched)
    monkeypatch.setattr(multi_device, "status_of", lambda _: "complete")
    devices = ["file:a.bin", "file:b.bin", SMALL, OTHER]
    for name in ("a.bin", "b.bin"):
        (workdir / name).write_bytes(bytes(64 * MIB))
    arguments = ("--together", "--jobs", "2") if together else ("--jobs", "2")
    tokens = ("--destroy", "a.bin", "--destroy", "b.bin")
    outcome = uflip("run", *devices, *QUICK, *arguments, *tokens, "--out", "out")
    assert outcome.code == 0, outcome.err
    if together:
        assert "file:b.bin" in concurrent["file:a.bin"]
    else:
        assert concurrent["file:a.bin"] == {"file:a.bin"}
        assert concurrent["file:b.bin"] == {"file:b.bin"}
        assert concurrent[SMALL] == {SMALL, OTHER}


# Cut short


def test_killed_benchmark_resumes_to_same_results(workdir: Path) -> None:
    devices = (SMALL, OTHER, "null")
    options = ("--scale", "quick", "--only", "mix")
    whole = uflip("run", *devices, *options, "--out", "whole", "-q")
    assert whole.code == 0, whole.err
    process = start("run", *devices, *options, "--out", "cut", "--jobs", "1", "-q")
    first = workdir / "cut" / FOLDERS[0]
    while not [*(first / "runs").glob("*.parquet")]:
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)
    process.kill()
    process.communicate()
    resumed = uflip("run", "--resume", "cut", "--json", "--workers", "1")
    assert resumed.code == 0, resumed.out
    assert {each["status"] for each in json.loads(resumed.out)["devices"]} == {"complete"}
    for name in FOLDERS:
        assert times(workdir / "cut" / name) == times(workdir / "whole" / name)


def test_ctrl_c_interrupts_all_devices(workdir: Path) -> None:
    process = start("run", SMALL, OTHER, "--method", "paper", "--out", "out", "--jobs", "2")
    folders = [workdir / "out" / entry for entry in FOLDERS]
    while not all([*(folder / "runs").glob("*.parquet")] for folder in folders):
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.05)
    locked = uflip("run", "--resume", "out")
    assert (locked.code, "is using" in locked.err) == (ResultsError.exit_code, True), locked.err
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "uflip run --resume out" in err
    assert [Results.load(folder).manifest.status for folder in folders] == ["interrupted"] * 2


@pytest.mark.parametrize("name", ["../elsewhere", "/etc", ".", "a/b", ""])
def test_device_list_cannot_lead_elsewhere(workdir: Path, name: str) -> None:
    outcome = uflip("run", "null", "--jobs", "1", *QUICK, "--out", "out", "-q")
    assert outcome.code == 0, outcome.err
    path = workdir / "out" / document.FILE_NAME
    content = msgspec.json.decode(path.read_bytes())
    content["devices"][0]["folder"] = name
    path.write_bytes(msgspec.json.encode(content))
    with unchanged(workdir):
        assert uflip("run", "--resume", "out").code == ResultsError.exit_code
