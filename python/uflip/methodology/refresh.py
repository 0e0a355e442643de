"""What a run leaves behind is written over at random, in part, before the next run.

    SW run     |████|                            what it wrote stays whole until it is overwritten
    refresh    |▒ ▒  ▒    ▒   ▒ ▒    ▒  ▒   ▒|   more than that, at random over the whole target
    next run           |████|                    finds the device as it found it the time before

A run that writes in sequence, or at random within a part of the target, leaves a device that is no
longer written at random all over. That comes back long after the run is over, when a collector of
garbage reaches what was written then: in the time of another experiment, which takes the blame. A
reset mends that, and writes several times the device. What mends it in part is more of what the
state consists of, in proportion to what was written: then a run is a fifth of what was written of
late, wherever the collector is, and each finds about what the one before found.

**Source** uFLIP (CIDR 2009) §4.1: experiments begin in a well-defined state, random writes over the
whole device, and what disturbs it is limited.
**Faithful** Random writes over the whole target, of the largest size of those of the state.
**Simplified** Their size does not vary. They are written, and not measured, but take their time,
on a simulated device, too: in functional mode a benchmark of the demo takes half as long, and 256,
247 and 252 of its 310 experiments converge for three seeds, where 266 and 261 do for the first two.
**Ambiguous** (1) How much. Nothing follows from the paper; `TIMES` bounds what a single run is of
what was written of late. (2) What disturbs. In the paper only sequential writes do; here also a run
that keeps to less than `NEARLY_ALL` of the target. Only where runs end when their mean is known, on
devices in a random state: one that is measured as it is is left as it is.
"""

from typing import TYPE_CHECKING

from uflip.data.spec_base import DRAWN
from uflip.experiment import PlannedRun
from uflip.microbench import in_turn
from uflip.spec import Spec, baseline

if TYPE_CHECKING:
    from uflip.methodology.plan import Plan

# Four times what a run wrote: it is a fifth of what was written of late.
TIMES = 4
# A mix is confined to its half; an area that is shifted a little is not.
NEARLY_ALL = 0.9
# uFLIP §4.1: the largest size of the state's own, "the flash block size, 128 KB" [bytes].
IO_SIZE = 128 << 10


def writes_within_a_part(spec: Spec, target_size: int) -> bool:
    """Whether random writes keep to a part of the target, or mostly do.

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
    """Whether what runs of a plan leave is written over."""
    is_random = plan.state is not None and plan.state.request["state"] == "random"
    return is_random and plan.method == "auto"


def refresh_bytes(plan: "Plan", run: PlannedRun, written: int) -> int:
    """How much is written at random after a run that wrote so much [bytes]: the target at most."""
    if not refreshes(plan) or in_turn(run):
        return 0
    spec = run.spec
    if not (spec.writes_sequentially or writes_within_a_part(spec, plan.target_size)):
        return 0
    return min(TIMES * written, plan.target_size) // IO_SIZE * IO_SIZE


def refresh_spec(target_size: int, size_bytes: int, seed: int) -> Spec:
    """Describe the writes of a refresh."""
    return baseline(
        "RW",
        io_size=IO_SIZE,
        target_size=target_size // IO_SIZE * IO_SIZE,
        io_count=size_bytes // IO_SIZE,
        io_ignore=0,
        seed=seed,
    )
