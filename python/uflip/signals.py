"""How a process is asked to end, and where it may be: Ctrl-C, SIGTERM, SIGHUP.

All three end a command in the same way, each with its own exit code (`uflip.errors`). What a signal
does depends on where it finds the process::

    starting up   nothing has begun: a word, and the process is over
    at work       `ProcessTerminated` is raised, once, wherever the main thread is
    shielded      nothing is raised before the shield is left: a run is stored whole or not at all,
                  a device that works is waited for and told to stop
    ending        a second signal ends the process at once

Inside a shield whoever waits asks `check` now and then. Threads that work for the main thread ask
it too: nobody can raise anything in them.

This module knows nobody, and is imported before anything that takes time.
"""

import os
import signal
import time
from _thread import get_ident
from contextvars import ContextVar

TYPE_CHECKING = False  # `typing` and `types` would be waited for
if TYPE_CHECKING:
    from types import FrameType, TracebackType

SIGNALS = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM", signal.SIGHUP: "SIGHUP"}
"""What ends a process, and what people call it."""

# A terminal that closes sends SIGHUP twice, `timeout` sends to a process and to its group: signals
# so close to each other [s] are one.
ONE_SIGNAL_S = 0.3


# What is raised there may be printed and forgotten; it is over soon [s].
IMPORTING = "<frozen importlib"
SOON_S = 0.002

MAIN = get_ident()


class ProcessTerminated(KeyboardInterrupt):
    """Somebody asked the process to end."""


class _State:
    """What has happened to this process; signals belong to processes, so there is one."""

    def __init__(self) -> None:
        self.caught: int | None = None
        self.at_s = 0.0
        self.told = False
        self.at_work = False
        self.hanging = False
        self.shields = 0


_state = _State()


class Leaving:
    """Told to the threads that work for somebody who has left."""

    def __init__(self) -> None:
        self.gone = False


leaving: ContextVar[Leaving | None] = ContextVar("leaving", default=None)
"""Of a thread that works for another one: whether that one still waits for it."""


def install() -> None:
    """Let the signals end this process from now on; what it was started to ignore stays ignored."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _handle)


def at_work() -> None:
    """From now on there is something to be ended in order."""
    _state.at_work = True
    check()


def caught() -> int | None:
    """Return the number of the signal that ends this process, if one does."""
    return _state.caught


def somebody_hangs() -> None:
    """Take note that a thread waits in the kernel for an answer that may never come."""
    _state.hanging = True


def in_a_hurry() -> bool:
    """Whether the process is to end without waiting for anybody."""
    return _state.caught is not None or _state.hanging


def check() -> None:
    """Raise `ProcessTerminated` after a signal, or where nothing waits for this thread any more."""
    for_whom = leaving.get()
    if _state.caught is not None or (for_whom is not None and for_whom.gone):
        _state.told = True
        raise ProcessTerminated


def is_behind(error: BaseException) -> bool:
    """Whether `error` is `ProcessTerminated`, or what became of it.

    Python 3.11 wraps in another error what is raised while a class is made.
    """
    link: BaseException | None = error
    while link is not None and not isinstance(link, ProcessTerminated):
        link = link.__cause__
    return link is not None


class shielded:  # noqa: N801 -- reads as a statement, like those of contextlib
    """Until this block is left no signal interrupts it; then one that came meanwhile does."""

    def __enter__(self) -> None:
        if get_ident() == MAIN:  # signals are handled there, and nowhere else
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
        untold = _state.caught is not None and not _state.told
        if error is None and _state.shields == 0 and untold:
            check()


def end_at_once(number: int, words: str) -> None:
    """Leave without looking back: not even what waits in buffers is written."""
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
    _tell(frame)


def _tell(frame: "FrameType | None") -> None:
    """Raise what came, unless it is shielded, or would be lost in a callback of an import."""
    if _state.shields > 0:
        return
    if frame is not None and frame.f_code.co_filename.startswith(IMPORTING):
        signal.signal(signal.SIGALRM, _again)
        signal.setitimer(signal.ITIMER_REAL, SOON_S)
        return
    check()


def _again(_number: int, frame: "FrameType | None") -> None:
    if not _state.told:
        _tell(frame)
