"""Threads of this process as an executor, or the calling thread alone."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

from uflip import signals
from uflip.executors.executor import Result, completed


class Threads:
    """A thread per core; native calls release the interpreter's lock.

    Parameters
    ----------
    workers : int, optional
        Number of threads instead.
    wait_on_cancel : bool
        Whether running points are waited for after an error or Ctrl-C.
    """

    def __init__(self, workers: int | None = None, *, wait_on_cancel: bool = False) -> None:
        self.workers = workers or os.cpu_count() or 1
        self._wait_on_cancel = wait_on_cancel

    def outcomes(
        self, work: Callable[[Any], Result], points: Sequence[Any]
    ) -> Iterator[tuple[int, Result]]:
        """Yield (index, result) of each point when it finishes."""
        pool = ThreadPoolExecutor(max_workers=self.workers)
        abandon = signals.AbandonFlag()
        token = signals.abandon_flag.set(abandon)
        futures = {
            pool.submit(copy_context().run, _call, abandon, work, point): index
            for index, point in enumerate(points)
        }
        signals.abandon_flag.reset(token)
        try:
            for future in completed(futures):
                if abandon.gone and isinstance(future.exception(), signals.ProcessTerminated):
                    continue  # a consequence of another failure, which is raised
                yield futures[future], future.result()
        finally:
            # After an error or Ctrl-C: waiting points never begin, and running points end at their
            # next check.
            abandon.gone = True
            with signals.shielded():
                pool.shutdown(wait=self._wait_on_cancel, cancel_futures=True)


def _call(abandon: signals.AbandonFlag, work: Callable[[Any], Any], point: Any) -> Any:
    signals.check()
    try:
        return work(point)
    except Exception:
        abandon.gone = True  # waiting points never begin
        raise


class CallingThread:
    """The calling thread, one point after the other: for nested points."""

    workers = 1

    def outcomes(
        self, work: Callable[[Any], Result], points: Sequence[Any]
    ) -> Iterator[tuple[int, Result]]:
        """Yield (index, result) of each point, in order."""
        for index, point in enumerate(points):
            yield index, work(point)
