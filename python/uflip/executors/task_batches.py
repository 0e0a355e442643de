"""Size of tasks: enough points that the overhead of a task is small.

The first points go one by one and show how long a point takes. If the worker of a bundle dies, its
points go one by one again, so that a crashing point is found without blaming its neighbours.
"""

from collections import Counter, deque

from uflip.executors.executor import MAX_WORKER_DEATHS

# Target duration of a task [s]: a hundred times the overhead of Dask, but short enough that a dead
# worker loses little and progress is visible.
TARGET_TASK_S = 0.5
# Maximum number of points in a bundle, since their durations differ.
MAX_POINTS = 64
# Number of points measured before bundles are used.
PROBE_POINTS = 8
# Weight of the latest point in the mean duration.
WEIGHT = 0.1


class Bundles:
    """The waiting points, in bundles.

    Parameters
    ----------
    count : int
        Number of points; they are identified by their index.
    single : bool
        Whether each point is sent alone, because it requires a certain worker.
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
