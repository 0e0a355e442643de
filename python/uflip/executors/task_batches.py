"""How many points make a task: so many that what a task costs is little beside what it does.

The first go one by one, and tell how long a point takes. Where a bundle's worker died, its points
go one by one again, so that a point which kills is found, and its neighbours are not blamed.
"""

from collections import Counter, deque

from uflip.executors.executor import MOST_DEATHS

# A task should take so long [s]: a hundred times what Dask adds to it, and soon enough over that
# little is lost with a worker and progress is seen.
LONG_ENOUGH_S = 0.5
# Points differ: what looked short may not be.
MOST_POINTS = 64
# So many are measured before any go together.
FIRST = 8
# How much the next point tells about how long points take.
WEIGHT = 0.1


class Bundles:
    """The points that are not at work, in bundles.

    Parameters
    ----------
    count : int
        How many points there are; they are known by their place.
    alone : bool
        Whether each goes by itself, however short: it asks for a worker of its own.
    """

    def __init__(self, count: int, *, alone: bool = False) -> None:
        self._largest = 1 if alone else MOST_POINTS
        self._waiting = deque(range(count))
        self._alone: deque[int] = deque()
        self._deaths: Counter[int] = Counter()
        self._seconds: float | None = None
        self._seen = 0

    @property
    def left(self) -> int:
        """How many points wait."""
        return len(self._waiting) + len(self._alone)

    def next(self, most: int) -> list[list[int]]:
        """Take up to so many bundles; few at first, until it is known how long points take.

        Examples
        --------
        >>> bundles = Bundles(100)
        >>> len(bundles.next(50))
        8
        >>> bundles.took([0.1] * 8)
        >>> [len(bundle) for bundle in bundles.next(3)]
        [5, 5, 5]
        """
        size = self._size()
        if self._seen < FIRST:
            most = min(most, FIRST)
        found: list[list[int]] = []
        while len(found) < most and self.left:
            if self._alone:
                found.append([self._alone.popleft()])
            else:
                few = min(size, len(self._waiting))
                found.append([self._waiting.popleft() for _ in range(few)])
        return found

    def took(self, seconds: list[float]) -> None:
        """Take note of how long points took [s]."""
        for one in seconds:
            self._seen += 1
            # The mean of the first, then one that forgets slowly.
            weight = max(WEIGHT, 1 / self._seen)
            self._seconds = one * weight + (self._seconds or 0.0) * (1 - weight)

    def died(self, places: list[int]) -> int | None:
        """Put back what a worker died of; returns a point that too many did."""
        if len(places) == 1:
            self._deaths[places[0]] += 1
            if self._deaths[places[0]] >= MOST_DEATHS:
                return places[0]
        self._alone.extend(places)
        return None

    def _size(self) -> int:
        if self._seconds is None or self._seen < FIRST:
            return 1
        return max(1, min(self._largest, round(LONG_ENOUGH_S / max(self._seconds, 1e-9))))
