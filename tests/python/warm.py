"""A preloaded `uflip`, for examples that start hundreds of processes.

A folder has a program of this name to be put first on PATH. It passes its command, environment,
folder and files to a server, which forks. A command behaves as in a new process, without the
quarter of a second of its imports.

    uflip show r ──{argv, cwd, env}, 3 files──▶ server ──fork──▶ keeper ──fork──▶ main()
                 ◀──────── pid, status ──────────────────────────  ◀──────────

Signals to the program are forwarded; killing it kills the command.
"""

import atexit
import gc
import importlib
import marshal
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import NoReturn

from fork_server import warm_up

PROGRAM = """#!{python} -IS
import _signal, marshal, os, sys
from _socket import socket, CMSG_LEN, SCM_RIGHTS, SOL_SOCKET, AF_UNIX, SOCK_STREAM
asked = marshal.dumps((sys.argv[1:], os.getcwd(), dict(os.environ)))
door = socket(AF_UNIX, SOCK_STREAM)
door.connect({socket!r})
files = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
door.sendmsg([len(asked).to_bytes(8, "big")], [(SOL_SOCKET, SCM_RIGHTS, files)])
at = 0
while at < len(asked):
    at += door.send(asked[at:])
pid = int.from_bytes(door.recv(8), "big")
for number in (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP):
    _signal.signal(number, lambda number, _: os.kill(pid, number))
status = int.from_bytes(door.recv(8), "big")
if os.WIFSIGNALED(status):
    _signal.signal(os.WTERMSIG(status), _signal.SIG_DFL)
    os.kill(os.getpid(), os.WTERMSIG(status))
os._exit(os.WEXITSTATUS(status))
"""


# Modules of a benchmark, a pattern and a state at work.
BENCHMARKS = (
    "ctypes", "numpy", "uflip.result_views", "uflip.cli.pattern", "uflip.cli.prepare",
"uflip.cli.benchmark_progress", "uflip.cli.run",
    "uflip.pattern_options", "uflip.oc.session", "uflip.report.text",
    "uflip.results.run_statistics", "uflip.benchmark.session", "uflip.benchmark.prepare",
)  # fmt: skip


@cache
def program(*modules: str, preloaded: Path | None = None) -> Path:
    """Make a program for the lifetime of this process; see `warm`."""
    exit_stack = ExitStack()
    atexit.register(exit_stack.close)
    # Its socket needs a short name.
    folder = exit_stack.enter_context(tempfile.TemporaryDirectory(prefix="uflip-"))
    environment = {} if preloaded is None else {"LD_PRELOAD": str(preloaded)}
    return exit_stack.enter_context(warm(Path(folder), *modules, **environment)) / "uflip"


@contextmanager
def warm(folder: Path, *modules: str, **environment: str) -> Iterator[Path]:
    """Make the program in a folder, yield the folder, and serve it during the block.

    The server has imported these modules; by default every verb and what they use.
    """
    address, program = folder / "warm", folder / "uflip"
    program.write_text(PROGRAM.format(python=sys.executable, socket=str(address)))
    program.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(address))
        listener.listen(64)
        command = [sys.executable, __file__, str(listener.fileno()), *modules]
        server = subprocess.Popen(
            command,
            env=os.environ | environment,
            pass_fds=[listener.fileno()],
            stdin=subprocess.PIPE,
        )
    try:
        yield folder
    finally:
        server.communicate()


def _serve(listener: socket.socket, modules: list[str]) -> None:
    for module in modules:
        importlib.import_module(module)
    if not modules:
        warm_up()
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # The parent process has the other end of the pipe, and may be killed.
    input_, listens = sys.stdin.fileno(), listener.fileno()
    while listens in select.select([listens, input_], [], [])[0]:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            _supervise(connection)
        connection.close()


def _supervise(connection: socket.socket) -> NoReturn:
    """Run the requested command, and wait until it ends or its client is gone."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    head, files, _, _ = socket.recv_fds(connection, 8, 3)
    length, request = int.from_bytes(head, "big"), bytearray()
    while len(request) < length:
        request += connection.recv(length - len(request))
    pid = os.fork()
    if pid == 0:
        connection.close()
        _become_command(files, *marshal.loads(bytes(request)))
    for file in files:
        os.close(file)
    with suppress(OSError):
        connection.sendall(pid.to_bytes(8, "big"))
        exit_handle = os.pidfd_open(pid)
        if connection in select.select([connection, exit_handle], [], [])[0]:
            os.kill(pid, signal.SIGKILL)
        connection.sendall(os.waitpid(pid, 0)[1].to_bytes(8, "big"))
    os._exit(0)


def _become_command(
    files: list[int], arguments: list[str], cwd: str, environment: dict[str, str]
) -> NoReturn:
    """Run the command in this process, and exit."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    if "FAULT_PATHS" in environment:  # see `injection`
        import ctypes

        ctypes.CDLL(None).fault_begin()
    sys.argv = ["uflip", *arguments]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    code = 1
    try:
        from uflip.__main__ import main

        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:])
