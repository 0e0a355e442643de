"""What an executor is: somewhere to carry out the same work at many points.

::

    points  0 1 2 3 4 5 …      handed over in their order
            │ │ │
    workers ▒ ▒ ▒              as many at a time as there are
            │ │ │
    results 1 0 2 …            told as they are over, each with its place

Three promises. What was told is over, and told once. Whoever stops listening (an error, Ctrl-C)
ends the rest: what has not begun never does, and what has is told to stop. Where a worker dies, its
points are carried out again, `MOST_DEATHS` times at most: a point that kills whoever takes it up
would do so for ever.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, Protocol, TypeVar

from uflip.errors import DeviceError

Point = TypeVar("Point")
Result = TypeVar("Result")

OnStep = Callable[[int, str], None]
"""Called with (points done, what the last one was)."""

# A machine that is rebooted, a worker that is out of memory, a second one: bad luck. More is the
# point's own doing.
MOST_DEATHS = 5

LOOK_UP_S = 0.1
"""How often whoever waits for futures looks up [s]."""


class LocalPoint(Protocol):
    """A point that not every worker can carry out."""

    @property
    def needs(self) -> str:
        """The label of those that can; empty: everybody can."""


class Executor(Protocol):
    """Carries out work at points."""

    @property
    def workers(self) -> int:
        """How many points are carried out at a time, as far as is known."""

    def outcomes(
        self, work: Callable[[Any], Result], points: Sequence[Any]
    ) -> Iterator[tuple[int, Result]]:
        """Yield (place, result) of each point when it is over, in whichever order that is.

        Raises
        ------
        Exception
            What the work raised first; the rest is ended.
        """


def ignore(done: int, text: str) -> None:
    """Show no progress."""


def killed(point: Any) -> DeviceError:
    """Return the error for a point that every worker dies of."""
    return DeviceError(
        "This task crashed every worker that ran it",
        where=str(point)[:200],
        got=f"{MOST_DEATHS} deaths",
        allowed="a point that a worker lives through",
        action="see why: too little memory for as many at a time is the usual reason",
    )


def completed(futures: Iterable[Future[Result]]) -> Iterator[Future[Result]]:
    """Yield each future when it is over; of several that are, those first that were first given.

    `concurrent.futures.as_completed` may miss a signal: of one that comes just before the thread
    goes to sleep Python hears when it wakes up, which is when the first is over.
    """
    left = list(futures)
    while left:
        over, _ = wait(left, timeout=LOOK_UP_S, return_when=FIRST_COMPLETED)
        yield from (each for each in left if each in over)
        left = [each for each in left if each not in over]
