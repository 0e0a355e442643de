"""The same work at many points, on all cores: native calls release the interpreter lock."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from uflip import ends

Point = TypeVar("Point")
Result = TypeVar("Result")

OnStep = Callable[[int, str], None]
"""Called with (points done, what the last one was)."""


def ignore(done: int, text: str) -> None:
    """Show no progress."""


def on_all_cores(
    function: Callable[[Point], Result],
    points: Sequence[Point],
    on_step: OnStep = ignore,
    name: Callable[[Point], str] = str,
    jobs: int | None = None,
) -> list[Result]:
    """Call a function for every point; results are in the order of the points.

    Parameters
    ----------
    function : callable
        Makes its own device, so that points know nothing of each other.
    points : sequence
        What to call it with.
    on_step : callable, optional
        Called after each point, in order.
    name : callable, optional
        Says what a point is.
    jobs : int, optional
        So many points at a time; as many as there are cores without it.

    Returns
    -------
    list
        One result per point.

    Examples
    --------
    >>> on_all_cores(abs, [-1, 2, -3])
    [1, 2, 3]
    """
    results: list[Result] = []
    pool = ThreadPoolExecutor(max_workers=jobs or os.cpu_count() or 1)
    # What was switched for the caller (the cache) is switched for its points as well.
    leaving = ends.Leaving()
    token = ends.leaving.set(leaving)
    futures = [pool.submit(copy_context().run, function, point) for point in points]
    ends.leaving.reset(token)
    try:
        for point, future in zip(points, futures, strict=True):
            results.append(future.result())
            on_step(len(results), name(point))
    finally:
        # After an error or Ctrl-C: what has not begun never does, what has ends at its next look.
        leaving.gone = True
        pool.shutdown(wait=False, cancel_futures=True)
    return results
