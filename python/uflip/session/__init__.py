"""Benchmark sessions: plan, open, state, folder, runs. Command line, reproductions and `uflip.run`
all use this package.

```text
Request ─▶ begin ─▶ check ─▶ plan ─▶ open ─▶ state ─▶ folder ─┐
          resume ─▶ the remainder of a folder ────────────────┴─▶ BenchmarkRun.carry_out ─▶ results
                                    events on the way ─▶ on_event
```

==================  ===============================================================
`request`           the request of the user, and the plan for it
`open_device`       opens a device, and reports progress where that takes long
`state`             the known state of the device, and enforcing one
`benchmark_run`     device, plan and folder together: the runs
`benchmark`         begins a new benchmark, resumes an interrupted one
`resume`            the remainder of an interrupted benchmark
`open_channel`      the same for open-channel devices, whose runs are jobs
`multi_device`      several devices, a folder for each; `multi_device_task`: one of them;
                    `device_names`: their names; `remote_results`: results from other machines
`events`            progress events
==================  ===============================================================
"""

from uflip.session.benchmark_run import BenchmarkRun, new_benchmark_run
from uflip.session.events import OnEvent, SessionEvent, ignore
from uflip.session.request import BenchmarkRequest
from uflip.session.session import begin, resume

__all__ = [
    "BenchmarkRequest",
    "BenchmarkRun",
    "OnEvent",
    "SessionEvent",
    "begin",
    "ignore",
    "new_benchmark_run",
    "resume",
]
