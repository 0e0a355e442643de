"""The whole pipeline of a result under faults: plan, run, store, resume, verify, summarise, report.

    python pipeline_faults.py DEVICE SEED FIRST LAST    cases FIRST to LAST, in this process

The process has `tests/native/faults.c` before the C library. A case draws a phase, a call of it
that concerns a file of ours, and a fault: an error, a full disk, a short write, an
interruption, a step of the wall clock, or a kill. The real code runs; it may end with an error, but

- a run that was reported as stored exists afterwards, byte for byte;
- proven runs of a folder are as measured: virtual time gives the same trace again;
- no command ends with an internal error, and the benchmark can be completed afterwards.

It prints the first failing case, and nothing if all hold.
"""

import ctypes
import errno
import os
import random
import shutil
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import msgspec
import stored
from fault_matrix import FAILS, SHORT

from uflip.benchmark import execute
from uflip.benchmark.calibration import measure_harness
from uflip.benchmark.events import RunEvent, RunFinished
from uflip.benchmark.plan import Plan
from uflip.benchmark.plan_file import write_plan
from uflip.benchmark.request import BenchmarkRequest
from uflip.benchmark.session import begin, resume
from uflip.cli.main import _explain_system_error
from uflip.device.catalogue import inspect_device
from uflip.device.resolve import resolve
from uflip.errors import ResultsError, UflipError
from uflip.result_views import summary, write_report
from uflip.results import Results, outputs
from uflip.results.integrity import verify

KILLS, STEPS = 6, 7
HOUR_NS = 3600 * 10**9
WORK = Path("pipeline-work")
OUT, REPORT, PLAN = WORK / "out", WORK / "report.html", Path("plan.toml")
PATHS = str(WORK)
RUNS = tuple(
    stored.baseline_run(number, pattern, io_count=12, io_size=4096)
    for number, pattern in enumerate(("RW", "SR"), 1)
)
ORDERLY_EXIT_CODES = {0, 2, 3, 4, 5, 6}
"""Exit codes of ends in order; 1 is a mistake in uflip."""
PHASES = ("run", "resume", "verify", "summarise", "report")
READS = PHASES[2:]


@dataclass(frozen=True)
class Fault:
    """A fault at a call; `lasts`: also at every later call that changes something."""

    action: int
    number: int = 0
    lasts: bool = False


FAULTS = {
    "eio": Fault(FAILS, errno.EIO),
    "eio from then on": Fault(FAILS, errno.EIO, lasts=True),
    "full disk": Fault(FAILS, errno.ENOSPC, lasts=True),
    "read-only": Fault(FAILS, errno.EROFS, lasts=True),
    "interrupted": Fault(FAILS, errno.EINTR),
    "no descriptors": Fault(FAILS, errno.EMFILE),
    "short": Fault(SHORT),
    "kill": Fault(KILLS),
    "clock": Fault(STEPS),
}


class Library:
    """The library that answers instead of the system; it is in this process."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None)
        self._library.fault_step.argtypes = [ctypes.c_longlong]

    def arm(self, fault: Fault, at: int) -> None:
        """Inject a fault at a call, counted from now."""
        self._library.fault_step(HOUR_NS if at % 2 else -HOUR_NS)
        self._library.fault_arm(b"", at, 0, fault.action, fault.number, int(fault.lasts), b"")

    def disarm(self) -> None:
        """Inject no further fault, and reset the clock."""
        self._library.fault_arm(b"", 0, 0, 0, 0, 0, b"")
        self._library.fault_step(0)

    @property
    def calls(self) -> int:
        """Number of calls since the last `arm`."""
        return int(self._library.fault_calls())


class Case:
    """A case of one seed: the fault, the call, and the acknowledged runs."""

    def __init__(self, library: Library, device: str, text: str) -> None:
        self.library, self.device = library, device
        self.random = random.Random(text)
        self.acknowledged: list[str] = []

    def on_event(self, event: RunEvent) -> None:
        """Record the runs that the session reports as stored."""
        if isinstance(event, RunFinished):
            self.acknowledged.append(event.run.id)

    def begin(self) -> None:
        """Make the benchmark of the plan."""
        begin(BenchmarkRequest(device=self.device, plan_file=PLAN), OUT, self.on_event)  # type: ignore[arg-type]

    def resume(self) -> None:
        """Resume the benchmark."""
        resume(OUT, on_event=self.on_event)  # type: ignore[arg-type]

    def run_phase(self, phase: str) -> None:
        """Run a phase."""
        if phase == "run":
            self.begin()
        elif phase == "resume":
            self.resume()
        elif phase == "verify":
            lost = [each for each in verify(OUT) if not each.usable]
            if lost:
                raise ResultsError(f"lost: {lost}", where=str(OUT))
        elif phase == "summarise":
            check_summary(self.device)
        else:
            write_report(Results.load(OUT), REPORT)

    def exit_code_of(self, phase: str) -> int:
        """Run a phase with a fault; return the exit code."""
        try:
            self.run_phase(phase)
        except UflipError as error:
            return error.exit_code if error.what else 1
        except OSError as error:  # the command line explains it
            explained = _explain_system_error(error)
            return 1 if explained is None else explained.exit_code
        return 0


def run_forked(work: Callable[[Callable[[str], None]], int]) -> tuple[int, list[str]]:
    """Do work in a forked process; return its exit code, and the lines that it reported."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        code = 1
        with suppress(BaseException):
            code = work(lambda text: os.write(writing, f"{text}\n".encode()) and None)
        os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as output:
        lines = output.read().split()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), lines


