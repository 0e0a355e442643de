"""Latency classes of Myers & Sinclair: bins of 300 µs below 1.5 ms, and peaks above.

**Source** Myers & Sinclair, "Measuring Solid-State Drive Behavior" (2010), sections 4 and 5.

**Faithful** 300 µs bins below 1.5 ms; above it nothing is binned. Share and mean of each class, and
how many I/Os lie between two of its members.

**Simplified** Nothing.

**Ambiguous** The report separates classes by looking at a figure. Here a class above 1.5 ms ends
where the next longer response time is longer by a factor of 1.25 or more; a factor, because peaks
of 15 and of 400 ms are equally clear on a logarithmic scale only.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
