"""Dask's workers as an executor: local processes, or the workers of a running scheduler.

    this process ── points, a thousand at a time ──▶ scheduler ──▶ worker, worker, worker …
                 ◀── results when they finish ──────

A task costs Dask milliseconds, ten on a busy machine: shorter points are sent in bundles
(`Bundles`). The first points go one by one and show how long a point takes. Dask detects a dead
worker and reassigns its tasks. The points of a bundle that Dask gives up after too many deaths are
submitted again, alone, a few times, so that a crashing point is found without blaming its
neighbours. A task that was cancelled notices it at its next check, like a thread of this process.

Any client of a scheduler can run any program on its workers. The loopback address keeps out other
machines, but neither other users of this machine nor containers that share its network. So a
scheduler that is started here also requires a certificate: TLS in both directions, with a key that
exists only in the memory of its processes. Other schedulers are protected by their operators
(docs/how-to/use-several-machines.md).
"""

import gc
import logging
import signal
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from uflip import signals
from uflip.errors import UnavailableError
from uflip.executors.executor import MAX_WORKER_DEATHS, Result, crashed_task
from uflip.extras import missing_extra

if TYPE_CHECKING:
    from distributed import Client, Future


# Maximum wait for a scheduler, and for the end of local processes [s].
CONNECT_S, CLOSE_S = 10.0, 10.0

SETTINGS = {
    # The profiler samples every thread a hundred times a second.
    "distributed.worker.profile.enabled": False,
    # Workers end with the process that started them.
    "distributed.worker.daemon": True,
    # Points may include device snapshots of some megabytes each.
    "distributed.admin.large-graph-warning-threshold": "1 TB",
    # A worker lost for this time is given up, and replaced at the next check. Dask's 15 s are too
    # short if a worker is killed again while it starts.
    "distributed.deploy.lost-worker-timeout": "60s",
    # The HTTP pages of scheduler and workers require no certificate: serve none.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    # This setting returns memory after each point, which costs a sixth of the time.
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": None,
}
# Maximum number of tasks at the scheduler: enough for some hundred workers, and quickly cancelled.
WINDOW = 1024
# Maximum wait for the first worker of a scheduler, and for any worker after the last is gone [s]:
# nannies start a new one within seconds, machines within minutes.
FIRST_WORKER_S, NO_WORKER_S = 60.0, 120.0
# Interval between checks for workers while nothing finishes [s], and between two polls.
CHECK_S, SLICE_S = 5.0, 0.1
# Target duration of a task [s]: a hundred times the overhead of Dask, but short enough that a dead
# worker loses little and progress is visible.
TARGET_TASK_S = 0.5
# Maximum number of points in a bundle, since their durations differ.
MAX_POINTS = 64
# Number of points measured before bundles are used.
PROBE_POINTS = 8
# Weight of the latest point in the mean duration.
WEIGHT = 0.1
TERMINAL_SIGNALS = (signal.SIGINT, signal.SIGHUP)


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
        """Call a short function in a worker now, while its tasks run."""
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


@contextmanager
def local(workers: int) -> Iterator[Cluster]:
    """Start worker processes on this machine, and stop them at the end of the block."""
    with ExitStack() as stack:
        distributed = stack.enter_context(library())
        folder = stack.enter_context(
            TemporaryDirectory(prefix="uflip-", ignore_cleanup_errors=True)
        )
        import dask

        # Not in a shared folder.
        stack.enter_context(dask.config.set({"temporary-directory": folder}))
        cluster = distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            host="127.0.0.1",
            security=temporary_security(distributed),
            # Without an address the scheduler would serve its pages to every network.
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
            silence_logs=logging.CRITICAL,
            preload=["uflip.executors.cluster"],
        )
        stack.callback(_closed, cluster)
        client = stack.enter_context(client_of(distributed, cluster))
        yield Cluster(client, restore=partial(_restore_workers_of, cluster, workers))


@contextmanager
def connect(scheduler: str) -> Iterator[Cluster]:
    """Use the workers of a running scheduler.

    `scheduler`: its address, as in tls://host:8786.
    """
    with library() as distributed, client_of(distributed, scheduler) as client:
        try:
            client.wait_for_workers(1, timeout=FIRST_WORKER_S)
        except TimeoutError:
            raise no_worker(client, FIRST_WORKER_S) from None
        yield Cluster(client, elsewhere=True)


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


def dask_setup(_worker: object) -> None:
    """Ignore the signals of terminals in a worker of `--workers`; Dask calls this in each.

    A terminal sends Ctrl-C and SIGHUP to all of its processes. The parent cancels the work and ends
    the workers with SIGTERM; a worker that ended by itself would print a message over the prompt.
    """
    for number in TERMINAL_SIGNALS:
        signal.signal(number, signal.SIG_IGN)


