"""Where a benchmark is run: plan, open, state, folder, runs. Command line, reproductions and
`uflip.run` all come through here.

```text
Request ─▶ begin ─▶ check ─▶ plan ─▶ open ─▶ state ─▶ folder ─┐
          resume ─▶ what is left of a folder ─────────────────┴─▶ Work.carry_out ─▶ results
                                    events on the way ─▶ whoever watches
```

===============  ==================================================================
`request`        what is wanted, and the plan that follows from it
`opening`        a file that gets its size
`state`          what is known of the device's state, and enforcing one
`carrying_out`   device, plan and folder together: the runs
`benchmark`      the whole way, for a new benchmark and for one that was cut short
`resuming`       what is left of one that was cut short
`open_channel`   the same for open-channel devices, whose runs are jobs
`several`        several devices, a folder for each; `one_of_several`: one of them; `named`: their
                 names; `fetching`: results that were made on another machine
`events`         what is told on the way
===============  ==================================================================
"""

from uflip.session.benchmark import begin, resume
from uflip.session.benchmark_run import BenchmarkRun, new_work
from uflip.session.events import OnEvent, SessionEvent, ignore
from uflip.session.request import BenchmarkRequest

__all__ = [
    "BenchmarkRequest",
    "BenchmarkRun",
    "OnEvent",
    "SessionEvent",
    "begin",
    "ignore",
    "new_work",
    "resume",
]
