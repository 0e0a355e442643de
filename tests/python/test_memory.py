"""A trace that does not fit into memory ends its run with an error in four parts.

Every limit applies to a separate process (RLIMIT_AS).
"""

import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import start

from uflip.results import Results

GIB = 1 << 30


def start_limited(limit_bytes: int, *arguments: object) -> subprocess.Popen[str]:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (limit_bytes, limit_bytes))

    options: dict[str, Any] = {"preexec_fn": limit}
    return start(*arguments, **options)


@pytest.mark.parametrize(
    "arguments",
    [
        ("null", "--pattern", "RR", "--io-count", "2147483648"),
        ("null", "--pattern", "RR", "--io-count", "300000000"),
        # Its summary needs whole columns; that of a pattern alone does not.
        (
            "sim:demo?blocks_per_die=64",
            "--pattern",
            "RW",
            "--io-count",
            "4000000000",
            "--inside",
            "r",
        ),
    ],
)
def test_run_too_long_for_memory_is_refused_before_first_io(
    workdir: Path, arguments: tuple[str, ...]
) -> None:
    process = start_limited(4 * GIB, "pattern", *arguments)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 6, err
    assert "not enough memory for the trace of this run" in err
    assert "allowed" in err
    assert "Traceback" not in err


PROGRAM = """
import resource
from uflip.cli.main import main
from uflip.results import columns
from uflip.stats import Distribution
columns.PIECE_IOS = Distribution.FEW = 1 << 14
try:
    main({arguments})
except SystemExit as end:
    assert not end.code
print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
PER_IO = 16 + 8 * 17
"""An I/O in plain columns of a simulated device [bytes]."""


@pytest.mark.parametrize("output", [["--json"], ["--trace", "t.csv"], ["--trace", "t.parquet"]])
def test_memory_use_is_independent_of_pattern_length(workdir: Path, output: list[str]) -> None:
    """Lower the size of a read, so that a run of seconds is many times as long."""
    peaks, lengths = [], (100_000, 400_000)
    for ios in lengths:
        arguments = ["pattern", "sim:demo?blocks_per_die=64", "--pattern", "RR", "--mix", "RW",
                     "--first-percent", "60", "--io-size", "4k", "--queue-depth", "4",
                     "--io-count", str(ios), *output]  # fmt: skip
        arguments = [each.replace("t.", f"t{ios}.") for each in arguments]
        process = subprocess.run(
            [sys.executable, "-c", PROGRAM.format(arguments=arguments)],
            capture_output=True, text=True, check=True, timeout=120,
        )  # fmt: skip
        if "--json" in output:
            document = json.loads(process.stdout[: process.stdout.rindex("peak")])
            assert sum(mode["statistics"]["count"] for mode in document["by_mode"].values()) == ios
        peaks.append(int(process.stdout.split()[-1]) << 10)
    grown, whole = peaks[1] - peaks[0], (lengths[1] - lengths[0]) * PER_IO
    assert grown < whole / 3, peaks


REPLAY = """
import tracemalloc
from uflip.cli.main import main
from uflip.results import ResultsWriter, columns, pyramid, run_statistics
from uflip.stats import Distribution
columns.PIECE_IOS = run_statistics.PIECE_IOS = pyramid.WINDOW = Distribution.FEW = 1 << 14
commit = ResultsWriter.commit
def traced(*arguments):
    tracemalloc.start()
    path = commit(*arguments)
    print("peak", tracemalloc.get_traced_memory()[1])
    tracemalloc.stop()
    return path
ResultsWriter.commit = traced
main({arguments})
"""


@pytest.mark.parametrize("speed", [[], ["--speed", "1"]])
def test_replay_has_no_array_of_all_ios(workdir: Path, speed: list[str]) -> None:
    """Whole columns are in files, and no array of 8 bytes for each I/O is computed from them."""
    peaks, lengths = [], (50_000, 450_000)
    for ios in lengths:
        rows = (f"{at * 100_000},{at * 7919 % 5000 * 4096},4096,read" for at in range(ios))
        Path(f"{ios}.csv").write_text(
            "submit_ns,offset_bytes,io_size_bytes,mode\n" + "\n".join(rows) + "\n"
        )
        arguments = ["replay", f"{ios}.csv", "sim:demo?blocks_per_die=64", "-q", *speed]
        process = subprocess.run(
            [sys.executable, "-c", REPLAY.format(arguments=[*arguments, "--out", f"r{ios}"])],
            capture_output=True, text=True, check=True, timeout=300,
        )  # fmt: skip
        (line,) = (each for each in process.stdout.splitlines() if each.startswith("peak "))
        peaks.append(int(line.split()[1]))
    assert peaks[1] - peaks[0] < 4 * (lengths[1] - lengths[0]), peaks


def test_io_budget_reserves_no_memory(workdir: Path) -> None:
    """Four thousand million I/Os are a budget; a mean that is known soon needs little of it."""
    process = start_limited(4 * GIB, "pattern", "sim:demo?blocks_per_die=64", "--pattern", "SR",
                      "--until-converged", "--max-ios", "4000000000", "--json")  # fmt: skip
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err + out


def test_endless_run_stops_at_memory_limit(workdir: Path) -> None:
    """A null device hardly converges within 0.01 %; its trace grows until the limit is near."""
    process = start_limited(int(1.5 * GIB), "pattern", "null", "--pattern", "RR",
                            "--until-converged", "--half-width", "0.0001",
                            "--max-ios", "4000000000")  # fmt: skip
    _, err = process.communicate(timeout=300)
    assert process.returncode == 6, err
    assert "not enough memory for the trace" in err


def test_finished_runs_survive_memory_exhaustion(workdir: Path) -> None:
    plan = workdir / "plan.toml"
    made = start("plan", "null", "--scale", "quick", "--only", "order", "--out", plan)
    _, err = made.communicate(timeout=60)
    assert made.returncode == 0, err
    # The third run needs more memory than any machine has.
    parts = plan.read_text().split("io_count = ")
    parts[3] = "4000000000" + parts[3].lstrip("0123456789")
    plan.write_text("io_count = ".join(parts))
    process = start_limited(4 * GIB, "run", "null", "--plan", plan, "--out", "out", "-q")
    _, err = process.communicate(timeout=120)
    assert process.returncode == 6, err
    assert "not enough memory for the trace" in err
    results = Results.load("out")
    assert len(results.runs) == 2
    assert results.manifest.status == "failed"


def test_missing_descriptors_are_a_plain_error(workdir: Path) -> None:
    """From too few for the interpreter itself to enough for a queue."""
    options = ("--buffered", "--pattern", "RW", "--io-count", "10", "-q")
    assert start("pattern", "file:l.bin", "--size", "4MiB", *options).communicate()[1] == ""
    codes = set()
    for max_files in range(4, 12, 2):

        def limit_files(max_files: int = max_files) -> None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (max_files, max_files))

        limits: dict[str, Any] = {"preexec_fn": limit_files}
        process = start("pattern", "file:l.bin", *options, "--queue-depth", "8", **limits)
        _, err = process.communicate(timeout=60)
        codes.add(process.returncode)
        assert "broke a rule" not in err
        if err.startswith("error: "):  # and not of an interpreter that could not begin
            assert process.returncode in (4, 6), (max_files, err)
    assert 0 in codes, "with some descriptors it works"
