"""Select the executor, and return results in the order of their points."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from contextvars import ContextVar
from typing import Any, cast

from uflip.executors.executor import Executor, OnStep, Point, Result, ignore
from uflip.executors.threads import CallingThread, Threads
from uflip.executors.work import WorkerTask

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
    """Yield (index, result) of each point when it finishes; closing the iterator ends the rest.

    Parameters
    ----------
    function : callable
        A function of a module, or a `functools.partial` of one, so that it can be pickled. It
        creates its own device.
    points : sequence
        Its arguments.
    """
    outcomes = current().outcomes(_Inside(WorkerTask(function)), points)
    return cast("Iterator[tuple[int, Result]]", outcomes)


def on_all(
    function: Callable[[Point], Result],
    points: Sequence[Point],
    on_step: OnStep = ignore,
    name: Callable[[Point], str] = str,
) -> list[Result]:
    """Call a function for every point; results are in the order of the points.

    Parameters
    ----------
    function, points
        As for `iterate_outcomes`.
    on_step : callable, optional
        Called after each point, in the order in which they finish.
    name : callable, optional
        Returns the name of a point.

    Returns
    -------
    list
        One result per point.

    Raises
    ------
    Exception
        The first exception of the function; waiting points never begin.

    Examples
    --------
    >>> on_all(abs, [-1, 2, -3])
    [1, 2, 3]
    """
    results: dict[int, Result] = {}
    with closing(cast("Any", iterate_outcomes(function, points))) as outcomes:
        for index, result in outcomes:
            results[index] = result
            on_step(len(results), name(points[index]))
    return [results[index] for index in range(len(points))]
