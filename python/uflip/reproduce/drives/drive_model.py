"""The constants of a drive, and the rate that follows from write amplification.

::

    time of a host byte   1 / sequential rate  +  (WA - 1) x relocation cost / sequential rate

**Source**: ours. Where physical writes are counted, the time per host byte is linear in them.
**Faithful**: a relocated page costs more than a written one, since it is also read.
**Simplified**: the cost of a relocated page does not depend on the pattern. Zones are written with
one write at a time: their first term is the time of one such write, waits included.
**Ambiguous**: a rate that several patterns share exactly is a limit of the controller.
"""

from dataclasses import dataclass, replace

import numpy as np

from uflip.reproduce.drives.line_device import Lines, write_amplification
from uflip.reproduce.drives.tables import AMPLIFICATION, RATE, Phase
from uflip.reproduce.drives.workload import Workload, workload_of

SPARES = tuple(float(spare) for spare in np.geomspace(0.04, 0.72, 24).round(5))
"""Spare factors that are simulated; between them, ln(WA - 1) is linear in ln(spare)."""
SMALLEST_EXCESS = 1e-4
CAPACITIES = (1, 10)
"""Bounds of the simulated length of a phase."""


@dataclass(frozen=True)
class Constants:
    """The constants of a drive."""

    sequential_mib_s: float  #: Rate of sequential writes [MiB/s].
    physical_gib: float  #: Flash that data can fill [GiB].
    relocation_cost: float  #: Time of a relocated page, relative to that of a written one.
    line_gib: float  #: Size of a line [GiB].
    zone_mib_s: float  #: Rate of single long writes without collection [MiB/s].
    limit_mib_s: float | None = None  #: Limit of random writes [MiB/s], if there is one.
    policy: str = "greedy"  #: Victim policy.
    apart: bool = True  #: Whether relocated pages fill lines of their own.

    def predict(self, phase: Phase, quantity: str, written: float) -> float | None:
        """Return a quantity of a phase, or None if the phase is not simulated."""
        workload = workload_of(phase)
        if workload is None or phase.capacity_gib >= self.physical_gib:
            return None
        amplification = self.amplification(workload, phase.capacity_gib, written)
        if quantity == AMPLIFICATION:
            return amplification
        assert quantity == RATE
        return self.rate(workload, amplification)

    def rate(self, workload: Workload, amplification: float) -> float:
        """Return the rate at a write amplification [MiB/s]."""
        zones = workload.kind == "zones"
        base_s = 1 / (self.zone_mib_s if zones else self.sequential_mib_s)
        moved_s = (amplification - 1) * self.relocation_cost / self.sequential_mib_s
        rate = 1 / (base_s + moved_s)
        if workload.kind in ("sequential", "zones") or self.limit_mib_s is None:
            return rate
        return min(rate, self.limit_mib_s)

    def amplification(self, workload: Workload, capacity_gib: float, written: float) -> float:
        """Return the write amplification of a workload on a range."""
        spare = 1 - capacity_gib / self.physical_gib
        if workload.kind == "zones":
            lines = Lines(spare, self.line_gib / capacity_gib, self.policy, self.apart)
            return write_amplification(workload, lines, whole(written), capacity_gib)
        size = capacity_gib if workload.kind == "zipf" else 0.0
        lines = Lines(spare, 0.0, self.policy, self.apart)
        return interpolated_amplification(workload, lines, written, size)


def whole(written: float) -> int:
    """Return the simulated length of a phase, in capacities."""
    return int(np.clip(round(written), *CAPACITIES))


def interpolated_amplification(
    workload: Workload, lines: Lines, written: float, capacity_gib: float
) -> float:
    """Return the write amplification at any spare factor, from the two of `SPARES` beside it."""
    spare = float(np.clip(lines.spare_factor, SPARES[0], SPARES[-1]))
    index = int(np.clip(np.searchsorted(SPARES, spare), 1, len(SPARES) - 1))
    near = SPARES[index - 1 : index + 1]
    excess = [
        write_amplification(
            workload, replace(lines, spare_factor=one), whole(written), capacity_gib
        )
        - 1
        for one in near
    ]
    logs = np.log(np.maximum(excess, SMALLEST_EXCESS))
    return 1 + float(np.exp(np.interp(np.log(spare), np.log(near), logs)))
