"""A thousand faults between plan and report: is data lost, or a wrong value shown as verified?

See `pipeline_faults`, which makes a case; each half of the cases has its own process. A failure
prints its seed, and `UFLIP_SEED` reproduces it; `make soak` tries ten thousand.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from injection import build
from pipeline_faults import PATHS

SEED = os.environ.get("UFLIP_SEED") or str(time.time_ns() % 2**32)
CASES = 10_000 if "UFLIP_SOAK" in os.environ else 1000
HALVES = 2
DEVICE = "sim:demo?blocks_per_die=24&state=empty"


@pytest.mark.parametrize("half", range(HALVES))
def test_no_fault_between_plan_and_report_loses_or_forges_data(in_memory: Path, half: int) -> None:
    first = half * CASES // HALVES
    last = first + CASES // HALVES
    program = [sys.executable, str(Path(__file__).with_name("pipeline_faults.py"))]
    process = subprocess.run(
        [*program, DEVICE, SEED, str(first), str(last)],
        env=build(PATHS).environment(), cwd=in_memory, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (process.returncode, process.stdout) == (0, ""), process.stdout + process.stderr
