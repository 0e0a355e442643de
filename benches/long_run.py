"""A run of very many I/Os on a simulated device: memory, bytes on disk, and reading a part of it.

python benches/long_run.py 100000000    number of I/Os; `make bench` uses ten million
"""

import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Row = dict[str, Any]

IOS, WINDOW, WINDOWS = 10_000_000, 1_000_000, 15
DEVICE = "sim:tlc-nvme"

PROGRAM = """
import json, resource, sys, time
from pathlib import Path
from uflip.device.opener import open_device
from uflip.spec import baseline

device, ios, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

opened = open_device(device)
spec = baseline("RR", io_size="4k")
opened.run(spec.but(io_count=100_000), spool=folder)
begin, before = time.perf_counter(), peak()
trace = opened.run(spec.but(io_count=ios), spool=folder)
took = time.perf_counter() - begin
trace.write_parquet(str(folder / "run.parquet"), "{}")
print(json.dumps([took, before, peak()]))
"""
"""Script that runs and stores, and prints the memory of its process: before, and at most."""


def long_run_rows(row: Callable[..., Row], ios: int = IOS) -> list[Row]:
    """Return the rows of a run of `ios` random reads of 4 KiB.

    Parameters
    ----------
    row
        Makes one line of the table.
    ios
        Number of I/Os.
    """
    name = f"{ios:.0e} I/Os on {DEVICE}".replace("e+0", "e").replace("e+", "e")
    with tempfile.TemporaryDirectory() as folder:
        program = [sys.executable, "-c", PROGRAM, DEVICE, str(ios), folder]
        process = subprocess.run(program, check=True, capture_output=True, text=True)
        duration_s, before, peak = json.loads(process.stdout)
        path = Path(folder) / "run.parquet"
        windows = reading(path, ios)
        return [
            row(name, ios / duration_s / 1e6, "M/s", None, ""),
            row(f"{name}, memory in all", peak, "MiB", None, "< 1024"),
            row(f"{name}, more than before", peak - before, "MiB", None, ""),
            row(f"{name}, on disk", path.stat().st_size / ios, "bytes an I/O", None, "<= 10"),
            row(f"{name}, a window of 1e6", statistics.median(windows), "ms", None, "< 200"),
            row(f"{name}, the slowest of {WINDOWS}", max(windows), "ms", None, "< 200"),
        ]


def reading(path: Path, ios: int) -> list[float]:
    """Return times to read response times somewhere in a stored run [ms]."""
    from uflip import _native

    trace, rng, durations_ms = _native.read_trace(str(path)), random.Random(1), []
    for _ in range(WINDOWS):
        first = rng.randrange(ios - WINDOW)
        begin = time.perf_counter()
        column = memoryview(trace.column("response_time_ns", first, first + WINDOW))
        durations_ms.append((time.perf_counter() - begin) * 1e3)
        assert len(column) == WINDOW
    return durations_ms


def main() -> None:
    """Print the rows of the requested number of I/Os."""
    from bench import row, show

    show(long_run_rows(row, int(sys.argv[1]) if len(sys.argv) > 1 else IOS))


if __name__ == "__main__":
    main()
