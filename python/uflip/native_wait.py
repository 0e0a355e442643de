"""Wait for native operations with progress, and cancel them when the wait is interrupted."""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from uflip import _native, signals
from uflip.errors import native_errors

T = TypeVar("T")

OnProgress = Callable[[int, int, int], None]
"""Called with (I/Os done, I/Os in total, last response time [ns])."""

LiveRows = list[tuple[list[int], int | None]]
OnLive = Callable[[LiveRows], None]
"""Called with new rows of the run, as `Handle.live_rows` returns them."""

# Polling interval: short enough for a live display and a prompt Ctrl-C, long enough that the
# waiting thread does not disturb the measurement.
SLICE_S = 0.1
# After Ctrl-C: the maximum wait for the I/O in flight before the operation is abandoned.
CANCEL_TIMEOUT_S = 30.0
# A computation can be abandoned early: it disturbs nothing.
COMPUTE_CANCEL_TIMEOUT_S = 1.0
# So can an operation without side effects: it stops after the array that it is filling. With one
# polling interval before, Ctrl-C takes 0.2 s for any device size.
CREATE_CANCEL_TIMEOUT_S = 0.1


def run_native(
    start: Callable[[], _native.Handle[T]],
    on_progress: OnProgress | None = None,
    *,
    on_live: OnLive | None = None,
    cancel_timeout_s: float = CANCEL_TIMEOUT_S,
    io_timeout_ns: int = 0,
    measures: bool = False,
) -> T:
    """Start a native operation, wait for its end, and return its result.

    If the wait is interrupted, the operation is cancelled and waited for. `on_live` is called as
    `on_progress` is.

    `start`: starts the operation. `on_progress`: called about ten times a second, and at the end.
    `cancel_timeout_s`: maximum time that the operation may take to stop [s]; after that it is
    abandoned. `io_timeout_ns`: maximum time of an I/O on a real device [ns]; 0: no limit.
    `measures`: whether it is an error if the target file is truncated meanwhile: the measurement is
    void.
    """
    # No signal may arrive between the start of the operation and the wait.
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
                if on_live is not None:
                    on_live(handle.live_rows())
        except BaseException as error:
            handle.cancel()
            # A thread that hangs in the kernel does not react to the cancellation.
            handle.wait(SLICE_S if isinstance(error, _native.NativeError) else cancel_timeout_s)
            if on_progress is not None:
                with suppress(Exception):  # the display may be what failed
                    on_progress(*handle.progress())
            raise
        if on_progress is not None:
            on_progress(*handle.progress())
        result = handle.result()
        if on_live is not None:
            on_live(handle.live_rows())
        return result


def _check_io(handle: _native.Handle[T], io_timeout_ns: int) -> None:
    try:
        handle.overdue(io_timeout_ns)
    except _native.NativeError:
        signals.report_hang()
        raise
