"""A fault at any system call of a run: does it end in order, and can it resume?

Calls are counted first; then moments are drawn from a seed that a failure prints (`UFLIP_SEED`
repeats it). `UFLIP_SOAK=1` tries all of them. No command ends with an internal error (1), a
traceback or a signal; no finished run is lost; and the folder can be resumed, or its name is free.
"""

import os
import random
import shutil
import time
from pathlib import Path

import pytest
from command_line import uflip
from injection import Call, Injector, build, errno_of

from uflip.results import Results

SEED = int(os.environ.get("UFLIP_SEED") or time.time_ns() % 2**32)
SOAK = bool(os.environ.get("UFLIP_SOAK"))
# Each takes about a second; `make test` draws this number for each kind of device.
MOMENTS = 10

OUT, TARGET, RECORD = "kept-here", "scratch-target.bin", "kept-record.json"
PLANS = {
    "simulated": ("sim:demo?blocks_per_die=64", "--scale", "quick", "--only", "order"),
    "file": (f"file:{TARGET}", "--size", "4MiB", "--buffered", "--scale", "quick", "--only",
             "partitioning", "--io-size", "4k", "--pause", "1us", "--record", RECORD),
}  # fmt: skip


@pytest.fixture
def injector() -> Injector:
    return build(OUT, TARGET, RECORD)


def clear() -> None:
    shutil.rmtree(OUT, ignore_errors=True)
    for name in (TARGET, RECORD):
        Path(name).unlink(missing_ok=True)
    for hidden in Path().glob(f".{OUT}-*"):
        shutil.rmtree(hidden)


def finished_runs() -> dict[str, bytes]:
    """Return the content of every finished run by its file name."""
    return {path.name: path.read_bytes() for path in sorted(Path(OUT, "runs").glob("0*.parquet"))}


@pytest.mark.parametrize("plan", PLANS)
def test_fault_at_any_call_ends_in_order_and_can_be_resumed(
    in_memory: Path, injector: Injector, plan: str
) -> None:
    arguments = ("run", *PLANS[plan], "--out", OUT, "-q")
    calls = injector.calls(*arguments, log=in_memory / "calls")
    rng = random.Random(f"{SEED} {plan}")
    # I/Os of the target are many and equal, so most moments are drawn from the other calls.
    ios = [call for call in calls if call.name.startswith(("pread", "pwrite"))]
    others = [call for call in calls if not call.name.startswith(("pread", "pwrite"))]
    drawn = others if SOAK else rng.sample(others, MOMENTS)
    drawn += rng.sample(ios, min(len(ios), 200 if SOAK else MOMENTS // 3))
    for call in drawn:
        error = rng.choice(call.errors())
        # An interrupted call is repeated: no real fault interrupts it for ever.
        persistent = rng.randrange(2) if error != "EINTR" else 0
        settings = {"at": call.number, "errno": errno_of(error), "from": persistent}
        context = f"UFLIP_SEED={SEED} {call} {error} {settings}"
        clear()
        outcome = injector.run(*arguments, **settings)
        check_end(outcome.returncode, outcome.stderr, context)
        check_resume(arguments, context)


def check_end(code: int, err: str, context: str) -> None:
    assert code in (0, 3, 4, 5, 6), f"{context}: {code}\n{err}"
    assert "Traceback" not in err, f"{context}\n{err}"
    if code:
        assert "error: " in err, f"{context}\n{err}"


def check_resume(arguments: tuple[object, ...], context: str) -> None:
    """Check that finished runs are kept, and that the benchmark is resumed or restarted."""
    before = finished_runs()
    if not Path(OUT).exists():
        again = uflip(*arguments)
    elif Results.load(OUT).status == "complete":
        return
    else:
        again = uflip(
            "run", "--resume", OUT, "-q", *(("--record", RECORD) if RECORD in arguments else ())
        )
    assert again.code == 0, f"{context}\n{again.err}"
    results = Results.load(OUT)
    assert (results.status, results.missing) == ("complete", []), context
    after = finished_runs()
    assert {name: after.get(name) for name in before} == before, context


def test_results_turning_read_only_give_a_full_error(in_memory: Path, injector: Injector) -> None:
    """From one write on every change is refused, including the clean-up."""
    arguments = ("run", *PLANS["simulated"], "--out", OUT, "-q")
    calls = injector.calls(*arguments, log=in_memory / "calls")
    third = next(call for call in calls if "runs/.0003" in call.path and call.name == "write")
    clear()
    outcome = injector.run(*arguments, at=third.number, errno=errno_of("EROFS"), **{"from": 1})
    assert outcome.returncode == 5, outcome.stderr
    assert "Read-only file system" in outcome.stderr
    assert "2 finished runs are kept" in outcome.stderr
    assert len(finished_runs()) == 2
    check_resume(arguments, "read-only")


def test_fault_while_creating_the_folder_leaves_it_free_or_resumable(
    in_memory: Path, injector: Injector
) -> None:
    """Each call that creates the folder fails once: its name is free, or it can be resumed."""
    arguments = ("run", *PLANS["simulated"], "--out", OUT, "-q")
    calls = injector.calls(*arguments, log=in_memory / "calls")
    first = next(call.number for call in calls if "runs/.0001" in call.path)
    making = [call for call in calls if call.number < first]
    assert {"mkdir", "fsync", "rename"} <= {call.name for call in making}
    for call in making if SOAK else sample_evenly(making, 8):
        clear()
        outcome = injector.run(*arguments, at=call.number, errno=errno_of("EIO"))
        check_end(outcome.returncode, outcome.stderr, f"{call}")
        check_resume(arguments, f"{call}")
        assert not list(Path().glob(f".{OUT}-*")), f"{call}: a temporary folder is left"


def sample_evenly(calls: list[Call], count: int) -> list[Call]:
    return calls[:: max(1, len(calls) // count)]


@pytest.mark.parametrize("command", ["run", "pattern", "prepare"])
def test_hanging_io_times_out(in_memory: Path, injector: Injector, command: str) -> None:
    """The thread hangs; the process still ends, reports the offset, and can be resumed."""
    target = (f"file:{TARGET}", "--size", "4MiB", "--buffered")
    assert uflip("pattern", *target, "--pattern", "SW", "--io-count", "1", "-q").code == 0
    arguments: dict[str, tuple[object, ...]] = {
        "run": ("run", *PLANS["file"], "--out", OUT, "-q"),
        "pattern": ("pattern", *target, "--pattern", "RW", "--io-size", "4k", "-q"),
        "prepare": ("prepare", *target, "--record", RECORD, "-q"),
    }
    calls = injector.calls(*arguments[command], log=in_memory / "calls")
    writes = [call for call in calls if call.name.startswith("pwrite")]
    hanging = writes[len(writes) * 3 // 4]
    shutil.rmtree(OUT, ignore_errors=True)
    Path(RECORD).unlink(missing_ok=True)
    outcome = injector.run(*arguments[command], "--io-timeout", "300ms", at=hanging.number, hang=1)
    assert outcome.returncode == 4, outcome.stderr
    assert "does not end" in outcome.stderr
    assert "--io-timeout" in outcome.stderr
    assert "at byte" in outcome.stderr
    if command == "run":
        check_resume(arguments["run"], f"{hanging}")
