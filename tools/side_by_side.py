"""Run `make` twice at once, and print the output of one after that of the other.

    side_by_side.py "check-rust test-rust" "check-python test-python"

Each of them alone leaves a processor idle for minutes: the last crate that is compiled, one long
test, a check of types. The first writes to the terminal. The output of the second goes to
build/second.txt; when the first has ended, it is printed from its beginning, and followed. If one
fails, the other is ended.
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
POLL_S = 0.2
END_TIMEOUT_S = 60  # for tests to clean up after Ctrl-C


def main(first: str, second: str) -> int:
    """Run both; return the exit code of the one that failed, or 0."""
    SECOND.parent.mkdir(exist_ok=True)
    signal.signal(signal.SIGTERM, exit_on_signal)
    started = []
    try:
        with SECOND.open("wb") as output:
            second_make = begin(second, output)
        started.append(second_make)
        first_make = begin(first, None)
        started.append(first_make)
        while first_make.poll() is None and not second_make.poll():
            time.sleep(POLL_S)
        if first_make.poll():
            return first_make.returncode
        end(first_make)
        return follow(second_make)
    except KeyboardInterrupt:
        return 130
    finally:
        for process in started:
            end(process)


def begin(targets: str, output: IO[bytes] | None) -> "subprocess.Popen[bytes]":
    """Make some targets in a process group of their own, which a signal can end."""
    colours = {"PY_COLORS": "1"} if sys.stdout.isatty() else {}
    return subprocess.Popen(
        ["make", "--no-print-directory", *targets.split()],
        stdout=output,
        stderr=subprocess.STDOUT if output else None,
        stdin=subprocess.DEVNULL,
        env=os.environ | colours,
        start_new_session=True,
    )


def follow(process: "subprocess.Popen[bytes]") -> int:
    """Print the output of the second from its beginning, until the process ends."""
    with SECOND.open("rb") as output:
        ended = False
        while not ended:
            ended = process.poll() is not None  # before the last look
            shutil.copyfileobj(output, sys.stdout.buffer)
            sys.stdout.buffer.flush()
            if not ended:
                time.sleep(POLL_S)
    return process.returncode


def end(process: "subprocess.Popen[bytes]") -> None:
    """End a process and all that it started: by SIGINT, after a time by SIGKILL."""
    if process.poll() is not None:
        return
    os.killpg(process.pid, signal.SIGINT)
    try:
        process.wait(END_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)


def exit_on_signal(_signal: int, _frame: object) -> NoReturn:
    """Exit, so that both are ended."""
    raise SystemExit(143)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
