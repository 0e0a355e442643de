"""Faults of a target: 10 kinds × 6 phases × 4 operations, each injected.

    python fault_matrix.py KIND    all cells of a kind, in this process, a line of JSON each

The process has `tests/native/faults.c` before the C library, which answers instead of the target
where configured, and simulates the clock of the native part: pauses and hangs cost nothing.
All else is a normal benchmark: a file is created, brought into a state, and three runs follow,
the second after a pause, the third after the state is enforced again.

An impossible cell has a reason (`why_impossible`).
"""

import ctypes
import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

import uflip
from uflip.benchmark import execute
from uflip.benchmark.calibration import measure_harness
from uflip.benchmark.plan import Plan
from uflip.benchmark.plan_file import write_plan
from uflip.benchmark.state import plan_state
from uflip.data.device import DeviceInfo
from uflip.device.catalogue import inspect_device
from uflip.device.resolve import resolve
from uflip.errors import RefusedError, UflipError
from uflip.microbench.experiment import PlannedRun
from uflip.results import Results
from uflip.spec import basic

OUT, TARGET, PLAN = Path("kept-here"), Path("target.bin"), Path("plan.toml")
SIZE, IO, COUNT, IGNORED = 1 << 20, 4096, 12, 4
PAUSE_NS, PATIENCE_NS = 100_000_000, 20 * 10**9
CLOCK, LOG, PATHS = "_native", "calls", str(TARGET)
# As `tests/native/faults.c` numbers them.
FAILS, SHORT, WRONG, SLOW, HANGS, SHRINKS = range(6)


class Kind(NamedTuple):
    """A kind of fault: how the call is answered, and whether later calls are too."""

    action: int
    error: str = ""
    lasts: bool = False


KINDS = {
    "failed": Kind(FAILS, "EIO", lasts=True),
    "no_space": Kind(FAILS, "ENOSPC", lasts=True),
    "unplugged": Kind(FAILS, "ENXIO", lasts=True),
    "interrupted": Kind(FAILS, "EINTR"),
    "flush_lost": Kind(FAILS, "EIO"),
    "short": Kind(SHORT),
    "wrong_data": Kind(WRONG),
    "slow": Kind(SLOW),
    "hangs": Kind(HANGS),
    "size_changed": Kind(SHRINKS),
}
PHASES = ("plan", "state", "warm_up", "measured", "pause", "between")
OPERATIONS = {"read": "pread", "write": "pwrite", "flush": "fdatasync", "trim": "fallocate"}
# Number of finished runs of three: a fault in the second run leaves the first one.
FINISHED = {"plan": 0, "state": 0, "warm_up": 1, "measured": 1, "pause": 1, "between": 2}
# The I/O of the second run that meets the fault.
FAULTY_IO = {"warm_up": 1, "measured": 7, "pause": 0}


@dataclass(frozen=True)
class Cell:
    """The outcome of a benchmark with one injected fault."""

    kind: str
    phase: str
    operation: str
    met: int
    code: int
    error_what: str
    got: str
    finished: int
    waited_s: float
    """On the clock of the native part [s]."""
    slowest_s: dict[str, list[float]]
    """The slowest I/O of each run, and the slowest one that counts [s]."""
    afterwards: str
    """The outcome afterwards: resumed, started again, or the reason why not."""
    runs_unchanged: bool
    """Runs that were finished are the same afterwards, bit for bit."""
    at_byte: int | None
    """Offset of the I/O of the second run that met the fault; None if it is gone afterwards."""


def why_impossible(kind: str, phase: str, operation: str) -> str | None:
    """Return why a cell cannot exist; None if it can."""
    if phase in ("plan", "state", "between") and operation in ("read", "trim"):
        return "a target is created and prepared by writes and flushes alone"
    if kind == "flush_lost" and operation != "flush":
        return "only a flush reports what a flush lost"
    if kind in ("short", "wrong_data") and operation in ("flush", "trim"):
        return "it moves no data"
    return None


