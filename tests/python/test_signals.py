"""Does every signal end a command in order, at any moment?

Moments are drawn from a seed that a failure prints; `UFLIP_SEED` repeats it. No result depends on
durations: a signal after the end of a command has no effect.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import start, uflip
from fuse_file import needs_fuse, wait_until
from hanging_file import hanging_file

from uflip import signals
from uflip.device import opener
from uflip.device.opener import open_device
from uflip.errors import InterruptedRun
from uflip.results import Results

SEED = int(os.environ.get("UFLIP_SEED") or time.time_ns() % 2**32)
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
SMALL_SIM = "sim:demo?blocks_per_die=64"
LONG = ("--io-count", "500000000")
# How long a read hangs [s].
HANG_S = 8

# Long-running commands, each in another phase when the signal comes.
WORK: dict[str, tuple[str, ...]] = {
    "run": ("run", SMALL_SIM, "--scale", "quick", "--out", "out"),
    "pattern": ("pattern", SMALL_SIM, "--pattern", "RW", "--time", "pause", "--pause", "1ms",
                "--until-converged", "--max-time", "10min"),
    "waiting": ("run", "null", "--only", "order", "--pause", "1min", "--out", "out"),
    "sweep": ("sweep", SMALL_SIM, "--vary", "spare_factor=0.2,0.3,0.4", "--pattern", "RW",
              "--warm-up", "1000", "--untimed"),
    "reproduce": ("reproduce", "ofc-fig7"),
    "oc": ("oc", "sim:dfc", "--out", "out"),
}  # fmt: skip


def send_and_wait(process: subprocess.Popen[str], number: signal.Signals) -> tuple[int, str]:
    """Send a signal, and wait for the end; return the exit code of a shell, and the errors.

    A command that has printed its result counts as ended with 0: Python removes the handlers
    before it exits.
    """
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    code = process.returncode
    if code == -number and out and not err:
        return 0, err
    return (128 - code if code < 0 else code), err


def has_signal_handlers(process: subprocess.Popen[str]) -> bool:
    """Return whether a process has its signal handlers; before that, Python is still starting."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    masks = [int(line.split()[1], 16) for line in lines if line.startswith(("SigCgt", "SigIgn"))]
    return all(any(mask >> (number - 1) & 1 for mask in masks) for number in CODES)


@pytest.mark.parametrize("number", CODES, ids=lambda number: number.name)
@pytest.mark.parametrize("work", WORK)
def test_signal_ends_a_command_in_order(workdir: Path, work: str, number: signal.Signals) -> None:
    rng = random.Random(f"{SEED} {work} {number}")
    process = start(*WORK[work])
    while not has_signal_handlers(process):
        time.sleep(0.001)
    time.sleep(rng.uniform(0, 1.5))
    code, err = send_and_wait(process, number)
    context = f"{work}, {number.name}, UFLIP_SEED={SEED}: {err}"
    assert "Traceback" not in err, context
    if code == 0:
        return  # it was faster
    assert code == CODES[number], context
    assert "error: " in err, context
    manifest = workdir / "out" / "manifest.json"
    if work in ("run", "waiting") and manifest.exists():
        assert json.loads(manifest.read_text())["status"] in ("interrupted", "complete"), context


@pytest.mark.parametrize("number", CODES, ids=lambda number: number.name)
def test_signal_during_startup_ends_the_command(workdir: Path, number: signal.Signals) -> None:
    rng = random.Random(f"{SEED} first {number}")
    for trial in range(4):
        # A folder each: on a fast machine the first one may exist already.
        out = f"out-{trial}"
        process = start("run", SMALL_SIM, "--scale", "quick", "--out", out, "-q")
        while not has_signal_handlers(process):
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.2))
        code, err = send_and_wait(process, number)
        assert code == CODES[number], f"UFLIP_SEED={SEED}: {err}"
        assert err.startswith("error: Interrupted"), f"UFLIP_SEED={SEED}: {err}"


# The signal comes in a descriptor's `__set_name__`.
AS_A_CLASS_IS_MADE = """
import os, signal
from uflip import signals
from uflip.cli import main
signals.install()

class Late:
    def __set_name__(self, owner, name):
        os.kill(os.getpid(), signal.SIGHUP)

def check(arguments):
    class Made:
        key = Late()

main._check_text = check
main.main(["info", "null"])
"""


