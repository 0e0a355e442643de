"""In this process: one thread a worker, or the thread that asks."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

from uflip import signals
from uflip.executors.executor import Result, completed


class Threads:
    """As many threads as there are cores; native calls release the interpreter's lock.

    Parameters
    ----------
    workers : int, optional
        So many points at a time instead.
    patient : bool
        Whether what has begun is waited for, where an error or Ctrl-C ends the rest.
    """

    def __init__(self, workers: int | None = None, *, patient: bool = False) -> None:
        self.workers = workers or os.cpu_count() or 1
        self._patient = patient

    def outcomes(
        self, work: Callable[[Any], Result], points: Sequence[Any]
    ) -> Iterator[tuple[int, Result]]:
        """Yield (place, result) of each point when it is over."""
        pool = ThreadPoolExecutor(max_workers=self.workers)
        leaving = signals.Leaving()
        token = signals.leaving.set(leaving)
        futures = {
            pool.submit(copy_context().run, _call, leaving, work, point): place
            for place, point in enumerate(points)
        }
        signals.leaving.reset(token)
        try:
            for future in completed(futures):
                if leaving.gone and isinstance(future.exception(), signals.ProcessTerminated):
                    continue  # one of the others failed, and is told
                yield futures[future], future.result()
        finally:
            # After an error or Ctrl-C: what has not begun never does, what has ends at its next
            # look.
            leaving.gone = True
            with signals.shielded():
                pool.shutdown(wait=self._patient, cancel_futures=True)


def _call(leaving: signals.Leaving, work: Callable[[Any], Any], point: Any) -> Any:
    signals.check()
    try:
        return work(point)
    except Exception:
        leaving.gone = True  # what has not begun never does
        raise


class Here:
    """The thread that asks, one point after the other: for points of points."""

    workers = 1

    def outcomes(
        self, work: Callable[[Any], Result], points: Sequence[Any]
    ) -> Iterator[tuple[int, Result]]:
        """Yield (place, result) of each point, in order."""
        for place, point in enumerate(points):
            yield place, work(point)
