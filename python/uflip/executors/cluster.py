"""Dask's workers: processes here, or those of a scheduler that somebody runs.

    this process ── points, a thousand at a time ──▶ scheduler ──▶ worker, worker, worker …
                 ◀── results as they are over ──────

A task costs Dask milliseconds, on a machine that is busy ten: points that are over sooner go in
bundles (`bundles`).
A worker that dies is Dask's to notice: what it was at goes to another. A point whose workers died
too often for the scheduler's taste is handed over again, a few times, by itself. A task that nobody
waits for any more sees so at its next look, as a thread of this process does.

Whoever may connect to a scheduler can run any program on its workers. The loopback address keeps
out other machines, but neither other users of this machine nor containers that share its network.
So a scheduler that is started here also asks for a certificate: TLS in both directions, with a key
that exists only in the memory of its processes. Other schedulers are protected by those who run
them (docs/how-to/use-several-machines.md).
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from uflip import signals
from uflip.errors import UnavailableError
from uflip.executors.executor import Result, killed
from uflip.executors.scheduler import (
    CLOSE_S,
    address_of,
    client_of,
    library,
    no_worker,
    temporary_security,
)
from uflip.executors.task_batches import Bundles

if TYPE_CHECKING:
    from distributed import Client, Future

# So many tasks are with the scheduler at a time: enough for some hundred workers, and soon taken
# back.
WINDOW = 1024
# How long to wait for the first worker of a scheduler, and for any after the last is gone [s]:
# nannies start a new one within seconds, machines within minutes.
FIRST_WORKER_S, NO_WORKER_S = 60.0, 120.0
# How often to look for workers while nothing is over [s], and how long to sleep between two looks.
LOOK_S, SLICE_S = 5.0, 0.1


class Cluster:
    """The workers of a scheduler; made by `local` and `at`."""

    def __init__(
        self,
        client: "Client",
        *,
        elsewhere: bool = False,
        complete: Callable[[], None] = lambda: None,
    ) -> None:
        self._client = client
        self._complete, self._completed = complete, time.monotonic()
        self.elsewhere = elsewhere
        """Whether its workers may be on other machines, with other files."""

    @property
    def workers(self) -> int:
        """How many threads the workers have together, now."""
        return sum(self._client.nthreads().values())

    def outcomes(
        self, work: Callable[[Any], Result], points: Sequence[Any]
    ) -> Iterator[tuple[int, Result]]:
        """Yield (place, result) of each point when it is over."""
        from distributed import KilledWorker, as_completed

        bundles = Bundles(len(points), alone=any(map(_needs, points)))
        at_work: dict[Future, list[int]] = {}
        done = as_completed(with_results=True, raise_errors=False, loop=self._client.loop)
        try:
            while bundles.left or at_work:
                if len(at_work) <= WINDOW // 2:  # a call costs as much as many points
                    sent = self._send(work, points, bundles.next(WINDOW - len(at_work)))
                    at_work.update(sent)
                    done.update(list(sent))
                needed = {need for p in at_work.values() if (need := _needs(points[p[0]]))}
                for future, result in self._over(done, needed):
                    places = at_work.pop(future)
                    if future.status == "finished":
                        bundles.took(result.seconds)
                        yield from zip(places, result.results, strict=True)
                        continue
                    error = result[1] if isinstance(result, tuple) else result
                    died = future.cancelled() or isinstance(error, KilledWorker)
                    if isinstance(error, Exception) and not died:
                        raise error
                    # Without an error a worker died that had the result: Dask would begin again.
                    self._take_back([future])
                    if (place := bundles.died(places)) is not None:
                        raise killed(points[place])
        finally:
            done.clear()
            self._take_back(list(at_work))

    def labels(self) -> set[str]:
        """Return the labels that workers were started with (`dask worker --resources`)."""
        workers = self._client.scheduler_info(n_workers=-1)["workers"]
        return {label for worker in workers.values() for label in worker["resources"]}

    def ask(self, worker: str, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call a function in a worker now, whatever it is at; it is to be over soon.

        Raises
        ------
        Exception
            What the function raised; if the worker is gone.
        """
        answers = self._client.run(function, *arguments, workers=[worker])
        found: Result = answers[worker]
        return found

    def listen(self, name: str, on_news: Callable[[Any], None]) -> None:
        """Call what is given with all that work tells to a name from now on."""
        self._client.subscribe_topic(name, lambda event: on_news(event[1]))

    def deafen(self, name: str) -> None:
        """No longer."""
        with suppress(Exception):  # of a scheduler that is gone
            self._client.unsubscribe_topic(name)

    def _send(
        self, work: Callable[[Any], Any], points: Sequence[Any], bundles: list[list[int]]
    ) -> "dict[Future, list[int]]":
        if not bundles:
            return {}
        sent: dict[Future, list[int]] = {}
        for need in {_needs(points[places[0]]) for places in bundles}:
            those = [places for places in bundles if _needs(points[places[0]]) == need]
            each = [[points[place] for place in places] for places in those]
            resources = {need: 1} if need else None
            futures = self._client.map(_at_worker, each, work=work, pure=False, resources=resources)
            sent.update(zip(futures, those, strict=True))
        return sent

    def _over(self, done: Any, needed: set[str]) -> "list[tuple[Future, Any]]":
        """Wait for something to be over; an error where nobody is left to do it."""
        looked = began = time.monotonic()
        while not (batch := done.next_batch(block=False)):
            self._keep_complete()
            with done.thread_condition:
                done.thread_condition.wait(SLICE_S)
            now = time.monotonic()
            if now - looked < LOOK_S:
                continue
            looked = now
            self._check_scheduler()
            if self.workers and needed <= self.labels():
                began = now
            elif now - began > NO_WORKER_S:
                raise no_worker(self._client, NO_WORKER_S, needed - self.labels())
        self._keep_complete()
        found: list[tuple[Future, Any]] = batch
        if any(future.cancelled() for future, _ in found):
            self._check_scheduler()
        return found

    def _keep_complete(self) -> None:
        if (now := time.monotonic()) - self._completed > LOOK_S:
            self._completed = now
            self._complete()

    def _check_scheduler(self) -> None:
        if self._client.status not in {"running", "connecting"}:
            raise UnavailableError(
                "The scheduler has stopped",
                where=address_of(self._client),
                got=f"a connection that is {self._client.status}",
                allowed="a scheduler that stays until everything is over",
                action="start it again; a sweep with --data goes on where it stopped",
            )

    def _take_back(self, futures: "list[Future]") -> None:
        if futures:
            with suppress(Exception):  # of a scheduler that is gone
                self._client.cancel(futures, force=True)


