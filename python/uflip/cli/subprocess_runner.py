"""Run a shell command next to a server, in a process group of its own.

A signal that ends `uflip` is forwarded to the whole group, so that no process of the command is
left over. The server continues meanwhile, so that the command can end in order::

    Ctrl-C ─▶ uflip ─▶ group ─▶ over, or after a while SIGTERM ─▶ over, or left to itself

Such a group is in the background of a terminal. If it waits for the terminal, it gets it until it
ends, as from a shell; Ctrl-C then goes to the command, and ends `uflip` if it ends the command.
"""

import os
import signal
import subprocess
import sys
from contextlib import suppress

from uflip import signals
from uflip.errors import DeviceError
from uflip.native_wait import SLICE_S

STOP_TIMEOUT_S = 5.0
"""Maximum time for a command to end after a signal, before the next signal."""
# Signals that stop a process that needs the terminal.
STOPPED_BY = (signal.SIGTTIN, signal.SIGTTOU, signal.SIGTSTP)


def run(program: str, uri: str, *, to_stderr: bool) -> None:
    """Run a command with $UFLIP_URI set to `uri`, until it ends or a signal arrives.

    Raises
    ------
    DeviceError
        If the command fails.
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
            if (number := signals.received_signal()) is not None:
                _end(process, number)
                return
            terminal.lend_if_needed()
    finally:
        terminal.reclaim()
    if code == -signal.SIGINT and terminal.lent:
        signal.raise_signal(signal.SIGINT)  # it was meant for this process, too
    elif code != 0:
        raise DeviceError(
            "The command that used the device failed",
            where=program,
            got=f"exit code {code}" if code > 0 else f"signal {-code}",
            allowed="exit code 0",
            action="read its output, and try it on a device that is served without --run",
        )


def _code(process: "subprocess.Popen[bytes]", timeout_s: float) -> int | None:
    try:
        return process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        return None


def _end(process: "subprocess.Popen[bytes]", number: int) -> None:
    """Forward a signal; then SIGTERM, as commands in the background of a shell ignore SIGINT."""
    for each in dict.fromkeys((number, signal.SIGTERM)):
        _send(process.pid, each)
        _send(process.pid, signal.SIGCONT)
        _code(process, STOP_TIMEOUT_S)


def _send(group: int, number: int) -> None:
    with suppress(ProcessLookupError):  # no process of the group is left
        os.killpg(group, number)


class _Terminal:
    """The terminal of this process, lent to a process group that waits for it."""

    def __init__(self, group: int) -> None:
        self._group = group
        self._needed = False
        self.lent = False

    def lend_if_needed(self) -> None:
        """Lend the terminal if the group waits for it and this process has it."""
        status = os.waitid(os.P_PID, self._group, os.WSTOPPED | os.WNOHANG)
        self._needed |= status is not None and status.si_status in STOPPED_BY
        if self._needed and (self.lent or _hand_over(os.getpgrp(), self._group)):
            self._needed, self.lent = False, True
            _send(self._group, signal.SIGCONT)

    def reclaim(self) -> None:
        """Take the terminal back."""
        if self.lent:
            _hand_over(self._group, os.getpgrp())


def _hand_over(giver: int, taker: int) -> bool:
    """Transfer the terminal between groups; return whether the giver had it."""
    # A background process would be stopped by SIGTTOU.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTTOU])
    try:
        terminal = os.open("/dev/tty", os.O_RDWR)
        try:
            if os.tcgetpgrp(terminal) != giver:
                return False
            os.tcsetpgrp(terminal, taker)
        finally:
            os.close(terminal)
    except OSError:  # no terminal
        return False
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return True
