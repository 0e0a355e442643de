"""The interface of executors, which run the same work at many points.

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
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, Protocol, TypeVar

from uflip.errors import DeviceError

Point = TypeVar("Point")
Result = TypeVar("Result")

OnStep = Callable[[int, str], None]
"""Called with (points done, name of the last one)."""

# A rebooted machine or a worker without memory may hit a point a few times by chance. After more
# deaths the point itself is the cause.
MAX_WORKER_DEATHS = 5

POLL_S = 0.1
"""Polling interval while waiting for futures [s]."""


class LocalPoint(Protocol):
    """A point that only some workers can run."""

    @property
    def needs(self) -> str:
        """The label of these workers; empty for any worker."""


class Executor(Protocol):
    """Runs work at points."""

    @property
    def workers(self) -> int:
        """Number of points that run at a time, as far as known."""

    def outcomes(
        self, work: Callable[[Any], Result], points: Sequence[Any]
    ) -> Iterator[tuple[int, Result]]:
        """Yield (index, result) of each point when it finishes, in any order.

        Raises
        ------
        Exception
            The first exception of the work; the rest is ended.
        """


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
