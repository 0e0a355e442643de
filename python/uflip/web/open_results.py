"""Open results: read once, and again when a benchmark resumes in their folder."""

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import Generic, TypeVar

from uflip.benchmarks import summary
from uflip.data.summary import Summary
from uflip.errors import unknown_name
from uflip.results import Results
from uflip.web.folders import Folders, ResultFolder, Stamp, stamp_of
from uflip.web.open_run import OpenRun

RESULTS, RUNS = 8, 3
"""Number of results and runs that stay open."""
T = TypeVar("T")


class Latest(Generic[T]):
    """A cache of the latest values, each valid while its stamp stays the same.

    Parameters
    ----------
    most : int
        Maximum number of values.
    """

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
    """The open results and runs of some folders.

    Parameters
    ----------
    folders : Folders
        The folders of the results.
    """

    def __init__(self, folders: Folders) -> None:
        self.folders = folders
        self._results: Latest[Results] = Latest(RESULTS)
        self._summaries: Latest[Summary] = Latest(RESULTS)
        self._runs: Latest[OpenRun] = Latest(RUNS)

    def folder(self, key: str) -> ResultFolder:
        """Find a folder; see `Folders.find`."""
        return self.folders.find(key)

    def results(self, key: str) -> Results:
        """Open a folder, or return it from the cache.

        Raises
        ------
        ResultsError
            If it is not a result, or cannot be read.
        """
        folder = self.folder(key)
        return self._results.get(key, stamp_of(folder), partial(Results.load, folder.path))

    def summary(self, key: str) -> Summary:
        """Return the summary of a folder; see `uflip.benchmarks.summary`."""
        stamp = stamp_of(self.folder(key))
        return self._summaries.get(key, stamp, lambda: summary(self.results(key)))

    def run(self, key: str, name: str) -> OpenRun:
        """Open a run.

        Raises
        ------
        UsageError
            If the run does not exist.
        """
        results = self.results(key)
        for each in results.runs:
            if each.id == name:
                stamp = stamp_of(self.folder(key))
                return self._runs.get(f"{key}/{name}", stamp, partial(OpenRun, results, each))
        raise unknown_name("run", name, [each.id for each in results.runs[:20]], where="run")
