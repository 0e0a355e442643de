"""In a worker of `--workers`, before anything else: Ctrl-C is for the process that started it.

A terminal sends it, and that it closes, to all of its processes. The one that waits takes the work
back and ends the workers; one that ended by itself would say so over the prompt. Dask calls
`dask_setup` in each process that it starts, also in those that take the place of a dead one.
"""

import signal

# SIGTERM is Dask's own way to end a worker.
OF_TERMINALS = (signal.SIGINT, signal.SIGHUP)


def dask_setup(_worker: object) -> None:
    """Leave them to the parent."""
    for number in OF_TERMINALS:
        signal.signal(number, signal.SIG_IGN)
