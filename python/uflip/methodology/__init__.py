"""What happens between runs: the plan that orders them, its estimate, and its execution.

=============  ============================================================================
`state`        how a well-defined state is enforced, and what it is called (uFLIP §4.1)
`plan`         which runs, in which order, where on the device (uFLIP §4.2)
`places`       targets of their own for sequential writes
`estimate`     how many I/Os, bytes and minutes a plan will take, and how many are left
`cost`         what an I/O is assumed to take before the first one is made
`harness`      what the measuring itself costs
`history`      what has been written since the state was enforced
`execute`      the plan on a device: pause, run, commit, and so on until the end or Ctrl-C
=============  ============================================================================
"""

from uflip.methodology.estimate import Estimate, TimeLeft, estimate
from uflip.methodology.execute import Event, RunFinished, RunProgress, RunStarted, execute
from uflip.methodology.harness import measure_harness
from uflip.methodology.history import History
from uflip.methodology.plan import Plan, make_plan
from uflip.methodology.state import (
    STATES,
    Enforcement,
    OnState,
    enforce_state,
    next_state_id,
    plan_state,
    state_of_profile,
)

__all__ = [
    "STATES",
    "Enforcement",
    "Estimate",
    "Event",
    "History",
    "OnState",
    "Plan",
    "RunFinished",
    "RunProgress",
    "RunStarted",
    "TimeLeft",
    "enforce_state",
    "estimate",
    "execute",
    "make_plan",
    "measure_harness",
    "next_state_id",
    "plan_state",
    "state_of_profile",
]
