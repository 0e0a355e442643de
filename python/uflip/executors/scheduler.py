"""Connection to Dask's scheduler: settings, client, and errors if it is missing."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from uflip.errors import UnavailableError

if TYPE_CHECKING:
    from distributed import Client

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


@contextmanager
def client_of(distributed: Any, where: Any) -> "Iterator[Client]":
    """Connect to a scheduler within this block.

    Raises
    ------
    UnavailableError
        If it does not answer.
    """
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
        raise _missing("A cluster needs Dask", error, "distributed") from error
    with dask.config.set(SETTINGS):
        yield distributed


def temporary_security(distributed: Any) -> Any:
    """Return a key and certificates for one cluster; they exist only in memory.

    Raises
    ------
    UnavailableError
        If the library for certificates is not installed.
    """
    try:
        import cryptography  # noqa: F401 -- check that it is installed
    except ImportError as error:
        raise _missing("TLS between processes needs a library", error, "cryptography") from error
    return distributed.Security.temporary()


def _missing(message: str, error: ImportError, library: str) -> UnavailableError:
    return UnavailableError(
        message,
        where="--workers, --scheduler",
        got=f"no module {error.name}",
        allowed=f"{library}, an optional library",
        action="install it: pip install 'uflip[cluster]'",
    )


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
