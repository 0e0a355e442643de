"""Dask's scheduler as we use it: our settings, a connection, and the errors where there is none."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from uflip.errors import UnavailableError

if TYPE_CHECKING:
    from distributed import Client

# How long to wait for a scheduler, and for what was started here to end [s].
CONNECT_S, CLOSE_S = 10.0, 10.0

SETTINGS = {
    # Looks into every thread a hundred times a second.
    "distributed.worker.profile.enabled": False,
    # Workers are gone with whoever started them.
    "distributed.worker.daemon": True,
    # Points may be devices in their state, some megabytes each.
    "distributed.admin.large-graph-warning-threshold": "1 TB",
    # What is away for so long is given up, and started anew at the next look. The 15 s of Dask are
    # over where a worker is killed again while it starts.
    "distributed.deploy.lost-worker-timeout": "60s",
    # The pages of scheduler and workers ask for no certificate: serve none.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    # With it memory is given back after each point and cleared for the next, a sixth of its time.
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": None,
}


@contextmanager
def client_of(distributed: Any, where: Any) -> "Iterator[Client]":
    """Talk to a scheduler within this block.

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
        # What is left of the client takes a lock of Dask when it is collected: not while the next
        # client, which holds that lock, waits for the thread that happens to collect it.
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
        with suppress(Exception):  # of a scheduler that is gone
            client.close(timeout=CLOSE_S)


@contextmanager
def library() -> Iterator[Any]:
    """Import Dask, with our settings until the block is left."""
    try:
        import dask
        import distributed
    except ImportError as error:
        raise _missing("A cluster needs Dask", error, "distributed") from error
    with dask.config.set(SETTINGS):
        yield distributed


def temporary_security(distributed: Any) -> Any:
    """Make a key and certificates for one cluster; they exist only in memory.

    Raises
    ------
    UnavailableError
        If the library that makes them is not installed.
    """
    try:
        import cryptography  # noqa: F401 -- whether it is there
    except ImportError as error:
        raise _missing("TLS between processes needs a library", error, "cryptography") from error
    return distributed.Security.temporary()


def _missing(what: str, error: ImportError, library: str) -> UnavailableError:
    return UnavailableError(
        what,
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
        action="start `dask worker` with this address on each machine that is to take part",
    )


def address_of(client: "Client") -> str:
    """Return where the scheduler of a client is."""
    return str(getattr(client.scheduler, "address", "--scheduler"))
