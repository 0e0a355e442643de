"""Summary of a run: the paper's four statistics and the percentiles that the sample supports.

**Source** Bouganim, Jónsson, Bonnet: "uFLIP: Understanding Flash IO Patterns", CIDR 2009, §4.2:
each run is represented by min, max, mean and standard deviation of its running phase.

**Faithful** The four statistics, over the I/Os that the caller did not leave out as start-up.

**Simplified** Nothing.

**Ambiguous** The paper does not say which standard deviation: here the sample's (n − 1). It has no
percentiles; response times of flash devices have two or more modes, so a mean alone may be a
response time that never occurs; the tail latency (p99 and beyond) decides. A percentile here is the
nearest rank (the smallest observed response time that at least a share q of the I/Os does not
exceed), never an interpolation between two modes.

Series that do not fit into memory are summarised a piece at a time (`Distribution`), with the same
numbers, from the frequency of each response time.
"""

from dataclasses import asdict, dataclass, fields
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

# A percentile is stated only if at least this many I/Os lie on its thinner side. With fewer, its
# sampling error is of the order of the number itself: p99 of 100 I/Os is decided by a single one.
SUPPORT = 10

PERCENTILES: dict[str, float] = {
    "p5_ns": 0.05,
    "p50_ns": 0.50,
    "p90_ns": 0.90,
    "p95_ns": 0.95,
    "p99_ns": 0.99,
    "p99_9_ns": 0.999,
}


@dataclass(frozen=True, slots=True)
class SeriesStatistics:
    """Statistics of response times.

    Attributes
    ----------
    count : int
        Number of I/Os.
    min_ns, max_ns : int
        The shortest and the longest [ns].
    mean_ns, std_ns : float
        Mean, and standard deviation of the sample, None for a single I/O [ns].
    p5_ns, p50_ns, p90_ns, p95_ns, p99_ns, p99_9_ns : int or None
        Observed percentiles; None if the sample is too small [ns].
    """

    count: int
    min_ns: int
    max_ns: int
    mean_ns: float
    std_ns: float | None
    p5_ns: int | None
    p50_ns: int | None
    p90_ns: int | None
    p95_ns: int | None
    p99_ns: int | None
    p99_9_ns: int | None

    def as_dict(self) -> dict[str, int | float | None]:
        """Return plain numbers for JSON, in the order of the fields."""
        return asdict(self)


STATISTICS = tuple(field.name for field in fields(SeriesStatistics))
"""Names of the statistics."""


def summarise(response_time_ns: ArrayLike) -> SeriesStatistics:
    """Summarise the response times of one run.

    Parameters
    ----------
    response_time_ns
        Response times (n,) [ns] with the start-up already left out, n ≥ 1.

    Returns
    -------
    SeriesStatistics
        The sample standard deviation is None for a single I/O; a percentile q is None where
        fewer than `SUPPORT` I/Os lie on its thinner side.

    Raises
    ------
    ValueError
        If the array is empty or not one-dimensional.

    Examples
    --------
    >>> summary = summarise([100, 100, 100, 500])
    >>> summary.mean_ns, summary.std_ns, summary.max_ns, summary.p50_ns
    (200.0, 200.0, 500, None)
    """
    x = np.sort(np.asarray(response_time_ns))
    if x.ndim != 1 or len(x) == 0:
        raise ValueError(f"response times must be one-dimensional and not empty, got {x.shape}")
    percentiles = {name: _percentile(x, q) for name, q in PERCENTILES.items()}
    return SeriesStatistics(
        count=len(x),
        min_ns=int(x[0]),
        max_ns=int(x[-1]),
        mean_ns=float(x.mean(dtype=np.float64)),
        std_ns=float(x.std(ddof=1, dtype=np.float64)) if len(x) > 1 else None,
        **percentiles,
    )


