"""Results from another machine: listing them there, and fetching them.

    worker, on the host of the drive              client
    results/sent/ID/NAME/  ── piece by piece ──▶  FOLDER/.NAME-being-made ──▶ FOLDER/NAME

The remote folder is complete before anything of it is fetched. It is removed when all of it has
arrived with the right digests. So at any failure in between, one of the two is complete. Pieces are
served during the other work of the worker: its next drive does not delay them.
"""

import os
import shutil
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from uflip.errors import ResultsError, UnavailableError
from uflip.executors.progress_messages import Remote
from uflip.results.result_dir import create_atomically

REMOTE_RESULTS = Path("results") / "sent"
"""Folder of results on the host of a drive, below the working directory of its worker."""
# Message size that a scheduler forwards without problems [bytes].
PIECE_BYTES = 4 << 20


class WorkerGoneError(UnavailableError):
    """The worker that has the results does not answer; they are on its disk."""


@dataclass(frozen=True)
class RemoteFolder:
    """A folder on another machine.

    Attributes
    ----------
    worker : str
        The address of a worker that can read it.
    folder : str
        Its path there.
    files : tuple of (name, size [bytes], digest)
        All its files; names are relative, with slashes.
    """

    worker: str
    folder: str
    files: tuple[tuple[str, int, str], ...]


def list_remote_folder(folder: Path) -> RemoteFolder:
    """List a folder; called in a Dask worker."""
    from distributed import get_worker

    files = tuple(
        (str(path.relative_to(folder)), path.stat().st_size, _digest(path))
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    )
    return RemoteFolder(get_worker().address, str(folder), files)


def fetch(executor: Remote, remote: RemoteFolder, out: Path) -> None:
    """Fetch a folder, whole or not at all, and remove it on the worker.


    Raises
    ------
    WorkerGoneError
        If its worker does not answer.
    ResultsError
        If the data was damaged in transit, or cannot be written.
    """
    with create_atomically(out) as hidden:
        for name, size, digest in remote.files:
            _fetch_file(executor, remote, hidden, (name, size, digest))
    # They have arrived: the remote copy only costs space.
    _ask(executor, remote.worker, _remove_folder, remote.folder)


def _fetch_file(
    executor: Remote, remote: RemoteFolder, hidden: Path, file: tuple[str, int, str]
) -> None:
    name, size, digest = file
    path = hidden / name
    if not path.resolve().is_relative_to(hidden.resolve()):
        raise _damaged_in_transit(remote, name, "a name that leads elsewhere")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as content:
        for begin in range(0, size, PIECE_BYTES):
            content.write(
                _ask(executor, remote.worker, _read_piece, f"{remote.folder}/{name}", begin)
            )
        content.flush()
        os.fsync(content.fileno())
    if _digest(path) != digest:
        raise _damaged_in_transit(remote, name, "other bytes")


def _ask(executor: Remote, worker: str, function: object, *arguments: object) -> bytes:
    try:
        answer: bytes = executor.ask(worker, function, *arguments)  # type: ignore[arg-type]
    except Exception as error:
        raise WorkerGoneError(
            "A worker has stopped answering",
            where=worker,
            got=f"{type(error).__name__}: {error}",
            action="start it again; `uflip run --resume` fetches what it has",
        ) from error
    return answer


def _read_piece(path: str, begin: int) -> bytes:
    with Path(path).open("rb") as file:
        file.seek(begin)
        return file.read(PIECE_BYTES)


def _remove_folder(folder: str) -> bytes:
    """Remove a fetched folder, and parents that are empty then."""
    shutil.rmtree(folder, ignore_errors=True)
    for above in (Path(folder).parent, REMOTE_RESULTS):
        try:
            above.rmdir()
        except OSError:
            break
    return b""


def _digest(path: Path) -> str:
    digest = blake2b(digest_size=32)
    with path.open("rb") as file:
        while part := file.read(PIECE_BYTES):
            digest.update(part)
    return digest.hexdigest()


def _damaged_in_transit(remote: RemoteFolder, name: str, got: str) -> ResultsError:
    return ResultsError(
        "Results were damaged in transit",
        where=f"{remote.folder}/{name} at {remote.worker}",
        got=got,
        allowed="the files on the disk of the worker",
        action="give the command again with --resume, which fetches them again",
    )
