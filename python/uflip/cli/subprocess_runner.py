"""A command of the shell that runs beside a server, in a process group of its own.

A signal that ends `uflip` is passed on to all of the group, so that nothing that the command has
started stays; and the server goes on meanwhile, so that the command can end in order::

    Ctrl-C ─▶ uflip ─▶ group ─▶ over, or after a while SIGTERM ─▶ over, or left to itself

Such a group is in the background of a terminal. If it waits for the terminal, it gets it until it
has ended, as from a shell; Ctrl-C is then the command's, and ends `uflip` if it ends the command.
"""

import os
import signal
import subprocess
import sys
from contextlib import suppress

from uflip import signals
from uflip.errors import DeviceError
from uflip.native_wait import SLICE_S

PATIENCE_S = 5.0
"""How long a command may take to end after a signal, before another one or none is sent."""
# What stops those who want the terminal, or are asked by it to stop.
STOPPED_BY = (signal.SIGTTIN, signal.SIGTTOU, signal.SIGTSTP)


def run(program: str, uri: str, *, to_stderr: bool) -> None:
    """Run a command that finds a device at `uri` until it has ended, or a signal comes.

    Raises
    ------
    DeviceError
        If it fails.
    """
    process = subprocess.Popen(
        program,
        shell=True,
        env=os.environ | {"UFLIP_URI": uri},
        stdout=sys.__stderr__ if to_stderr else None,
        process_group=0,
    )
    terminal = _Terminal(process.pid)
    try:
        while (code := _code(process, SLICE_S)) is None:
            if (number := signals.caught()) is not None:
                _end(process, number)
                return
            terminal.look()
    finally:
        terminal.take_back()
    if code == -signal.SIGINT and terminal.lent:
        signal.raise_signal(signal.SIGINT)  # it was for us, too
    elif code != 0:
        raise DeviceError(
            "The command that used the device failed",
            where=program,
            got=f"exit code {code}" if code > 0 else f"signal {-code}",
            allowed="exit code 0",
            action="see what it says, and try it on a device that is served without --run",
        )


def _code(process: "subprocess.Popen[bytes]", patience_s: float) -> int | None:
    try:
        return process.wait(patience_s)
    except subprocess.TimeoutExpired:
        return None


def _end(process: "subprocess.Popen[bytes]", number: int) -> None:
    """Pass a signal on; SIGTERM is for those who do not mind it, as what a shell started with &."""
    for each in dict.fromkeys((number, signal.SIGTERM)):
        _send(process.pid, each)
        _send(process.pid, signal.SIGCONT)
        _code(process, PATIENCE_S)


def _send(group: int, number: int) -> None:
    with suppress(ProcessLookupError):  # none of it is left
        os.killpg(group, number)


class _Terminal:
    """The terminal of this process, lent to a group of others when they first wait for it."""

    def __init__(self, group: int) -> None:
        self._group = group
        self._wanted = False
        self.lent = False

    def look(self) -> None:
        """Lend it if it is waited for, and ours; who has it is not to be stopped."""
        found = os.waitid(os.P_PID, self._group, os.WSTOPPED | os.WNOHANG)
        self._wanted |= found is not None and found.si_status in STOPPED_BY
        if self._wanted and (self.lent or _hand_over(os.getpgrp(), self._group)):
            self._wanted, self.lent = False, True
            _send(self._group, signal.SIGCONT)

    def take_back(self) -> None:
        """Have it again."""
        if self.lent:
            _hand_over(self._group, os.getpgrp())


def _hand_over(giver: int, taker: int) -> bool:
    """Give the terminal from one group to another; says whether the first had it."""
    # Whoever is in the background would be stopped for that.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTTOU])
    try:
        terminal = os.open("/dev/tty", os.O_RDWR)
        try:
            if os.tcgetpgrp(terminal) != giver:
                return False
            os.tcsetpgrp(terminal, taker)
        finally:
            os.close(terminal)
    except OSError:  # there is none
        return False
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return True
