"""Processes of this machine as an executor, for work that holds the interpreter's lock.

A pool is unusable after one of its processes dies, so a new pool runs the unfinished points.
Processes are forked from a server process without threads that has loaded the required modules: a
fork of this process would copy the native part without its threads. The workers ignore Ctrl-C,
which this process forwards. They end when this process closes a pipe: with a broken pool, whose
own `terminate` they ignore, and with this process, however it ends.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection, get_context
from typing import Any, Self

from uflip import signals
from uflip.executors.executor import MAX_WORKER_DEATHS, Result, completed, crashed_task

# Modules of the work that take time to load.
PRELOADED = ["uflip.executors.executor", "uflip.device.opener", "uflip.results"]


class _AbandonEvent(signals.AbandonFlag):
    """Whether the waiting process has given up, as an event."""

    def __init__(self, event: Any) -> None:
        self._event = event

    @property
    def gone(self) -> bool:  # type: ignore[override]
        """Return the state of the event."""
        return bool(self._event.is_set())


_abandon_event: _AbandonEvent | None = None


def _initialise(event: Any, lifeline: connection.Connection) -> None:
    """Initialise a worker process: ignore signals, and end when the parent closes `lifeline`."""
    global _abandon_event  # noqa: PLW0603 -- of this process, which belongs to one pool
    _abandon_event = _AbandonEvent(event)
    for number in signals.SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()


def _end_with(lifeline: connection.Connection) -> None:
    connection.wait([lifeline])
    os._exit(1)


def _call(work: Callable[[Any], Any], point: Any) -> Any:
    token = signals.abandon_flag.set(_abandon_event)
    try:
        return work(point)
    finally:
        signals.abandon_flag.reset(token)


def _submit(pool: ProcessPoolExecutor, work: Callable[[Any], Any], point: Any) -> Future[Any]:
    try:
        return pool.submit(_call, work, point)
    except OSError:  # the pool broke during the call, which the next one reports
        return pool.submit(_call, work, point)


class Processes:
    """A process per core, from the first point to the end of the block.

    >>> from uflip.executors.executor import on_all, using
    >>> with Processes(2) as both, using(both):
    ...     on_all(abs, [-1, 2])
    [1, 2]
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or os.cpu_count() or 1
        self._pool: ProcessPoolExecutor | None = None
        self._abandoned: Any = None
        self._lifeline: connection.Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def outcomes(
        self, work: Callable[[Any], Result], points: Sequence[Any]
    ) -> Iterator[tuple[int, Result]]:
        """Yield (index, result) of each point when it finishes."""
        pending = dict(enumerate(points))
        deaths = 0
        try:
            while pending:
                before = len(pending)
                for index, result in self._run_until_death(work, pending):
                    del pending[index]
                    yield index, result
                deaths = 0 if len(pending) < before else deaths + 1
                if pending and deaths >= MAX_WORKER_DEATHS:
                    raise crashed_task(next(iter(pending.values())))
        finally:
            if pending:  # an error, or the iterator was closed
                self._end()

    def _run_until_death(
        self, work: Callable[[Any], Result], points: dict[int, Any]
    ) -> Iterator[tuple[int, Result]]:
        pool = self._running_pool()
        try:
            futures = {_submit(pool, work, point): index for index, point in [*points.items()]}
        except BrokenProcessPool:  # before all points were submitted
            self._end(is_broken=True)
            return
        is_broken = False
        for future in completed(futures):
            if isinstance(future.exception(), BrokenProcessPool):
                is_broken = True
            else:
                yield futures[future], future.result()
        if is_broken:
            self._end(is_broken)

    def _running_pool(self) -> ProcessPoolExecutor:
        if self._pool is None:
            context = get_context("forkserver")
            context.set_forkserver_preload(PRELOADED)
            self._abandoned = context.Event()
            lifeline, self._lifeline = context.Pipe(duplex=False)
            self._pool = ProcessPoolExecutor(
                self.workers, context, _initialise, (self._abandoned, lifeline)
            )
        return self._pool

    def _end(self, is_broken: bool = False) -> None:
        """Cancel running work and wait, since a starting process needs the pool."""
        if self._pool is not None and self._lifeline is not None:
            self._abandoned.set()
            if is_broken:  # a worker may wait for a lock of the dead one
                self._lifeline.close()
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._lifeline.close()
            self._pool = None
