"""Statistics of response times: arrays in, frozen results out, independent of runs.

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

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import sqrt
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from uflip.data.summary import ResponseTime, StatisticsSummary

__all__ = [
    "PERCENTILES",
    "Distribution",
    "Drift",
    "LatencyClass",
    "LatencyClasses",
    "StatisticsSummary",
    "drift",
    "latency_classes",
    "running_mean",
    "summarise",
    "supports",
]

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


STATISTICS: tuple[Literal["count"] | ResponseTime, ...] = ("count", *get_args(ResponseTime))
"""Names of the statistics."""


def summarise(response_time_ns: ArrayLike) -> StatisticsSummary:
    """Summarise the response times of one run.

    Parameters
    ----------
    response_time_ns
        Response times (n,) [ns] with the start-up already left out, n ≥ 1.

    Returns
    -------
    StatisticsSummary
        The sample standard deviation is None for a single I/O; a percentile q is None where
        fewer than `SUPPORT` I/Os lie on its thinner side.

    Raises
    ------
    ValueError
        If the array is empty or not one-dimensional.

    Examples
    --------
    >>> summary = summarise([100, 100, 100, 500])
    >>> [summary[name] for name in ("mean_ns", "std_ns", "max_ns", "p50_ns")]
    [200.0, 200.0, 500, None]
    """
    x = np.sort(np.asarray(response_time_ns))
    if x.ndim != 1 or len(x) == 0:
        raise ValueError(f"response times must be one-dimensional and not empty, got {x.shape}")
    mean = float(x.mean(dtype=np.float64))
    std = float(x.std(ddof=1, dtype=np.float64)) if len(x) > 1 else None
    return _summary(len(x), (int(x[0]), int(x[-1])), (mean, std), partial(_percentile, x))


def _summary(
    count: int,
    span: tuple[int, int],
    moments: tuple[float, float | None],
    percentile: Callable[[float], int | None],
) -> StatisticsSummary:
    (low, high), (mean, std) = span, moments
    numbers = {"count": count, "min_ns": low, "max_ns": high, "mean_ns": mean, "std_ns": std}
    percentiles = {name: percentile(q) for name, q in PERCENTILES.items()}
    return cast("StatisticsSummary", numbers | percentiles)


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

    def summary(self) -> StatisticsSummary | None:
        """Return the summary of all added response times; None without any."""
        if not len(self):
            return None
        if self._span is None:
            return summarise(np.concatenate(self._raw))
        self._pack()
        n, mean = self._count, self._sum / self._count
        # Integer arithmetic: the difference of two large sums loses no digits.
        scatter = self._squares * n - self._sum**2
        cumulative = np.cumsum(self._counts)
        std = sqrt(scatter / n / (n - 1)) if n > 1 else None
        return _summary(n, self._span, (mean, std), partial(self._percentile, cumulative))

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


def running_mean(x: ArrayLike) -> NDArray[np.float64]:
    """Return the mean of the first n values, for every n: the lines of the paper's figure 3.

    Parameters
    ----------
    x
        Values (n,), for example response times [ns].

    Returns
    -------
    ndarray
        Means (n,), in the unit of `x`; the last one is the mean of the whole.

    Examples
    --------
    >>> running_mean([4, 2, 6]).tolist()
    [4.0, 3.0, 4.0]
    """
    values = np.asarray(x, dtype=np.float64)
    return np.cumsum(values) / np.arange(1, len(values) + 1)


# Response times of neighbouring I/Os depend on one another (garbage collection comes in periods),
# so the scatter of single I/Os understates the error of a mean. Means of batches longer than a
# period do not: ten batches for each half.
BATCHES_PER_HALF = 10

# Shorter batches would be shorter than the periods of the devices in the paper (tens of I/Os).
MIN_BATCH = 16


@dataclass(frozen=True, slots=True)
class Drift:
    """Difference between the second and the first half of a run.

    Attributes
    ----------
    first_half_ns, second_half_ns : float
        Means of the halves [ns].
    change : float
        (second − first) / first.
    z : float
        The difference in units of its standard error.
    """

    first_half_ns: float
    second_half_ns: float
    change: float
    z: float


def drift(response_time_ns: ArrayLike) -> Drift | None:
    """Compare the halves of a run by means of batches.

    A mean describes a running phase only if it is the same in every part of it. A flash device that
    has not reached its steady state (free blocks still left, a buffer still filling) has a second
    half that differs from the first. This check raises a doubt; it does not detect phases.

    Parameters
    ----------
    response_time_ns
        Response times (n,) [ns] in the order of submission, start-up left out.

    Returns
    -------
    Drift or None
        None if the run is too short for `2 * BATCHES_PER_HALF` batches of `MIN_BATCH` I/Os.

    Examples
    --------
    >>> drift([100] * 160 + [150] * 160).change
    0.5
    >>> drift([100] * 10) is None
    True
    """
    x = np.asarray(response_time_ns, dtype=np.float64)
    batch = len(x) // (2 * BATCHES_PER_HALF)
    if batch < MIN_BATCH:
        return None
    means = x[: batch * 2 * BATCHES_PER_HALF].reshape(-1, batch).mean(axis=1)
    first, second = means[:BATCHES_PER_HALF], means[BATCHES_PER_HALF:]
    difference = float(second.mean() - first.mean())
    error = float(np.sqrt((first.var(ddof=1) + second.var(ddof=1)) / BATCHES_PER_HALF))
    return Drift(
        first_half_ns=float(first.mean()),
        second_half_ns=float(second.mean()),
        change=difference / float(first.mean()) if first.mean() > 0 else 0.0,
        z=_ratio(difference, error),
    )


def _ratio(difference: float, error: float) -> float:
    """Return a difference in standard errors; constant halves give 0 or infinity."""
    if error > 0:
        return difference / error
    return 0.0 if difference == 0 else float(np.copysign(np.inf, difference))


BIN_NS = 300_000
EXACT_FROM_NS = 1_500_000
GAP = 1.25


@dataclass(frozen=True, kw_only=True)
class LatencyClass:
    """I/Os of similar response times.

    Attributes
    ----------
    low_ns, high_ns : int
        Limits of a bin; shortest and longest response time of a peak [ns].
    ios : int
        Number of I/Os.
    share : float
        Share of all I/Os.
    mean_ns : float or None
        Their mean response time [ns]; None in an empty bin.
    spacing_ios : float or None
        Mean distance from one to the next [I/Os]; None for fewer than two.
    """

    low_ns: int
    high_ns: int
    ios: int
    share: float
    mean_ns: float | None
    spacing_ios: float | None


@dataclass(frozen=True, kw_only=True)
class LatencyClasses:
    """All classes of a series.

    Attributes
    ----------
    ios : int
        Number of all I/Os.
    mean_ns : float
        Mean response time [ns].
    bins : tuple of LatencyClass
        Classes below `EXACT_FROM_NS`, including empty ones.
    peaks : tuple of LatencyClass
        Classes from there on, the shortest first.
    """

    ios: int
    mean_ns: float
    bins: tuple[LatencyClass, ...]
    peaks: tuple[LatencyClass, ...]


def latency_classes(response_time_ns: ArrayLike) -> LatencyClasses:
    """Sort response times into the classes of Myers & Sinclair.

    **Source** Myers & Sinclair, "Measuring Solid-State Drive Behavior" (2010), sections 4 and 5.

    **Faithful** 300 µs bins below 1.5 ms; above it nothing is binned. Share and mean of each class,
    and how many I/Os lie between two of its members.

    **Simplified** Nothing.

    **Ambiguous** The report separates classes by looking at a figure. Here a class above 1.5 ms
    ends where the next longer response time is longer by a factor of 1.25 or more; a factor,
    because peaks of 15 and of 400 ms are equally clear on a logarithmic scale only.

    Parameters
    ----------
    response_time_ns : array_like
        Response times (n,) [ns] in the order of submission, n ≥ 1.

    Returns
    -------
    LatencyClasses

    Raises
    ------
    ValueError
        For an empty series.

    Examples
    --------
    >>> classes = latency_classes([100_000, 100_000, 15_000_000, 100_000, 15_200_000])
    >>> [(peak.ios, peak.share, peak.mean_ns, peak.spacing_ios) for peak in classes.peaks]
    [(2, 0.4, 15100000.0, 2.0)]
    """
    times = np.asarray(response_time_ns)
    if not len(times):
        raise ValueError("no response times: there are no classes of nothing")
    edges = range(0, EXACT_FROM_NS, BIN_NS)
    bins = (
        _class(times, (times >= low) & (times < low + BIN_NS), (low, low + BIN_NS)) for low in edges
    )
    return LatencyClasses(
        ios=len(times),
        mean_ns=float(times.mean()),
        bins=tuple(bins),
        peaks=tuple(_peaks(times)),
    )


def _peaks(times: NDArray[Any]) -> Iterator[LatencyClass]:
    long = np.sort(times[times >= EXACT_FROM_NS])
    if not len(long):
        return
    cuts = np.flatnonzero(long[1:] >= GAP * long[:-1]) + 1
    for members in np.split(long, cuts):
        low, high = int(members[0]), int(members[-1])
        yield _class(times, (times >= low) & (times <= high), (low, high))


def _class(times: NDArray[Any], member: NDArray[np.bool_], limits: tuple[int, int]) -> LatencyClass:
    indices = np.flatnonzero(member)
    return LatencyClass(
        low_ns=limits[0],
        high_ns=limits[1],
        ios=len(indices),
        share=len(indices) / len(times),
        mean_ns=float(times[indices].mean()) if len(indices) else None,
        spacing_ios=float(np.diff(indices).mean()) if len(indices) > 1 else None,
    )
