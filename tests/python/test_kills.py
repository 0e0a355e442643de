"""Is acknowledged data kept after kill -9 at any moment, also of a resumed benchmark?

A run is acknowledged when its file has its name. Moments are drawn from a seed that a failure
prints (`UFLIP_SEED`); `UFLIP_SOAK=1` makes a thousand of them.
"""

import os
import random
import shutil
import signal
import time
from pathlib import Path

import pytest
from command_line import start, uflip
from warm import BENCHMARKS, program

from uflip.results import Results

SEED = int(os.environ.get("UFLIP_SEED") or time.time_ns() % 2**32)
POINTS = int(os.environ.get("UFLIP_KILLS") or (500 if os.environ.get("UFLIP_SOAK") else 5))
OUT = Path("kept-here")
PLANS = {
    "simulated": ("sim:demo?blocks_per_die=64", "--scale", "quick", "--only", "order"),
    "file": ("file:scratch-target.bin", "--size", "4MiB", "--buffered", "--scale", "quick",
             "--only", "partitioning", "--io-size", "4k", "--pause", "1ms",
             "--record", "record.json"),
}  # fmt: skip

RESUME = ("run", "--resume", OUT, "-q")


def finished_files() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((OUT / "runs").glob("0*.parquet"))}


def run_and_kill(rng: random.Random, *arguments: object) -> int:
    """Start a command and kill it; return its exit code."""
    process = start(*arguments, program=program(*BENCHMARKS))
    wait_s = rng.choice((0.3, 1.0, 2.0)) * rng.random()
    deadline = time.monotonic() + wait_s
    if rng.random() < 0.5:  # when the next file appears
        file_count = len(list(OUT.rglob("*")))
        while len(list(OUT.rglob("*"))) == file_count and time.monotonic() < deadline + 2:
            time.sleep(0.001)
    else:
        time.sleep(wait_s)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    return process.returncode


@pytest.mark.parametrize("plan", PLANS)
def test_kills_lose_no_acknowledged_run(in_memory: Path, plan: str) -> None:
    rng = random.Random(f"{SEED} {plan}")
    for point in range(POINTS):
        context = f"UFLIP_SEED={SEED} {plan} point {point}"
        shutil.rmtree(OUT, ignore_errors=True)
        Path("scratch-target.bin").unlink(missing_ok=True)
        Path("record.json").unlink(missing_ok=True)
        begin = ("run", *PLANS[plan], "--out", OUT, "-q")
        record = ("--record", "record.json") if "record.json" in begin else ()
        acknowledged: dict[str, bytes] = {}
        for _ in range(1 + rng.randrange(3)):
            command = (*RESUME, *record) if OUT.exists() else begin
            run_and_kill(rng, *command)
            now = finished_files()
            assert {name: now.get(name) for name in acknowledged} == acknowledged, context
            acknowledged = now
            if OUT.exists() and Results.load(OUT).status == "complete":
                break
        if OUT.exists() and Results.load(OUT).status == "complete":
            continue
        command = (*RESUME, *record) if OUT.exists() else begin
        outcome = uflip(*command)
        assert outcome.code == 0, f"{context}\n{outcome.err}"
        results = Results.load(OUT)
        assert (results.status, results.missing) == ("complete", []), context
        now = finished_files()
        assert {name: now.get(name) for name in acknowledged} == acknowledged, context
