"""Benchmarks: the plan, the device in its state, the runs, and their result folder.

```text
Request ─▶ begin ─▶ check ─▶ plan ─▶ open ─▶ state ─▶ folder ─┐
          resume ─▶ the remainder of a folder ────────────────┴─▶ BenchmarkRun.carry_out ─▶ results
                                    events on the way ─▶ on_event
```
"""

from uflip.benchmark.calibration import Calibration, measure_harness
from uflip.benchmark.cost import describe_used, describe_wear, wear_of
from uflip.benchmark.estimate import (
    PlanEstimate,
    RunEstimate,
    TimeLeft,
    check_worth_running,
    estimate,
    within_limits,
)
from uflip.benchmark.events import (
    Event,
    OnEvent,
    PlanGrew,
    ResetProgress,
    RunFinished,
    RunProgress,
    RunStarted,
    SessionEvent,
    ignore,
)
from uflip.benchmark.execute import BenchmarkRun, new_benchmark_run
from uflip.benchmark.plan import Choices, Plan, make_plan, method_for, overwrites_for
from uflip.benchmark.plan_file import read_plan, write_plan
from uflip.benchmark.request import BenchmarkRequest
from uflip.benchmark.session import begin, resume
from uflip.benchmark.state import (
    Enforcement,
    History,
    OnState,
    default_state,
    enforce_state,
    next_state_id,
    plan_state,
    state_of_profile,
)

__all__ = [
    "BenchmarkRequest",
    "BenchmarkRun",
    "Calibration",
    "Choices",
    "Enforcement",
    "Event",
    "History",
    "OnEvent",
    "OnState",
    "Plan",
    "PlanEstimate",
    "PlanGrew",
    "ResetProgress",
    "RunEstimate",
    "RunFinished",
    "RunProgress",
    "RunStarted",
    "SessionEvent",
    "TimeLeft",
    "begin",
    "check_worth_running",
    "default_state",
    "describe_used",
    "describe_wear",
    "enforce_state",
    "estimate",
    "ignore",
    "make_plan",
    "measure_harness",
    "method_for",
    "new_benchmark_run",
    "next_state_id",
    "overwrites_for",
    "plan_state",
    "read_plan",
    "resume",
    "state_of_profile",
    "wear_of",
    "within_limits",
    "write_plan",
]
