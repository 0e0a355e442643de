"""Evaluation of a job log: response times by operation, and throughput."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uflip import _native

READ, WRITE, ERASE = range(3)
"""Numbers of the operations in a log."""

MB = 1e6
"""uFLIP-OC's MB/s: its 50 MB/s per channel and 400 MB/s for eight agree with powers of ten."""


@dataclass(frozen=True)
class ResponseSeries:
    """Response times of a job, in the order of submission."""

    op: NDArray[np.uint8]  #: 0 read, 1 write, 2 erase (n,).
    response_time_ms: NDArray[np.float64]  #: Response times (n,) [ms].
    failed: int  #: Commands with a failed address.

    @staticmethod
    def from_trace(trace: _native.FlashTrace) -> "ResponseSeries":
        """Extract the data of figures from a log."""
        order = np.argsort(np.asarray(trace.column("submit_ns")), kind="stable")
        return ResponseSeries(
            np.asarray(trace.column("op"))[order],
            np.asarray(trace.column("response_time_ns"))[order] / 1e6,
            int(np.count_nonzero(np.asarray(trace.column("failed")))),
        )

    def times(self, op: int) -> NDArray[np.float64]:
        """Return the response times of one operation [ms]."""
        times: NDArray[np.float64] = self.response_time_ms[self.op == op]
        return times


def mb_per_s(trace: _native.FlashTrace, sector_bytes: int) -> float:
    """Return the throughput of a job [MB/s]; erases transfer nothing."""
    moved = np.asarray(trace.column("op")) != ERASE
    sectors = np.asarray(trace.column("addresses"))[moved].astype(np.int64).sum()
    return float(sectors) * sector_bytes / trace.elapsed_ns() * 1e9 / MB


def degrees(highest: int) -> list[int]:
    """Return powers of two up to a number, and the number itself.

    >>> degrees(4), degrees(6)
    ([1, 2, 4], [1, 2, 4, 6])
    """
    powers = [1 << bit for bit in range(highest.bit_length()) if 1 << bit <= highest]
    return powers if powers[-1] == highest else [*powers, highest]
