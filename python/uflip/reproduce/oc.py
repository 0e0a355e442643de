"""What the reproductions of uFLIP-OC share: the device, the tolerance, plain data of series.

All of them measure `sim:dfc` with the constants of its profile, and with nothing else.
"""

from dataclasses import dataclass

import numpy as np

from uflip.oc.device import open_flash_device
from uflip.oc.scaling import Scaling
from uflip.oc.series import READ, WRITE, Series
from uflip.oc.session import SCALES, Session
from uflip.parallel import OnStep
from uflip.reproduce.row import Row, fitted

DEVICE = "sim:dfc"
TOLERANCE = 0.08
"""What counts as met: one set of constants for all tables."""

JOINTLY = "six times and rates of the profile together, to all of Tables 2 and 3"


@dataclass(frozen=True)
class Bands:
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
    def of(series: Series) -> "Bands":
        """Make plain data of a series."""
        return Bands(series.op.tolist(), series.response_time_ms.round(6).tolist())

    def series(self) -> Series:
        """Make a series of it again."""
        return Series(np.asarray(self.op, np.uint8), np.asarray(self.response_time_ms), 0)

    @property
    def reads(self) -> np.ndarray:
        """Response times of reads [ms]."""
        return self.series().times(READ)

    @property
    def writes(self) -> np.ndarray:
        """Response times of writes [ms]."""
        return self.series().times(WRITE)


def joint(what: str, unit: str, published: float, ours: float) -> Row:
    """Compare with a number that was one of those to which the times were fitted together.

    Six constants were chosen so that the largest deviation of all rates and factors is small.
    """
    return fitted(what, unit, published, ours, constant=JOINTLY, tolerance=TOLERANCE)


def factor_rows(scaling: dict[str, Scaling], published: dict[str, dict[int, float]]) -> list[Row]:
    """Compare scaling factors, which the paper prints beside its rates."""
    return [
        joint(
            f"{kind}, scaling factor at {degree} {scaling[kind].over}",
            "",
            value,
            scaling[kind].factors()[degree],
        )
        for kind, by_degree in published.items()
        for degree, value in by_degree.items()
    ]


def session(on_step: OnStep, **overrides: int) -> Session:
    """Open a device of its own at the paper's scale; every job that is over is a step."""
    query = "&".join(f"{key}={value}" for key, value in overrides.items())
    device = open_flash_device(DEVICE + (f"?{query}" if query else ""))
    done = 0

    def kept(name: str, _trace: object) -> None:
        nonlocal done
        done += 1
        on_step(done, name)

    return Session(device, SCALES["standard"], keep=kept)
