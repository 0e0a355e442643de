"""Duration of showing, reporting and comparing results, from the command to its end.

The results are those of a whole benchmark on a simulated device: 933 runs.
"""

import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]

TIMES = 5
"""Repetitions of each command; the median is shown, without the first, which finds cold caches."""


def reporting_rows(row: Callable[..., Row], program: Path) -> list[Row]:
    """Return the rows of commands that read results, each a process of its own.

    Parameters
    ----------
    row
        Makes one line of the table.
    program
        `uflip`.
    """
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "demo"
        # The lengths of the paper, three times each: 933 runs.
        command = [program, "run", "sim:demo", "--method", "paper", "--out", results, "--quiet"]
        subprocess.run(list(map(str, command)), check=True, capture_output=True)
        return rows_of(row, program, results)


def rows_of(row: Callable[..., Row], program: Path, results: Path) -> list[Row]:
    """Return the rows of commands on the results in a folder."""
    page = results.parent / "report.html"
    link = results.parent / "again"
    link.symlink_to(results)
    commands = {
        "show": ("show", results),
        "report": ("report", results, "-o", page, "--quiet"),
        "compare": ("compare", results, link),
    }
    runs = len(list((results / "runs").glob("*.parquet")))
    rows = []
    for verb, arguments in commands.items():
        measured = [measure([program, *arguments]) for _ in range(TIMES + 1)][1:]
        duration_s, peak = (statistics.median(each) for each in zip(*measured, strict=True))
        rows.append(row(f"uflip {verb}, {runs} runs", duration_s, "s", None, "< 1"))
        rows.append(row(f"uflip {verb}, memory", peak, "MiB", None, ""))
    rows.append(row("uflip report, its page", page.stat().st_size / (1 << 20), "MiB", None, "< 5"))
    return rows


def measure(command: Sequence[object]) -> tuple[float, float]:
    """Return the duration of a command [s], and its peak memory [MiB]."""
    # As in an installation: the first process compiles modules, and stores them.
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    begin = time.perf_counter()
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, env=environment)
    _, status, used = os.wait4(process.pid, 0)
    duration_s = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return duration_s, used.ru_maxrss / 1024
