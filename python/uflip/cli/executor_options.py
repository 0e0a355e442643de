"""Options that select the executor of many points: threads, processes or a cluster."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from uflip.cli.common import combine_options, int_parser
from uflip.cli.progress_bars import Sink
from uflip.errors import UsageError
from uflip.units import format_duration_ns

# Threads of one process; processes of one machine.
MAX_JOBS, MAX_WORKERS = 1024, 1024

executor_options = combine_options(
    [
        click.option(
            "--jobs",
            metavar="N",
            callback=int_parser(1, MAX_JOBS),
            help="Maximum number of threads of this process.  [default: all cores]",
        ),
        click.option(
            "--workers",
            metavar="N",
            callback=int_parser(1, MAX_WORKERS),
            help="Number of processes on this machine, with Dask.",
        ),
        click.option(
            "--scheduler",
            metavar="ADDRESS",
            help="Use the workers of a Dask scheduler, as in tls://host:8786.",
        ),
    ]
)


@contextmanager
def on_executor(
    jobs: int | None, workers: int | None, scheduler: str | None, *, wait_on_cancel: bool = False
) -> Iterator[None]:
    """Run the points of this block on the executor that the options select.

    With `wait_on_cancel`, threads of this process are waited for when they are cancelled.

    Raises
    ------
    UsageError
        If more than one is given.
    UnavailableError
        If Dask, its scheduler or its workers are missing.
    """
    options = {"--jobs": jobs, "--workers": workers, "--scheduler": scheduler}
    chosen = [f"{option} {value}" for option, value in options.items() if value is not None]
    if len(chosen) > 1:
        raise UsageError(
            "Only one of these options can be given",
            where=chosen[1].split()[0],
            got=" ".join(chosen),
            allowed="one of " + ", ".join(options),
            action="omit the others",
        )
    from uflip.executors import Threads, cluster, using

    if scheduler is not None:
        with cluster.connect(scheduler) as executor, using(executor):
            yield
    elif workers is not None:
        with cluster.local(workers) as executor, using(executor):
            yield
    else:
        with using(Threads(jobs, wait_on_cancel=wait_on_cancel)):
            yield


def with_time_left(
    sink: Sink, total: int, clock_s: Callable[[], float] = time.monotonic
) -> Callable[[float, str], None]:
    """Return a function that draws the number of finished points and the time left.

    Examples
    --------
    >>> class Paper(list):
    ...     def draw(self, done, text):
    ...         self.append(f"{done} {text}")
    >>> seconds, paper = iter([0.0, 2.0, 4.0]), Paper()
    >>> draw = with_time_left(paper, 10, lambda: next(seconds))
    >>> draw(4, "stored rows")
    >>> draw(5, "gc=greedy")
    >>> paper
    ['4 stored rows', '5 20 s left  gc=greedy']
    """
    began: list[Any] = [clock_s()]

    def draw(done: float, text: str) -> None:
        if len(began) == 1:
            # Stored points took no time now.
            began.append(done if done > 1 else 0)
        elapsed_s, finished = clock_s() - began[0], done - began[1]
        if finished > 0:
            left_ns = round(elapsed_s / finished * (total - done) * 1e9)
            text = f"{format_duration_ns(left_ns)} left  {text}"
        sink.draw(done, text)

    return draw
