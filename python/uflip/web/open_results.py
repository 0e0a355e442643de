"""The result folders below those given on the command line, and those that are open.

A folder is identified by a key derived from its path, and only keys of folders found by a walk are
accepted: no path ever comes from outside. Links, and paths that leave a given folder, are not
followed or opened. An open result is read once, and again when a benchmark resumes in its folder.
"""

import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import Generic, TypeVar

from uflip.data import ledger, manifest, sweep
from uflip.data.summary import Summary
from uflip.errors import ResultsError, UsageError, unknown_name
from uflip.result_views import summary
from uflip.results import Results
from uflip.web.open_run import OpenRun

MAX_FOLDERS = 200_000
"""Maximum number of folders searched, so that / also gets an answer."""
Stamp = tuple[tuple[int, int], ...]
RESULTS, RUNS = 8, 3
"""Number of results and runs that stay open."""
T = TypeVar("T")


@dataclass(frozen=True)
class ResultFolder:
    """A result folder: its key, its name relative to the given folder, and its path."""

    key: str
    name: str
    path: Path


class Folders:
    """The result folders below the given ones.

    Raises UsageError if one of them is not a folder.
    """

    def __init__(self, roots: Sequence[Path]) -> None:
        self._roots = [_root(path) for path in roots]
        self._added: list[Path] = []
        self._by_key: dict[str, ResultFolder] = {}
        self._lock = Lock()

    @property
    def roots(self) -> list[Path]:
        """The given folders."""
        return list(self._roots)

    def add(self, root: Path) -> None:
        """Add a folder of the explorer itself."""
        with self._lock:
            if root not in self._added:
                self._added.append(root)

    def scan(self) -> list[ResultFolder]:
        """Walk through all folders, and return the current results."""
        folders = _found([*self._roots, *self._added], _is_result)
        with self._lock:
            self._by_key = folders
        return list(folders.values())

    def sweeps(self) -> list[ResultFolder]:
        """Return the current sweeps below the given folders."""
        return list(_found(self._roots, _is_sweep).values())

    def find_sweep(self, key: str) -> ResultFolder:
        """Return a sweep by its key."""
        sweep = next((folder for folder in self.sweeps() if folder.key == key), None)
        if sweep is None:
            raise ResultsError(
                "There is no such sweep",
                where=key,
                got="no sweep with this key below the given folders",
                allowed="one of those in the list of results",
                action="go back to the list; a moved folder has another address",
            )
        refuse_names(sweep)
        _refuse_links(sweep)
        return sweep

    def find(self, key: str) -> ResultFolder:
        """Return a folder by its key."""
        with self._lock:
            folder = self._by_key.get(key)
        if folder is None:
            folder = next((each for each in self.scan() if each.key == key), None)
        if folder is None or not _is_result(folder.path):
            raise ResultsError(
                "There is no such result folder",
                where=folder.name if folder else key,
                got="no result with this key below the given folders",
                allowed="one of those in the list of results",
                action="go back to the list; a moved folder has another address",
            )
        refuse_names(folder)
        _refuse_links(folder)
        return folder


def stamp_of(
    folder: ResultFolder, names: Sequence[str] = (manifest.FILE_NAME, ledger.FILE_NAME)
) -> Stamp:
    """Return a stamp that changes when a benchmark resumes in a folder, or the folder changes."""
    stamp: list[tuple[int, int]] = []
    for name in names:
        try:
            status = (folder.path / name).stat()
            stamp.append((status.st_mtime_ns, status.st_size))
        except OSError:
            stamp.append((0, 0))
    return tuple(stamp)


def _root(path: Path) -> Path:
    action = "`uflip run sim:demo --out results/demo` makes one"
    try:
        resolved = path.resolve(strict=True)
        if resolved.is_dir():
            return resolved
        got = "a file"
        action = "`uflip replay FILE DEVICE --out FOLDER` makes one of a trace; explore that folder"
    except (OSError, RuntimeError) as error:
        got = getattr(error, "strerror", None) or str(error)
    raise UsageError(
        "There is no folder to explore",
        where=str(path),
        got=got,
        allowed="a result folder, or a folder that contains some",
        action=action,
    )


