"""Waiting for work of the native part: with progress, and so that it ends when the waiting does."""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from uflip import _native, signals
from uflip.errors import native_errors

T = TypeVar("T")

OnProgress = Callable[[int, int, int], None]
"""Called with (I/Os done, I/Os in all, last response time [ns])."""

# How often a work is looked at: short enough for a live display and a prompt Ctrl-C, long enough
# that the waiting thread does not disturb what is measured.
SLICE_S = 0.1
# After Ctrl-C: how long the I/O in flight may take before the work is left to itself.
CANCEL_PATIENCE_S = 30.0
# What only computes disturbs nobody if it is left to itself.
COMPUTING_PATIENCE_S = 1.0
# Nor does what leaves nothing behind: it was told to stop, and does once it has filled the array
# that it is at. With a slice before, Ctrl-C takes 0.2 s, whatever the size of the device.
MAKING_PATIENCE_S = 0.1


def finished(
    start: Callable[[], _native.Handle[T]],
    on_progress: OnProgress | None = None,
    *,
    patience_s: float = CANCEL_PATIENCE_S,
    io_timeout_ns: int = 0,
    measures: bool = False,
) -> T:
    """Start a work, wait for its end, and return what came out.

    Whatever else ends the waiting ends the work too: it is told to stop, and waited for.

    Parameters
    ----------
    start : callable
        Begins the work.
    on_progress : callable, optional
        Called about ten times a second, and at the end.
    patience_s : float
        How long the work may take to stop [s]; longer, and it is left to itself.
    io_timeout_ns : int
        How long an I/O on a real device may take [ns]; 0: for ever.
    measures : bool
        Whether a file that is cut meanwhile is an error: what was measured then means nothing.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C, or another signal that ends the process.
    UflipError
        What the work says; that an I/O does not end; that the target was cut.
    """
    # No signal may fall between the start of the work and the waiting for it.
    with signals.shielded(), native_errors():
        handle = start()
        try:
            while not handle.wait(SLICE_S):
                signals.check()
                if measures:
                    handle.check_target()
                if io_timeout_ns:
                    _check_io(handle, io_timeout_ns)
                if on_progress is not None:
                    on_progress(*handle.progress())
        except BaseException as error:
            handle.cancel()
            # Whoever hangs in the kernel does not hear it.
            handle.wait(SLICE_S if isinstance(error, _native.NativeError) else patience_s)
            if on_progress is not None:
                with suppress(Exception):  # the display may be what failed
                    on_progress(*handle.progress())
            raise
        if on_progress is not None:
            on_progress(*handle.progress())
        return handle.result()


def _check_io(handle: _native.Handle[T], io_timeout_ns: int) -> None:
    try:
        handle.overdue(io_timeout_ns)
    except _native.NativeError:
        signals.somebody_hangs()
        raise