def why_complete(kind: str, phase: str, operation: str) -> str | None:
    """Return why a benchmark continues despite the fault; None if it ends."""
    outside = phase in ("plan", "state", "between")
    reasons = {
        "a device may be slow: its time is measured": kind == "slow",
        "only time is measured; read data is not verified": kind == "wrong_data",
        "an interrupted flush is repeated; it is not measured": (
            kind == "interrupted" and operation == "flush" and outside
        ),
        "a flush may have much to write, so it has no time limit": (
            kind == "hangs" and operation == "flush" and outside
        ),
        "the enforced state writes the missing part": (
            kind == "size_changed" and outside and (operation == "write" or phase == "plan")
        ),
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def cells(kind: str) -> list[tuple[str, str]]:
    """Return the phases and operations of a kind that can exist."""
    every = [(phase, operation) for phase in PHASES for operation in OPERATIONS]
    return [each for each in every if why_impossible(kind, *each) is None]


def plan_for(operation: str, info: DeviceInfo) -> Plan:
    """Plan three runs of an operation: from the state, after a pause, and from the state again."""

    def run(number: int) -> PlannedRun:
        mode = {"flush": "write"}.get(operation, operation)
        spec = basic(
            mode, "random", io_size=IO, io_count=COUNT, io_ignore=IGNORED, seed=number,
            target_size=SIZE,
        )  # fmt: skip
        return PlannedRun(
            f"{number:04d}-faults-{operation}-io_size-{IO}", "faults", operation, "io_size", IO,
            "bytes", resolve(spec, info).spec, reset_before=number == 3,
        )  # fmt: skip

    return Plan(
        device=info,
        scale="quick",
        seed=1,
        runs=tuple(run(number) for number in (1, 2, 3)),
        skipped=(),
        pause_ns=PAUSE_NS,
        target_size=SIZE,
        state=plan_state(info, "random", None, overwrites=1),
        repetitions=1,
        method="paper",
        durability="flush:1" if operation == "flush" else "cached",
        warnings=(),
    )


class Faults:
    """The library that answers instead of the target; it is in this process."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL(None)
        self.library.fault_clock.restype = ctypes.c_longlong

    def arm(self, kind: str, call: str, at: int, pause: int) -> None:
        """Inject a fault at a call, counted from now or from the end of a pause."""
        action, error, lasts = KINDS[kind]
        number = getattr(__import__("errno"), error) if error else 0
        path = os.fsencode(TARGET.absolute())
        self.library.fault_arm(call.encode(), at, pause, action, number, int(lasts), path)

    def disarm(self) -> None:
        """Inject no further fault."""
        self.library.fault_arm(b"", 0, 0, 0, 0, 0, b"")

    @property
    def met(self) -> int:
        """Number of calls that met the fault."""
        return int(self.library.fault_met())

    @property
    def now_ns(self) -> int:
        """The clock of the native part."""
        return int(self.library.fault_clock())


def clear() -> None:
    """Remove all files of a benchmark."""
    for folder in (OUT, *Path().glob(f".{OUT}-*"), Path("results")):
        shutil.rmtree(folder, ignore_errors=True)
    TARGET.unlink(missing_ok=True)


def benchmark() -> None:
    """Make the file, its state and the runs of the plan."""
    uflip.run(
        f"file:{TARGET}", OUT, plan=PLAN, size=SIZE, buffered=True, io_timeout=PATIENCE_NS,
    )  # fmt: skip


def fault_positions(operation: str) -> dict[str, tuple[int, int]]:
    """Run without a fault; return the call of each phase, and the pause before it.

    The file is created until the first flush, and the state is enforced until the first pause. Each
    run begins with a pause, and the reset follows the second run.
    """
    Path(LOG).write_text("")
    clear()
    benchmark()
    calls = [line.split()[1] for line in Path(LOG).read_text().splitlines()]
    name = OPERATIONS[operation]
    file_made = calls.index("fdatasync") + 1
    begins = [
        at
        for at, call in enumerate(calls)
        if call != "pause" and at and calls[at - 1] == "pause"
    ]  # fmt: skip
    _, second, _ = begins

    def number(begin: int, nth: int) -> int:
        """Count calls of the operation until the `nth` after `begin`."""
        before = sum(call.startswith(name) for call in calls[:begin])
        return before + nth

    pauses = sum(call == "pause" for call in calls[:second])
    return {
        "plan": (number(0, 1), 0),
        "state": (number(file_made, 1), 0),
        "warm_up": (number(second, FAULTY_IO["warm_up"] + 1), 0),
        "measured": (number(second, FAULTY_IO["measured"] + 1), 0),
        "pause": (1, pauses),
        "between": (number(second, COUNT + 1), 0),
    }


def finished_runs() -> dict[str, bytes]:
    """Return the content of every finished run by its file name."""
    return {path.name: path.read_bytes() for path in sorted(OUT.glob("runs/0*.parquet"))}


def slowest_ios() -> dict[str, list[float]]:
    """Return the slowest of all I/Os of each run, and of its measured ones [s]."""
    seconds: dict[str, list[float]] = {}
    results = Results.load(OUT)
    for run in results.runs:
        times = np.asarray(run.trace().column("response_time_ns")) / 1e9
        seconds[run.id] = [float(times.max()), float(times[IGNORED:].max())]
    return seconds


def retry_until_released(work: Callable[[], object]) -> None:
    """Do some work as soon as the hanging I/O has released the target."""
    for _ in range(1000):
        try:
            work()
        except RefusedError:
            time.sleep(0.01)
        else:
            return
    work()


def offset_of_faulty_io(phase: str) -> int | None:
    """Return the offset of the I/O of the second run that met the fault [bytes]."""
    runs = Results.load(OUT).runs if phase in FAULTY_IO else []
    if len(runs) < 2:
        return None
    return int(np.asarray(runs[1].trace().column("offset_bytes"))[FAULTY_IO[phase]])


def resume_or_restart(before: dict[str, bytes]) -> tuple[str, bool]:
    """Resume a benchmark, or restart it; return which, and whether finished runs are unchanged."""
    if not OUT.exists():
        retry_until_released(benchmark)
        return "restarted", not before
    try:
        retry_until_released(partial(uflip.resume, OUT))
    except UflipError as error:
        return f"{error.exit_code}: {error.what}: {error.got}", finished_runs() == before
    after = finished_runs()
    return "resumed", {name: after.get(name) for name in before} == before


def run_cell(faults: Faults, kind: str, phase: str, operation: str, at: tuple[int, int]) -> Cell:
    """Make a benchmark with one injected fault, and resume it."""
    clear()
    faults.arm(kind, OPERATIONS[operation], *at)
    began, code, error_what, got = faults.now_ns, 0, "", ""
    try:
        benchmark()
    except UflipError as error:
        code, error_what, got = error.exit_code, error.what, error.got
    waited_s, met = (faults.now_ns - began) / 1e9, faults.met
    faults.disarm()
    before = finished_runs()
    times = slowest_ios() if code == 0 else {}
    afterwards, runs_unchanged = ("", True) if code == 0 else resume_or_restart(before)
    return Cell(
        kind, phase, operation, met, code, error_what, got, len(before), waited_s, times,
        afterwards, runs_unchanged, offset_of_faulty_io(phase),
    )  # fmt: skip


def main(kind: str) -> None:
    """Print the outcome of each cell of a kind."""
    faults = Faults()
    once = cache(measure_harness)
    # Under this library the measurement would take longer than all else.
    execute.measure_harness = lambda: dict(once())
    clear()
    info = inspect_device(f"file:{TARGET}", size=SIZE, buffered=True)
    for operation in dict.fromkeys(operation for _, operation in cells(kind)):
        faults.disarm()
        PLAN.write_text(write_plan(plan_for(operation, info)))
        at = fault_positions(operation)
        for phase in [phase for phase, of_phase in cells(kind) if of_phase == operation]:
            print(
                json.dumps(asdict(run_cell(faults, kind, phase, operation, at[phase]))), flush=True
            )


if __name__ == "__main__":
    main(sys.argv[1])