def _found(roots: Sequence[Path], is_wanted: Callable[[Path], bool]) -> dict[str, ResultFolder]:
    """Return the folders of a kind at and below some roots, by key."""
    folders: dict[str, ResultFolder] = {}
    for root in roots:
        for path in filter(is_wanted, _below(root)):
            name = str(Path(root.name) / path.relative_to(root))
            folders.setdefault(key_of(path), ResultFolder(key_of(path), name, path))
    return folders


def _below(root: Path) -> Iterator[Path]:
    """Yield all folders at and below a root, but none in a result or a sweep; follow no links."""
    for number, (name, subfolders, _) in enumerate(os.walk(root)):
        path = Path(name)
        if _is_result(path) or _is_sweep(path):
            subfolders.clear()
        yield path
        subfolders[:] = sorted(each for each in subfolders if not each.startswith("."))
        if number >= MAX_FOLDERS:
            return


def _is_result(path: Path) -> bool:
    return os.path.lexists(path / manifest.FILE_NAME)


def _is_sweep(path: Path) -> bool:
    return os.path.lexists(path / sweep.FILE_NAME)


def refuse_names(folder: ResultFolder) -> None:
    """Reject a folder whose name is not valid text: its files could not be opened by name."""
    try:
        str(folder.path).encode()
    except UnicodeEncodeError:
        raise ResultsError(
            "The name of the result folder is not valid text",
            where=folder.name,
            got="a name that is not UTF-8",
            allowed="names in UTF-8",
            action="rename the folder, and look at the list again",
        ) from None


def _refuse_links(folder: ResultFolder) -> None:
    """Reject a folder that contains links: they could lead outside of the given folders."""
    within = (manifest.RUNS, "summaries", "parts")
    for path in (folder.path, *(folder.path / name for name in within)):
        try:
            with os.scandir(path) as files:
                linked = path.is_symlink() or any(each.is_symlink() for each in files)
        except OSError:
            continue
        if linked:
            raise ResultsError(
                "The result folder contains links",
                where=folder.name,
                got=f"a symbolic link in {path.name}",
                allowed="files of its own",
                action="replace the link by a copy of the files",
            )


def key_of(path: Path) -> str:
    """Return the key by which a page names a folder."""
    return blake2b(os.fsencode(path), digest_size=8).hexdigest()


class Latest(Generic[T]):
    """A cache of the latest values, each valid while its stamp stays the same."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._entries: OrderedDict[str, tuple[Stamp, T]] = OrderedDict()
        self._locks: dict[str, Lock] = {}
        self._lock = Lock()

    def get(self, key: str, stamp: Stamp, make: Callable[[], T]) -> T:
        """Return the value of a key; make it unless it is cached with this stamp."""
        with self._lock:
            lock = self._locks.setdefault(key, Lock())
        with lock:
            with self._lock:
                cached = self._entries.get(key)
            value = cached[1] if cached is not None and cached[0] == stamp else make()
            with self._lock:
                self._entries[key] = stamp, value
                self._entries.move_to_end(key)
                while len(self._entries) > self._most:
                    self._entries.popitem(last=False)
        return value


class OpenResults:
    """The open results and runs of some folders."""

    def __init__(self, folders: Folders) -> None:
        self.folders = folders
        self._results: Latest[Results] = Latest(RESULTS)
        self._summaries: Latest[Summary] = Latest(RESULTS)
        self._runs: Latest[OpenRun] = Latest(RUNS)

    def folder(self, key: str) -> ResultFolder:
        """Find a folder; see `Folders.find`."""
        return self.folders.find(key)

    def results(self, key: str) -> Results:
        """Open a folder, or return it from the cache."""
        folder = self.folder(key)
        return self._results.get(key, stamp_of(folder), partial(Results.load, folder.path))

    def summary(self, key: str) -> Summary:
        """Return the summary of a folder; see `uflip.result_views.summary`."""
        stamp = stamp_of(self.folder(key))
        return self._summaries.get(key, stamp, lambda: summary(self.results(key)))

    def run(self, key: str, name: str) -> OpenRun:
        """Open a run."""
        results = self.results(key)
        for each in results.runs:
            if each.id == name:
                stamp = stamp_of(self.folder(key))
                return self._runs.get(f"{key}/{name}", stamp, partial(OpenRun, results, each))
        raise unknown_name("run", name, [each.id for each in results.runs[:20]], where="run")
