"""Dask's workers as an executor: local processes, or the workers of a running scheduler.

    this process ── points, a thousand at a time ──▶ scheduler ──▶ worker, worker, worker …
                 ◀── results when they finish ──────

A task costs Dask milliseconds, ten on a busy machine: shorter points are sent in bundles
(`Bundles`). Dask detects a dead worker and reassigns its tasks. A point that Dask gives up after
too many deaths is submitted again, alone, a few times. A task that was cancelled notices it at its
next check, as a thread of this process does.

Any client of a scheduler can run any program on its workers. The loopback address keeps out other
machines, but neither other users of this machine nor containers that share its network. So a
scheduler that is started here also requires a certificate: TLS in both directions, with a key that
exists only in the memory of its processes. Other schedulers are protected by their operators
(docs/how-to/use-several-machines.md).
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
from uflip.executors.executor import Result, crashed_task
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

# Maximum number of tasks at the scheduler: enough for some hundred workers, and quickly cancelled.
WINDOW = 1024
# Maximum wait for the first worker of a scheduler, and for any worker after the last is gone [s]:
# nannies start a new one within seconds, machines within minutes.
FIRST_WORKER_S, NO_WORKER_S = 60.0, 120.0
# Interval between checks for workers while nothing finishes [s], and between two polls.
CHECK_S, SLICE_S = 5.0, 0.1


class Cluster:
    """The workers of a scheduler; created by `local` and `connect`."""

    def __init__(
        self,
        client: "Client",
        *,
        elsewhere: bool = False,
        restore: Callable[[], None] = lambda: None,
    ) -> None:
        self._client = client
        self._restore, self._restored_at = restore, time.monotonic()
        self.elsewhere = elsewhere
        """Whether its workers may be on other machines, with other files."""

    @property
    def workers(self) -> int:
        """Current number of threads of all workers."""
        return sum(self._client.nthreads().values())

    def outcomes(
        self, work: Callable[[Any], Result], points: Sequence[Any]
    ) -> Iterator[tuple[int, Result]]:
        """Yield (index, result) of each point when it finishes."""
        from distributed import KilledWorker, as_completed

        bundles = Bundles(len(points), single=any(map(_label, points)))
        at_work: dict[Future, list[int]] = {}
        done = as_completed(with_results=True, raise_errors=False, loop=self._client.loop)
        try:
            while bundles.waiting or at_work:
                if len(at_work) <= WINDOW // 2:  # a call costs as much as many points
                    sent = self._send(work, points, bundles.next(WINDOW - len(at_work)))
                    at_work.update(sent)
                    done.update(list(sent))
                needed = {
                    need for indices in at_work.values() if (need := _label(points[indices[0]]))
                }
                for future, result in self._wait_for_finished(done, needed):
                    indices = at_work.pop(future)
                    if future.status == "finished":
                        bundles.took(result.seconds)
                        yield from zip(indices, result.results, strict=True)
                        continue
                    error = result[1] if isinstance(result, tuple) else result
                    died = future.cancelled() or isinstance(error, KilledWorker)
                    if isinstance(error, Exception) and not died:
                        raise error
                    # Cancelled without an error: the worker with the result died.
                    self._cancel([future])
                    if (crashing := bundles.died(indices)) is not None:
                        raise crashed_task(points[crashing])
        finally:
            done.clear()
            self._cancel(list(at_work))

    def labels(self) -> set[str]:
        """Return the labels of the workers (`dask worker --resources`)."""
        workers = self._client.scheduler_info(n_workers=-1)["workers"]
        return {label for worker in workers.values() for label in worker["resources"]}

    def ask(self, worker: str, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call a short function in a worker now, while its tasks run.

        Raises
        ------
        Exception
            The exception of the function; or an error if the worker is gone.
        """
        answers = self._client.run(function, *arguments, workers=[worker])
        answer: Result = answers[worker]
        return answer

    def subscribe(self, name: str, on_message: Callable[[Any], None]) -> None:
        """Subscribe a callback to the messages of a topic."""
        self._client.subscribe_topic(name, lambda event: on_message(event[1]))

    def unsubscribe(self, name: str) -> None:
        """Unsubscribe from a topic."""
        with suppress(Exception):  # the scheduler may be gone
            self._client.unsubscribe_topic(name)

    def _send(
        self, work: Callable[[Any], Any], points: Sequence[Any], bundles: list[list[int]]
    ) -> "dict[Future, list[int]]":
        if not bundles:
            return {}
        sent: dict[Future, list[int]] = {}
        for need in {_label(points[indices[0]]) for indices in bundles}:
            suitable = [indices for indices in bundles if _label(points[indices[0]]) == need]
            arguments = [[points[index] for index in indices] for indices in suitable]
            resources = {need: 1} if need else None
            futures = self._client.map(
                _at_worker, arguments, work=work, pure=False, resources=resources
            )
            sent.update(zip(futures, suitable, strict=True))
        return sent

    def _wait_for_finished(self, done: Any, needed: set[str]) -> "list[tuple[Future, Any]]":
        """Wait for finished tasks; raise an error if no suitable worker is left."""
        checked = began = time.monotonic()
        while not (batch := done.next_batch(block=False)):
            self._restore_workers()
            with done.thread_condition:
                done.thread_condition.wait(SLICE_S)
            now = time.monotonic()
            if now - checked < CHECK_S:
                continue
            checked = now
            self._check_scheduler()
            if self.workers and needed <= self.labels():
                began = now
            elif now - began > NO_WORKER_S:
                raise no_worker(self._client, NO_WORKER_S, needed - self.labels())
        self._restore_workers()
        finished: list[tuple[Future, Any]] = batch
        if any(future.cancelled() for future, _ in finished):
            self._check_scheduler()
        return finished

    def _restore_workers(self) -> None:
        if (now := time.monotonic()) - self._restored_at > CHECK_S:
            self._restored_at = now
            self._restore()

    def _check_scheduler(self) -> None:
        if self._client.status not in {"running", "connecting"}:
            raise UnavailableError(
                "The scheduler has stopped",
                where=address_of(self._client),
                got=f"a connection that is {self._client.status}",
                allowed="a scheduler that runs until all tasks are finished",
                action="start it again, and resume the sweep: `uflip sweep --resume FOLDER`",
            )

    def _cancel(self, futures: "list[Future]") -> None:
        if futures:
            with suppress(Exception):  # the scheduler may be gone
                self._client.cancel(futures, force=True)


