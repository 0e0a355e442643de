"""The method between runs: the plan, its estimate, and its execution.

=================  ========================================================================
`state`            enforces a well-defined state, and names it (uFLIP §4.1)
`plan_options`     the user's choices about a plan, and defaults that suit the device
`plan`             which runs, in which order, where on the device (uFLIP §4.2)
`space_allocation` assigns target spaces to runs, with a reset where space runs out
`plan_file`        the plan as a file that people can edit
`rounds`           repeats experiments that have not converged
`refresh`          overwrites a part of what a run has written
`run_lengths`      length of runs: until their mean converges, or as in the paper
`phases`           start-up and period of the device (uFLIP §4.2)
`interference`     how long a run lingers, and the pause that follows (uFLIP §4.3, Figure 5)
`calibration`      both, measured during the benchmark and stored
`limits`           how much a plan may write, how long it may take
`order`            the order of runs: baselines, undisturbing runs, disturbing runs
`target_spaces`    separate target spaces for sequential writes
`estimate`         I/Os, bytes and minutes of a plan, and the time left
`wear`             wear of the device, and the share of its endurance that a plan uses
`cost`             assumed cost of an I/O before the first measurement
`harness`          cost of the measuring itself
`history`          writes since the state was enforced
`outcome`          complete, interrupted, failed: stored, and reported with the finished runs
`run_groups`       runs that must follow each other without a pause; the plan grows there
`events`           progress events of an execution
`execute`          the plan on a device: pause, run, commit, until the end or Ctrl-C
=================  ========================================================================
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
from uflip.methodology.limits import check_worth_running, within_limits
from uflip.methodology.plan import Plan, make_plan
from uflip.methodology.plan_file import read_plan, write_plan
from uflip.methodology.plan_options import Choices, method_for, overwrites_for
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
    "within_limits",
    "write_plan",
]
