"""Executors: run the same work at many points, on threads, processes or a cluster.

`executor`    the interface, threads, `on_all`: results in the order of the points, `using`
`processes`   processes of this machine: for work that holds the interpreter's lock
`cluster`     Dask's workers, here or on other machines (`pip install 'uflip[cluster]'`)
`progress_messages`  messages from work in progress

Code with many points calls `on_all`; the caller selects the executor around it, with `using`.
Results are identical bit for bit, for every executor and number of workers: points are independent,
and results are in the order of the points. A worker that dies costs only the time of its current
points, which are run again.
"""

from uflip.executors.executor import (
    CallingThread,
    Executor,
    OnStep,
    Threads,
    current,
    ignore,
    iterate_outcomes,
    on_all,
    using,
)
from uflip.executors.processes import Processes

__all__ = [
    "CallingThread", "Executor", "OnStep", "Processes", "Threads", "current", "ignore",
    "iterate_outcomes", "on_all", "using",
]  # fmt: skip
