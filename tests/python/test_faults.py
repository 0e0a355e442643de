"""A fault at any system call of a run: does it end in order, and can it resume?

Calls are counted first; then moments are drawn from a seed that a failure prints (`UFLIP_SEED`
brings it back). `UFLIP_SOAK=1` goes through all of them. Never is the end a mistake of uflip's (1),
a traceback or a signal; never is a finished run lost; and the folder can be resumed, or its
name is free.
"""

import os
import random
import shutil
import time
from pathlib import Path

import pytest
from command_line import uflip
from injection import Call, Injector, build, number_of

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


def finished() -> dict[str, bytes]:
    """Every finished run that is there."""
    return {path.name: path.read_bytes() for path in sorted(Path(OUT, "runs").glob("0*.parquet"))}


@pytest.mark.parametrize("plan", PLANS)
def test_a_fault_at_any_call_ends_in_order_and_goes_on(
    in_memory: Path, injector: Injector, plan: str
) -> None:
    arguments = ("run", *PLANS[plan], "--out", OUT, "-q")
    calls = injector.calls(*arguments, log=in_memory / "calls")
    random_ = random.Random(f"{SEED} {plan}")
    # I/Os of the target are many and all alike: half of the moments are among the other calls.
    ios = [call for call in calls if call.name.startswith(("pread", "pwrite"))]
    others = [call for call in calls if not call.name.startswith(("pread", "pwrite"))]
    drawn = others if SOAK else random_.sample(others, MOMENTS)
    drawn += random_.sample(ios, min(len(ios), 200 if SOAK else MOMENTS // 3))
    for call in drawn:
        error = random_.choice(call.errors())
        # An interrupted call is repeated: no real fault interrupts it for ever.
        lasting = random_.randrange(2) if error != "EINTR" else 0
        settings = {"at": call.number, "errno": number_of(error), "from": lasting}
        said = f"UFLIP_SEED={SEED} {call} {error} {settings}"
        clear()
        done = injector.run(*arguments, **settings)
        check_end(done.returncode, done.stderr, said)
        check_going_on(arguments, said)


def check_end(code: int, err: str, said: str) -> None:
    assert code in (0, 3, 4, 5, 6), f"{said}: {code}\n{err}"
    assert "Traceback" not in err, f"{said}\n{err}"
    if code:
        assert "error: " in err, f"{said}\n{err}"


def check_going_on(arguments: tuple[object, ...], said: str) -> None:
    """Nothing finished is lost; what is there can be resumed, or begun again."""
    before = finished()
    if not Path(OUT).exists():
        again = uflip(*arguments)
    elif Results.load(OUT).status == "complete":
        return
    else:
        again = uflip(
            "run", "--resume", OUT, "-q", *(("--record", RECORD) if RECORD in arguments else ())
        )
    assert again.code == 0, f"{said}\n{again.err}"
    results = Results.load(OUT)
    assert (results.status, results.missing) == ("complete", []), said
    after = finished()
    assert {name: after.get(name) for name in before} == before, said


def test_results_that_become_read_only_in_mid_run_end_in_four_parts(
    in_memory: Path, injector: Injector
) -> None:
    """From some write on everything is refused, cleaning up included."""
    arguments = ("run", *PLANS["simulated"], "--out", OUT, "-q")
    calls = injector.calls(*arguments, log=in_memory / "calls")
    third = next(call for call in calls if "runs/.0003" in call.path and call.name == "write")
    clear()
    done = injector.run(*arguments, at=third.number, errno=number_of("EROFS"), **{"from": 1})
    assert done.returncode == 5, done.stderr
    assert "Read-only file system" in done.stderr
    assert "2 finished runs are kept" in done.stderr
    assert len(finished()) == 2
    check_going_on(arguments, "read-only")


def test_no_moment_leaves_a_folder_that_is_neither_new_nor_to_be_gone_on_with(
    in_memory: Path, injector: Injector
) -> None:
    """Each call that makes the folder fails once: its name is free, or it can be resumed."""
    arguments = ("run", *PLANS["simulated"], "--out", OUT, "-q")
    calls = injector.calls(*arguments, log=in_memory / "calls")
    first = next(call.number for call in calls if "runs/.0001" in call.path)
    making = [call for call in calls if call.number < first]
    assert {"mkdir", "fsync", "rename"} <= {call.name for call in making}
    for call in making if SOAK else spread(making, 8):
        clear()
        done = injector.run(*arguments, at=call.number, errno=number_of("EIO"))
        check_end(done.returncode, done.stderr, f"{call}")
        check_going_on(arguments, f"{call}")
        assert not list(Path().glob(f".{OUT}-*")), f"{call}: something is left"


def spread(calls: list[Call], count: int) -> list[Call]:
    return calls[:: max(1, len(calls) // count)]


@pytest.mark.parametrize("command", ["run", "pattern", "prepare"])
def test_an_io_that_never_ends_is_given_up(
    in_memory: Path, injector: Injector, command: str
) -> None:
    """The thread hangs; the process ends all the same, says where, and can be resumed."""
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
    done = injector.run(*arguments[command], "--io-timeout", "300ms", at=hanging.number, hang=1)
    assert done.returncode == 4, done.stderr
    assert "does not end" in done.stderr
    assert "--io-timeout" in done.stderr
    assert "at byte" in done.stderr
    if command == "run":
        check_going_on(arguments["run"], f"{hanging}")
