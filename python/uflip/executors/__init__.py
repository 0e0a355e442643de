"""The same work at many points, wherever there is room for it.

`executor`    what an executor is
`work`        what is sent to it: picklable, and the same wherever it is done
`threads`     on this machine, in this process: native calls release the interpreter's lock
`processes`   on this machine, in processes: for work that holds it
`cluster`     Dask's workers, here or on other machines (`pip install 'uflip[cluster]'`)
`scheduler`   how Dask's scheduler is spoken to, for `cluster`
`news`        what work tells while it lasts
`running`     `on_all`: results in the order of the points; `using`: who carries out

Whoever has many points calls `on_all` and does not know where they are carried out; whoever knows
says so around it, with `using`. Results are the same bit for bit, whichever executor and however
many workers: a point knows nothing of the others, and results are put in the order of the points.
A worker that dies costs the time of what it was at, which is done again.
"""

from uflip.executors.executor import Executor, OnStep, ignore
from uflip.executors.processes import Processes
from uflip.executors.run import current, each, on_all, using
from uflip.executors.threads import Here, Threads

__all__ = [
    "Executor", "Here", "OnStep", "Processes", "Threads", "current", "each", "ignore", "on_all",
    "using",
]  # fmt: skip