class Distribution:
    """Frequencies of response times, gathered a piece at a time in bounded memory.

    Up to `MAX_VALUES` different response times every number of the summary is exact. Beyond that
    neighbouring ones are merged: percentiles are then too large by at most one part in
    `PRECISION`, and all other numbers stay exact.

    Examples
    --------
    >>> distribution = Distribution()
    >>> for piece in ([100, 100], [100, 500]):
    ...     distribution.add(np.array(piece, dtype=np.uint64))
    >>> distribution.summary() == summarise([100, 100, 100, 500])
    True
    """

    MAX_VALUES = 1 << 21
    PRECISION = 1 << 12
    FEW = 1 << 19
    """Summarise at most this number of values without binning."""

    def __init__(self) -> None:
        self._raw: list[NDArray[Any]] = []
        self._pending = 0
        self._values: NDArray[np.uint64] = np.zeros(0, dtype=np.uint64)
        self._counts: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._count, self._sum, self._squares = 0, 0, 0
        self._span: tuple[int, int] | None = None

    def __len__(self) -> int:
        """Return the number of response times added."""
        return self._count + self._pending

    def add(self, response_time_ns: NDArray[Any]) -> None:
        """Add response times.

        Parameters
        ----------
        response_time_ns
            Response times (n,) [ns]; may be empty.
        """
        if not len(response_time_ns):
            return
        self._raw.append(response_time_ns)
        self._pending += len(response_time_ns)
        if self._pending > self.FEW:
            self._pack()

    def summary(self) -> SeriesStatistics | None:
        """Return the summary of all added response times; None without any."""
        if not len(self):
            return None
        if self._span is None:
            return summarise(np.concatenate(self._raw))
        self._pack()
        low, high = self._span
        n, mean = self._count, self._sum / self._count
        # Integer arithmetic: the difference of two large sums loses no digits.
        scatter = self._squares * n - self._sum**2
        cumulative = np.cumsum(self._counts)
        return SeriesStatistics(
            count=n,
            min_ns=low,
            max_ns=high,
            mean_ns=mean,
            std_ns=sqrt(scatter / n / (n - 1)) if n > 1 else None,
            **{name: self._percentile(cumulative, q) for name, q in PERCENTILES.items()},
        )

    def percentile(self, q: float) -> int | None:
        """Return an observed percentile [ns]; None if the sample is too small.

        Parameters
        ----------
        q : float
            The share of response times that do not exceed it, 0 < q < 1.
        """
        self._pack()
        return self._percentile(np.cumsum(self._counts), q)

    def _percentile(self, cumulative: NDArray[np.int64], q: float) -> int | None:
        if not supports(self._count, q):
            return None
        index = int(np.searchsorted(cumulative, _rank(self._count, q)))
        assert self._span is not None, "something was added"
        return min(int(self._values[index]), self._span[1])

    def _pack(self) -> None:
        """Count the pending response times."""
        if not self._raw:
            return
        values, counts = np.unique(np.concatenate(self._raw).astype(np.uint64), return_counts=True)
        self._raw, self._pending = [], 0
        self._count += int(counts.sum())
        self._sum += _exact_sum(values, counts)
        self._squares += _exact_sum_of_squares(values, counts)
        low, high = self._span or (int(values[0]), int(values[-1]))
        self._span = min(low, int(values[0])), max(high, int(values[-1]))
        self._values, self._counts = _merge_counts(
            np.concatenate([self._values, values]), np.concatenate([self._counts, counts])
        )
        if len(self._values) > self.MAX_VALUES:
            rounded = _rounded_up(self._values, self.PRECISION)
            self._values, self._counts = _merge_counts(rounded, self._counts)


def _merge_counts(
    values: NDArray[np.uint64], counts: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Add up the counts (n,) of equal values (n,), which are then in order."""
    order = np.argsort(values, kind="stable")
    values, counts = values[order], counts[order]
    starts = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
    return values[starts], np.add.reduceat(counts, starts)


def _rounded_up(values: NDArray[np.uint64], precision: int) -> NDArray[np.uint64]:
    """Round values (n,) up to whole numbers of their leading power of two over `precision`."""
    _, exponents = np.frexp(values.astype(np.float64))
    bits = np.maximum(exponents - precision.bit_length(), 0).astype(np.uint64)
    mask = (np.uint64(1) << bits) - np.uint64(1)
    rounded: NDArray[np.uint64] = (values + mask) & ~mask
    return rounded


_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFF_FFFF)


def _exact_sum(values: NDArray[np.uint64], counts: NDArray[np.int64]) -> int:
    """Sum values (n,) times counts (n,) without rounding; counts below 2³² together."""
    weights = counts.astype(np.uint64)
    high, low = (values >> _HALF) * weights, (values & _LOW) * weights
    return (int(high.sum()) << 32) + int(low.sum())


def _exact_sum_of_squares(values: NDArray[np.uint64], counts: NDArray[np.int64]) -> int:
    """Sum squares of values (n,), in order, times counts (n,) without rounding."""
    few = int(np.searchsorted(values, np.uint64(1 << 31)))  # below it a square is below 2⁶²
    squares = values[:few] ** 2
    high, low = squares >> _HALF, squares & _LOW
    pairs = zip(values[few:].tolist(), counts[few:].tolist(), strict=True)
    large: int = sum(value * value * count for value, count in pairs)
    return (_exact_sum(high, counts[:few]) << 32) + _exact_sum(low, counts[:few]) + large


def supports(count: int, q: float) -> bool:
    """Return whether `count` values support a percentile: `SUPPORT` lie on its thinner side.

    Parameters
    ----------
    count : int
        Number of values.
    q : float
        The percentile: the share of values that do not exceed it, 0 < q < 1.

    Returns
    -------
    bool

    Examples
    --------
    >>> supports(1000, 0.99), supports(999, 0.99)
    (True, False)
    """
    # Rounded first: in binary 1000 × (1 − 0.99) is 10.000000000000009, and others are 9.99….
    return round(count * min(q, 1 - q), 6) >= SUPPORT


def _percentile(ordered: np.ndarray, q: float) -> int | None:
    """Return the nearest rank in an ascending array (n,); None if the sample is too small."""
    n = len(ordered)
    if not supports(n, q):
        return None
    return int(ordered[_rank(n, q) - 1])


def _rank(count: int, q: float) -> int:
    """Return the rank of the percentile among a number of sorted values, from 1 on."""
    return int(np.ceil(round(count * q, 6)))
