"""The knee of a drive: the offered rate at which its writes begin to wait.

**Source**: ours. The tables have a few rates: the measured knee lies between the last one at which
a percentile is short, and the first at which it is long.
**Faithful**: the main stream's writes, measured and predicted at the same limit.
**Simplified**: a prediction agrees if it is within 10 % of that range.
**Ambiguous**: the limits, 100 us for p50 and 1 ms for p99: each is about ten times as long as a
write to the buffer, and shorter than any wait for space in it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from uflip.reproduce.drives.loaded_response import MAIN_SHARE, ResponseConstants
from uflip.reproduce.drives.tables import LoadedResponse

LIMITS_US: dict[float, float] = {50: 100.0, 99: 1_000.0}
"""Percentile -> the response time beyond which writes wait [µs]."""
TOLERANCE = 0.10
STEP = 1.005
"""Ratio of the rates at which the closed form is evaluated."""
LEAST_PER_S, MOST_PER_S = 1_000.0, 4_000_000.0


@dataclass(frozen=True)
class Knee:
    """A measured knee, and the predicted one."""

    percent: float  #: The percentile that becomes long.
    #: The last rate at which it is short, and the first at which it is long.
    below_per_s: int
    above_per_s: int
    fitted: bool  #: Whether constants were fitted to the rows at both rates.
    predicted_per_s: float | None  #: None without constants.

    @property
    def deviation(self) -> float | None:
        """The distance from the measured range, relative to its nearer end; 0 within it."""
        if self.predicted_per_s is None:
            return None
        low = min(0.0, self.predicted_per_s / self.below_per_s - 1)
        return low or max(0.0, self.predicted_per_s / self.above_per_s - 1)

    @property
    def within(self) -> bool:
        """Whether the prediction is within the tolerance."""
        return self.deviation is not None and abs(self.deviation) <= TOLERANCE


def find_knees(
    responses: Sequence[LoadedResponse], rates: Sequence[int], load: ResponseConstants | None
) -> Iterator[Knee]:
    """Yield the knees of a drive that the tables show.

    `responses`: all rows of the drive. `rates`: rates to whose rows constants were fitted. `load`:
    the constants.
    """
    for percent, limit_us in LIMITS_US.items():
        times = {
            row.offered_per_s: row.response_us
            for row in responses
            if row.write_share >= MAIN_SHARE and (row.what, row.percent) == ("write", percent)
        }
        above = min((rate for rate, us in times.items() if us > limit_us), default=0)
        below = max((rate for rate in times if rate < above), default=0)
        if below:
            fitted = below in rates and above in rates
            predicted = None if load is None else predict_knee(load, percent)
            yield Knee(percent, below, above, fitted, predicted)


def predict_knee(load: ResponseConstants, percent: float) -> float | None:
    """Return the lowest offered rate at which a percentile is beyond its limit [1/s].

    Returns None if the percentile is not known up to there.
    """
    rate = LEAST_PER_S
    while rate < MOST_PER_S:
        predicted = load.predict(round(rate), MAIN_SHARE, "write", percent)
        if predicted is None:
            return None
        if predicted > LIMITS_US[percent]:
            return rate
        rate *= STEP
    return MOST_PER_S
