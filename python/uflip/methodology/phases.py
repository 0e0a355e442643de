"""Start-up and period of a device, from its long baseline runs.

**Source**: uFLIP (CIDR 2009) §4.2: run SR, RR, SW and RW with a very large IOCount, identify the
two phases of each pattern, derive upper bounds of start-up and period across the patterns.
**Faithful**: all four; the bounds are the largest values of any pattern.
**Simplified**: found by `uflip.analysis` in the place of the eye.
**Ambiguous**: how the bounds fix IOCount. No run with a stop rule may end before it has seen twice
the longest start-up and `FEWEST_PERIODS` of the longest periods; how much longer it goes on, the
rule decides. A run is bound by the baselines that are made before it: reads and random writes are
not by what sequential writes show (`plan`). IOIgnore is the start-up that each run shows itself.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uflip.analysis import analyse
from uflip.errors import UsageError
from uflip.experiment import PlannedRun
from uflip.spec import Spec

FEWEST_PERIODS = 10

Phases = dict[str, Any]
"""`patterns` (label -> analysis as a dictionary), `startup_ios`, `period_ios`: the bounds."""


def find_phases(response_time_ns: Mapping[str, NDArray[Any]]) -> Phases:
    """Find the phases of each baseline pattern, and the upper bounds across them.

    Parameters
    ----------
    response_time_ns : mapping
        Label -> every response time (n,) [ns] of the long run, start-up included.

    Returns
    -------
    dict
        A pattern that cannot be analysed (zeros, too few I/Os) is left out.
    """
    patterns: dict[str, Any] = {}
    for label, times in response_time_ns.items():
        try:
            patterns[label] = analyse(np.asarray(times, dtype=np.float64)).as_dict()
        except UsageError:
            continue
    return {
        "patterns": patterns,
        "startup_ios": max((found["startup_ios"] for found in patterns.values()), default=0),
        "period_ios": max((found["period_ios"] for found in patterns.values()), default=1),
    }


def fewest_ios(phases: Phases) -> int:
    """Return how many I/Os a run must make at least on a device with these phases."""
    return 2 * int(phases["startup_ios"]) + FEWEST_PERIODS * int(phases["period_ios"])


def adapted(run: PlannedRun, phases: Phases | None) -> Spec:
    """Return the specification of a run on a device with these phases."""
    stop = run.spec.get("stop")
    if phases is None or stop is None:
        return run.spec
    wanted = max(stop["min_ios"], fewest_ios(phases))
    return run.spec | {"stop": stop | {"min_ios": min(wanted, stop["max_ios"])}}
