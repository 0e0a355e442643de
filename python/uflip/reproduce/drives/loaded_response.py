"""Response times under load, by a closed form with five constants.

::

    main stream     writes at a rate  ─▶ own queue (384 deep) ─┐
    beside it       10,000 I/Os/s, half of them reads ─────────┴▶ drive

**Source**: ours. Little's law gives the main stream's time in a saturated drive; below that a read
waits for a die with a chance that is the load.
**Faithful**: the loads of the streams and the depth of the main one.
**Simplified**: nothing here is simulated. Below saturation writes take the time of the write
buffer, the same on every drive. The wait of a read has the quantile `blocked ·
(1 - (1 - q) / load)²`. Above saturation the main stream waits longer than the other, its reads by
the same time as its writes.
**Ambiguous**: the depth, 3 threads of 128: SSD-iq has four, of which one is the stream beside.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import numpy as np

from uflip.reproduce.drives.fit import optimizer
from uflip.reproduce.drives.tables import PERCENTS, LoadedResponse

MAIN_DEPTH = 3 * 128
BESIDE_WRITES_PER_S = 5_000
MAIN_SHARE = 0.99
BUFFER_US, BUFFER_TAIL_US = 9.6, 14.0
"""p50 and p99 of a write to the buffer: the mean of these drives at 10,000 writes/s."""
SATURATED_TAIL = 1.2
"""p99 over p50 of writes in a saturated drive."""
BLOCKED_US = (50.0, 2_000.0)
CALIBRATION_PER_S = (10_000, 50_000)
TOLERANCES = {50: 0.20, 99: 0.35}
"""Percentile -> the share within which a prediction agrees."""


@dataclass(frozen=True)
class ResponseConstants:
    """The constants of a drive under load.

    Attributes
    ----------
    sustained_per_s : float
        Writes of the main stream that the saturated drive completes in a second.
    read_us : float
        A read that does not wait [µs].
    blocked_us : float
        The longest wait of a read for a die, below saturation [µs].
    write_wait_us, read_wait_us : float
        Times of a write and a read of the stream beside, in the saturated drive [µs].
    """

    sustained_per_s: float
    read_us: float
    blocked_us: float
    write_wait_us: float
    read_wait_us: float

    def predict(self, offered_per_s: int, write_share: float, what: str, percent: int) -> float:
        """Return a percentile of the response times [µs]."""
        writes_per_s = MAIN_SHARE * offered_per_s
        main = write_share >= MAIN_SHARE
        if writes_per_s >= self.sustained_per_s:
            return self._saturated(main, what, percent)
        if what == "write":
            return BUFFER_US if percent == 50 else BUFFER_TAIL_US
        load = (writes_per_s + BESIDE_WRITES_PER_S) / (self.sustained_per_s + BESIDE_WRITES_PER_S)
        waits = max(0.0, 1 - (1 - percent / 100) / load)
        return self.read_us + self.blocked_us * waits**2

    def _saturated(self, main: bool, what: str, percent: int) -> float:
        queue_us = MAIN_DEPTH / self.sustained_per_s * 1e6 - self.write_wait_us if main else 0.0
        if what == "write":
            middle = self.write_wait_us + queue_us
            return middle if percent == 50 else SATURATED_TAIL * middle
        middle = self.read_wait_us + queue_us
        return middle if percent == 50 else middle + self.blocked_us


def is_response_calibration(response: LoadedResponse, highest_per_s: int) -> bool:
    """Return whether constants are fitted to a row: at 10,000, 50,000, and the highest rate.

    The constants that all drives share were chosen with these rows in view, too.
    """
    return response.offered_per_s in (*CALIBRATION_PER_S, highest_per_s)


def fit_responses(
    responses: Sequence[LoadedResponse], most_per_s: float
) -> ResponseConstants | None:
    """Fit the constants of a drive under load.

    Parameters
    ----------
    responses : sequence of LoadedResponse
        All rows of the drive; only calibration rows are used.
    most_per_s : float
        Writes per second that the drive cannot exceed: uniform writes without reads.

    Returns
    -------
    ResponseConstants or None
        None if a calibration row is missing.
    """
    highest = max((row.offered_per_s for row in responses), default=0)
    rows = [row for row in responses if is_response_calibration(row, highest)]
    top = {
        (row.write_share >= MAIN_SHARE, row.what): row.response_us
        for row in rows
        if row.offered_per_s == highest and row.percent == PERCENTS[0]
    }
    reads = [row for row in rows if row.offered_per_s != highest and row.what == "read"]
    if len(top) < 4 or not reads:
        return None
    sustained = min(MAIN_DEPTH / top[True, "write"] * 1e6, most_per_s)

    def constants(values: Sequence[float]) -> ResponseConstants:
        waits = top[False, "write"], top[False, "read"]
        return ResponseConstants(sustained, float(values[0]), float(values[1]), *waits)

    def residuals(values: Sequence[float]) -> list[float]:
        one = constants(values)
        return [
            log(one.predict(row.offered_per_s, row.write_share, row.what, row.percent))
            - log(row.response_us)
            for row in reads
        ]

    fastest = min(row.response_us for row in reads)
    bounds = ((0.3 * fastest, BLOCKED_US[0]), (2 * fastest, BLOCKED_US[1]))
    found = optimizer().least_squares(residuals, (fastest, 300.0), bounds=bounds, loss="soft_l1")
    return constants([float(value) for value in np.asarray(found.x)])
