"""Refresh: random overwrites after a disturbing run, before the next run.

    SW run     |████|                            its data stays contiguous until it is overwritten
    refresh    |▒ ▒  ▒    ▒   ▒ ▒    ▒  ▒   ▒|   more than that, at random over the whole target
    next run           |████|                    finds the device in about the same state

A run that writes in sequence, or at random within a part of the target, leaves a device that is no
longer randomly written throughout. The effect shows long after the run, when the garbage collector
reaches its data: during another experiment, whose result is then wrong. A reset removes it, but
writes several times the device. A refresh removes it in part: more random writes of the kind that
made the state, in proportion to the run. The run is then a fifth of the recent writes, wherever the
collector is, and each run finds about the same state as the one before.

**Source** uFLIP (CIDR 2009) §4.1: experiments begin in a well-defined state, random writes over the
whole device, and what disturbs it is limited.
**Faithful** Random writes over the whole target, of the largest size of those of the state.
**Simplified** Their size does not vary. They are written, and not measured, but take their time,
on a simulated device, too: in functional mode a benchmark of the demo takes half as long, and 256,
247 and 252 of its 310 experiments converge for three seeds, where 266 and 261 do for the first two.
**Ambiguous** (1) How much. Nothing follows from the paper; `TIMES` bounds the share of a single run
in the recent writes. (2) What disturbs. In the paper only sequential writes do; here also a run
that uses less than `NEARLY_ALL` of the target. Refreshes apply only where runs end when their mean
has converged, on devices in a random state; a device measured as-is is never refreshed.
"""

from typing import TYPE_CHECKING

from uflip.data.spec_base import DRAWN
from uflip.experiment import PlannedRun
from uflip.footprint import NEARLY_ALL
from uflip.microbench import has_fixed_order
from uflip.spec import Spec, baseline

if TYPE_CHECKING:
    from uflip.benchmark.plan import Plan

# Four times the writes of a run: the run is then a fifth of the recent writes.
TIMES = 4
# uFLIP §4.1: the largest size of the state's own, "the flash block size, 128 KB" [bytes].
IO_SIZE = 128 << 10


def writes_within_a_part(spec: Spec, target_size: int) -> bool:
    """Return whether random writes are confined to a part of the target, or mostly are.

    Examples
    --------
    >>> writes_within_a_part(baseline("RW", target_size=1 << 20), 1 << 30)
    True
    >>> writes_within_a_part(baseline("RR", target_size=1 << 20), 1 << 30)
    False
    """
    return any(
        part.is_write
        and part.location in DRAWN
        and (part.location != "random" or part.target_bytes < NEARLY_ALL * target_size)
        for part in spec.parts
    )


def refreshes(plan: "Plan") -> bool:
    """Return whether a plan refreshes the device after disturbing runs."""
    is_random = plan.state is not None and plan.state.request["state"] == "random"
    return is_random and plan.method == "auto"


def refresh_bytes(plan: "Plan", run: PlannedRun, written: int) -> int:
    """Return the size of the refresh after a run [bytes]: at most that of the target."""
    if not refreshes(plan) or has_fixed_order(run):
        return 0
    spec = run.spec
    if not (spec.writes_sequentially or writes_within_a_part(spec, plan.target_size)):
        return 0
    return min(TIMES * written, plan.target_size) // IO_SIZE * IO_SIZE


def refresh_spec(target_size: int, size_bytes: int, seed: int) -> Spec:
    """Return the specification of the writes of a refresh."""
    return baseline(
        "RW",
        io_size=IO_SIZE,
        target_size=target_size // IO_SIZE * IO_SIZE,
        io_count=size_bytes // IO_SIZE,
        io_ignore=0,
        seed=seed,
    )
