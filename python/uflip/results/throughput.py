"""How many I/Os a run gets done a second, of the part of it in which it is at work as asked.

::

    under way   4  |    ______________________
                3  |   |                      |_
                2  |  _|                      | |_
                1  | |                        |   |_
                   +------------------------------------> time
                     filled  steady            run out

**Source**: operational analysis: P. Denning, J. Buzen, *The operational analysis of queueing
network models* (Computing Surveys 1978): throughput is completions over the time that they take.
**Faithful**: of a run with several I/Os under way, completions are counted while all of its streams
are behind their start-up and go on submitting: neither while a queue fills, nor while it runs out.
**Simplified**: a *round* is as many completions as I/Os are under way. What is taken is the time
from each completion of the first two rounds to its peer in the last two, on average, so that it
does not matter where between two bursts of completions, or between a fast I/O and a slow one of
each stream, counting begins. Servers whose I/Os take at least s complete no more than one each in
any s: where their number divides a round, no such time is shorter than they need, and what is found
is never above what they can do. I/Os of several pages, which are served in turn, are half done when
counting begins: that overstates by a share of a round.
**Ambiguous**: with one I/O under way nothing is filled or runs out, and a run of fewer than two
rounds has no steady part: then all that is measured counts, from the submission of the first I/O
to the completion of the last. Of several under way that understates, by a round at most.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uflip import _native
from uflip.results.columns import as_array

Times = NDArray[np.uint64]
EDGE = 2
"""So many rounds at the begin are held against as many at the end."""


@dataclass(frozen=True)
class Amount:
    """What was done in a part of a run that lies behind the start-up.

    Attributes
    ----------
    ios : int
        So many I/Os.
    size_bytes, elapsed_ns : float
        Of so many bytes together, in so long, pauses included.
    """

    ios: int
    size_bytes: float
    elapsed_ns: float


def measured_amount(trace: _native.Trace) -> Amount:
    """Say how much was done in the steady part of a run, and how long that took."""
    kept = as_array(trace, "ignored") == 0
    if not kept.any():
        return Amount(0, 0, 0)
    began, sizes = as_array(trace, "submit_ns"), as_array(trace, "io_size_bytes")
    ended = began + as_array(trace, "response_time_ns")
    most = most_under_way(began, ended)
    if most > 1:
        begin, end = _all_at_work(trace)
        inside = (begin <= ended) & (ended <= end)
        steady = _rounds(ended[inside], sizes[inside], most)
        if steady is not None:
            return steady
    elapsed = ended[kept].max() - began[kept].min()
    return Amount(int(kept.sum()), float(sizes[kept].sum(dtype=np.uint64)), float(elapsed))


def rates(amounts: Iterable[Amount]) -> tuple[float | None, float | None]:
    """I/Os and bytes a second of runs one after the other; None where no time passed.

    Examples
    --------
    >>> rates([Amount(100, 409_600, 10**9), Amount(200, 819_200, 2 * 10**9)])
    (100.0, 409600.0)
    """
    every = list(amounts)
    seconds = sum(each.elapsed_ns for each in every) / 1e9
    if not seconds:
        return None, None
    ios, size = sum(each.ios for each in every), sum(each.size_bytes for each in every)
    return ios / seconds, size / seconds


def most_under_way(began: Times, ended: Times) -> int:
    """Return how many I/Os are under way at most, of submissions and completions (n,) [ns].

    Examples
    --------
    >>> most_under_way(np.array([0, 0, 5, 10]), np.array([5, 20, 10, 12]))
    2
    """
    submitted = np.sort(began, kind="stable")
    over = np.searchsorted(np.sort(ended, kind="stable"), submitted, side="right")
    return max(int((np.arange(1, len(submitted) + 1) - over).max()), 1)


def _all_at_work(trace: _native.Trace) -> tuple[int, int]:
    """From when on all streams are behind their start-up, until one makes its last I/O [ns].

    A start-up is over with as many completions as I/Os are ignored: when the first of the others is
    submitted, all of a queue are still under way that were there before it.
    """
    began, kept = as_array(trace, "submit_ns"), as_array(trace, "ignored") == 0
    ended = began + as_array(trace, "response_time_ns")
    firsts = np.flatnonzero(np.diff(as_array(trace, "stream").astype(int))) + 1
    begin, end = 0, None
    for of in zip(*(np.split(each, firsts) for each in (began, ended, kept)), strict=True):
        submitted, over, counts = of
        ignored = min(int(np.count_nonzero(~counts)), len(over) - 1)
        begin = max(begin, int(np.partition(over, ignored)[ignored]))
        end = int(submitted.max()) if end is None else min(end, int(submitted.max()))
    assert end is not None, "there is an I/O"
    return begin, end


def _rounds(ended: Times, sizes: NDArray[np.uint32], most: int) -> Amount | None:
    """Say what whole rounds got done; None where there are not two.

    `ended` (n,) [ns] are completions in any order, and `sizes` (n,) [bytes] those of their I/Os.
    """
    rounds = len(ended) // most
    if rounds < 2:
        return None
    apart = (rounds - (EDGE if rounds >= 2 * EDGE else 1)) * most
    first, last = slice(0, rounds * most - apart), slice(apart, rounds * most)
    order = np.argsort(ended, kind="stable")
    at = (ended - ended[order[0]])[order].astype(np.float64)
    done = np.cumsum(sizes[order], dtype=np.float64)
    took = (at[last] - at[first]).mean()
    return Amount(apart, float((done[last] - done[first]).mean()), float(took))