class Bundles:
    """The waiting points, in bundles.

    `count`: number of points; they are identified by their index. `single`: whether each point is
    sent alone, because it requires a certain worker.
    """

    def __init__(self, count: int, *, single: bool = False) -> None:
        self._largest = 1 if single else MAX_POINTS
        self._waiting = deque(range(count))
        self._singles: deque[int] = deque()
        self._deaths: Counter[int] = Counter()
        self._seconds: float | None = None
        self._measured = 0

    @property
    def waiting(self) -> int:
        """Number of waiting points."""
        return len(self._waiting) + len(self._singles)

    def next(self, most: int) -> list[list[int]]:
        """Take up to `most` bundles; few at first, until the duration of points is known.

        >>> bundles = Bundles(100)
        >>> len(bundles.next(50))
        8
        >>> bundles.took([0.1] * 8)
        >>> [len(bundle) for bundle in bundles.next(3)]
        [5, 5, 5]
        """
        size = self._size()
        if self._measured < PROBE_POINTS:
            most = min(most, PROBE_POINTS)
        bundles: list[list[int]] = []
        while len(bundles) < most and self.waiting:
            if self._singles:
                bundles.append([self._singles.popleft()])
            else:
                length = min(size, len(self._waiting))
                bundles.append([self._waiting.popleft() for _ in range(length)])
        return bundles

    def took(self, seconds: list[float]) -> None:
        """Record the durations of points [s]."""
        for duration in seconds:
            self._measured += 1
            # The mean of the first points, then an exponential moving average.
            weight = max(WEIGHT, 1 / self._measured)
            self._seconds = duration * weight + (self._seconds or 0.0) * (1 - weight)

    def died(self, indices: list[int]) -> int | None:
        """Put back the points of a dead worker; return a point with too many deaths."""
        if len(indices) == 1:
            self._deaths[indices[0]] += 1
            if self._deaths[indices[0]] >= MAX_WORKER_DEATHS:
                return indices[0]
        self._singles.extend(indices)
        return None

    def _size(self) -> int:
        if self._seconds is None or self._measured < PROBE_POINTS:
            return 1
        return max(1, min(self._largest, round(TARGET_TASK_S / max(self._seconds, 1e-9))))


@contextmanager
def client_of(distributed: Any, where: Any) -> "Iterator[Client]":
    """Connect to a scheduler within this block."""
    problem = ""
    try:
        client = distributed.Client(where, timeout=CONNECT_S, set_as_default=False)
    # A TimeoutError is an OSError; tls:// without a certificate is a TypeError.
    except (OSError, ValueError, TypeError) as error:
        problem = str(error).splitlines()[0] if str(error) else type(error).__name__
    if problem:
        # The garbage collector takes a lock of Dask when it frees the client. Do that now, not
        # while the next client holds that lock and waits for the collecting thread.
        gc.collect()
        raise UnavailableError(
            "The scheduler does not answer",
            where="--scheduler",
            got=f"{where}: {problem}",
            allowed="the address of a scheduler, as in tls://host:8786 or tcp://host:8786",
            action="start one with `dask scheduler`, and a `dask worker` on every machine; tls:// "
            "needs the certificate in the configuration of Dask on this machine, too",
        )
    try:
        yield client
    finally:
        with suppress(Exception):  # the scheduler may be gone
            client.close(timeout=CLOSE_S)


@contextmanager
def library() -> Iterator[Any]:
    """Import Dask, with our settings until the end of the block."""
    try:
        import dask
        import distributed
    except ImportError as error:
        raise _missing("A cluster needs Dask") from error
    with dask.config.set(SETTINGS):
        yield distributed


def temporary_security(distributed: Any) -> Any:
    """Return a key and certificates for one cluster; they exist only in memory."""
    try:
        import cryptography  # noqa: F401 -- check that it is installed
    except ImportError as error:
        raise _missing("TLS between processes needs cryptography") from error
    return distributed.Security.temporary()


def no_worker(
    client: "Client", seconds: float, labels: set[str] | frozenset[str] = frozenset()
) -> UnavailableError:
    """Return the error for a scheduler without workers, or without one that has a label."""
    with_label = f" with the label {min(labels)}" if labels else ""
    return UnavailableError(
        f"The scheduler has no worker{with_label}",
        where=address_of(client),
        got=f"none for {seconds:.0f} s",
        allowed="at least one",
        action="start `dask worker` with this address on each machine to be used",
    )


def address_of(client: "Client") -> str:
    """Return the address of a client's scheduler."""
    return str(getattr(client.scheduler, "address", "--scheduler"))


def _missing(message: str) -> UnavailableError:
    return missing_extra("cluster", message, where="--workers, --scheduler")
