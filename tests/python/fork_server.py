"""Runs commands, each in a process of its own, forked from a warm interpreter.

A hostile input may crash, hang or take all memory, so a case must not share a process with the next
one. A new interpreter needs most of a second for its imports, where a fork takes some
milliseconds. So a server imports every verb once and forks for each case. It is a program of its
own, not a thread of the tests, because a process with threads must not fork.

    tests ──{"argv", "cwd", "env", "stdin"}──▶ server ──fork──▶ uflip.cli.main.main(argv)
          ◀──{"code", "signal", "err", ...}──        ◀──wait4──

A case may take `CPU_S` seconds of processor time, `MEMORY_BYTES`, and files of `FILE_BYTES`. A
case that is idle for `IDLE_S` hangs; all of its processes together may take `GROUP_CPU_S`. No limit
depends on the load of the machine.
"""

import contextlib
import importlib
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

CPU_S = 10
IDLE_S = 10
SERVING_IDLE_S = 3  # idle time after which a server is taken to be serving
GROUP_CPU_S = 60  # for all processes of a case together
MEMORY_BYTES = 1 << 30
FILE_BYTES = 256 << 20
MAX_OUTPUT_BYTES = 1 << 20  # limit for the output of a case; the rest is not read
PYTHON = Path(__file__).resolve().parents[2] / "python"
# One thread and one arena each, because unused address space would count as memory.
LEAN = {"OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1", "NO_COLOR": "1"}
WARM = (
    "encodings.idna",
    "encodings.unicode_escape",
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_svg",
    "matplotlib.figure",
    "numpy.lib._npyio_impl",
    "pyarrow.parquet",
    "rich.console",
    "rich.progress",
)


@dataclass(frozen=True)
class CommandOutcome:
    """The outcome of a case.

    `code` is None if a signal ended the case; `memory_bytes` is its peak memory.
    """

    code: int | None
    signal: int | None
    out: str
    err: str
    cpu_s: float
    wall_s: float
    memory_bytes: int
    hung: bool


class Server:
    """A warm interpreter that runs one command after another, each in a fork of itself."""

    def __init__(self, idle_s: float = IDLE_S) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(idle_s)],
            env=os.environ | LEAN | {"PYTHONPATH": str(PYTHON)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.communicate()

    def run(
        self,
        arguments: Sequence[str],
        cwd: Path,
        environment: Mapping[str, str] | None = None,
        stdin: Path | None = None,
        patience_s: float | None = None,
        *,
        serves: bool = False,
    ) -> CommandOutcome:
        """Run one command in the folder `cwd`, its standard input closed or a file.

        After `patience_s` of processor time it gets one SIGINT, which ends a long command in
        order. A command that `serves` gets it once it is idle.
        """
        request = {
            "argv": list(arguments),
            "cwd": str(cwd),
            "env": dict(environment or {}),
            "stdin": None if stdin is None else str(stdin),
            "patience_s": patience_s,
            "serves": serves,
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, f"the server ended at {arguments}"
        return CommandOutcome(**json.loads(answer))


def warm_up() -> None:
    """Import every verb and the modules that it loads while it works."""
    from uflip.cli.main import VERBS

    for module in (*WARM, *(f"uflip.cli.{verb}" for verb in VERBS)):
        importlib.import_module(module)


def _serve(idle_s: float) -> None:
    """Answer requests until there are no more."""
    warm_up()
    for line in sys.stdin:
        answer = _run(json.loads(line), idle_s)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _run(request: dict[str, Any], idle_s: float) -> dict[str, Any]:
    out, err = os.memfd_create("out"), os.memfd_create("err")
    started = time.monotonic()
    pid = os.fork()
    if pid == 0:
        _become_command(request, out, err)
    hung = not _wait_for_end(
        pid, idle_s, request["patience_s"], SERVING_IDLE_S if request["serves"] else None
    )
    if hung:
        os.kill(pid, signal.SIGKILL)
    _, status, used = os.wait4(pid, 0)
    wall_s = time.monotonic() - started
    _end_group(pid)
    return {
        "code": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
        "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
        "out": _output_text(out),
        "err": _output_text(err),
        "cpu_s": used.ru_utime + used.ru_stime,
        "wall_s": wall_s,
        "memory_bytes": used.ru_maxrss * 1024,
        "hung": hung,
    }


def _wait_for_end(pid: int, idle_s: float, patience_s: float | None, waits_s: float | None) -> bool:
    """Wait for a case; return False once it is idle or computes for too long."""
    busy = time.monotonic()
    used = 0
    ticks = os.sysconf("SC_CLK_TCK")
    patience = float("inf") if patience_s is None else patience_s * ticks
    waits = float("inf") if waits_s is None else waits_s
    handle = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        while not poll.poll(250):
            now = time.monotonic()
            if _ticks(pid) > used:
                used, busy = _ticks(pid), now
            if used > patience or now - busy > waits:
                os.kill(pid, signal.SIGINT)
                patience = waits = float("inf")
            if now - busy > idle_s or used > GROUP_CPU_S * ticks:
                return False
        return True
    finally:
        os.close(handle)


def _ticks(leader: int) -> int:
    """Return the processor time of a case, including its child processes [ticks]."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            # After the name, which may hold anything: state, parent, group, ..., utime, stime, and
            # those of children that have ended.
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        if int(fields[2]) == leader:
            ticks += sum(map(int, fields[11:15]))
    return ticks


def _end_group(leader: int) -> None:
    """Kill the remaining processes of a case, such as workers."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def _output_text(memory: int) -> str:
    text = os.pread(memory, MAX_OUTPUT_BYTES, 0).decode(errors="backslashreplace")
    os.close(memory)
    return text


def _become_command(request: dict[str, Any], out: int, err: int) -> NoReturn:
    """Run the command in this process, and exit."""
    code = 1
    try:
        _set_up_process(request, out, err)
        from uflip.cli.main import main

        main(request["argv"])
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:  # print a traceback as the interpreter does
        traceback.print_exc()
    finally:
        # Not sys.exit: a child must not run the clean-up of the server.
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)


def _set_up_process(request: dict[str, Any], out: int, err: int) -> None:
    os.setsid()
    os.chdir(request["cwd"])
    if request["stdin"] is None:
        os.close(0)
        sys.stdin = None  # type: ignore[assignment]
    else:
        os.dup2(os.open(request["stdin"], os.O_RDONLY), 0)
        sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    for number, memory in ((1, out), (2, err)):
        os.dup2(memory, number)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
    os.environ.update(request["env"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for limit, value in (
        (resource.RLIMIT_AS, MEMORY_BYTES + _address_space()),
        (resource.RLIMIT_DATA, MEMORY_BYTES),
        (resource.RLIMIT_CPU, CPU_S),
        (resource.RLIMIT_FSIZE, FILE_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (value, value))


def _address_space() -> int:
    """Return the memory of the libraries before a case begins [bytes]."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


if __name__ == "__main__":
    _serve(float(sys.argv[1]))
