"""Response times under load, by a closed form.

::

    main stream     writes at a rate  ─▶ own queue (384 deep) ─┐
    beside it       10,000 I/Os/s, half of them reads ─────────┴▶ drive

**Source**: ours. Little's law gives the rate at which the drive is saturated. Below it, a read
waits for a die with a chance that is the load, and a write for buffer space (`write_waits`).
**Faithful**: the loads of the streams and the depth of the main one.
**Simplified**: nothing here is simulated. The wait of a read has the quantile `blocked ·
(1 - (1 - q) / load)²`. A saturated drive answers alike at every higher rate.
**Ambiguous**: the depth, 3 threads of 128: SSD-iq has four, of which one is the stream beside.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import log
from statistics import median

import numpy as np

from uflip.reproduce.drives.fit import optimizer
from uflip.reproduce.drives.tables import PERCENTS, LoadedResponse
from uflip.reproduce.drives.write_waits import MeasuredWrite, WriteWaits, fit_waits

MAIN_DEPTH = 3 * 128
BESIDE_WRITES_PER_S = 5_000
MAIN_SHARE = 0.99
BUFFERED_TAIL = 1.4
"""p99 over p50 of writes to the buffer of an idle drive."""
BUFFERED_US = 200.0
"""Writes below it [µs] show the buffer; longer ones show waits for space in it."""
BLOCKED_US = (50.0, 2_000.0)
MIDDLE_PER_S, MIDDLE_LOAD = 50_000, 0.4
"""Calibration rates are nearest to this rate, and to this share of the sustained rate."""
TOLERANCES: dict[float, float] = {50: 0.20, 99: 0.35}
"""Percentile -> the share within which a prediction agrees."""


def stream_name(main: bool, what: str, percent: float) -> str:
    """Return the name of a percentile of the reads or writes of a stream.

    Examples
    --------
    >>> stream_name(True, "write", 99)
    'p99 of writes, main stream'
    """
    return f"p{percent:g} of {what}s, {'main stream' if main else 'stream beside'}"


@dataclass(frozen=True)
class ResponseConstants:
    """The constants of a drive under load."""

    #: Writes of the main stream that the saturated drive completes in a second.
    sustained_per_s: float
    #: A read that does not wait [µs]; None without reads below saturation.
    read_us: float | None
    blocked_us: float  #: The longest wait of a read for a die, below saturation [µs].
    #: p50 and p99 of a write to the buffer of an idle drive [µs]; None without such writes.
    buffered_us: float | None
    buffered_tail_us: float
    crowded_us: float  #: Growth of that p99 with load / (1 - load) [µs].
    waits: WriteWaits  #: Waits for space in the buffer.
    #: `stream_name` -> its percentile in the saturated drive, as measured at the highest rate [µs].
    saturated_us: dict[str, float]

    def predict(
        self, offered_per_s: int, write_share: float, what: str, percent: float
    ) -> float | None:
        """Return a percentile of the response times [µs]; None if no row shows it."""
        main = write_share >= MAIN_SHARE
        load = load_of(offered_per_s, self.sustained_per_s)
        if load >= 1:
            return self.saturated_us.get(stream_name(main, what, percent))
        if what == "read":
            if self.read_us is None:
                return None
            waits = max(0.0, 1 - (1 - percent / 100) / load)
            return self.read_us + self.blocked_us * waits**2
        if self.buffered_us is None:
            return None
        wait_us = self.waits.wait_us(
            percent, all_writes_per_s(offered_per_s), all_sustained_per_s(self.sustained_per_s),
            MAIN_DEPTH,
        )  # fmt: skip
        return self.buffer_us(percent, load) + wait_us

    def buffer_us(self, percent: float, load: float) -> float:
        """Return a percentile of a write that finds space in the buffer [µs]."""
        assert self.buffered_us is not None
        if percent < PERCENTS[-1]:
            return self.buffered_us
        return self.buffered_tail_us + self.crowded_us * load / (1 - load)


def all_writes_per_s(offered_per_s: float) -> float:
    """Return the writes of both streams."""
    return MAIN_SHARE * offered_per_s + BESIDE_WRITES_PER_S


def all_sustained_per_s(sustained_per_s: float) -> float:
    """Return the writes of both streams that the saturated drive completes."""
    return sustained_per_s + BESIDE_WRITES_PER_S


def load_of(offered_per_s: float, sustained_per_s: float) -> float:
    """Return the writes that arrive, relative to those that the drive sustains."""
    return all_writes_per_s(offered_per_s) / all_sustained_per_s(sustained_per_s)


def sustained_rate(responses: Iterable[LoadedResponse], most_per_s: float) -> float | None:
    """Return the writes of the main stream that the saturated drive completes in a second.

    None without p50 of the main stream's writes at the highest rate.
    """
    main = {
        row.offered_per_s: row.response_us
        for row in responses
        if row.write_share >= MAIN_SHARE and (row.what, row.percent) == ("write", PERCENTS[0])
    }
    return min(MAIN_DEPTH / main[max(main)] * 1e6, most_per_s) if main else None


def calibration_rates(responses: Sequence[LoadedResponse], most_per_s: float) -> tuple[int, ...]:
    """Return the rates whose rows constants are fitted to: four, of which two may be the same.

    They are the lowest, the one nearest to 50,000/s, the one nearest to 40 % of the sustained rate,
    and the highest.
    """
    rates = sorted({row.offered_per_s for row in responses})
    sustained = sustained_rate(responses, most_per_s)
    if len(rates) < 2 or sustained is None:
        return ()
    lower = rates[:-1]
    middle = _nearest(lower, MIDDLE_PER_S), _nearest(lower, MIDDLE_LOAD * sustained)
    return tuple(sorted({rates[0], *middle, rates[-1]}))


def _nearest(rates: Iterable[int], target: float) -> int:
    return min(rates, key=lambda rate: abs(rate - target))


def fit_responses(
    responses: Sequence[LoadedResponse], most_per_s: float
) -> ResponseConstants | None:
    """Fit the constants of a drive under load, as far as its rows show them.

    `responses`: all rows of the drive; only calibration rows are used. `most_per_s`: writes per
    second that the drive cannot exceed: uniform writes without reads. Returns None with fewer than
    two rates, or without p50 of the main stream's writes.
    """
    rates = calibration_rates(responses, most_per_s)
    sustained = sustained_rate(responses, most_per_s)
    if not rates or sustained is None:
        return None
    rows = [row for row in responses if row.offered_per_s in rates]
    saturated = {
        stream_name(row.write_share >= MAIN_SHARE, row.what, row.percent): row.response_us
        for row in rows
        if row.offered_per_s == rates[-1]
    }
    below = [row for row in rows if load_of(row.offered_per_s, sustained) < 1]
    reads = [row for row in below if row.what == "read" and row.percent in PERCENTS]
    writes = [row for row in below if row.what == "write"]
    one = ResponseConstants(sustained, None, 0.0, None, 0.0, 0.0, WriteWaits(), saturated)
    if writes:
        one = _fit_buffer(writes, one)
        one = replace(one, waits=_fit_waits(writes, one))
    return _fit_reads(reads, one) if reads else one


def _fit_buffer(writes: Sequence[LoadedResponse], one: ResponseConstants) -> ResponseConstants:
    """Fit the times of buffered writes."""
    short = [row for row in writes if row.response_us < BUFFERED_US]
    middle = [row.response_us for row in short if row.percent == PERCENTS[0]]
    usual = median(middle or [min(row.response_us for row in writes)])
    tails = [row for row in short if row.percent == PERCENTS[-1]]
    start = replace(one, buffered_us=usual, buffered_tail_us=BUFFERED_TAIL * usual)
    if not tails:
        return start

    def with_values(values: Sequence[float]) -> ResponseConstants:
        return replace(
            start, buffered_tail_us=float(values[0]), crowded_us=float(values[1]) * usual
        )

    bounds = ((usual, 0.0), (BUFFERED_US, BUFFERED_US / usual))
    return with_values(_least_squares(with_values, tails, (BUFFERED_TAIL * usual, 0.1), bounds))


def _fit_reads(reads: Sequence[LoadedResponse], start: ResponseConstants) -> ResponseConstants:
    def with_values(values: Sequence[float]) -> ResponseConstants:
        return replace(start, read_us=float(values[0]), blocked_us=float(values[1]))

    fastest = min(row.response_us for row in reads)
    bounds = ((0.3 * fastest, BLOCKED_US[0]), (2 * fastest, BLOCKED_US[1]))
    return with_values(_least_squares(with_values, reads, (fastest, 300.0), bounds))


def _least_squares(
    with_values: Callable[[Sequence[float]], ResponseConstants],
    rows: Sequence[LoadedResponse],
    start: tuple[float, float],
    bounds: tuple[tuple[float, float], tuple[float, float]],
) -> list[float]:
    def residuals(values: Sequence[float]) -> list[float]:
        one = with_values(values)
        pairs = (
            (
                one.predict(row.offered_per_s, row.write_share, row.what, row.percent),
                row.response_us,
            )
            for row in rows
        )
        return [log(predicted / measured) for predicted, measured in pairs if predicted]

    found = optimizer().least_squares(residuals, start, bounds=bounds, loss="soft_l1")
    return [float(value) for value in np.asarray(found.x)]


def _fit_waits(writes: Sequence[LoadedResponse], one: ResponseConstants) -> WriteWaits:
    """Fit waits to writes below saturation, and to the longest ones of the saturated drive."""
    all_sustained = all_sustained_per_s(one.sustained_per_s)
    measured = [
        MeasuredWrite(
            row.percent, all_writes_per_s(row.offered_per_s),
            one.buffer_us(row.percent, load_of(row.offered_per_s, one.sustained_per_s)),
            row.response_us,
        )
        for row in writes
    ]  # fmt: skip
    if all(row.response_us < BUFFERED_US for row in measured):
        return WriteWaits()
    assert one.buffered_us is not None
    longest = [
        MeasuredWrite(PERCENTS[-1], all_sustained, one.buffered_us, one.saturated_us[stream])
        for main in (True, False)
        if (stream := stream_name(main, "write", PERCENTS[-1])) in one.saturated_us
    ]
    return fit_waits([*measured, *longest], all_sustained, MAIN_DEPTH)
