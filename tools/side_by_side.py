"""Runs `make` twice at once, and prints what they say one after the other.

    side_by_side.py "check-rust test-rust" "check-python test-python"

Each of them leaves a processor idle for minutes: the last crate that is compiled, one long test, a
check of types. Together they do not. The first has the terminal; what the second says waits in
build/second.txt until the first is through, and is then shown from its beginning, as it goes on.
One that fails ends the other, which would not have begun if it came later.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, NoReturn

SECOND = Path(__file__).resolve().parents[1] / "build" / "second.txt"
LOOKS_S = 0.2
ENDS_S = 60  # for tests to clear up after Ctrl-C


def main(first: str, second: str) -> int:
    """Run both; the code of one that failed, 0 where none did."""
    SECOND.parent.mkdir(exist_ok=True)
    signal.signal(signal.SIGTERM, ended)
    begun = []
    try:
        with SECOND.open("wb") as said:
            behind = begin(second, said)
        begun.append(behind)
        ahead = begin(first, None)
        begun.append(ahead)
        while ahead.poll() is None and not behind.poll():
            time.sleep(LOOKS_S)
        if ahead.poll():
            return ahead.returncode
        end(ahead)
        return follow(behind)
    except KeyboardInterrupt:
        return 130
    finally:
        for process in begun:
            end(process)


def begin(targets: str, said: IO[bytes] | None) -> "subprocess.Popen[bytes]":
    """Make some targets, in a group of processes of their own, which a signal can end."""
    colours = {"PY_COLORS": "1"} if sys.stdout.isatty() else {}
    return subprocess.Popen(
        ["make", "--no-print-directory", *targets.split()],
        stdout=said,
        stderr=subprocess.STDOUT if said else None,
        stdin=subprocess.DEVNULL,
        env=os.environ | colours,
        start_new_session=True,
    )


def follow(behind: "subprocess.Popen[bytes]") -> int:
    """Show what the second has said, and goes on to say, until it is through."""
    with SECOND.open("rb") as said:
        over = False
        while not over:
            over = behind.poll() is not None  # before the last look
            shutil.copyfileobj(said, sys.stdout.buffer)
            sys.stdout.buffer.flush()
            if not over:
                time.sleep(LOOKS_S)
    return behind.returncode


def end(process: "subprocess.Popen[bytes]") -> None:
    """End one with all that it has started, in order if that can be had."""
    if process.poll() is not None:
        return
    os.killpg(process.pid, signal.SIGINT)
    try:
        process.wait(ENDS_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)


def ended(_signal: int, _frame: object) -> NoReturn:
    """Let a signal end both."""
    raise SystemExit(143)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
