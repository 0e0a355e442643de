"""Processes of this machine as an executor, for work that holds the interpreter's lock.

A pool is unusable after one of its processes dies, so a new pool runs the unfinished points.
Processes are forked from a server process without threads that has loaded the required modules: a
fork of this process would copy the native part without its threads. The workers ignore Ctrl-C,
which this process forwards, and end with this process, however it ends.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection, get_context, parent_process
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


def _initialise(event: Any) -> None:
    """Initialise a worker process: ignore signals, and end with the parent."""
    global _abandon_event  # noqa: PLW0603 -- of this process, which belongs to one pool
    _abandon_event = _AbandonEvent(event)
    for number in signals.SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_follow_parent, daemon=True).start()


def _follow_parent() -> None:
    parent = parent_process()
    assert parent is not None, "a worker has a parent"
    connection.wait([parent.sentinel])
    os._exit(1)


def _call(work: Callable[[Any], Any], point: Any) -> Any:
    token = signals.abandon_flag.set(_abandon_event)
    try:
        return work(point)
    finally:
        signals.abandon_flag.reset(token)


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
            futures = {pool.submit(_call, work, point): index for index, point in [*points.items()]}
        except BrokenProcessPool:  # before all points were submitted
            self._end()
            return
        is_broken = False
        for future in completed(futures):
            if isinstance(future.exception(), BrokenProcessPool):
                is_broken = True
            else:
                yield futures[future], future.result()
        if is_broken:
            self._end()

    def _running_pool(self) -> ProcessPoolExecutor:
        if self._pool is None:
            context = get_context("forkserver")
            context.set_forkserver_preload(PRELOADED)
            self._abandoned = context.Event()
            self._pool = ProcessPoolExecutor(
                self.workers, context, initializer=_initialise, initargs=(self._abandoned,)
            )
        return self._pool

    def _end(self) -> None:
        """Cancel running work and wait, since a starting process needs the pool."""
        if self._pool is not None:
            self._abandoned.set()
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None
