"""Shared parts of the reproductions of uFLIP-OC: device, tolerance, series as plain data.

All of them measure `sim:dfc` with the constants of its profile, and with nothing else.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from uflip.executors import OnStep
from uflip.microbench.open_channel.jobs import SCALES
from uflip.microbench.open_channel.scaling import Scaling
from uflip.microbench.open_channel.series import READ, WRITE, ResponseSeries
from uflip.oc.device import open_flash_device
from uflip.oc.session import Session
from uflip.reproduce.reproduction import ReproductionRow, WiderTolerance, compare_printed

DEVICE = "sim:dfc"
JOINTLY = WiderTolerance(
    0.08, "eight times and rates of the profile together, to all of Tables 2 and 3"
)
"""Tolerance: the constants were chosen together for a small largest deviation of all values."""


@dataclass(frozen=True)
class MixResponse:
    """The response times of one mix, in the order of the I/Os.

    Attributes
    ----------
    op : list of int
        0 read, 1 write.
    response_time_ms : list of float
        [ms].
    """

    op: list[int]
    response_time_ms: list[float]

    @staticmethod
    def from_series(series: ResponseSeries) -> "MixResponse":
        """Return a series as plain data."""
        return MixResponse(series.op.tolist(), series.response_time_ms.round(6).tolist())

    def series(self) -> ResponseSeries:
        """Return the data as a series."""
        return ResponseSeries(np.asarray(self.op, np.uint8), np.asarray(self.response_time_ms), 0)

    @property
    def reads(self) -> np.ndarray:
        """Return the response times of reads [ms]."""
        return self.series().times(READ)

    @property
    def writes(self) -> np.ndarray:
        """Return the response times of writes [ms]."""
        return self.series().times(WRITE)


def joint(name: str, ours: float) -> ReproductionRow:
    """Compare with one of the numbers to which the times were fitted together."""
    return compare_printed(f"oc/{name}", ours, wider=JOINTLY)


def name_of(table: str, kind: str, degree: int) -> str:
    """Return the name of a table's rate among the published values.

    Examples
    --------
    >>> name_of("table2", "writes, one thread", 4)
    'table2/writes_one_thread/4'
    """
    return f"{table}/{kind}/{degree}".replace(" ", "_").replace(",", "")


def table_rows(
    table: str,
    scaling: dict[str, Scaling],
    rates: Mapping[str, Mapping[int, str]],
    factors: Mapping[str, Mapping[int, str]],
) -> list[ReproductionRow]:
    """Compare the rates of a table, then its printed scaling factors."""
    rate_rows = [
        joint(name_of(table, kind, degree), scaling[kind].mb_per_s[degree])
        for kind, by_degree in rates.items()
        for degree in by_degree
    ]
    return rate_rows + [
        joint(f"{name_of(table, kind, degree)}/factor", scaling[kind].factors()[degree])
        for kind, by_degree in factors.items()
        for degree in by_degree
    ]


def numbers(rates: Mapping[str, Mapping[int, str]]) -> dict[str, dict[int, float]]:
    """Return the printed values of a table as numbers."""
    return {
        kind: {degree: float(text) for degree, text in by_degree.items()}
        for kind, by_degree in rates.items()
    }


def session(on_step: OnStep, **overrides: int) -> Session:
    """Open a new device at the paper's scale; every finished job is a step."""
    query = "&".join(f"{key}={value}" for key, value in overrides.items())
    device = open_flash_device(DEVICE + (f"?{query}" if query else ""))
    finished: set[str] = set()

    def on_progress(name: str, share: float) -> None:
        # A job may report its end twice.
        if share == 1.0 and name not in finished:
            finished.add(name)
            on_step(len(finished), name)

    return Session(device, SCALES["standard"], on_step=on_progress)