@cache
def traces(device: str) -> dict[str, bytes]:
    """Return the I/Os of each run of a benchmark without a fault."""
    prepare(device, "complete")
    return columns(Results.load(OUT))


def columns(results: Results) -> dict[str, bytes]:
    """Return the I/Os of each usable run."""
    columns_of_run = {}
    for run in results.runs:
        trace = run.trace()
        columns_of_run[run.id] = b"".join(
            bytes(trace.column(name)) for name in ("submit_ns", "response_time_ns", "offset_bytes")
        )
    return columns_of_run


SUMMARY_KEYS = ("status", "baselines", "micro_benchmarks", "experiments")


def summary_text(results: Results) -> bytes:
    """Return the summary of results, without the keys that differ from run to run."""
    document = summary(results)
    return b"\n".join(msgspec.json.encode(document[key]) for key in SUMMARY_KEYS if key in document)


@cache
def expected_summary(device: str) -> bytes:
    """Return the summary of undamaged results."""
    prepare(device, "complete")
    return summary_text(Results.load(OUT))


def check_summary(device: str) -> None:
    """Check that the summary of a folder is that of an undamaged one.

    An unreadable run is omitted with a warning; the summary covers the others.
    """
    results = Results.load(OUT)
    if results.missing:
        assert any("damaged" in doubt["code"] for doubt in results.warnings), results.warnings
    text = summary_text(results)
    assert results.missing or text == expected_summary(device)


@cache
def prepared_folder(device: str, kind: str) -> Path:
    """Make a folder to begin from: complete, or with one run of two."""
    folder = Path(f"{kind}-{device.partition(':')[0]}")
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir()
    if kind == "complete":
        begin(BenchmarkRequest(device=device, plan_file=PLAN), OUT, lambda _: None)
    else:

        def stop(event: RunEvent) -> None:
            if isinstance(event, RunFinished):
                raise KeyboardInterrupt

        with suppress(KeyboardInterrupt, UflipError):
            begin(BenchmarkRequest(device=device, plan_file=PLAN), OUT, stop)  # type: ignore[arg-type]
    shutil.copytree(WORK, folder)
    return folder


def prepare(device: str, kind: str) -> None:
    """Restore the folder that a phase begins with."""
    source = None if kind == "nothing" else prepared_folder(device, kind)
    shutil.rmtree(WORK, ignore_errors=True)
    if source is None:
        WORK.mkdir()
    else:
        shutil.copytree(source, WORK)


FOLDER_BEFORE = {
    "run": "nothing", "resume": "partial", "verify": "complete", "summarise": "complete",
    "report": "complete",
}  # fmt: skip


def run_files() -> dict[str, bytes]:
    """Return the files of finished runs."""
    return {path.stem: path.read_bytes() for path in OUT.glob("runs/0*.parquet")}


@cache
def calls_of(library: Library, device: str, phase: str) -> int:
    """Count the calls of a phase without a fault."""
    prepare(device, FOLDER_BEFORE[phase])
    library.arm(Fault(FAILS), 0)
    Case(library, device, "").run_phase(phase)
    return library.calls