class _NobodyWaits(signals.Leaving):
    """Whether a task was taken back, as its worker knows."""

    def __init__(self) -> None:
        from distributed.worker import get_worker, thread_state

        self._tasks, self._key = get_worker().state.tasks, thread_state.key

    @property
    def gone(self) -> bool:  # type: ignore[override]
        """Look for the task."""
        task = self._tasks.get(self._key)
        return task is None or task.state in {"cancelled", "resumed"}


@dataclass(frozen=True)
class _Over:
    results: list[Any]
    seconds: list[float]


def _at_worker(points: Sequence[Any], *, work: Callable[[Any], Any]) -> _Over:
    token = signals.leaving.set(_NobodyWaits())
    over = _Over([], [])
    try:
        for point in points:
            signals.check()
            began = time.monotonic()
            over.results.append(work(point))
            over.seconds.append(time.monotonic() - began)
    except KeyboardInterrupt as error:
        # As such it would end the worker.
        raise RuntimeError("nobody waits for this any more") from error
    finally:
        signals.leaving.reset(token)
    return over


@contextmanager
def local(workers: int) -> Iterator[Cluster]:
    """Start so many processes on this machine, and end them with the block.

    Parameters
    ----------
    workers : int
        Each with one thread.

    Raises
    ------
    UnavailableError
        If Dask is not installed, or what it needs for TLS.
    """
    with ExitStack() as stack:
        distributed = stack.enter_context(library())
        folder = stack.enter_context(
            TemporaryDirectory(prefix="uflip-", ignore_cleanup_errors=True)
        )
        stack.enter_context(_files_in(folder))
        cluster = distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            host="127.0.0.1",
            security=temporary_security(distributed),
            # Without an address the scheduler serves pages to every network, on one port for all.
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
            silence_logs=logging.CRITICAL,
            preload=["uflip.executors.worker_signals"],
        )
        stack.callback(_closed, cluster)
        client = stack.enter_context(client_of(distributed, cluster))
        yield Cluster(client, complete=partial(_complete, cluster, workers))


@contextmanager
def at(scheduler: str) -> Iterator[Cluster]:
    """Use the workers of a scheduler that runs already.

    Parameters
    ----------
    scheduler : str
        Its address, as in tls://host:8786.

    Raises
    ------
    UnavailableError
        If it does not answer, or has no worker.
    """
    with library() as distributed, client_of(distributed, scheduler) as client:
        try:
            client.wait_for_workers(1, timeout=FIRST_WORKER_S)
        except TimeoutError:
            raise no_worker(client, FIRST_WORKER_S) from None
        yield Cluster(client, elsewhere=True)


def _files_in(folder: str) -> Any:
    """Let Dask keep its files in a folder that is gone afterwards, not in one for everybody."""
    import dask

    return dask.config.set({"temporary-directory": folder})


def _complete(cluster: Any, workers: int) -> None:
    """Let there be so many again: Dask forgets those it gave up, and keeps those that failed."""
    from distributed.core import Status

    def forget() -> None:
        for name, worker in [*cluster.workers.items()]:
            if worker.status in {Status.closed, Status.failed}:
                del cluster.workers[name]
        cluster.scale(workers)

    cluster.loop.add_callback(forget)  # the thread that changes them


def _closed(cluster: Any) -> None:
    with signals.shielded(), suppress(TimeoutError):
        cluster.close(timeout=CLOSE_S)


def _needs(point: object) -> str:
    """Return the label that a point needs of its worker; empty: none."""
    return str(getattr(point, "needs", ""))
