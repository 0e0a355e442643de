"""Ten faults of a target, in six phases of a benchmark, with four operations.

`fault_matrix` runs a whole benchmark for each possible cell, with a process for each kind. The
benchmark ends in order and reports the failed I/O and the reason; finished runs are unchanged, and
the benchmark can be resumed. A slow I/O counts only if it is measured.
"""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fault_matrix import (
    CLOCK,
    FAULTY_IO,
    FINISHED,
    IGNORED,
    KINDS,
    LOG,
    OPERATIONS,
    PATHS,
    PHASES,
    Cell,
    cells,
    why_complete,
    why_impossible,
)
from injection import build

# Maximum time until a hanging call is given up, and the delay of a slow one [s].
TIMEOUT_S, SLOW_S = 35.0, 1.0
SUBMITTED_AS = {"flush": "write"}


def run_cells(kind: str, folder: Path) -> list[Cell]:
    """Run every cell of a kind."""
    injector = build(PATHS)
    environment = injector.environment(clock=CLOCK, log=LOG)
    process = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("fault_matrix.py")), kind],
        env=environment, cwd=folder, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    return [Cell(**json.loads(line)) for line in process.stdout.splitlines()]


def test_every_cell_runs_or_has_a_reason() -> None:
    matrix = [
        (kind, phase, operation) for kind in KINDS for phase in PHASES for operation in OPERATIONS
    ]
    assert len(matrix) == len(KINDS) * len(PHASES) * len(OPERATIONS) == 240
    impossible = {
        cell: why_impossible(*cell) for cell in matrix if why_impossible(*cell) is not None
    }
    assert all(impossible.values())
    assert sum(len(cells(kind)) for kind in KINDS) == 240 - len(impossible)


@pytest.mark.parametrize("kind", KINDS)
def test_benchmark_with_a_fault_ends_in_order(in_memory: Path, kind: str) -> None:
    results = run_cells(kind, in_memory)
    assert {(cell.phase, cell.operation) for cell in results} == set(cells(kind))
    for cell in results:
        assert cell.met >= 1, f"the fault was not met: {cell}"
        if why_complete(cell.kind, cell.phase, cell.operation) is None:
            check_failed_cell(cell)
        else:
            assert (cell.code, cell.finished) == (0, 3), cell
        if kind == "slow":
            check_slow_cell(cell)


def check_failed_cell(cell: Cell) -> None:
    """Check the error, the finished runs, and the outcome of the resumption."""
    assert (cell.code, cell.finished, cell.runs_unchanged) == (4, FINISHED[cell.phase], True), cell
    if cell.kind == "size_changed":
        assert cell.error_what.startswith(("The target ", "A read of 4 KiB at byte ")), cell
        assert cell.afterwards.startswith("4: This is not the device that was measured"), cell
        return
    assert cell.afterwards == ("restarted" if cell.phase in ("plan", "state") else "resumed"), cell
    if cell.operation == "flush" and cell.phase in ("plan", "state", "between"):
        assert cell.error_what == "The device could not be flushed", cell
    else:
        name = SUBMITTED_AS.get(cell.operation, cell.operation)
        where = "" if cell.at_byte is None else f"4 KiB at byte {cell.at_byte} "
        end = "does not end" if cell.kind == "hangs" else "failed"
        assert cell.error_what.startswith(f"A {name} of {where}"), cell
        assert cell.error_what.endswith(end), cell
        assert (cell.at_byte is not None) == (cell.phase in FAULTY_IO), cell
    error = KINDS[cell.kind].error
    if cell.kind == "hangs":
        assert cell.waited_s <= TIMEOUT_S, cell
    elif cell.kind == "short":
        assert cell.got in ("2048 bytes moved", "65536 bytes moved", "524288 bytes moved"), cell
    else:
        assert os.strerror(getattr(errno, error)) in cell.got, cell


def check_slow_cell(cell: Cell) -> None:
    """Check that the slow I/O is recorded, and counts unless it is ignored."""
    first, second, third = cell.slowest_s.values()
    met = FAULTY_IO.get(cell.phase)
    assert max(*first, *third) < SLOW_S, cell
    assert [time >= SLOW_S for time in second] == [met is not None, (met or 0) >= IGNORED], cell
