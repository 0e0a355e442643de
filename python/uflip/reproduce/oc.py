"""What the reproductions of uFLIP-OC share: the device, the tolerance, plain data of series.

All of them measure `sim:dfc` with the constants of its profile, and with nothing else.
"""

from dataclasses import dataclass

import numpy as np

from uflip.oc.device import open_flash_device
from uflip.oc.series import READ, WRITE, Series
from uflip.oc.session import SCALES, Session
from uflip.parallel import OnStep

DEVICE = "sim:dfc"
TOLERANCE = 0.08
"""What counts as met: one set of constants for all tables."""

SOURCE = "uFLIP-OC (2017)"


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
