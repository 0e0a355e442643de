"""The interface of executors, which run the same work at many points; threads, and the selection.

::

    points  0 1 2 3 4 5 …      submitted in order
            │ │ │
    workers ▒ ▒ ▒              as many at a time as there are
            │ │ │
    results 1 0 2 …            yielded when they finish, each with its index

Three guarantees. Each result is yielded once, when its point has finished. Closing the iterator (an
error, Ctrl-C) ends the rest: waiting points never begin, and running points are cancelled. If a
worker dies, its points are run again, `MAX_WORKER_DEATHS` times at most, since a point that crashes
its worker would do so for ever.

Threads would inherit the context settings of the caller; processes and other machines do not. So
all workers get them in the same way (`WorkerTask`), and a point has the same result everywhere.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, cast

from uflip import _native, signals
from uflip.device import cache
from uflip.errors import DeviceError, UnavailableError

Point = TypeVar("Point")
Result = TypeVar("Result")

OnStep = Callable[[int, str], None]
"""Called with (points done, name of the last one)."""

# A rebooted machine or a worker without memory may hit a point a few times by chance. After more
# deaths the point itself is the cause.
MAX_WORKER_DEATHS = 5

POLL_S = 0.1
"""Polling interval while waiting for futures [s]."""


class Executor(Protocol):
    """Runs work at points."""

    @property
    def workers(self) -> int:
        """Number of points that run at a time, as far as known."""

    def outcomes(
        self, work: Callable[[Any], Result], points: Sequence[Any]
    ) -> Iterator[tuple[int, Result]]:
        """Yield (index, result) of each point when it finishes, in any order."""


def ignore(done: int, text: str) -> None:
    """Show no progress."""


def crashed_task(point: Any) -> DeviceError:
    """Return the error for a point that crashes every worker."""
    return DeviceError(
        "This task crashed every worker that ran it",
        where=str(point)[:200],
        got=f"{MAX_WORKER_DEATHS} deaths",
        allowed="a point that a worker can run",
        action="find the cause: usually too little memory for this number of workers",
    )


def completed(futures: Iterable[Future[Result]]) -> Iterator[Future[Result]]:
    """Yield each future when it finishes; several finished ones in the given order.

    `concurrent.futures.as_completed` may miss a signal: Python handles a signal that arrives just
    before the thread goes to sleep only when the thread wakes up, when the first future finishes.
    """
    pending = list(futures)
    while pending:
        done, _ = wait(pending, timeout=POLL_S, return_when=FIRST_COMPLETED)
        yield from (each for each in pending if each in done)
        pending = [each for each in pending if each not in done]


@dataclass(frozen=True)
class WorkerTask:
    """A function of a point, for any worker; picklable if the function is."""

    function: Callable[[Any], Any]  #: Creates its own device, so that points are independent.
    #: Whether simulated devices may come from the worker's cache, and be added to it.
    cached: bool = field(default_factory=lambda: not cache.is_switched_off())
    #: Version of the simulator that the results belong to.
    simulator: str = _native.SIMULATOR_VERSION

    def __call__(self, point: Any) -> Any:
        """Run the function on this worker."""
        if self.simulator != _native.SIMULATOR_VERSION:
            raise UnavailableError(
                "A worker has another version of the simulator",
                where="the worker's installation of uflip",
                got=_native.SIMULATOR_VERSION,
                allowed=self.simulator,
                action="install the same version of uflip on every machine",
            )
        if self.cached:
            return self.function(point)
        with cache.switched_off():
            return self.function(point)


class Threads:
    """A thread per core; native calls release the interpreter's lock."""

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


_current: ContextVar[Executor | None] = ContextVar("executor", default=None)


def current() -> Executor:
    """Return the executor selected by `using`, by default threads on all cores."""
    return _current.get() or Threads()


@contextmanager
def using(executor: Executor) -> Iterator[Executor]:
    """Select the executor for the points of this block."""
    token = _current.set(executor)
    try:
        yield executor
    finally:
        _current.reset(token)


class _Inside:
    """Runs nested `on_all` calls on the same worker, without a pool of their own."""

    def __init__(self, work: WorkerTask) -> None:
        self.work = work

    def __call__(self, point: Any) -> Any:
        with using(CallingThread()):
            return self.work(point)


def iterate_outcomes(
    function: Callable[[Point], Result], points: Sequence[Point]
) -> Iterator[tuple[int, Result]]:
    """Yield (index, result) of each point when it finishes; closing the iterator ends the rest."""
    outcomes = current().outcomes(_Inside(WorkerTask(function)), points)
    return cast("Iterator[tuple[int, Result]]", outcomes)


def on_all(
    function: Callable[[Point], Result],
    points: Sequence[Point],
    on_step: OnStep = ignore,
    name: Callable[[Point], str] = str,
) -> list[Result]:
    """Call a function for every point; results are in the order of the points.

    `function`, `points`: as for `iterate_outcomes`. `on_step`: called after each point, in the
    order in which they finish. `name`: returns the name of a point.

    >>> on_all(abs, [-1, 2, -3])
    [1, 2, 3]
    """
    results: dict[int, Result] = {}
    with closing(cast("Any", iterate_outcomes(function, points))) as outcomes:
        for index, result in outcomes:
            results[index] = result
            on_step(len(results), name(points[index]))
    return [results[index] for index in range(len(points))]
