"""Distributes test files to workers, as pytest-xdist does, and continues when a worker dies.

A worker dies where a test ends its process, or takes longer than `timeout`, which cannot be ended
otherwise. pytest-xdist 3.8 puts all that the worker ever had back into its queue: the test that
killed it, which then kills the next worker, and files that it had finished. A worker that is given
a finished file has nothing to report, so that nobody gives it more; if the others were sent home
before, the tests wait for ever. Here the test has failed, what was finished is not given out
again, and the rest is.
"""

from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController


class RestartingScheduler(LoadFileScheduling):
    """Goes on with what a worker that died has left."""

    def remove_node(self, node: WorkerController) -> str | None:
        """Take a worker off; return the test that it was at, if it died."""
        assigned = self.assigned_work.pop(node)
        pending = [
            (unit, test) for unit in assigned.values() for test, done in unit.items() if not done
        ]
        if not pending:
            return None
        unit, died_in = pending[0]
        unit[died_in] = True
        self.workqueue.update(
            {scope: unit for scope, unit in assigned.items() if not all(unit.values())}
        )
        for other in self.assigned_work:
            if self.workqueue:
                self._reschedule(other)
        return str(died_in)