def test_signal_during_class_creation_ends_the_command() -> None:
    """Python wraps an exception raised there in an error of its own."""
    process = subprocess.run(
        [sys.executable, "-c", AS_A_CLASS_IS_MADE], capture_output=True, text=True, check=False
    )
    assert process.returncode == CODES[signal.SIGHUP], process.stderr
    assert process.stderr.startswith("error: Interrupted"), process.stderr


def test_interrupted_benchmark_is_resumed(workdir: Path) -> None:
    arguments = (SMALL_SIM, "--scale", "quick", "--only", "granularity,order")
    process = start("run", *arguments, "--out", "out", "-q")
    while not list((workdir / "out" / "runs").glob("0*.parquet")):
        assert process.poll() is None
        time.sleep(0.002)
    code, err = send_and_wait(process, signal.SIGTERM)
    results = Results.load("out")
    if code == 143:
        assert f"Interrupted after {len(results.runs)} of" in err
        assert "uflip run --resume out" in err
        assert results.manifest.status == "interrupted"
        assert uflip("run", "--resume", "out", "-q").code == 0
    assert Results.load("out").status == "complete"


def test_second_signal_ends_at_once(workdir: Path, make_file: Callable[..., Path]) -> None:
    """The first one waits for the current I/O; if that hangs, the second one ends the command."""
    process = start("pattern", SMALL_SIM, "--pattern", "RW", *LONG[:1], "3000000")
    while not has_signal_handlers(process):
        time.sleep(0.001)
    process.send_signal(signal.SIGSTOP)
    for number in (signal.SIGTERM, signal.SIGHUP):
        process.send_signal(number)  # both are pending when it continues
    process.send_signal(signal.SIGCONT)
    _, err = process.communicate(timeout=60)
    assert process.returncode in (143, 129)
    assert "Traceback" not in err


@needs_fuse
def test_signal_is_handled_while_opening_a_hanging_file(workdir: Path) -> None:
    """A thread that waits for FUSE cannot be interrupted; the message is printed before that."""
    with hanging_file(workdir, HANG_S) as (image, trigger):
        trigger.mkdir()
        process = start("pattern", f"file:{image}", "--pattern", "RR", "--io-size", "4KiB")
        assert wait_until(lambda: not trigger.exists())
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        first_line = process.stderr.readline()
        took_s = time.monotonic() - began
        process.communicate(timeout=60)
    assert first_line.startswith("error: Interrupted"), first_line
    assert took_s < HANG_S - 1
    assert process.returncode == 143


def test_ignored_signal_stays_ignored(workdir: Path) -> None:
    def ignore() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    options: dict[str, Any] = {"preexec_fn": ignore}
    process = start("run", "null", "--scale", "quick", "--only", "order", "--pause", "1ms",
                    "--out", "out", "-q", **options)  # fmt: skip
    while not has_signal_handlers(process):
        time.sleep(0.001)
    code, err = send_and_wait(process, signal.SIGHUP)
    assert code == 0, err


def test_sigterm_removes_the_file_being_created(workdir: Path) -> None:
    process = start("pattern", "file:big.bin", "--size", "8GiB", "--pattern", "RR", "--buffered")
    while not (workdir / "big.bin").exists():
        assert process.poll() is None
        time.sleep(0.002)
    code, err = send_and_wait(process, signal.SIGTERM)
    assert code == 143, err
    assert "the file was removed" in err
    assert not (workdir / "big.bin").exists()


@pytest.mark.parametrize("present", [False, True])
def test_signal_after_the_last_write_is_reported_correctly(
    workdir: Path, monkeypatch: pytest.MonkeyPatch, present: bool
) -> None:
    if present:
        with open_device("file:made.bin", size="1MiB", buffered=True):
            pass
    run_native = opener.run_native

    def wait_and_terminate(*arguments: Any, **options: Any) -> Any:
        run_native(*arguments, **options)  # as at the end of `signals.shielded`
        raise signals.ProcessTerminated

    monkeypatch.setattr(opener, "run_native", wait_and_terminate)
    with pytest.raises(InterruptedRun, match="Interrupted after") as caught:
        open_device("file:made.bin", size="3MiB", buffered=True)
    if present:
        assert (workdir / "made.bin").stat().st_size == 3 << 20
        assert "extended to its full size" in caught.value.action
    else:
        assert list(workdir.iterdir()) == []
        assert caught.value.action == "the file was removed"
