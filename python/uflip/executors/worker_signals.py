"""Signal handling in a worker of `--workers`: ignore Ctrl-C, which is for the parent process.

A terminal sends Ctrl-C and SIGHUP to all of its processes. The parent cancels the work and ends the
workers; a worker that ended by itself would print a message over the prompt. Dask calls
`dask_setup` in each process that it starts, replacements of dead ones included.
"""

import signal

# SIGTERM is Dask's own way to end a worker.
TERMINAL_SIGNALS = (signal.SIGINT, signal.SIGHUP)


def dask_setup(_worker: object) -> None:
    """Ignore the signals of terminals."""
    for number in TERMINAL_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
