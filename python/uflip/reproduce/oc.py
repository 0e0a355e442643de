"""What the reproductions of uFLIP-OC share: the device, the tolerance, plain data of series.

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
from uflip.reproduce.row import ReproductionRow, Wider, printed

DEVICE = "sim:dfc"
JOINTLY = Wider(0.08, "six times and rates of the profile together, to all of Tables 2 and 3")
"""So many constants were chosen so that the largest deviation of all rates and factors is small."""


@dataclass(frozen=True)
class MixResponse:
    """One mix: what happened to reads and writes, in the order of the I/Os.

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
    def of(series: ResponseSeries) -> "MixResponse":
        """Make plain data of a series."""
        return MixResponse(series.op.tolist(), series.response_time_ms.round(6).tolist())

    def series(self) -> ResponseSeries:
        """Make a series of it again."""
        return ResponseSeries(np.asarray(self.op, np.uint8), np.asarray(self.response_time_ms), 0)

    @property
    def reads(self) -> np.ndarray:
        """Response times of reads [ms]."""
        return self.series().times(READ)

    @property
    def writes(self) -> np.ndarray:
        """Response times of writes [ms]."""
        return self.series().times(WRITE)


def joint(name: str, ours: float) -> ReproductionRow:
    """Compare with a number that was one of those to which the times were fitted together."""
    return printed(f"oc/{name}", ours, wider=JOINTLY)


def name_of(table: str, kind: str, degree: int) -> str:
    """Return where a rate of a table is found among the published values.

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
    """Compare the rates of a table, then its scaling factors, which it prints beside them."""
    found = [
        joint(name_of(table, kind, degree), scaling[kind].mb_per_s[degree])
        for kind, by_degree in rates.items()
        for degree in by_degree
    ]
    return found + [
        joint(f"{name_of(table, kind, degree)}/factor", scaling[kind].factors()[degree])
        for kind, by_degree in factors.items()
        for degree in by_degree
    ]


def numbers(rates: Mapping[str, Mapping[int, str]]) -> dict[str, dict[int, float]]:
    """Turn what a table prints into numbers, to draw them."""
    return {
        kind: {degree: float(text) for degree, text in by_degree.items()}
        for kind, by_degree in rates.items()
    }


def session(on_step: OnStep, **overrides: int) -> Session:
    """Open a device of its own at the paper's scale; every job that is over is a step."""
    query = "&".join(f"{key}={value}" for key, value in overrides.items())
    device = open_flash_device(DEVICE + (f"?{query}" if query else ""))
    over: set[str] = set()

    def told(name: str, share: float) -> None:
        # The last of what a job tells of itself may be that it is over, too.
        if share == 1.0 and name not in over:
            over.add(name)
            on_step(len(over), name)

    return Session(device, SCALES["standard"], on_step=told)
