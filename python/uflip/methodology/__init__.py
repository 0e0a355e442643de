"""What happens between runs: the plan that orders them, its estimate, and its execution.

=============  ============================================================================
`plan`         which runs, in which order, where on the device (uFLIP §4.2)
`places`       targets of their own for sequential writes
`estimate`     how many I/Os, bytes and minutes a plan will take, and how many are left
`harness`      what the measuring itself costs
`execute`      the plan on a device: pause, run, commit, and so on until the end or Ctrl-C
=============  ============================================================================
"""

from uflip.methodology.estimate import Estimate, TimeLeft, estimate
from uflip.methodology.execute import Event, RunFinished, RunProgress, RunStarted, execute
from uflip.methodology.harness import measure_harness
from uflip.methodology.plan import Plan, make_plan

__all__ = [
    "Estimate",
    "Event",
    "Plan",
    "RunFinished",
    "RunProgress",
    "RunStarted",
    "TimeLeft",
    "estimate",
    "execute",
    "make_plan",
    "measure_harness",
]
