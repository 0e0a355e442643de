"""Handling of Ctrl-C, SIGTERM and SIGHUP: when a signal may end the process.

All three end a command in the same way, each with its own exit code (`uflip.errors`). The effect of
a signal depends on the state of the process::

    starting up   nothing has begun: print a message and exit
    at work       `ProcessTerminated` is raised, once, in the main thread
    shielded      nothing is raised before the shield is left: a run is stored whole or not at all,
                  a busy device is cancelled and waited for
    ending        a second signal ends the process at once

Inside a shield, waiting code calls `check` now and then. So do worker threads, because exceptions
cannot be raised in them from outside.

This module imports nothing of uflip, and is imported before anything that takes time.
"""

import os
import signal
import time
from _thread import get_ident
from contextvars import ContextVar

TYPE_CHECKING = False  # importing `typing` and `types` takes time
if TYPE_CHECKING:
    from types import FrameType, TracebackType

SIGNALS = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM", signal.SIGHUP: "SIGHUP"}
"""The signals that end a process, with their usual names."""

# A closing terminal sends SIGHUP twice, and `timeout` signals a process and its group: signals this
# close to each other [s] count as one.
ONE_SIGNAL_S = 0.3


# An exception raised in an import callback may be printed and lost; imports are over soon [s].
IMPORTLIB_FILE = "<frozen importlib"
IMPORT_RETRY_S = 0.002

MAIN = get_ident()


class ProcessTerminated(KeyboardInterrupt):
    """A signal requested the end of the process."""


class _SignalState:
    """Signals received by this process; signals belong to processes, so there is one state."""

    def __init__(self) -> None:
        self.caught: int | None = None
        self.at_s = 0.0
        self.raised = False
        self.at_work = False
        self.hanging = False
        self.shields = 0


_state = _SignalState()


class AbandonFlag:
    """A flag for worker threads: the thread that they work for no longer waits."""

    def __init__(self) -> None:
        self.gone = False


abandon_flag: ContextVar[AbandonFlag | None] = ContextVar("abandon_flag", default=None)
"""In a worker thread: whether the thread that started it still waits for it."""


def install() -> None:
    """Install the handlers; signals that were ignored at the start stay ignored."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _handle)


def start_work() -> None:
    """From now on, end by raising `ProcessTerminated`, since there is work to clean up."""
    _state.at_work = True
    check()


def received_signal() -> int | None:
    """Return the number of the signal that ends this process, if one does."""
    return _state.caught


def report_hang() -> None:
    """Record that a thread waits in the kernel for an answer that may never come."""
    _state.hanging = True


def must_exit_now() -> bool:
    """Return whether the process must end without waiting for other threads."""
    return _state.caught is not None or _state.hanging


def check() -> None:
    """Raise `ProcessTerminated` after a signal, or if nothing waits for this thread any more."""
    flag = abandon_flag.get()
    if _state.caught is not None or (flag is not None and flag.gone):
        _state.raised = True
        raise ProcessTerminated


def is_caused_by_signal(error: BaseException) -> bool:
    """Return whether `error` is `ProcessTerminated`, or was caused by it.

    Python 3.11 wraps exceptions that are raised while a class is being created.
    """
    link: BaseException | None = error
    while link is not None and not isinstance(link, ProcessTerminated):
        link = link.__cause__
    return link is not None


class shielded:  # noqa: N801 -- reads as a statement, like those of contextlib
    """Defer signals to the end of this block."""

    def __enter__(self) -> None:
        if get_ident() == MAIN:  # signals are handled only there
            _state.shields += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: "TracebackType | None",
    ) -> None:
        if get_ident() != MAIN:
            return
        _state.shields -= 1
        pending = _state.caught is not None and not _state.raised
        if error is None and _state.shields == 0 and pending:
            check()


def end_at_once(number: int, words: str) -> None:
    """Exit immediately, without flushing buffers."""
    try:
        os.write(2, f"error: {words}\n".encode())
    finally:
        os._exit(128 + number)


def _handle(number: int, frame: "FrameType | None") -> None:
    now, name = time.monotonic(), SIGNALS[signal.Signals(number)]
    if _state.caught is not None:
        if number == _state.caught and now - _state.at_s < ONE_SIGNAL_S:
            return
        end_at_once(number, f"Ended at once by a second signal ({name})")
    _state.caught, _state.at_s = number, now
    if not _state.at_work:
        end_at_once(number, f"Interrupted before anything began ({name})")
    _raise_or_defer(frame)


def _raise_or_defer(frame: "FrameType | None") -> None:
    """Raise the signal, unless shielded; retry later if an import callback would swallow it."""
    if _state.shields > 0:
        return
    if frame is not None and frame.f_code.co_filename.startswith(IMPORTLIB_FILE):
        signal.signal(signal.SIGALRM, _retry)
        signal.setitimer(signal.ITIMER_REAL, IMPORT_RETRY_S)
        return
    check()


def _retry(_number: int, frame: "FrameType | None") -> None:
    if not _state.raised:
        _raise_or_defer(frame)