def run_case(library: Library, device: str, text: str) -> str:
    """Run one case; return what was drawn."""
    case = Case(library, device, text)
    phase = case.random.choices(PHASES, (5, 5, 2, 2, 1))[0]
    calls = calls_of(library, device, phase)
    at, name = case.random.randint(1, calls), case.random.choice([*FAULTS])
    drawn = f"{phase}, call {at} of {calls}, {name}"
    prepare(device, FOLDER_BEFORE[phase])
    before = run_files()

    def work(report: Callable[[str], None]) -> int:
        case.on_event = lambda event: (  # type: ignore[method-assign]
            report(event.run.id) if isinstance(event, RunFinished) else None
        )
        library.arm(FAULTS[name], at)
        return case.exit_code_of(phase)

    if name == "kill":
        code, case.acknowledged = run_forked(work)
        code = 0 if code == -9 else code
    else:
        try:
            library.arm(FAULTS[name], at)
            code = case.exit_code_of(phase)
        finally:
            library.disarm()
    assert code in ORDERLY_EXIT_CODES, f"{drawn}: exit code {code}"
    if phase in READS:
        assert files_of(OUT) == files_of(prepared_folder(device, "complete") / "out"), (
            f"{drawn}: changed"
        )
        check_report(drawn)
        return drawn
    check_runs_unchanged(device, case, before, drawn)
    check_completed(device, case, drawn)
    return drawn


def files_of(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def check_report(drawn: str) -> None:
    """Check that a report is complete, or does not exist."""
    if REPORT.exists():
        assert outputs.has_valid_seal(REPORT, outputs.REPORT), drawn


def check_runs_unchanged(device: str, case: Case, before: dict[str, bytes], drawn: str) -> None:
    """Check that finished and acknowledged runs exist, and are as measured."""
    now = run_files()
    assert {run: now.get(run) for run in before} == before, f"{drawn}: a finished run has changed"
    if not OUT.exists():
        assert not case.acknowledged, drawn
        return
    results = Results.load(OUT)
    columns_shown = columns(results)
    assert {*before, *case.acknowledged} <= columns_shown.keys(), (
        f"{drawn}: an acknowledged run is lost"
    )
    expected = traces(device)
    assert all(expected[run] == content for run, content in columns_shown.items()), (
        f"{drawn}: wrong I/Os"
    )


def check_completed(device: str, case: Case, drawn: str) -> None:
    """Check that the benchmark can be completed, and is proven and correct then."""
    before = run_files()
    if not OUT.exists():
        case.begin()
    elif (partial := Results.load(OUT)).status != "complete" or partial.missing:
        case.resume()
    now = run_files()
    assert {run: now.get(run) for run in before} == before, f"{drawn}: a run has changed at the end"
    states = {verdict.state for verdict in verify(OUT)}
    assert states == {"proven"}, f"{drawn}: {states}"
    results = Results.load(OUT)
    assert (results.status, results.missing) == ("complete", []), drawn
    assert columns(results) == traces(device), drawn
    check_summary(device)


def plan_for(device: str) -> Plan:
    """Plan two short runs from the current state of the device."""
    info = inspect_device(device)
    runs = tuple(replace(run, spec=resolve(run.spec, info).spec) for run in RUNS)
    return Plan(
        device=info, scale="quick", seed=1, runs=runs, skipped=(), pause_ns=0, target_size=32 << 20,
        state=None, repetitions=1, method="paper", durability="cached", warnings=(),
    )  # fmt: skip


def main(device: str, seed: str, first: int, last: int) -> None:
    """Run cases until one fails."""
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])  # threads cost more than they gain
    library = Library()
    once = cache(measure_harness)
    execute.measure_harness = lambda: dict(once())
    PLAN.write_text(write_plan(plan_for(device)))
    traces(device)  # compute the expected results before the first fault
    expected_summary(device)
    prepared_folder(device, "partial")
    for phase in PHASES:
        calls_of(library, device, phase)
    for number in range(first, last):
        try:
            run_case(library, device, f"{seed} {device} {number}")
        except BaseException:
            library.disarm()
            print(f"UFLIP_SEED={seed} {device} {number}\n{traceback.format_exc()}", flush=True)
            return


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