class _TaskCancelled(signals.AbandonFlag):
    """Whether a task was cancelled, according to its worker."""

    def __init__(self) -> None:
        from distributed.worker import get_worker, thread_state

        self._tasks, self._key = get_worker().state.tasks, thread_state.key

    @property
    def gone(self) -> bool:  # type: ignore[override]
        """Look up the state of the task."""
        task = self._tasks.get(self._key)
        return task is None or task.state in {"cancelled", "resumed"}


@dataclass(frozen=True)
class _BundleResult:
    results: list[Any]
    seconds: list[float]


def _at_worker(points: Sequence[Any], *, work: Callable[[Any], Any]) -> _BundleResult:
    token = signals.abandon_flag.set(_TaskCancelled())
    bundle = _BundleResult([], [])
    try:
        for point in points:
            signals.check()
            began = time.monotonic()
            bundle.results.append(work(point))
            bundle.seconds.append(time.monotonic() - began)
    except KeyboardInterrupt as error:
        # A KeyboardInterrupt would end the worker.
        raise RuntimeError("cancelled: no client waits for this task") from error
    finally:
        signals.abandon_flag.reset(token)
    return bundle


@contextmanager
def local(workers: int) -> Iterator[Cluster]:
    """Start worker processes on this machine, and stop them at the end of the block.

    Parameters
    ----------
    workers : int
        Number of processes, each with one thread.

    Raises
    ------
    UnavailableError
        If Dask, or its library for TLS, is not installed.
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
            # Without an address the scheduler would serve its pages to every network.
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
            silence_logs=logging.CRITICAL,
            preload=["uflip.executors.worker_signals"],
        )
        stack.callback(_closed, cluster)
        client = stack.enter_context(client_of(distributed, cluster))
        yield Cluster(client, restore=partial(_restore_workers_of, cluster, workers))


@contextmanager
def connect(scheduler: str) -> Iterator[Cluster]:
    """Use the workers of a running scheduler.

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
    """Let Dask keep its files in a temporary folder, not in a shared one."""
    import dask

    return dask.config.set({"temporary-directory": folder})


def _restore_workers_of(cluster: Any, workers: int) -> None:
    """Restore the number of workers: Dask drops lost workers, and keeps failed ones."""
    from distributed.core import Status

    def forget() -> None:
        for name, worker in [*cluster.workers.items()]:
            if worker.status in {Status.closed, Status.failed}:
                del cluster.workers[name]
        cluster.scale(workers)

    cluster.loop.add_callback(forget)  # on the thread that owns the workers


def _closed(cluster: Any) -> None:
    with signals.shielded(), suppress(TimeoutError):
        cluster.close(timeout=CLOSE_S)


def _label(point: object) -> str:
    """Return the label that a point requires of its worker; empty for none."""
    return str(getattr(point, "needs", ""))
