"""Benchmarks: the plan, the device in its state, the runs, and their result folder.

```text
Request ─▶ begin ─▶ check ─▶ plan ─▶ open ─▶ state ─▶ folder ─┐
          resume ─▶ the remainder of a folder ────────────────┴─▶ BenchmarkRun.carry_out ─▶ results
                                    events on the way ─▶ on_event
```

===============  ================================================================================
`session`        begins a new benchmark, resumes an interrupted one; jobs of uFLIP-OC
`request`        the request of the user, and the plan for it
`plan`           the choices of the user; runs, their order, refreshes between them (uFLIP §4.2)
`plan_file`      the plan as a file that people can edit
`target_spaces`  separate target spaces for sequential writes, and resets where space runs out
`run_lengths`    length of runs: start-up and period of the device, converged means
`interference`   how long a run lingers, and the pause that follows (uFLIP §4.3, Figure 5)
`rounds`         repeats experiments that have not converged; adds rates to `offered_load`
`estimate`       I/Os, bytes and minutes of a plan, the time left; its limits, and its time budget
`cost`           assumed cost of an I/O before the first measurement; wear of the device
`prepare`        opens a device, and brings it into its state
`state`          enforces a well-defined state, names it, and follows its history (uFLIP §4.1)
`execute`        the runs: pause, run, store, until the end or Ctrl-C
`calibration`    phases and pause, measured on the way; cost of the harness
`events`         progress events
`multi_device`   several devices, a folder for each
`replay`         a trace as a benchmark of one run
`import_logs`    logs of fio as a result folder
`find_load`      the largest load that meets a target
`fio_job_file`   job files of fio as patterns
`myers_sinclair` the micro-benchmark of Myers & Sinclair
===============  ================================================================================
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
    BenchmarkEvent,
    OnEvent,
    PlanGrew,
    ResetProgress,
    RunEvent,
    RunFinished,
    RunProgress,
    RunStarted,
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
    "BenchmarkEvent",
    "BenchmarkRequest",
    "BenchmarkRun",
    "Calibration",
    "Choices",
    "Enforcement",
    "History",
    "OnEvent",
    "OnState",
    "Plan",
    "PlanEstimate",
    "PlanGrew",
    "ResetProgress",
    "RunEstimate",
    "RunEvent",
    "RunFinished",
    "RunProgress",
    "RunStarted",
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
