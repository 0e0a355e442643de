"""What happens between runs: the plan that orders them, its estimate, and its execution.

=============  ============================================================================
`state`        how a well-defined state is enforced, and what it is called (uFLIP §4.1)
`chosen`       what a user may choose about a plan, and what suits the device where he does not
`plan`         which runs, in which order, where on the device (uFLIP §4.2)
`placing`      runs get their places, with a reset where there is no room
`plan_file`    the plan as a file that people can edit
`rounds`       what is not known yet is repeated further
`refresh`      what a run leaves is written over in part
`lengths`      how long runs are: until their mean is known, or as the paper says
`phases`       start-up and period of the device (uFLIP §4.2)
`interference` how long a run lingers, and the pause that follows (uFLIP §4.3, Figure 5)
`found`        both, found on the way and kept
`limits`       how much a plan may write, how long it may take
`order`        what comes first: what tells, what hardly disturbs, what does
`places`       targets of their own for sequential writes
`estimate`     how many I/Os, bytes and minutes a plan will take, and how many are left
`wear`         how worn the device is, and how much of its endurance a plan uses up
`cost`         what an I/O is assumed to take before the first one is made
`harness`      what the measuring itself costs
`history`      what has been written since the state was enforced
`resume`       what is left of a plan that was cut short
`ending`       complete, interrupted, failed: noted, and said with what is kept
`groups`       which runs come next, and which follow each other at once; the plan grows there
`events`       what whoever watches is told
`execute`      the plan on a device: pause, run, commit, and so on until the end or Ctrl-C
=============  ============================================================================
"""

from uflip.methodology.calibration import Calibration
from uflip.methodology.estimate import PlanEstimate, RunEstimate, TimeLeft, estimate
from uflip.methodology.events import (
    Event,
    PlanGrew,
    ResetProgress,
    RunFinished,
    RunProgress,
    RunStarted,
)
from uflip.methodology.execute import execute
from uflip.methodology.harness import measure_harness
from uflip.methodology.history import History
from uflip.methodology.limits import check_worth_running, within
from uflip.methodology.plan import Plan, make_plan
from uflip.methodology.plan_file import read_plan, write_plan
from uflip.methodology.plan_options import Choices, method_for, overwrites_for
from uflip.methodology.resume import what_is_left
from uflip.methodology.state import (
    Enforcement,
    OnState,
    default_state,
    enforce_state,
    next_state_id,
    plan_state,
    state_of_profile,
)
from uflip.methodology.wear import describe_used, describe_wear, wear_of

__all__ = [
    "Calibration",
    "Choices",
    "Enforcement",
    "Event",
    "History",
    "OnState",
    "Plan",
    "PlanEstimate",
    "PlanGrew",
    "ResetProgress",
    "RunEstimate",
    "RunFinished",
    "RunProgress",
    "RunStarted",
    "TimeLeft",
    "check_worth_running",
    "default_state",
    "describe_used",
    "describe_wear",
    "enforce_state",
    "estimate",
    "execute",
    "make_plan",
    "measure_harness",
    "method_for",
    "next_state_id",
    "overwrites_for",
    "plan_state",
    "read_plan",
    "state_of_profile",
    "wear_of",
    "what_is_left",
    "within",
    "write_plan",
]
